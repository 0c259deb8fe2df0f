/*
 * vacuum.h
 *	  Bulk deletion: the callbacks of IndexAmRoutine.
 */
#ifndef SMART_AM_VACUUM_H
#define SMART_AM_VACUUM_H

#include "access/genam.h"

extern IndexBulkDeleteResult *smart_am_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
												   IndexBulkDeleteCallback callback, void *callback_state);
extern IndexBulkDeleteResult *smart_am_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats);

#endif /* SMART_AM_VACUUM_H */

/*
 * rebuild.h
 *	  Rebuilding a lost index in place.
 */
#ifndef SMART_AM_REBUILD_H
#define SMART_AM_REBUILD_H

#include "am/maintenance/worker.h"

/*
 * Rebuilds an index if it is lost, within the current transaction, which has done nothing else.  Returns
 * whether it was; false, too, if the index has gone.  LOCK_NOT_AVAILABLE: another session has locked its
 * table, or waits for a lock.  After any error smart_rebuild_end_failed() is to be called before the
 * transaction is aborted.
 */
extern bool smart_rebuild_index(Oid index);

/* The launcher's job: starts workers where indexes are to be loaded or rebuilt; and what they do (rebuild_worker.c). */
extern long smart_rebuild_tend(struct smart_job *job);
extern void smart_rebuild_serve(const struct smart_job *job);

#endif /* SMART_AM_REBUILD_H */

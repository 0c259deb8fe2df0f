/*
 * insert.h
 *	  Inserts: aminsert, and INSERT ... ON CONFLICT.
 */
#ifndef SMART_AM_INSERT_H
#define SMART_AM_INSERT_H

#include "access/genam.h"
#include "nodes/execnodes.h"

#include "am/journal/pending.h"

/* Callback of IndexAmRoutine; UNIQUE_VIOLATION. */
extern bool smart_am_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
							IndexUniqueCheck check, bool unchanged, struct IndexInfo *info);

/* Adds entries that have waited (pending.h) to an index that is not unique, and sorts them. */
extern void smart_insert_pending(Relation index, const struct smart_pending_add **adds, uint32 count);

/* Called once, when the library is loaded: sets the hook of conflict.c. */
extern void smart_conflict_init(void);

#endif /* SMART_AM_INSERT_H */

/*
 * rebuild.h
 *	  Rebuilding a lost index in place.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_REBUILD_H
#define SMART_AM_REBUILD_H

#include "postgres.h"

/*
 * Rebuilds an index if it is lost, within the current transaction, which has
 * done nothing else.  Returns whether it was.  Nothing either if the index has
 * gone, and if somebody holds a lock of its table: LOCK_NOT_AVAILABLE then.  Any error:
 * smart_rebuild_abandon() is to be called before the transaction is aborted.
 */
extern bool smart_rebuild_index(Oid index);

/*
 * Inserts do not go any more into the tree that this process was building, if
 * it was; it leaves.  error: why, NULL if it gave way to others; it is tried again after so many
 * milliseconds.
 */
extern void smart_rebuild_abandon(Oid index, const char *error, int delay_ms);

/*
 * Frees those trees of this database that left before now and that nobody uses
 * any more.  Returns whether there are others.  Outside of transactions.
 */
extern bool smart_rebuild_free_left(void);

#endif /* SMART_AM_REBUILD_H */

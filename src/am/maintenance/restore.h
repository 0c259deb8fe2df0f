/*
 * restore.h
 *	  A lost index gets its tree back: from its journal, or, if that does not suffice, from its table.  Or an index gives its
 *	  tree up, as the pages of its journal are to answer.
 */
#ifndef SMART_AM_RESTORE_H
#define SMART_AM_RESTORE_H

/*
 * Restores an index if it is lost, within the current transaction, which has done nothing else.  Returns whether it was;
 * false, too, if the index has gone.  rebuild: if it cannot be loaded, it is rebuilt from its table; else it stays lost.
 * LOCK_NOT_AVAILABLE: another session has locked its table, or waits for a lock; INDEX_CORRUPTED, DATA_CORRUPTED: the
 * journal is damaged (smart_restore_condemn).  After any error smart_rebuild_end_failed() is to be called before the
 * transaction is aborted.
 */
extern bool smart_restore_index(Oid index, bool rebuild);

/* The journal of an index is damaged: it is declared stale, so that the index is rebuilt from its table.  In a transaction. */
extern void smart_restore_condemn(Oid index);

/* Gives up an index's tree if its pages are to answer.  In a transaction.  LOCK_NOT_AVAILABLE: as above. */
extern void smart_restore_leave_memory(Oid index);

/*
 * Loads the follower of an index that writes back, if it wants one (src/am/index/relation.h).  In a transaction.  Errors as those of
 * smart_restore_index().
 */
extern void smart_restore_follower(Oid index);

/*
 * For an index that could not be loaded, as there was no room: its pages answer, if they may, and no worker tries again until there
 * is room; false: they may not.  In a transaction.  LOCK_NOT_AVAILABLE: as above.
 */
extern bool smart_restore_without(Oid index);

#endif /* SMART_AM_RESTORE_H */

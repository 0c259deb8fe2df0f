/*
 * follow_worker.h
 *	  What the worker of a database does on a standby: it loads indexes, and keeps their trees near to what is replayed.
 */
#ifndef SMART_AM_FOLLOW_WORKER_H
#define SMART_AM_FOLLOW_WORKER_H

/*
 * Loads the tree of an index from its journal, or brings it up to date, within the current transaction, which has done
 * nothing else.  Nothing if the index has gone, or recovery has ended.  LOCK_NOT_AVAILABLE: replay has locked its table,
 * or waits for that; INDEX_CORRUPTED, DATA_CORRUPTED: the journal is damaged.
 */
extern void smart_follow_index(Oid index);

/* So many indexes has the database. */
extern void smart_follow_count(int indexes);

/* Another round begins: is there to be one more after it, since the server is a standby?  Not if other databases wait. */
extern bool smart_follow_begin(void);

/* Has anything been replayed since it was asked last, or does an index of the database wait to be loaded? */
extern bool smart_follow_is_due(void);

/* The next answer to that will be yes. */
extern void smart_follow_again(void);

/* Is this the code of an error by which recovery cancels what is in its way?  Then it is no failure. */
extern bool smart_follow_is_in_the_way(int code);

#endif /* SMART_AM_FOLLOW_WORKER_H */

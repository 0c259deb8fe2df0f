/*
 * waiters.h
 *	  Does a session wait for a lock of a relation, or for this process's transaction to end?
 */
#ifndef SMART_AM_WAITERS_H
#define SMART_AM_WAITERS_H

#include "storage/lockdefs.h"
#include "utils/relcache.h"

/*
 * Does a session wait for a lock of the relation that conflicts with this mode?  LockHasWaitersRelation() cannot be asked:
 * it crashes if the caller's own lock is one of the weak modes, which are kept with the process.
 */
extern bool smart_lock_is_awaited(Relation relation, LOCKMODE mode);

/*
 * Does a session wait until this process's transaction has ended, as CREATE INDEX CONCURRENTLY, DROP INDEX CONCURRENTLY and
 * REINDEX CONCURRENTLY do for each that has a lock of their table?  They never wait for the lock itself.
 */
extern bool smart_transaction_is_awaited(void);

/* What works in the background asks whether it is in the way of others. */
struct smart_way
{
	bool (*is_awaited)(void *argument);
	void *argument;
};

#endif /* SMART_AM_WAITERS_H */

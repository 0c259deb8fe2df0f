/*
 * waiters.h
 *	  Does a session wait for a lock of a relation?
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

#endif /* SMART_AM_WAITERS_H */

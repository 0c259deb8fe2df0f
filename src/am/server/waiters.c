/*
 * waiters.c
 *	  Does a session wait for a lock of a relation, or for this process's transaction to end?
 */
#include "postgres.h"

#include "storage/lock.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/rel.h"

#include "am/server/waiters.h"
#include "base/assert.h"

/*
 * Does this process wait for the lock with this tag, in a mode that conflicts?  The caller has locked the tag's partition.
 * Locks of other partitions may change while they are read, but their tags are others in any case.
 */
static bool
waits_for(const PGPROC *process, const LOCKTAG *tag, LOCKMODE mode)
{
	const LOCK *lock = *(LOCK *const volatile *) &process->waitLock;

	return lock != NULL && memcmp(&lock->tag, tag, sizeof(*tag)) == 0 &&
		   DoLockModesConflict(process->waitLockMode, mode);
}

bool
smart_lock_is_awaited(Relation relation, LOCKMODE mode)
{
	const LockRelId *id = &relation->rd_lockInfo.lockRelId;
	LWLock *partition;
	bool found = false;
	LOCKTAG tag;

	smart_assert(mode > NoLock && mode <= AccessExclusiveLock);
	SET_LOCKTAG_RELATION(tag, id->dbId, id->relId);
	partition = LockHashPartitionLock(LockTagHashCode(&tag));
	LWLockAcquire(partition, LW_SHARED);
	for (uint32 i = 0; i < ProcGlobal->allProcCount && !found; i++)
		found = waits_for(&ProcGlobal->allProcs[i], &tag, mode);
	LWLockRelease(partition);
	return found;
}

/* Who waits for a transaction makes the lock of its number, which is kept with its process, one of the lock table. */
bool
smart_transaction_is_awaited(void)
{
	bool kept;

	LWLockAcquire(&MyProc->fpInfoLock, LW_SHARED);
	kept = MyProc->fpLocalTransactionId == InvalidLocalTransactionId || MyProc->fpVXIDLock;
	LWLockRelease(&MyProc->fpInfoLock);
	return !kept;
}

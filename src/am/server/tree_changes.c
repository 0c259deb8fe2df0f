/*
 * tree_changes.c
 *	  The counter of changes, which every statement reads, and who is about to raise it: in shared memory, without a lock.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/wait_event.h"

#include "am/compat.h"
#include "am/server/shared.h"
#include "am/server/tree_changes.h"
#include "base/assert.h"
#include "base/fence.h"

struct tree_changes
{
	uint32 number; /* by atomics */
	ConditionVariable changed;
	bool foretold
		[FLEXIBLE_ARRAY_MEMBER]; /* of each backend, and one for the others: it is about to announce one; by atomics */
};

static struct tree_changes *shared;
static bool has_foretold = false;

static Size
shared_bytes(void)
{
	smart_assert(MaxBackends > 0);
	return add_size(offsetof(struct tree_changes, foretold), mul_size((Size) MaxBackends + 1, sizeof(bool)));
}

void
smart_changes_request(void)
{
	RequestAddinShmemSpace(shared_bytes());
}

void
smart_changes_make(void)
{
	shared = smart_shared_make("smart changes", shared_bytes());
	ConditionVariableInit(&shared->changed);
}

static bool *
own_foretold(void)
{
	int number = smart_my_backend_index();

	return &shared->foretold[number >= 0 && number < MaxBackends ? number : MaxBackends];
}

uint32
smart_changes(void)
{
	/* Acquire: a reader of the number sees what it stands for.  Partner: smart_changes_announce. */
	return shared == NULL ? 0 : __atomic_load_n(&shared->number, __ATOMIC_ACQUIRE);
}

uint32
smart_changes_announce(void)
{
	uint32 number;

	/*
	 * A full barrier, also before the locks and pins that the caller looks at next: a session that takes one of those
	 * later sees the number.
	 */
	if (shared == NULL)
		return 0;
	number = __atomic_add_fetch(&shared->number, 1, __ATOMIC_SEQ_CST);
	smart_fence_after_atomic();
	/* Behind the number: who does not see it any more has an older number, which is noticed. */
	if (has_foretold)
		__atomic_store_n(own_foretold(), false, __ATOMIC_RELEASE);
	has_foretold = false;
	ConditionVariableBroadcast(&shared->changed);
	return number;
}

void
smart_changes_foretell(void)
{
	if (shared == NULL)
		return;
	has_foretold = true;
	/*
	 * Before what the caller stores next: who sees that sees this.  Partner: smart_changes_are_foretold().  The order of
	 * the store itself holds back what comes before it, and on arm64 not what comes behind it.
	 */
	__atomic_store_n(own_foretold(), true, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

bool
smart_changes_are_foretold(void)
{
	for (int i = 0; shared != NULL && i <= MaxBackends; i++)
	{
		if (unlikely(__atomic_load_n(&shared->foretold[i], __ATOMIC_ACQUIRE)))
			return true;
	}
	return false;
}

void
smart_changes_wait(long timeout_ms)
{
	uint32 before = smart_changes();

	ConditionVariablePrepareToSleep(&shared->changed);
	if (smart_changes() == before)
		(void) ConditionVariableTimedSleep(&shared->changed, timeout_ms, PG_WAIT_EXTENSION);
	ConditionVariableCancelSleep();
}

/*
 * key_locks.c
 *	  Locks of keys of unique indexes.
 *
 * The lock manager's page locks did the same, at a tenth of the cost of an insert: most keys are nobody else's at that
 * moment, so a lock is a compare-and-swap.  A holder that raises an error gives its lock back with its resource owner; one
 * that dies makes the server reset its shared memory, and the locks with it.
 */
#include "postgres.h"

#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/resowner.h"
#include "utils/wait_event.h"

#include "am/compat.h"
#include "am/server/key_locks.h"
#include "am/server/shared.h"
#include "base/assert.h"

#define STRIPES 1024 /* a power of two */
#define WAIT_MS 1000 /* between two attempts, if no release is announced */

struct stripe
{
	pg_atomic_uint32 holder; /* PID; 0: it is free */
	ConditionVariable released;
};

union padded_stripe
{
	struct stripe stripe;
	char padding[PG_CACHE_LINE_SIZE];
};

static union padded_stripe *stripes;
static struct stripe *held = NULL; /* by this process */

void
smart_key_locks_request(void)
{
	RequestAddinShmemSpace(STRIPES * sizeof(union padded_stripe));
}

void
smart_key_locks_make(void)
{
	stripes = smart_shared_make("smart key locks", STRIPES * sizeof(union padded_stripe));
	for (int i = 0; i < STRIPES; i++)
	{
		pg_atomic_init_u32(&stripes[i].stripe.holder, 0);
		ConditionVariableInit(&stripes[i].stripe.released);
	}
}

/* A holder is in no resource owner's release but after an error: it runs nobody else's code. */
static void
at_release(ResourceReleasePhase phase, bool commit, bool top_level, void *argument)
{
	if (unlikely(held != NULL) && phase == RESOURCE_RELEASE_BEFORE_LOCKS)
		smart_key_unlock();
}

/* A full barrier, partner of smart_key_unlock(): what is read afterwards was not read before. */
static bool
try_lock(struct stripe *stripe)
{
	uint32 nobody = 0;

	smart_assert(held == NULL && MyProcPid != 0);
	return pg_atomic_compare_exchange_u32(&stripe->holder, &nobody, (uint32) MyProcPid);
}

static pg_noinline void
wait_for(struct stripe *stripe)
{
	static uint32 wait_event = 0;

	if (wait_event == 0)
		wait_event = smart_wait_event("SmartUniqueKey");
	ConditionVariablePrepareToSleep(&stripe->released);
	while (!try_lock(stripe))
		(void) ConditionVariableTimedSleep(&stripe->released, WAIT_MS, wait_event);
	held = stripe;
	ConditionVariableCancelSleep();
}

void
smart_key_lock(uint32 hash)
{
	static bool registered = false;
	struct stripe *stripe = &stripes[hash % STRIPES].stripe;

	smart_assert(held == NULL && stripes != NULL);
	if (unlikely(!registered))
	{
		RegisterResourceReleaseCallback(at_release, NULL);
		registered = true;
	}
	if (likely(try_lock(stripe)))
		held = stripe;
	else
		wait_for(stripe);
	smart_assert(held == stripe && pg_atomic_read_u32(&stripe->holder) == (uint32) MyProcPid);
}

void
smart_key_unlock(void)
{
	struct stripe *stripe = held;

	smart_assert(stripe != NULL && pg_atomic_read_u32(&stripe->holder) == (uint32) MyProcPid);
	held = NULL;
	/*
	 * A full barrier, partner of try_lock(): the next holder sees what was published; and a waiter that is not in the list
	 * yet finds the lock free.
	 */
	(void) pg_atomic_exchange_u32(&stripe->holder, 0);
	ConditionVariableSignal(&stripe->released);
}

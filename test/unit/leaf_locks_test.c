/*
 * leaf_locks_test.c
 *	  Locks of remote leaves: one holder at a time, and a wait that ends at an
 *	  interrupt or at its limit.
 */

#include "compute/coordinate/leaf_locks.h"
#include "support/check.h"
#include "support/env_thread.h"
#include "support/threads.h"

#define THREADS 4
#define ROUNDS  20000
#define LOCK    17

static struct smart_leaf_locks locks;
static uint64_t counted; /* under the lock, and not atomic */

static void *
count(void *argument)
{
	uint32_t client = (uint32_t) (uintptr_t) argument;
	struct env_thread env;

	env_thread_init(&env, client + 1);
	for (unsigned int i = 0; i < ROUNDS; i++)
	{
		if (!CHECK(smart_leaf_lock_take(&locks, LOCK, client, &env.env, 60000) == SMART_OK))
			return NULL;
		counted++;
		smart_leaf_lock_drop(&locks, LOCK, client);
	}
	return NULL;
}

static void
check_exclusion(void)
{
	test_run_threads(THREADS, count, NULL, 1);
	CHECK(counted == (uint64_t) THREADS * ROUNDS);
}

static void
check_waits(void)
{
	struct env_thread env;

	env_thread_init(&env, 1);
	CHECK(smart_leaf_lock_take(&locks, LOCK, 0, &env.env, 0) == SMART_OK);
	CHECK(smart_leaf_lock_take(&locks, LOCK, 1, &env.env, 5) == SMART_TIMEOUT);
	CHECK(smart_leaf_lock_take(&locks, LOCK + 1, 1, &env.env, 0) == SMART_OK);
	env.stop = true;
	CHECK(smart_leaf_lock_take(&locks, LOCK, 2, &env.env, 60000) == SMART_INTERRUPTED);
	smart_leaf_lock_drop(&locks, LOCK, 0);
	CHECK(smart_leaf_lock_take(&locks, LOCK, 2, &env.env, 0) == SMART_OK);
	smart_leaf_lock_drop(&locks, LOCK, 2);
	smart_leaf_lock_drop(&locks, LOCK + 1, 1);
}

int
main(void)
{
	check_waits();
	check_exclusion();
	return check_finish();
}

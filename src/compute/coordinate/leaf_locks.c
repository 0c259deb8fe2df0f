/*
 * leaf_locks.c
 *	  Taking and dropping the locks of leaves on remote memory nodes.
 *
 * Progress: blocking, with a limit.  There is no queue: the client that looks first when the lock is free has it.
 */
#include "base/assert.h"
#include "compute/coordinate/leaf_locks.h"

bool
smart_leaf_lock_is_mine(const struct smart_leaf_locks *locks, unsigned int lock, uint32_t client)
{
	smart_assert(lock < SMART_LOCK_LEAVES);
	return __atomic_load_n(&locks->holder[lock], __ATOMIC_RELAXED) == (uint64_t) client + 1;
}

bool
smart_leaf_lock_try(struct smart_leaf_locks *locks, unsigned int lock, uint32_t client)
{
	uint64_t *holder = &locks->holder[lock];
	uint64_t me = (uint64_t) client + 1;
	uint64_t free = 0;

	smart_assert(!smart_leaf_lock_is_mine(locks, lock, client));
	/* A look before the CAS: waiters share the line until it is worth a try.  Acquire: partner is the drop. */
	return __atomic_load_n(holder, __ATOMIC_RELAXED) == 0 &&
		   __atomic_compare_exchange_n(holder, &free, me, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

smart_status
smart_leaf_lock_take(struct smart_leaf_locks *locks, unsigned int lock, uint32_t client, struct smart_env *env,
					 uint32_t timeout_ms)
{
	uint64_t deadline;

	if (smart_likely(smart_leaf_lock_try(locks, lock, client)))
		return SMART_OK;
	deadline = smart_deadline_ns(env, timeout_ms);
	for (unsigned int attempt = 0; !smart_leaf_lock_try(locks, lock, client); attempt++)
	{
		if (env->interrupted(env))
			return SMART_INTERRUPTED;
		if (env->now_ns(env) >= deadline)
			return SMART_TIMEOUT;
		env->pause(env, attempt);
	}
	return SMART_OK;
}

void
smart_leaf_lock_drop(struct smart_leaf_locks *locks, unsigned int lock, uint32_t client)
{
	smart_assert(__atomic_load_n(&locks->holder[lock], __ATOMIC_RELAXED) == (uint64_t) client + 1);
	__atomic_store_n(&locks->holder[lock], 0, __ATOMIC_RELEASE);
}

/*
 * local_lock.h
 *	  A lock in the memory that the clients of a compute node share, for a few loads and stores: nothing is waited for under it.
 *
 * A client that dies within takes its compute node along, which is made anew under another number (src/README, Partitions).
 */
#ifndef SMART_COMPUTE_PARTITION_LOCAL_LOCK_H
#define SMART_COMPUTE_PARTITION_LOCAL_LOCK_H

#include "base/assert.h"
#include "base/env.h"

static inline void
smart_local_lock(uint32_t *lock, struct smart_env *env)
{
	uint32_t free = 0;

	/* Acquire: what the last holder changed is there.  Partner: smart_local_unlock. */
	for (unsigned int attempt = 0;
		 !__atomic_compare_exchange_n(lock, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED); attempt++, free = 0)
		env->pause(env, attempt);
}

static inline void
smart_local_unlock(uint32_t *lock)
{
	smart_assert(__atomic_load_n(lock, __ATOMIC_RELAXED) == 1);
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

#endif /* SMART_COMPUTE_PARTITION_LOCAL_LOCK_H */

/*
 * leaf_locks.h
 *	  The locks of leaves on remote memory nodes: words in the compute node's shared memory.
 *
 * The holder of such a lock waits for memory nodes, so a wait for it must be interruptible and have a limit, which a
 * server's own light locks have not.  A holder that fails unlocks before its error is raised; a process that is killed
 * takes all of shared memory with it.
 */
#ifndef SMART_COMPUTE_LEAF_LOCKS_H
#define SMART_COMPUTE_LEAF_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/env.h"
#include "base/status.h"
#include "compute/coordinate/locks.h"
#include "tree/layout.h"

/* Zeros: no client holds one. */
struct smart_leaf_locks
{
	uint64_t holder[SMART_LOCK_LEAVES]; /* client number + 1, or 0; CAS to take, stored to unlock */
};

/* The lock of a leaf, as a number among SMART_LOCK_LEAVES; also where these are a server's light locks. */
static inline unsigned int
smart_leaf_lock_of(fabric_address leaf)
{
	smart_assert(leaf != 0 && leaf % SMART_UNIT == 0);
	/* Leaves that lie side by side are written by one bulk of inserts: spread them. */
	return (unsigned int) ((leaf / SMART_UNIT * UINT64_C(0x9e3779b97f4a7c15)) >> 54);
}

_Static_assert(SMART_LOCK_LEAVES == 1u << 10, "a leaf's lock is chosen by 10 bits of its hash");

/*
 * Takes a lock (0 to SMART_LOCK_LEAVES - 1) for a client that holds none; one that does only tries.
 * SMART_INTERRUPTED; SMART_TIMEOUT after timeout_ms.
 */
extern smart_status smart_leaf_lock_take(struct smart_leaf_locks *locks, unsigned int lock, uint32_t client,
										 struct smart_env *env, uint32_t timeout_ms);
/* Takes it if no client has it. */
extern bool smart_leaf_lock_try(struct smart_leaf_locks *locks, unsigned int lock, uint32_t client);
extern bool smart_leaf_lock_is_mine(const struct smart_leaf_locks *locks, unsigned int lock, uint32_t client);
extern void smart_leaf_lock_drop(struct smart_leaf_locks *locks, unsigned int lock, uint32_t client);

#endif /* SMART_COMPUTE_LEAF_LOCKS_H */

/*
 * leaf_locks.h
 *	  The locks of leaves on remote memory nodes: words in the compute node's
 *	  shared memory.
 *
 * Who holds one waits for memory nodes, so that a wait for it must be
 * interruptible and have a limit, which a server's own light locks have not.
 * A holder that fails lets go before its error is raised; a process that is
 * killed takes all of shared memory with it.
 */
#ifndef SMART_COMPUTE_LEAF_LOCKS_H
#define SMART_COMPUTE_LEAF_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "base/status.h"
#include "compute/locks.h"

/* Zeros: nobody holds one. */
struct smart_leaf_locks
{
	uint64_t holder[SMART_LOCK_LEAVES]; /* client number + 1, or 0; CAS to take, stored to let go */
};

/*
 * Takes a lock (0 to SMART_LOCK_LEAVES - 1) for a client that holds none.
 * SMART_INTERRUPTED; SMART_TIMEOUT after timeout_ms.
 */
extern smart_status smart_leaf_lock_take(struct smart_leaf_locks *locks, unsigned int lock, uint32_t client,
										 struct smart_env *env, uint32_t timeout_ms);
/* Takes it if nobody has it. */
extern bool smart_leaf_lock_try(struct smart_leaf_locks *locks, unsigned int lock, uint32_t client);
extern void smart_leaf_lock_drop(struct smart_leaf_locks *locks, unsigned int lock, uint32_t client);

#endif /* SMART_COMPUTE_LEAF_LOCKS_H */

/*
 * wait.h
 *	  Waiting for a socket, a slice at a time; and interrupts that come late.
 */
#ifndef SMART_RDMA_WAIT_H
#define SMART_RDMA_WAIT_H

#include "base/env.h"
#include "base/status.h"

/*
 * Lets the interrupts of a batch count a moment late.
 *
 * Giving up verbs that are under way costs all clients of the compute node their connections to the memory node
 * (remote.h), and the verbs of a node that is well complete within less than a moment.
 */
struct grace
{
	uint64_t until_ns; /* the end of this batch's grace; 0: not interrupted yet, as each batch begins */
};

/* Has the client been interrupted, and is its grace over?  grace NULL: it has none. */
extern bool wait_interrupted(struct smart_env *env, struct grace *grace);

/*
 * Sleeps a moment, or until the descriptor can be read (or written, if to_write):
 * SMART_OK, and the caller tries again.  SMART_INTERRUPTED, SMART_TIMEOUT: it has to stop.
 */
extern smart_status
wait_slice(struct smart_env *env, struct grace *grace, int descriptor, bool to_write, uint64_t deadline_ns);

/* Milliseconds until deadline_ns, rounded up; 0: it is over. */
extern uint32_t wait_remaining_ms(struct smart_env *env, uint64_t deadline_ns);

#endif /* SMART_RDMA_WAIT_H */

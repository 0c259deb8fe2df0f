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

	/* Is it known by now that the node does not answer, so that nobody waits for it any more?  NULL: that is never known. */
	bool (*is_over)(const struct grace *grace);
};

/*
 * SMART_INTERRUPTED: the client has been interrupted, and its grace is over.  SMART_UNREACHABLE: the wait is, as above.  grace
 * NULL: it has none.
 */
extern smart_status wait_status(struct smart_env *env, struct grace *grace);

/*
 * Sleeps a moment, or until the descriptor can be read (or written, if to_write):
 * SMART_OK, and the caller tries again.  Errors as above, and SMART_TIMEOUT: it has to stop.
 */
extern smart_status
wait_slice(struct smart_env *env, struct grace *grace, int descriptor, bool to_write, uint64_t deadline_ns);

/* Milliseconds until deadline_ns, rounded up; 0: it is over. */
extern uint32_t wait_remaining_ms(struct smart_env *env, uint64_t deadline_ns);

#endif /* SMART_RDMA_WAIT_H */

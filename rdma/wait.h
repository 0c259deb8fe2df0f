/*
 * wait.h
 *	  Waiting for a socket, a slice at a time; and interrupts that come late.
 */
#ifndef SMART_RDMA_WAIT_H
#define SMART_RDMA_WAIT_H

#include "base/env.h"
#include "base/status.h"

/*
 * Sleeps a moment, or until the descriptor can be read (or written, if to_write):
 * SMART_OK, and the caller tries again.  SMART_INTERRUPTED, SMART_TIMEOUT: it has to stop.
 */
extern smart_status wait_slice(struct smart_env *env, int descriptor, bool to_write, uint64_t deadline_ns);

/* Milliseconds until deadline_ns, rounded up; 0: it is over. */
extern uint32_t wait_remaining_ms(struct smart_env *env, uint64_t deadline_ns);

/*
 * An environment that reports an interrupt a moment late.
 *
 * Giving up verbs that are under way costs all clients of the compute node their connections to the memory node
 * (remote.h), and the verbs of a node that is well complete within less than a moment.  So links look at the interrupts
 * of this environment, which are those of another one with a grace for each batch.
 */
struct grace
{
	struct smart_env env;    /* first */
	struct smart_env *outer; /* does the work */
	uint64_t until_ns;       /* the end of this batch's grace; 0: not interrupted yet */
};

extern void grace_init(struct grace *grace, struct smart_env *outer);

/* A new batch begins. */
static inline void
grace_renew(struct grace *grace)
{
	grace->until_ns = 0;
}

#endif /* SMART_RDMA_WAIT_H */

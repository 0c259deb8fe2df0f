/*
 * grace.h
 *	  An environment that reports an interrupt a moment late.
 *
 * Giving up verbs that are under way costs all clients of the compute node
 * their connections to the memory node (remote.h), and the verbs of a node that is well
 * complete within less than a moment.  So links look at the interrupts of this
 * environment, which are those of another one with a grace for each batch.
 */
#ifndef SMART_RDMA_GRACE_H
#define SMART_RDMA_GRACE_H

#include "base/env.h"

struct grace
{
	struct smart_env env;    /* first */
	struct smart_env *outer; /* who does the work */
	uint64_t until_ns;       /* the end of this batch's grace; 0: not interrupted yet */
};

extern void grace_init(struct grace *grace, struct smart_env *outer);

/* A new batch begins. */
static inline void
grace_renew(struct grace *grace)
{
	grace->until_ns = 0;
}

#endif /* SMART_RDMA_GRACE_H */

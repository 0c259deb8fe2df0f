/*
 * link.h
 *	  How the verbs of one client reach one memory node: a session and, over it
 *	  or beside it, a data path (tcp/tcp.c, verbs/verbs.c).
 *
 * A link carries one batch at a time.  After a failure it has to be closed:
 * whether the verbs of the batch took effect, and when, is not known; the
 * caller raises the memory node's generation (wire.h).  SMART_CORRUPT is no such
 * failure: nothing of the batch is under way any more.
 */
#ifndef SMART_RDMA_LINK_H
#define SMART_RDMA_LINK_H

#include "base/env.h"
#include "rdma/wire.h"

struct fabric_link;
struct grace;
struct session;

struct fabric_link_kind
{
	/*
	 * Starts those of requests[0..count) that go to this link's memory node, in their
	 * order, with one doorbell; requests and what they point to stay until finish.
	 * What cannot be sent now goes with finish.
	 */
	smart_status (*post)(struct fabric_link *link, struct fabric_request *requests, int count);

	/* Waits until all that was posted has completed; results are set then. */
	smart_status (*finish)(struct fabric_link *link, uint64_t deadline_ns);

	/* Ends the data path and frees the link, not its session. */
	void (*close)(struct fabric_link *link);
};

struct fabric_link
{
	const struct fabric_link_kind *kind;
	struct session *session; /* the link's until it is closed */
	struct smart_env *env;
	struct grace *grace;               /* of its interrupts (wait.h); NULL: none */
	unsigned int node;                 /* memory node number in addresses */
	bool broken;                       /* SMART_CORRUPT came, and the link carries nothing any more */
	char problem[SESSION_PROBLEM_MAX]; /* why the last call failed */
};

/* A link over a session that has said HELLO for verbs.  problem[] tells why on failure. */
extern smart_status tcp_link_open(struct session *session, struct smart_env *env, unsigned int node,
								  uint64_t deadline_ns, struct fabric_link **link, char problem[SESSION_PROBLEM_MAX]);
extern smart_status verbs_link_open(struct session *session, struct smart_env *env, unsigned int node,
									uint64_t deadline_ns, struct fabric_link **link, char problem[SESSION_PROBLEM_MAX]);

#endif /* SMART_RDMA_LINK_H */

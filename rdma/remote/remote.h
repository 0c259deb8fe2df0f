/*
 * remote.h
 *	  The provider for memory nodes on other hosts: routes the verbs of a batch to
 *	  its memory nodes, over links that it makes when they are first needed.
 *
 * Order: requests to one memory node execute in the order of the batch; the
 * call returns when all of them, on all nodes, have completed.
 *
 * A client that gives up a batch (time limit, interrupt, lost connection) does
 * not know whether its verbs will still take effect, unless all of them are READs.  It closes the link and
 * raises the node's generation, which all clients of the compute node share;
 * each of them looks at it before every batch and makes its link anew when it
 * has risen.  The memory node closes all links of lower generations before it
 * welcomes a higher one (wire.h).  So whatever another client does after the
 * batch was given up, under a lock that the first one held, say, comes after
 * its verbs or without them.
 */
#ifndef SMART_RDMA_REMOTE_H
#define SMART_RDMA_REMOTE_H

#include "rdma/link.h"
#include "rdma/tcp/session.h"

/* Where a memory node is now. */
struct fabric_location
{
	char host[SESSION_HOST_MAX];
	char port[SESSION_PORT_MAX];
	uint64_t incarnation; /* of its region: another one there is not this memory node */
	enum wire_transport transport;
};

/* What the clients of a compute node share about its memory nodes. */
struct fabric_nodes
{
	/*
	 * SMART_UNREACHABLE: it is known to be down, or its place is not known; SMART_CORRUPT: there
	 * never was such a node, and no address can lead there; problem[] tells.
	 */
	smart_status (*locate)(struct fabric_nodes *nodes, unsigned int node, struct fabric_location *location,
						   char problem[SESSION_PROBLEM_MAX]);

	/*
	 * For fabric_remote_await(): a node did not answer; waits for it, and tells whether it may answer now.  *since_ns is
	 * 0 at first and await()'s own then, so that it ends for a node that is up and does not answer.  NULL: it never may.
	 */
	bool (*await)(struct fabric_nodes *nodes, unsigned int node, uint64_t *since_ns);

	/* Is a node known not to answer, so that who waits for its reply gives up?  Called often.  NULL: it never is. */
	bool (*is_missed)(struct fabric_nodes *nodes, unsigned int node);

	/* By node number; in memory that all clients share, changed by atomics only, never falls. */
	uint32_t *generation;
};

struct fabric_remote_options
{
	struct smart_env *env;
	struct fabric_nodes *nodes;
	const struct stream_secret *secret; /* NULL: none */
	uint64_t owner;                     /* these two as HELLO has them (wire.h) */
	uint64_t system;
	uint64_t incarnation;
	uint32_t client;
	uint32_t pid;
	uint32_t timeout_ms; /* of one batch, connecting included */
};

/* A fabric without links yet.  The options are copied; what they point to outlives the fabric.  SMART_NO_MEMORY. */
extern smart_status fabric_remote_open(const struct fabric_remote_options *options, struct fabric **fabric);

/*
 * The last call came to status.  If that was a memory node's doing, waits for it as await() above does; true: begin anew
 * what the call was a part of.  For a caller that can do so without knowing what has taken effect (nothing more of it will, once
 * the node answers again), and holds nothing that others wait for.
 */
extern bool fabric_remote_await(struct fabric *fabric, smart_status status, uint64_t *since_ns);

/* Another limit from now on. */
extern void fabric_remote_set_timeout(struct fabric *fabric, uint32_t timeout_ms);

/* Does nodes->locate() find the node?  Else fabric->problem tells why not. */
extern bool fabric_remote_is_up(struct fabric *fabric, unsigned int node);

/*
 * The session of this client with a memory node, connected if it was not, for
 * requests that are not verbs; and what to do when one of them failed (any status but SMART_OK,
 * SMART_NO_SPACE and SMART_CORRUPT): closes the link, and raises the generation, since the
 * request may still come.  Until the next call of the fabric, which may close the session.
 */
extern smart_status fabric_remote_session(struct fabric *fabric, unsigned int node, struct session **session);
extern void fabric_remote_drop(struct fabric *fabric, unsigned int node);

#endif /* SMART_RDMA_REMOTE_H */

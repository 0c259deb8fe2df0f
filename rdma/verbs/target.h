/*
 * target.h
 *	  The memory node's side of RDMA: registers the region once, and makes a queue
 *	  pair for each client.  The data path never wakes the process.
 */
#ifndef SMART_RDMA_VERBS_TARGET_H
#define SMART_RDMA_VERBS_TARGET_H

#include "rdma/wire.h"

struct verbs_target;
struct verbs_target_pair;

struct verbs_target_options
{
	const char *device; /* "mlx5_0"; NULL: the first that has a port that is up, and atomics */
	int port;           /* 0: the first that is up */
	int gid_index;      /* -1: found by itself: RoCE v2 with an IPv4 address first; InfiniBand needs none */
	uint8_t *base;      /* of the region, at offset 0 */
	uint64_t from;      /* offsets from..limit are registered, the rest cannot be reached */
	uint64_t limit;
};

/* Is there a device that verbs_target_open could use?  Does not open it for good. */
extern bool verbs_target_available(void);

/*
 * SMART_UNREACHABLE: no such device, no port, no atomics (iWARP has none), or
 * registering failed (the limit of locked memory); problem[] tells and says what to do.  SMART_NO_MEMORY.
 */
extern smart_status verbs_target_open(const struct verbs_target_options *options, struct verbs_target **target,
									  char problem[FABRIC_PROBLEM_MAX]);
extern void verbs_target_close(struct verbs_target *target);

/* A queue pair connected to the client's; *answer is what the client needs. */
extern smart_status
verbs_target_connect(struct verbs_target *target, const struct wire_queue_pair *client, struct wire_queue_pair *answer,
					 struct verbs_target_pair **pair, char problem[FABRIC_PROBLEM_MAX]);

/* Destroys the queue pair: when this returns, no verb of the client takes effect any more. */
extern void verbs_target_disconnect(struct verbs_target_pair *pair);

#endif /* SMART_RDMA_VERBS_TARGET_H */

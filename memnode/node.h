/*
 * node.h
 *	  A memory node: its region and what is known about it while the process
 *	  lives.  One thread.
 */
#ifndef MEMNODE_NODE_H
#define MEMNODE_NODE_H

#include <time.h>

#include "base/env.h"
#include "counters.h"
#include "log.h"
#include "rdma/verbs/target.h"
#include "trees.h"

struct memnode_client;
struct memnode_memory;

struct memnode
{
	struct memnode_region region;
	struct memnode_chunks chunks;
	struct memnode_trees trees;
	struct smart_env env;
	struct fabric *fabric;       /* executes the verbs that come by TCP */
	struct verbs_target *target; /* NULL: no RDMA */
	uint32_t transports;         /* enum wire_transport, one bit each */

	struct memnode_client *clients; /* the open ones */
	uint32_t client_count;
	uint32_t greeted_count;              /* of them, those that have said HELLO */
	uint32_t client_max;                 /* more than so many are refused; 0: none are */
	bool client_ended;                   /* some client has, and its socket can be closed */
	bool contested;                      /* some client may be */
	uint32_t generation[MEMNODE_OWNERS]; /* the highest of the incarnation that has the owner's lease */
	uint64_t lease_ns[MEMNODE_OWNERS];   /* when that took it; 0: before this process began */
	uint32_t forget_after_s;             /* who is away for so long may have to make room; 0: nobody has */

	uint64_t started_ns;
	time_t snapshot_time;      /* when the snapshot was written that the node began with; 0: with none */
	uint64_t snapshot_load_ns; /* how long that took to load */
	struct memnode_counters counters;
	uint64_t round_ns; /* when the round of requests in hand began; 0: there are no rounds */
	bool full_said;    /* the log says that no chunk is left */

	struct fabric_request requests[WIRE_BATCH_MAX]; /* of the batch in hand */
	uint32_t numbers[WIRE_LIST_MAX];                /* of the list in hand */
	struct wire_tree list[WIRE_LIST_MAX];
};

/*
 * A node on a region that memnode_region_fault() finds sound, or a new one; the view is copied.
 * SMART_CORRUPT: its trees contradict each other.  SMART_NO_MEMORY.
 */
extern smart_status memnode_open(struct memnode *node, const struct memnode_region *region, uint32_t transports);

/*
 * Opens a node on memory.  With a snapshot's path (or ""), that file does not exist afterwards:
 * it was loaded, or the region that was there is newer.  False: problem[] says why.
 */
extern bool memnode_adopt(struct memnode *node, const struct memnode_memory *memory, const char *snapshot,
						  uint32_t transports, char problem[MEMNODE_PROBLEM_MAX]);

/* Closes what is left of clients, then the rest; the region stays as it is. */
extern void memnode_close(struct memnode *node);

#endif /* MEMNODE_NODE_H */

/*
 * ranges.h
 *	  The ranges of a partitioned tree on a simulated cluster: their bounds, their trees' roots, their owners.
 */
#ifndef YCSB_RANGES_H
#define YCSB_RANGES_H

#include "base/assert.h"
#include "compute/partition/partition.h"
#include "cluster.h"
#include "options.h"
#include "store.h"

#define YCSB_RANGES_FIRST_TREE 1 /* id of the first range's tree */

struct ycsb_ranges
{
	unsigned int count;
	unsigned int compute_nodes;
	struct smart_partition *partition[SIM_TIMED_NODES_MAX]; /* of each compute node */
	uint32_t owner[SMART_RANGES_MAX];                       /* a compute node + 1, as far as clients know */
	uint64_t turns;                                         /* so far */
	uint64_t leaves_at;                                     /* turns after which the last compute node goes, */
	uint64_t returns_at;                                    /* and comes back */
	bool moving;
	struct ycsb_moves moves;
};

/* What a move does with logs: handover as smart_partition_give has it, NULL: there are none; ahead: the same, within a turn. */
struct ycsb_ranges_logs
{
	const struct smart_handover *handover;
	smart_status (*ahead)(void *client, unsigned int range);
	void *client;
};

/*
 * Divides the keys that will be loaded into as many equal shares as the options want, with empty trees, and gives each
 * compute node as many neighbouring ones.  fabric, env: of a client, out of time.  False: told on stderr; close all the
 * same.
 */
extern bool ycsb_ranges_open(struct ycsb_ranges *ranges, const struct ycsb_options *options, struct ycsb_store *store,
							 struct fabric *fabric, struct smart_env *env);
extern void ycsb_ranges_close(struct ycsb_ranges *ranges);

static inline unsigned int
ycsb_ranges_find(const struct ycsb_ranges *ranges, const uint8_t *key, size_t length)
{
	return smart_partition_find(ranges->partition[0], key, length);
}

static inline const struct smart_range *
ycsb_ranges_at(const struct ycsb_ranges *ranges, unsigned int range)
{
	smart_assert(range < ranges->count);
	return smart_partition_range(ranges->partition[0], range);
}

/*
 * Begins a client's turn in a range with the compute node that owns it, which is waited for if the range is being given
 * away.  *compute: which one.  The errors of a batch, and SMART_TIMEOUT.
 */
extern smart_status ycsb_ranges_enter(struct ycsb_ranges *ranges, struct fabric *fabric, struct smart_env *env,
									  unsigned int client, unsigned int range, unsigned int *compute, uint64_t *tenure);

/* Moves the last compute node's ranges, if so many turns have begun.  By a client that is in none. */
extern smart_status ycsb_ranges_move(struct ycsb_ranges *ranges, struct fabric *fabric, struct smart_env *env,
									 const struct ycsb_ranges_logs *logs);

static inline void
ycsb_ranges_leave(struct ycsb_ranges *ranges, unsigned int compute, unsigned int client)
{
	smart_assert(compute < ranges->compute_nodes);
	smart_partition_leave(ranges->partition[compute], client);
}

#endif /* YCSB_RANGES_H */

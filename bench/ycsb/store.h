/*
 * store.h
 *	  Blocks of a simulated cluster's memory nodes.
 *
 * Handed out by class in slabs that go round the memory nodes; a retired block
 * serves again, as the same class (I6), when every operation has ended that was
 * open when it was retired.  Allocation takes no time: a real compute node asks
 * a memory node once for 2 MiB.
 */
#ifndef YCSB_STORE_H
#define YCSB_STORE_H

#include <stddef.h>

#include "rdma/sim/timed.h"
#include "tree/layout.h"

#define YCSB_ROOT_OFFSET SMART_UNIT /* on memory node 0; the first page holds nothing else */

struct ycsb_retired
{
	fabric_address block;
	uint64_t at;
};

/* Free and retired blocks of a class, the oldest first: a ring. */
struct ycsb_pool
{
	struct ycsb_retired *ring;
	size_t size; /* a power of two, or 0 */
	size_t head;
	size_t count;
	fabric_address slab; /* what is left of the newest slab */
	uint32_t slab_left;  /* bytes */
};

struct ycsb_store
{
	unsigned int nodes;
	uint64_t bytes; /* of each node's region */
	uint8_t *base[SIM_TIMED_NODES_MAX];
	uint64_t used[SIM_TIMED_NODES_MAX];
	unsigned int turn; /* the node that has the next slab */
	struct ycsb_pool pool[SMART_CLASSES];
};

/* Regions of so many bytes each, of which only what is used takes memory; an empty tree's root.  False: no memory. */
extern bool ycsb_store_open(struct ycsb_store *store, unsigned int nodes, uint64_t bytes);
extern void ycsb_store_close(struct ycsb_store *store);

static inline fabric_address
ycsb_store_root(void)
{
	return fabric_make_address(0, YCSB_ROOT_OFFSET);
}

/* So many bytes of a memory node that are nobody's block, aligned to a page, of zeros.  0: no space. */
extern fabric_address ycsb_store_reserve(struct ycsb_store *store, unsigned int node, uint64_t bytes);

/* Do blocks of this class wait for their next use? */
extern bool ycsb_store_retired(const struct ycsb_store *store, smart_class class);

/* epoch: as it is now (compute/coordinate/epoch.h), here and when the block was retired.  SMART_NO_SPACE. */
extern smart_status
ycsb_store_allocate(struct ycsb_store *store, smart_class class, uint64_t epoch, fabric_address *block);
extern void ycsb_store_retire(struct ycsb_store *store, smart_class class, uint64_t epoch, fabric_address block);

#endif /* YCSB_STORE_H */

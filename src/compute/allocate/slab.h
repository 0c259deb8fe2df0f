/*
 * slab.h
 *	  Slabs: the blocks of one class of one tree.  All under the lock of the tree's partition.
 */
#ifndef SMART_COMPUTE_SLAB_H
#define SMART_COMPUTE_SLAB_H

#include "compute/allocate/trees.h"

/* How many blocks of a class a slab has, on 1 << *order pages. */
extern unsigned int smart_slab_geometry(smart_class class, unsigned int *order);

/* A slab of the class has 1 << this pages. */
static inline unsigned int
smart_slab_order(smart_class class)
{
	unsigned int order;

	(void) smart_slab_geometry(class, &order);
	return order;
}

/*
 * No lock held: takes the pages for a slab of a tree, which hold zeros.  Errors of smart_pages_take and, in an extent
 * map, of the fabric.
 */
extern smart_status smart_slab_prepare(struct smart_space *space, uint32_t record, smart_class class, uint32_t *page);

/*
 * Makes a slab of such pages, at the head of its class's list.  False: their memory node was lost meanwhile, and the
 * pages have been given back.
 */
extern bool smart_slab_link(struct smart_space *space, uint32_t record, smart_class class, uint32_t page);

/* The parts of that: the slab's descriptor with all blocks free, and its tree's lists and counts. */
extern void smart_slab_form(const struct smart_region *region, uint32_t record, smart_class class, uint32_t page);
extern void smart_slab_enlist(const struct smart_region *region, uint32_t page);

/* Takes a free block of the first slab of the class, which exists. */
extern fabric_address smart_slab_take_block(struct smart_space *space, uint32_t record, smart_class class);

/* Marks a block retired at epoch; false if it is not a block in use of this tree and class. */
extern bool smart_slab_retire_block(struct smart_space *space, uint32_t record, smart_class class, fabric_address block,
									uint64_t epoch);

/*
 * Frees the retired blocks of the oldest slabs in the queue, as far as the epoch allows, of limit slabs at most.  Slabs
 * that become empty go back to the page allocator.  Returns the pages given back.
 */
extern uint64_t smart_slab_reclaim(struct smart_space *space, uint32_t record, unsigned int limit);

/* Adds the pages of all slabs of a tree to those of their memory nodes. */
extern void smart_slab_count_nodes(const struct smart_space *space, uint32_t record, uint64_t pages[FABRIC_NODES_MAX]);

/* Gives back all slabs of a tree, whatever is in them. */
extern void smart_slab_drop_all(struct smart_space *space, uint32_t record);

#endif /* SMART_COMPUTE_SLAB_H */

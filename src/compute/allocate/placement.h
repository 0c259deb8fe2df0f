/*
 * placement.h
 *	  On which memory nodes of an extent map the blocks of a tree lie.
 */
#ifndef SMART_COMPUTE_PLACEMENT_H
#define SMART_COMPUTE_PLACEMENT_H

#include "compute/allocate/extent_map.h"
#include "compute/allocate/trees.h"

/*
 * A tree is small up to as many pages as its client says (smart_space.small_pages), or up to a part of what its home
 * has; a large one goes on to another node after so many pages.
 */
#define SMART_SMALL_TREE_PART 8u
#define SMART_SPREAD_PAGES    64u

/* What a memory node is taken to have as long as it has not said so, in chunks. */
#define SMART_ROOM_UNKNOWN 512u

/* Another tree, which has its root on this node, takes its first pages from there. */
extern void smart_placement_begin(struct smart_record *record, unsigned int node);

/* ---- all of the following under the page allocator's lock ---- */

/* The node that a tree takes its next pages from, by its record; FABRIC_NODES_MAX: there is none. */
extern unsigned int smart_placement_home(const struct smart_space *space, uint32_t record);

/* From now on the tree takes its pages from this node, as far as may be. */
extern void smart_placement_move(const struct smart_space *space, uint32_t record, unsigned int node);

/* May pages of the node be taken? */
extern bool smart_placement_is_usable(const struct smart_region *extents, unsigned int node);

/*
 * The open memory nodes in the order in which they are to be asked for a chunk for a tree: its home, then those with
 * the most room; nodes that rest come last.  record 0: for the root of another tree, whose home is the first one then.
 * Returns how many.
 */
extern unsigned int
smart_placement_order(const struct smart_space *space, uint32_t record, uint8_t nodes[FABRIC_NODES_MAX]);

#endif /* SMART_COMPUTE_PLACEMENT_H */

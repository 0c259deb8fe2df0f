/*
 * remove.h
 *	  The removal of entries from one leaf.
 */
#ifndef SMART_TREE_REMOVE_H
#define SMART_TREE_REMOVE_H

#include "tree/block/handle.h"
#include "tree/structure/change.h"

/* Blocked equality prefixes (A1), at least as many as a leaf has entries. */
#define SMART_BLOCKED_MAX SMART_LEAF_SIZE_MAX

/* Those of entries that a rewrite leaves out. */
struct smart_blocked_points
{
	uint32_t count;
	struct smart_blocked points[SMART_BLOCKED_MAX];
};

extern void smart_unblock_points(struct smart_tree *tree, struct smart_blocked_points *blocked);

/* A removal from the leaf that covers key. */
struct smart_leaf_removal
{
	struct smart_key key;
	smart_slot hint; /* remote: leads to the leaf where it was seen a while ago; 0: not known */
	struct smart_drop drop;
	struct smart_blocked_points *blocked; /* of what drop takes for dead, with cached results; NULL: it blocks none */
	bool only_if_there;                   /* one key: finished if it is absent */
	bool finished;
};

/* Runs a removal to its end, within an epoch; afterwards drop.count is what it removed. */
extern smart_status smart_remove_from_leaf(struct smart_tree *tree, struct smart_leaf_removal *removal);

#endif /* SMART_TREE_REMOVE_H */

/*
 * order.h
 *	  Leaves that are put in order.
 */
#ifndef SMART_TREE_ORDER_H
#define SMART_TREE_ORDER_H

#include "tree/block/leaf.h"

/*
 * Should a scan put the leaf in order?  Every scan sorts the entries that were appended since the leaf was made.  A copy
 * costs as much as a few such sorts.  So it is made when a quarter of the leaf or more was appended.
 */
static inline bool
smart_leaf_wants_order(const struct smart_leaf *leaf)
{
	return leaf->state == SMART_LIVE && 4 * (leaf->used - leaf->sorted_end) >= leaf->used - leaf->start;
}

/*
 * Replaces a leaf by a copy in order.  The tree is swept (tree.h); the operation has nothing locked; key leads to the
 * leaf.  Does nothing if the leaf's lock is taken, if the leaf is being changed, or if there is no room.
 */
extern smart_status
smart_order_leaf(struct smart_tree *tree, const struct smart_key *key, const struct smart_leaf *leaf);

#endif /* SMART_TREE_ORDER_H */

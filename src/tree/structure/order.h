/*
 * order.h
 *	  Leaves that are put in order.
 */
#ifndef SMART_TREE_ORDER_H
#define SMART_TREE_ORDER_H

#include "tree/block/leaf.h"

/*
 * Is it worth while?  Entries that were appended since the leaf was made are sorted by every scan that comes by; to write
 * the leaf anew costs as much as two or three of these, and pays only as often as a quarter of it has been appended.
 */
static inline bool
smart_leaf_wants_order(const struct smart_leaf *leaf)
{
	return leaf->state == SMART_LIVE && 4 * (leaf->used - leaf->sorted_end) >= leaf->used - leaf->start;
}

/*
 * Replaces a leaf that a scan has come to by a copy in order, for a tree that is swept (tree.h).  Within an operation that
 * has nothing locked; key leads to the leaf.  Nothing happens where its lock is not free at this moment, where it is being
 * changed, or where there is no room.
 */
extern smart_status
smart_order_leaf(struct smart_tree *tree, const struct smart_key *key, const struct smart_leaf *leaf);

#endif /* SMART_TREE_ORDER_H */

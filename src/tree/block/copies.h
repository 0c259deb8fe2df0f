/*
 * copies.h
 *	  Leaf copies: whole leaves in the compute node's memory, each believed without a READ (A5).
 *
 * Where tree->copies is not set, find answers false and the others do nothing.
 */
#ifndef SMART_TREE_COPIES_H
#define SMART_TREE_COPIES_H

#include "tree/block/handle.h"

/*
 * What a READ of the leaf that link leads to would bring at this moment goes into buffer, and is taken apart.  False: READ
 * it.  A copy that was kept when its leaf had just been linked is new for who changes the leaf; readers find it live.
 */
extern bool smart_leaf_copy_find(struct smart_tree *tree, smart_slot link, const struct smart_key *key, uint8_t *buffer,
								 bool changes, struct smart_leaf *leaf);

/*
 * Keeps the leaf as a change by this client has left it, in block, with this meta.  ticket: of the block around the change.
 * Who changes a leaf has its local lock, so that it is what the client has seen under the lock, and nothing else.
 */
extern void
smart_leaf_copy_changed(struct smart_tree *tree, smart_slot link, const uint8_t *block, uint64_t meta, uint64_t ticket);

#endif /* SMART_TREE_COPIES_H */

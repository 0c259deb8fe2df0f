/*
 * copies.h
 *	  Leaf copies: whole leaves in the compute node's memory, each believed without a READ (A5).
 *
 * Where tree->copies is not set, find and asks answer false, the others do nothing, and take is not called.
 */
#ifndef SMART_TREE_COPIES_H
#define SMART_TREE_COPIES_H

#include <string.h>

#include "tree/block/handle.h"

/*
 * What a READ of the leaf that link leads to would bring at this moment goes into buffer, and is taken apart.  False: READ
 * it.  A copy that was kept when its leaf had just been linked is new for who changes the leaf; readers find it live.
 */
extern bool smart_leaf_copy_find(struct smart_tree *tree, smart_slot link, const struct smart_key *key, uint8_t *buffer,
								 bool changes, struct smart_leaf *leaf);

/* Is it worth its time for a scan to ask for the leaves of its next batch?  No: it READs them. */
extern bool smart_leaf_copy_asks(struct smart_tree *tree);
/*
 * What a reader would find goes into copy, for a scan that takes it apart when its turn comes (A6).  False: READ it;
 * *ticket: what copy_read wants then, else 0.
 */
extern bool smart_leaf_copy_take(struct smart_tree *tree, smart_slot link, uint8_t *copy, uint64_t *ticket);
/*
 * Keeps a leaf that answered for a scan and was READ after the ticket was given, if there is room that nothing has had
 * yet; not if the ticket is 0.
 */
extern void smart_leaf_copy_read(struct smart_tree *tree, const struct smart_leaf *leaf, uint64_t ticket);

/* The meta that the bytes of a leaf say. */
static inline uint64_t
smart_leaf_copy_meta(smart_slot link, const uint8_t *block)
{
	uint64_t meta;

	memcpy(&meta, block + smart_slot_size(link) * SMART_UNIT - SMART_LEAF_REAR_BYTES, sizeof(meta));
	return meta;
}

/*
 * Keeps the leaf as a change by this client has left it, in block, with this meta.  ticket: of the block around the change.
 * Who changes a leaf has its local lock, so that it is what the client has seen under the lock, and nothing else.
 */
extern void
smart_leaf_copy_changed(struct smart_tree *tree, smart_slot link, const uint8_t *block, uint64_t meta, uint64_t ticket);

#endif /* SMART_TREE_COPIES_H */

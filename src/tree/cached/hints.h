/*
 * hints.h
 *	  Leaf hints: what is known of a leaf without its entries.
 *
 * Where neither tree->hints nor tree->copies is set, block and unblock do nothing.  They are for leaf copies, too, and
 * so is begin (block/copies.h).
 */
#ifndef SMART_TREE_HINTS_H
#define SMART_TREE_HINTS_H

#include "tree/block/handle.h"

/* The leaf's meta is about to change: it has no hint from here on. */
extern struct smart_blocked smart_leaf_hint_block(struct smart_tree *tree, smart_slot link);
/* The change has come about, or not; a ticket for a hint of the leaf as it is now, or 0. */
extern uint64_t smart_leaf_hint_unblock(struct smart_tree *tree, const struct smart_blocked *blocked);
/*
 * After an append: keeps a hint of the leaf, whose copy `block` holds all entries now that
 * the CAS to `meta` has published.  ticket: of the block around that CAS.
 */
extern void smart_leaf_hint_keep(struct smart_tree *tree, smart_slot link, const uint8_t *block,
								 const struct smart_key *key, uint64_t meta, uint64_t ticket);
/*
 * Keeps a hint of the leaf that was made last and is linked now, live as it soon will be:
 * until then the CAS of a client that appends by the hint fails.  blocked: of this leaf,
 * since before it was linked.
 */
extern void smart_leaf_hint_begin(struct smart_tree *tree, smart_slot link, const struct smart_key *key,
								  struct smart_blocked *blocked);

/* A hint, and the leaf that it stands for, as far as it tells. */
struct smart_leaf_hint_view
{
	struct smart_leaf_hint hint;
	struct smart_leaf leaf;
	unsigned int consumed; /* bytes of the key before the entry's suffix */
	bool above;            /* the key lies above all that are there */
};

/*
 * The hint of the leaf that place leads to, whose local lock is held, if it is the key's leaf and has room for its
 * entry of length bytes.  *full: there is a hint, but it says otherwise.
 */
extern bool smart_leaf_hint_find(struct smart_tree *tree, const struct smart_place *place, const struct smart_key *key,
								 size_t length, struct smart_leaf_hint_view *view, bool *full);
/* The hint goes on with the key's entry, which the CAS to meta has published. */
extern void smart_leaf_hint_append(struct smart_tree *tree, struct smart_leaf_hint_view *view,
								   const struct smart_key *key, uint64_t meta, uint64_t ticket);

#endif /* SMART_TREE_HINTS_H */

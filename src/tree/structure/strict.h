/*
 * strict.h
 *	  Finding strictly, with help for what is in the way.
 */
#ifndef SMART_TREE_STRICT_H
#define SMART_TREE_STRICT_H

#include "tree/block/handle.h"

/*
 * Where key leads, strictly (B4): place->kind is LEAF, EMPTY or MISMATCH.  On a remote provider place->node may be known
 * without its own slot (link_address 0).  Errors of the fabric and of allocation, SMART_INTERRUPTED, SMART_TIMEOUT.
 */
extern smart_status smart_find_strict(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place);
/*
 * B5: finds the leaf that answers for key now, for bytes lo..limit at its depth.  A sealed leaf, or one narrowed below
 * the key's byte, answers too if a second strict descent, after its content was read, still finds it: then its upper
 * half had not been given away.  place->kind tells: with EMPTY and MISMATCH there is no leaf.
 */
extern smart_status smart_confirm(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place,
								  struct smart_leaf *leaf, unsigned int *limit);
/* FORWARD: brings a leaf that another client left new, pending, sealed or locked one step on. */
extern smart_status smart_forward(struct smart_tree *tree, const struct smart_key *key, fabric_address leaf);
/*
 * Merges and drops what a removal at key left small, from its node upwards, a few levels at most; the next removal goes
 * on.  Ends where a replacement gained nothing: the ranges looked small, and their entries did not fit.
 */
extern smart_status smart_tidy(struct smart_tree *tree, const struct smart_key *key);
/* The same for a node that key leads through, after removals anywhere in it, if enough has become small there. */
extern smart_status smart_tidy_node(struct smart_tree *tree, const struct smart_key *key);
/* Has enough, in this copy of the node? */
extern bool smart_is_untidy(const struct smart_tree *tree, const struct smart_node *node);

#endif /* SMART_TREE_STRICT_H */

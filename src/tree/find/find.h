/*
 * find.h
 *	  Finding the leaf of a key.
 */
#ifndef SMART_TREE_FIND_H
#define SMART_TREE_FIND_H

#include "tree/block/cursor.h"
#include "tree/block/handle.h"

/* ---- finding fast, by pointers or by way of the cache (search.c) ---- */

/*
 * Direct, within an epoch: prefetches the nodes and the leaves on the ways of some keys, which are in order.  One node of each key is
 * passed in turn, so that all wait for memory together.  Nothing may be concluded from it.
 */
#define SMART_AHEAD_MAX 16

extern smart_status smart_find_ahead(struct smart_tree *tree, const struct smart_key *keys, unsigned int count);

/* kind is LEAF, or UNKNOWN; by pointers EMPTY and MISMATCH, too. */
extern smart_status smart_find_fast(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place);
/*
 * Goes as far as the cache leads, and READs what it does not have.  place->node is
 * the last node on the way that fits, with the way back to its parent; kind is LEAF,
 * or UNKNOWN, with an empty range in slot, or the node's that does not fit.
 */
extern smart_status smart_find_cached(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place);
/* smart_find_fast for a scan, which looks at what lies beside the key, too: of no node a part is READ. */
extern smart_status smart_find_whole(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place);
/*
 * By pointers, from a node of an earlier descent instead of the root (B3).  The
 * key has the node's prefix.  Header and identity must be what they were: then
 * it is live, the node of this prefix in this tree, and will not be used again
 * within this epoch; a slot of it that is not frozen is part of the tree (I2).
 * *found false: start at the root; the node is forgotten.
 */
extern smart_status smart_find_from(struct smart_tree *tree, const struct smart_key *key,
									struct smart_ancestor *ancestor, struct smart_place *place, bool *found);
/* The next keys will probably lie below this node, too; key lies below it. */
extern void smart_remember_node(struct smart_tree *tree, const struct smart_key *key, const struct smart_node *node);
/* An insert was led to this leaf by pointers; the second time in a row the leaf is remembered. */
extern void smart_remember_leaf(struct smart_tree *tree, const struct smart_key *key, const struct smart_place *place);

/* ---- where a walk by pointers goes on (advance.c) ---- */

/*
 * Moves the cursor behind a place that is no leaf.  in_gap: did the walk's step before meet no leaf, either?  Then, by
 * pointers, one descent moves it on to the next leaf, or in front of something that has to be looked at strictly.
 */
extern smart_status
smart_pass_gap(struct smart_tree *tree, struct smart_cursor *cursor, const struct smart_place *place, bool in_gap);

/* ---- one strict descent, which helps no other client (descend.c) ---- */

/*
 * One descent from the root's word: place->node is known with its parent.  place->kind is LEAF, EMPTY, MISMATCH, FROZEN
 * (place->child, known with its parent, has to be replaced first) or UNKNOWN (to be made again).  place->node and
 * place->child stay good until the next descent.
 */
extern smart_status smart_descend(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place);
/*
 * One descent from the last node that the cache shows on the key's path: if it is
 * live and of this prefix before and in a READ of now, what its slots show is as
 * strict as if the descent had begun at the root (I2).  UNKNOWN: there is no such
 * node, too; FROZEN: place->child may be that node, whose own slot is not known.
 */
extern smart_status smart_descend_near(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place);
/*
 * A node that was found without its parent, again with it, on key's path.  Another one: the path
 * has this one frozen, which has to be replaced first.  NULL: there is another one in its place, or the path is changing.
 */
extern smart_status
smart_find_parent(struct smart_tree *tree, const struct smart_key *key, const struct smart_node **node);

/* ---- nodes that the cache does not have (fetch.c) ---- */

/*
 * The node that place leads to, as smart_node_read_again, by fewer READs if the place was READ by this search, too;
 * place->node is as the search has left it.  parts: node->part may be true afterwards, if the cache would not keep the
 * node: then it has the slot that covers the key's byte, and no other one may be asked for (B6).
 */
extern smart_status smart_fetch_node(struct smart_tree *tree, const struct smart_place *place, bool parts,
									 struct smart_node *node, const struct smart_key *key, bool *ours);

/* ---- descents by memory nodes (offload.c) ---- */

/* A search by way of the cache begins: what an earlier one was brought is forgotten. */
extern void smart_offload_begin(struct smart_tree *tree);
/* The root's word, a node, a leaf that the search needs: as smart_word_read, smart_fetch_node and smart_leaf_read. */
extern smart_status smart_offload_root(struct smart_tree *tree, const struct smart_key *key, smart_slot *root);
extern smart_status smart_offload_node(struct smart_tree *tree, const struct smart_place *place, bool parts,
									   struct smart_node *node, const struct smart_key *key, bool *ours);
extern smart_status smart_offload_leaf(struct smart_tree *tree, smart_slot link, const struct smart_key *key,
									   uint8_t *buffer, struct smart_leaf *leaf, bool *good);
/* The node is what the search was brought, as good as READ by it. */
extern bool smart_offload_shows(struct smart_tree *tree, const struct smart_key *key, const struct smart_node *node);
/* The search has come to an empty range: does what it was brought prove that the key is absent? */
extern bool
smart_offload_proves_empty(struct smart_tree *tree, const struct smart_key *key, const struct smart_place *place);

#endif /* SMART_TREE_FIND_H */

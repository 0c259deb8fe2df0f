/*
 * node.h
 *	  Internal nodes: reading, searching, making, activating.
 */
#ifndef SMART_TREE_NODE_H
#define SMART_TREE_NODE_H

#include "tree/step/place.h"
#include "tree/tree.h"

/*
 * A node, with its proof: a copy of its words in this operation's memory, the way to it, and header and identity as they
 * were READ ahead of the words if the link was of an earlier operation (B1).  Searches by way of the cache, strict
 * descents, READs that go with a leaf's, and walks all keep nodes so.  Descents by pointers copy nothing: they have
 * struct smart_ancestor instead.
 */
struct smart_node
{
	fabric_address address;
	smart_slot link;             /* the slot that led here */
	fabric_address link_address; /* of that slot; 0: not known, since the node was found without its parent */
	smart_slot parent;           /* link of the node with that slot, 0: it is the root's */
	int parent_index;            /* and which one it is */
	unsigned int parent_arrived; /* bytes of the key consumed before that node */
	unsigned int kind;
	unsigned int depth;
	unsigned int slots;   /* that this kind holds */
	unsigned int arrived; /* bytes of the key consumed before this node */
	uint64_t moment;      /* in which the cache's copy was in the tree, or the node READ (B1); 0: not known */
	bool today;           /* what its slots show was in the tree in this operation's moment (find/fetch.c) */
	bool part;            /* of the slots, only those up to the key's byte were READ, and not all of these (B6) */
	uint64_t head[SMART_NODE_HEAD_WORDS];
	uint64_t words[SMART_NODE_WORDS_MAX];
};

/* The descent goes on from place to the node that place->slot leads to. */
static inline void
smart_node_set_parent(struct smart_node *node, const struct smart_place *place)
{
	smart_assert(node != place->node);
	node->parent = place->node == NULL ? 0 : place->node->link;
	node->parent_arrived = place->node == NULL ? 0 : place->node->arrived;
	node->parent_index = place->index;
}

/* Index of the slot that covers byte in a copied node, or -1: torn. */
extern int smart_node_cover_index(const struct smart_node *node, unsigned int byte);
/* The smallest partial key above after, or 256. */
extern unsigned int smart_node_next_pk(const struct smart_node *node, unsigned int after);
/* Slots in use. */
extern unsigned int smart_node_used(const struct smart_node *node);
/* Slots that lead to leaves. */
extern unsigned int smart_node_leaves(const struct smart_node *node);
/*
 * Where a slot for pk has to go: the first unused one (I3: slots fill in index
 * order), or pk's own in a direct-mapped node.  -1: no room, or frozen.
 */
extern int smart_node_free_index(const struct smart_node *node, unsigned int pk);
/* Copies the node that link leads to.  Whether it is what link promised is for the caller to check. */
extern smart_status smart_node_read(struct smart_tree *tree, smart_slot link, fabric_address link_address,
									unsigned int arrived, struct smart_node *node);
/* The same from a copy of its words, or (NULL) from words that are there already; false: link cannot lead to a node. */
extern bool smart_node_from_copy(const struct smart_tree *tree, smart_slot link, unsigned int arrived,
								 const uint8_t *copy, struct smart_node *node);
/*
 * The cache's copy of the node that link leads to; false: it has none.  *usable: a
 * descent that has consumed so many bytes can go through it.  Copies of different
 * moments may lead in a circle, so it goes downwards only.
 */
extern bool smart_node_recall(struct smart_tree *tree, smart_slot link, unsigned int arrived, struct smart_node *node,
							  bool *usable);
/*
 * smart_node_read for a link of an earlier operation, whose node may have been used
 * again: READs header and identity first and then the node, in one batch.  If
 * both are those of the live node of this prefix, before and in the node, then
 * the block was it all the time: it was live after this operation began, and
 * is not used again before the operation ends (I6).  Otherwise slots of its
 * earlier lives may be among the words.
 */
extern smart_status smart_node_read_again(struct smart_tree *tree, smart_slot link, unsigned int arrived,
										  struct smart_node *node, const struct smart_key *key, bool *ours);
/* Its parts, for batches of several: two requests; false: link cannot lead to a node. */
extern bool smart_node_prepare_again(const struct smart_tree *tree, smart_slot link, unsigned int arrived,
									 struct smart_node *node, struct fabric_request *batch);
/* … and, when they have been executed, whether it is the node on key's path. */
extern bool
smart_node_finish_again(const struct smart_tree *tree, struct smart_node *node, const struct smart_key *key);
/*
 * Was the slot that place has come to, in a node that was copied, in the tree in this operation's moment?  Then the block it
 * leads to is not used again before the operation ends (B1).
 */
extern bool smart_node_shows(const struct smart_tree *tree, const struct smart_place *place);
/*
 * One step through a copied node, to which place leads; hint as in smart_place_step.  MISMATCH and FROZEN name it as the
 * place's child.
 */
extern void smart_node_step(struct smart_node *node, const struct smart_key *key, struct smart_place *place, bool hint);
/* The smallest kind that holds so many slots. */
extern unsigned int smart_kind_for(const struct smart_tree *tree, unsigned int slots);
/*
 * Makes a node (new) that branches on the byte at depth, with slots in
 * ascending order of their partial keys and room for spare more.  *link leads
 * to it under pk.
 */
extern smart_status
smart_node_build(struct smart_tree *tree, const struct smart_key *key, unsigned int depth, unsigned int pk,
				 const smart_slot *slots, unsigned int count, unsigned int spare, smart_slot *link);
/* The same in a block that the caller has taken, to which room leads as *link will; it is retired if that fails. */
extern smart_status smart_node_build_in(struct smart_tree *tree, const struct smart_key *key, unsigned int depth,
										smart_slot room, const smart_slot *slots, unsigned int count, smart_slot *link);
/* ACTIVATE: new -> live, for a node that this operation linked or saw linked. */
extern smart_status smart_node_activate(struct smart_tree *tree, fabric_address node);
/* Does the identity say that this is the node of key's first depth bytes in this tree? */
extern bool
smart_node_is_ours(const struct smart_tree *tree, const struct smart_node *node, const struct smart_key *key);

#endif /* SMART_TREE_NODE_H */

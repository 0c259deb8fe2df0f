/*
 * nodes_ahead.h
 *	  Nodes that a walk on a remote provider READs before it comes to them, many in one batch.
 *
 * Each is READ as B1 says, with its header first, and goes into the cache if it is live and the node of the key that
 * leads to it.  What it says of leaves is a hint; what it says of empty ranges is evidence, since it was READ within the
 * walk (I2).
 */
#ifndef SMART_TREE_NODES_AHEAD_H
#define SMART_TREE_NODES_AHEAD_H

#include "tree/block/handle.h"

#define SMART_AHEAD_BATCH    24 /* nodes that one batch READs */
#define SMART_AHEAD_REQUESTS (2 * SMART_AHEAD_BATCH)

struct smart_nodes_ahead;

/*
 * Where one node leads, which is the key's: a leaf (a hint), or an empty range (evidence, if fresh: the node was READ within
 * the walk); false: it cannot tell.
 */
extern bool
smart_node_leads(struct smart_node *node, bool fresh, const struct smart_key *key, struct smart_place *place);

/* Nothing is known.  Released with env->release; NULL: no memory. */
extern struct smart_nodes_ahead *smart_nodes_ahead_open(struct smart_env *env);
/* Another walk begins. */
extern void smart_nodes_ahead_start(struct smart_nodes_ahead *ahead);
/*
 * The next batch READs the node that this link leads to, on key's path, which has come so far; once more, if it is known.  False: it
 * does not, since there are enough.  What was of use longest ago is forgotten.
 * moment: this operation's, if the link is one that smart_node_shows(); within it the node takes one READ.  Or 0.
 */
extern bool smart_nodes_ahead_want(struct smart_nodes_ahead *ahead, const struct smart_key *key, smart_slot link,
								   unsigned int arrived, uint64_t moment);
/* The same of a node that is known from elsewhere, unless it was READ within the walk. */
extern bool
smart_nodes_ahead_renew(struct smart_nodes_ahead *ahead, const struct smart_key *key, const struct smart_node *node);
/* The READs of the next batch, at most SMART_AHEAD_REQUESTS; how many. */
extern int
smart_nodes_ahead_prepare(const struct smart_tree *tree, struct smart_nodes_ahead *ahead, struct fabric_request *batch);
/* done: the batch was executed. */
extern void smart_nodes_ahead_finish(struct smart_tree *tree, struct smart_nodes_ahead *ahead, bool done);
/* The node that a descent comes to by this link; NULL: it was not READ. */
extern struct smart_node *
smart_nodes_ahead_known(struct smart_nodes_ahead *ahead, smart_slot link, unsigned int arrived);
/* Is this one of them, so that its empty ranges are evidence? */
extern bool smart_nodes_ahead_has(const struct smart_nodes_ahead *ahead, const struct smart_node *node);
/*
 * The same of a node and of the one whose slot leads to it, in one batch; and has one batch within the walk shown so that all keys
 * with the slot's byte have the node's prefix?  The key has that byte.  node: one that smart_nodes_ahead_known() has returned.
 */
extern bool smart_nodes_ahead_want_both(struct smart_nodes_ahead *ahead, const struct smart_key *key,
										const struct smart_node *parent, smart_slot link);
extern bool smart_nodes_ahead_shows_prefix(const struct smart_tree *tree, const struct smart_nodes_ahead *ahead,
										   const struct smart_key *key, const struct smart_node *node);
/* Where the nodes lead: a leaf (a hint), or an empty range (evidence); false: the key is not below one that can tell. */
extern bool smart_nodes_ahead_find(const struct smart_tree *tree, struct smart_nodes_ahead *ahead,
								   const struct smart_key *key, struct smart_place *place);
/* Forgets a node that misled; another one: nothing happens. */
extern void smart_nodes_ahead_forget(struct smart_nodes_ahead *ahead, const struct smart_node *node);

#endif /* SMART_TREE_NODES_AHEAD_H */

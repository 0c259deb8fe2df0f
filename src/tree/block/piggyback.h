/*
 * piggyback.h
 *	  The node above a leaf, READ with it.
 */
#ifndef SMART_TREE_PIGGYBACK_H
#define SMART_TREE_PIGGYBACK_H

#include "tree/block/handle.h"

#define SMART_PIGGYBACK_REQUESTS 2

/* Released with env->release; NULL: no memory. */
extern struct smart_piggyback *smart_piggyback_open(struct smart_env *env);
/*
 * The next READ of the leaf under its lock shall bring the node that place, which was found
 * by way of the cache, has it in.  wanted: it is known to be needed; else it might be.  (Whatever place says, smart_piggyback_take hands out
 * only what it is asked for: link and position are compared there.)
 */
extern void smart_piggyback_plan(struct smart_tree *tree, const struct smart_place *place, bool wanted);
/* The requests for it, behind those of the leaf in batch; how many. */
extern int smart_piggyback_prepare(struct smart_tree *tree, struct fabric_request *batch);
/*
 * The words of a node that the cache shows, if they were READ in this attempt; *ours as
 * smart_node_read_again tells.  Once only: a descent that looks again wants to see what has
 * changed.
 */
extern bool
smart_piggyback_take(struct smart_tree *tree, struct smart_node *node, const struct smart_key *key, bool *ours);
/* What was READ, or planned, is not to be used any more. */
extern void smart_piggyback_forget(struct smart_tree *tree);

#endif /* SMART_TREE_PIGGYBACK_H */

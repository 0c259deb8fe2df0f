/*
 * route.h
 *	  Nodes that a walk on a remote provider comes through.
 *
 * They are kept so that the walk need not descend to them again.  What they say of
 * leaves is a hint.  What they say of empty ranges is evidence if they were READ
 * within the walk.
 */
#ifndef SMART_TREE_ROUTE_H
#define SMART_TREE_ROUTE_H

#include "tree/block/handle.h"

#define SMART_ROUTE_NODES    8 /* remembered */
#define SMART_ROUTE_RENEWED  4 /* of them READ again in one batch */
#define SMART_ROUTE_REQUESTS (2 * SMART_ROUTE_RENEWED)

_Static_assert(SMART_ROUTE_RENEWED < SMART_ROUTE_NODES, "a node that waits to be READ again is not forgotten");

/* A node that the walk has come through. */
struct smart_kept
{
	bool known;
	bool fresh; /* READ within this walk */
	bool renew; /* to be READ again in the next batch */
	uint64_t used;
	struct smart_node node;
};

struct smart_route
{
	unsigned int renewals; /* nodes to be READ again */
	uint64_t uses;         /* so far; orders the nodes by their last one */
	struct smart_kept kept[SMART_ROUTE_NODES];
};

/* A walk begins: nothing is known. */
extern void smart_route_start(struct smart_route *route);
/* Remembers a node; fresh: it was READ within this walk.  Returns the copy, good until the next node is remembered. */
extern struct smart_node *smart_route_keep(struct smart_route *route, const struct smart_node *node, bool fresh);
/* Forgets a node that misled; another one than the route's: nothing happens. */
extern void smart_route_forget(struct smart_route *route, const struct smart_node *node);
/* There is an empty range in this node: the next batch READs it again, unless it is fresh, or there are too many. */
extern void smart_route_want(struct smart_route *route, const struct smart_node *node);
/* The READs of the nodes that are wanted, as B1 says: at most SMART_ROUTE_REQUESTS; how many. */
extern int smart_route_prepare(const struct smart_tree *tree, struct smart_route *route, struct fabric_request *batch);
/* done: the batch was executed. */
extern void smart_route_finish(struct smart_route *route, bool done);
/* Where the nodes lead: a leaf (a hint), or an empty range (evidence); false: the cursor has left them, or none can tell. */
extern bool smart_route_find(const struct smart_tree *tree, struct smart_route *route, const struct smart_key *key,
							 struct smart_place *place);

#endif /* SMART_TREE_ROUTE_H */

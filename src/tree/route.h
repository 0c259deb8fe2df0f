/*
 * route.h
 *	  Nodes that a walk over a remote tree has come through, so that it need not
 *	  descend to them again, and may believe what they say of empty ranges.
 */
#ifndef SMART_TREE_ROUTE_H
#define SMART_TREE_ROUTE_H

#include "tree/internal.h"

#define SMART_ROUTE_NODES    8 /* remembered */
#define SMART_ROUTE_RENEWED  4 /* of them READ again in one batch */
#define SMART_ROUTE_REQUESTS (2 * SMART_ROUTE_RENEWED)

struct smart_kept
{
	bool known;
	bool fresh; /* READ within this walk */
	bool renew; /* to be READ again in the next batch */
	uint64_t used;
	struct smart_node node;
	/* The READs of a renewal. */
	uint64_t head[SMART_NODE_HEAD_WORDS];
	uint64_t words[SMART_NODE_WORDS_MAX];
};

struct smart_route
{
	unsigned int renewals; /* nodes to be READ again */
	uint64_t uses;         /* so far; orders the nodes by their last one */
	struct smart_kept kept[SMART_ROUTE_NODES];
};

/* A new walk begins. */
extern void smart_route_clear(struct smart_route *route);

/* Remembers a node; fresh: it was READ within this walk.  Returns the copy, good until the next node is remembered. */
extern struct smart_node *smart_route_keep(struct smart_route *route, const struct smart_node *node, bool fresh);

/* What a remembered node leads to was wrong. */
extern void smart_route_forget(struct smart_route *route, const struct smart_node *node);

/* There is an empty range in this node: the next batch READs it again, unless it is fresh, or there are too many. */
extern void smart_route_want(struct smart_route *route, const struct smart_node *node);

/*
 * Stores the requests of all renewals that are wanted, at most SMART_ROUTE_REQUESTS, for a batch of this
 * epoch; returns how many.  After the batch comes finish; done: it was executed.
 */
extern int smart_route_prepare(struct smart_route *route, struct fabric_request *batch);
extern void smart_route_finish(struct smart_route *route, bool done);

/* Where the nodes lead: a leaf (a hint), or an empty range (evidence).  false: none of them can tell. */
extern bool smart_route_find(const struct smart_tree *tree, struct smart_route *route, const struct smart_key *key,
							 struct smart_place *place);

#endif /* SMART_TREE_ROUTE_H */

/*
 * route.h
 *	  Nodes that a walk on a remote provider comes through, and those that it READs before it comes to them.
 *
 * They are kept so that the walk need not descend to them again.  What they say of
 * leaves is a hint.  What they say of empty ranges is evidence if they were READ
 * within the walk.
 */
#ifndef SMART_TREE_ROUTE_H
#define SMART_TREE_ROUTE_H

#include "tree/block/handle.h"
#include "tree/read/nodes_ahead.h"

#define SMART_ROUTE_NODES 8 /* remembered */

/* A node that the walk has come through. */
struct smart_kept
{
	bool known;
	bool fresh; /* READ within this walk */
	uint64_t used;
	struct smart_node node;
};

struct smart_route
{
	struct smart_tree *tree;
	uint64_t uses;             /* so far; orders the nodes by their last one */
	struct smart_kept *latest; /* that told the walk its place; NULL: none */
	struct smart_kept kept[SMART_ROUTE_NODES];
	struct smart_nodes_ahead *ahead; /* nodes that were READ ahead; NULL: none so far */
};

/* A walk begins: nothing is known. */
extern void smart_route_start(struct smart_route *route);
extern void smart_route_done(struct smart_route *route);

/* Remembers a node; fresh: it was READ within this walk.  Returns the copy, good until the next node is remembered. */
extern struct smart_node *smart_route_keep(struct smart_route *route, const struct smart_node *node, bool fresh);
/* Forgets a node that misled; another one than the route's: nothing happens. */
extern void smart_route_forget(struct smart_route *route, const struct smart_node *node);
/* Was the node READ ahead? */
extern bool smart_route_is_ahead(const struct smart_route *route, const struct smart_node *node);

/* There is an empty range in this node, on key's path: the next batch READs it again, unless it is fresh, or there are too many. */
extern void smart_route_want(struct smart_route *route, const struct smart_key *key, const struct smart_node *node);
/* The next batch READs the node that place leads to, on key's path, for the first time.  False: there are enough. */
extern bool
smart_route_want_ahead(struct smart_route *route, const struct smart_key *key, const struct smart_place *place);
/*
 * A place MISMATCH that smart_route_descend() has found: the next batch READs both nodes, that of the slot and the one that it
 * leads to.  And do they show it, since one batch has READ them within this walk?
 */
extern bool
smart_route_want_mismatch(struct smart_route *route, const struct smart_key *key, const struct smart_place *place);
extern bool smart_route_shows_mismatch(const struct smart_route *route, const struct smart_key *key,
									   const struct smart_place *place);
/* The READs of the nodes that are wanted, as B1 says: at most SMART_AHEAD_REQUESTS; how many. */
extern int smart_route_prepare(struct smart_route *route, struct fabric_request *batch);
/* done: the batch was executed. */
extern void smart_route_finish(struct smart_route *route, bool done);
/* Both, in a batch of their own. */
extern smart_status smart_route_read(struct smart_route *route);

/* Where the nodes lead: a leaf (a hint), or an empty range (evidence); false: the cursor has left them, or none can tell. */
extern bool smart_route_find(struct smart_route *route, const struct smart_key *key, struct smart_place *place);
/*
 * Where the way leads from the root, as the cache and the nodes that were READ ahead show it, without a READ: a hint.
 * NODE: to one that is not known; UNKNOWN: none can tell.
 */
extern void smart_route_descend(struct smart_route *route, const struct smart_key *key, struct smart_place *place);

#endif /* SMART_TREE_ROUTE_H */

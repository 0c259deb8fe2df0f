/*
 * tree_client.h
 *	  A handle on a tree, for tests: over a client's own fabric or over verbs,
 *	  with blocks that fail to be allocated and local locks left out on demand.
 */
#ifndef TEST_TREE_CLIENT_H
#define TEST_TREE_CLIENT_H

#include "support/node.h"
#include "support/sim_fabric.h"
#include "tree/tree.h"

struct tree_client
{
	struct smart_services services; /* first; hands on to those of the client */
	struct test_client *client;
	struct smart_tree *tree;
	unsigned int fail_one_in; /* blocks that are refused, at random; 0: none */
	bool no_local_locks;      /* shared trees: the leaves' own locks alone have to do */
	uint64_t random_state;
	struct sim_memory memory; /* verbs: the same region, reached by READ, WRITE and CAS */
	struct sim_control control;
	struct sim_fabric sim;
};

/*
 * Opens a handle for a client.  verbs: remote paths on a fabric without direct access (one
 * thread only).  Aborts when it cannot.
 */
extern struct tree_client *
tree_client_open(struct test_node *node, const struct smart_tree_options *options, bool verbs, uint64_t seed);
extern void tree_client_close(struct tree_client *client);

#endif /* TEST_TREE_CLIENT_H */

/*
 * all_nodes.h
 *	  A cache of inner nodes for one client, which has everything it was ever given.
 */
#ifndef TEST_ALL_NODES_H
#define TEST_ALL_NODES_H

#include "support/tree_client.h"

/* The client has it from now on, and nothing is in it. */
extern void keep_all_nodes(struct tree_client *client);
extern void forget_all_nodes(void);

#endif /* TEST_ALL_NODES_H */

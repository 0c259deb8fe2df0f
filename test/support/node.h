/*
 * node.h
 *	  A whole compute node on a region in memory, or with an extent map in memory and
 *	  memory nodes in this process, for tests: real services of src/compute,
 *	  mutexes for locks.
 *
 *		struct test_node *node = test_node_open(64, 256 << 20);
 *		struct test_client *mine = test_client_open(node, seed);
 *		... mine->client->fabric, &mine->thread.env, &mine->client->services, test_tree_create(mine, &root) ...
 *		test_client_close(mine);
 *		test_node_close(node);
 *
 * A test that cannot go on aborts.
 */
#ifndef TEST_NODE_H
#define TEST_NODE_H

#include <pthread.h>

#include "compute/client.h"
#include "support/env_thread.h"
#include "support/memory.h"
#include "support/verify.h"

struct test_client;

struct test_node
{
	struct smart_compute compute;
	struct smart_region region;
	struct smart_lock_table locks;
	pthread_mutex_t mutex[SMART_LOCK_COUNT];
	struct test_memory *memory; /* NULL: embedded */
};

/* One per thread. */
struct test_client
{
	struct env_thread thread;
	struct smart_client *client;
	struct test_node *node;
};

extern struct test_node *test_node_open(unsigned int clients, uint64_t max_size);
extern void test_node_close(struct test_node *node);

/* The same with an extent map and so many memory nodes of so many chunks each, numbered as in memory. */
extern struct test_node *test_book_open(unsigned int clients, unsigned int nodes, uint32_t chunks);

/* Where a block or a root slot is. */
extern void *test_node_at(const struct test_node *node, fabric_address address);

/* Tells the memory nodes what they have yet to be told; returns how many pending frees are left because a node is down. */
extern unsigned int test_work_off_duties(struct test_client *client);

extern struct test_client *test_client_open(struct test_node *node, uint64_t seed);
extern void test_client_close(struct test_client *client);

/* A new empty tree; returns its id. */
extern uint64_t test_tree_create(struct test_client *client, fabric_address *root);

#endif /* TEST_NODE_H */

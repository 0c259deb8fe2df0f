/*
 * memory.h
 *	  Memory nodes in this process: regions, what they have handed out, and a
 *	  provider and a supply over them, for tests of extent maps.
 *
 * They are as strict as a real one: a verb outside of what they handed out fails and is counted; what was handed out
 * holds zeros, and garbage afterwards.
 */
#ifndef TEST_MEMORY_H
#define TEST_MEMORY_H

#include <pthread.h>

#include "compute/allocate/supply.h"
#include "support/env_thread.h"

#define TEST_MEMORY_NODES 8
#define TEST_MEMORY_ROOTS 2048

struct test_memory_node
{
	uint64_t incarnation;
	uint8_t *base;
	uint32_t chunks; /* chunk 0 holds the roots, the others can be handed out */
	uint8_t *taken;  /* a flag for each */
	uint32_t taken_count;
	uint64_t tree[TEST_MEMORY_ROOTS]; /* ids by root, 0: free */
	uint32_t tree_count;
	bool down;              /* known not to reply */
	bool silent;            /* does what it is told, but no reply comes: SMART_TIMEOUT */
	unsigned long requests; /* for chunks and trees, answered or not */
};

struct test_memory
{
	pthread_mutex_t mutex; /* of everything but the regions' words */
	unsigned int count;
	unsigned int fail_one_in; /* requests and batches that fail, at random; 0: none */
	unsigned long outside;    /* verbs that touched what was not handed out */
	void (*asked)(struct test_memory *memory, unsigned int node); /* called for each request of a supply, unless NULL */
	struct test_memory_node node[TEST_MEMORY_NODES];
};

/* count nodes of so many chunks each. */
extern struct test_memory *test_memory_open(unsigned int count, uint32_t chunks);
extern void test_memory_close(struct test_memory *memory);

/* A fabric on them without direct access, and a supply; env outlives both. */
extern struct fabric *test_memory_fabric(struct test_memory *memory, struct smart_env *env);
extern void test_memory_supply(struct test_memory *memory, struct smart_env *env, struct fabric *fabric,
							   struct smart_supply *supply);

/* What the client that works off pending frees tells a node.  False: the node does not reply, or knows no such chunk or tree. */
extern bool test_memory_give_chunk(struct test_memory *memory, unsigned int node, uint32_t chunk);
extern bool test_memory_drop_tree(struct test_memory *memory, unsigned int node, uint64_t id);

static inline void *
test_memory_at(const struct test_memory *memory, fabric_address address)
{
	return memory->node[fabric_node(address)].base + fabric_offset(address);
}

#endif /* TEST_MEMORY_H */

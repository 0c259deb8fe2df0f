/*
 * space_stress.c
 *	  Threads allocate, read and retire blocks of shared trees at once, while
 *	  trees come and go; the space is whole afterwards.  Once with a region, once with
 *	  an extent map, whose memory nodes are told their pending frees meanwhile, and of which one
 *	  is lost at last, still under way.
 *
 * Each place of a table has a block that a thread published there.  The one that
 * finds it inside an epoch reads its own address in it, however often it is
 * replaced meanwhile.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "compute/allocate/extents.h"
#include "support/check.h"
#include "support/node.h"

#define THREADS    4
#define OPERATIONS 60000
#define PLACES     512
#define TREES      3
#define ROUND      2000 /* operations between two meetings of all threads */

static struct test_node *node;
static pthread_barrier_t together;
static uint64_t trees[TREES];
static uint64_t place[PLACES]; /* a block, or 0 */

static const smart_class classes[] = {SMART_CLASS_LEAF(1), SMART_CLASS_LEAF(8), SMART_CLASS_LEAF(70),
									  SMART_CLASS_NODE(2)};

static uint64_t *
first_word(fabric_address block)
{
	return test_node_at(node, block);
}

/* A place's tree and class follow from its number, so the word needs the address only. */
static smart_class
class_of(unsigned int number)
{
	return classes[number % (sizeof(classes) / sizeof(classes[0]))];
}

static void
replace(struct test_client *mine, unsigned int number, unsigned long *lost)
{
	struct smart_services *services = &mine->client->services;
	uint64_t tree = trees[number % TREES];
	uint64_t seen = __atomic_load_n(&place[number], __ATOMIC_ACQUIRE);
	fabric_address block = 0;

	if (services->allocate(services, tree, class_of(number), &block) != SMART_OK)
	{
		++*lost;
		return;
	}
	__atomic_store_n(first_word(block), block, __ATOMIC_RELAXED);
	/* Release: the block is written before it is published; pairs with the acquire loads of the place. */
	if (__atomic_compare_exchange_n(&place[number], &seen, block, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		block = seen;
	if (block != 0)
		services->retire(services, tree, class_of(number), block);
}

static void *
work(void *argument)
{
	struct test_client *mine = test_client_open(node, (uint64_t) (uintptr_t) argument);
	struct smart_services *services = &mine->client->services;
	uint64_t random = (uint64_t) (uintptr_t) argument;
	unsigned long wrong = 0;
	unsigned long lost = 0;

	for (unsigned int i = 0; i < OPERATIONS; i++)
	{
		unsigned int number = (unsigned int) (test_random(&random) % PLACES);
		uint64_t seen;

		services->enter(services);
		seen = __atomic_load_n(&place[number], __ATOMIC_ACQUIRE);
		if (test_random(&random) % 4 == 0)
			replace(mine, number, &lost);
		wrong += seen != 0 && __atomic_load_n(first_word(seen), __ATOMIC_RELAXED) != seen;
		services->leave(services);
		if (i % ROUND == 0)
		{
			/* A thread that waits for a processor inside its epoch keeps back what all retire, but of one round only. */
			pthread_barrier_wait(&together);
			/* A tree of one's own, dropped with what it has. */
			fabric_address root;
			uint64_t tree = test_tree_create(mine, &root);

			for (unsigned int j = 0; j < 20; j++)
				lost += services->allocate(services, tree, class_of(j), &seen) != SMART_OK;
			(void) smart_space_drop_tree(&mine->client->space, tree);
			(void) smart_space_reclaim(&mine->client->space, trees[i / ROUND % TREES]);
		}
	}
	CHECK(wrong == 0);
	CHECK(lost == 0);
	test_client_close(mine);
	return NULL;
}

static void
start_all(pthread_t *thread, void *(*run)(void *) )
{
	for (unsigned int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&thread[i], NULL, run, (void *) (uintptr_t) (i + 1)) == 0);
}

static void
join_all(pthread_t *thread)
{
	for (unsigned int i = 0; i < THREADS; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
}

/* Everything that was published is given back, and nothing is left. */
static void
give_back(struct test_client *client)
{
	char message[200] = "";

	for (unsigned int i = 0; i < PLACES; i++)
	{
		if (place[i] != 0)
			smart_space_retire(&client->client->space, trees[i % TREES], class_of(i), place[i]);
		place[i] = 0;
	}
	for (unsigned int i = 0; i < TREES; i++)
	{
		struct smart_tree_info info;

		(void) smart_space_reclaim(&client->client->space, trees[i]);
		CHECK(smart_space_tree_info(&client->client->space, trees[i], &info) && info.pages == 0);
	}
	CHECK(smart_space_verify(&client->client->space, message, sizeof(message)) == SMART_OK);
}

static void
stress(bool extents)
{
	pthread_t thread[THREADS];
	struct smart_space_usage usage;
	struct test_client *client;
	char message[200] = "";
	fabric_address root;

	node = extents ? test_book_open(THREADS + 1, 3, 40) : test_node_open(THREADS + 1, UINT64_C(256) << 20);
	client = test_client_open(node, 1);
	pthread_barrier_init(&together, NULL, THREADS);
	for (unsigned int i = 0; i < TREES; i++)
		trees[i] = test_tree_create(client, &root);
	start_all(thread, work);
	/* Pending frees while chunks come and go: the last of them when all is done. */
	for (unsigned int i = 0; extents && i < 20000; i++)
		(void) test_work_off_duties(client);
	join_all(thread);
	pthread_barrier_destroy(&together);
	CHECK(smart_space_verify(&client->client->space, message, sizeof(message)) == SMART_OK);
	/* Blocks came back in time: the region is far from full. */
	smart_space_usage(&client->client->space, &usage);
	CHECK(usage.size <= UINT64_C(32) << 20);
	give_back(client);
	if (extents)
	{
		CHECK(test_work_off_duties(client) == 0 && node->memory->outside == 0);
		CHECK(node->memory->node[0].tree_count + node->memory->node[1].tree_count + node->memory->node[2].tree_count ==
			  TREES);
	}
	test_client_close(client);
	test_node_close(node);
}

/* ---- a memory node is lost ---- */

/* Trees of one's own grow, shrink and are dropped; those that are lost can only be dropped. */
static void *
use_trees(void *argument)
{
	struct test_client *mine = test_client_open(node, (uint64_t) (uintptr_t) argument);
	struct smart_space *space = &mine->client->space;
	unsigned long wrong = 0;

	for (unsigned int i = 0; i < OPERATIONS / 200; i++)
	{
		fabric_address root;
		fabric_address block;
		uint64_t tree = test_tree_create(mine, &root);

		for (unsigned int j = 0; j < 100; j++)
		{
			smart_status status = smart_space_allocate(space, tree, class_of(j), &block);

			wrong += status != SMART_OK && !smart_space_tree_lost(space, tree);
			if (status == SMART_OK && j % 2 == 0)
				smart_space_retire(space, tree, class_of(j), block);
		}
		wrong += !smart_space_drop_tree(space, tree);
	}
	CHECK(wrong == 0);
	test_client_close(mine);
	return NULL;
}

/* Another memory node comes to the place of one that was lost. */
static void
replace_memory(unsigned int number)
{
	struct test_memory *memory = node->memory;

	pthread_mutex_lock(&memory->mutex);
	memory->node[number].incarnation += TEST_MEMORY_NODES;
	memset(memory->node[number].taken + 1, 0, memory->node[number].chunks - 1);
	memset(memory->node[number].tree, 0, sizeof(memory->node[number].tree));
	pthread_mutex_unlock(&memory->mutex);
}

static void
stress_lost(void)
{
	pthread_t thread[THREADS];
	struct smart_space_usage usage;
	struct test_client *client;
	struct smart_node_info info;
	unsigned int number;
	char message[200] = "";

	node = test_book_open(THREADS + 1, TEST_MEMORY_NODES, 40);
	client = test_client_open(node, 1);
	start_all(thread, use_trees);
	/* Its number is free as soon as the last tree that it had a part of is dropped. */
	for (unsigned int i = 0; i < 50; i++)
	{
		unsigned int lost = 1 + i % (TEST_MEMORY_NODES - 1);

		smart_extents_lose_node(&client->client->space, lost);
		while (smart_extents_node_info(&client->client->space, lost, &info))
			sched_yield();
		replace_memory(lost);
		CHECK(smart_extents_add_node(&client->client->space, node->memory->node[lost].incarnation, &number) ==
			  SMART_OK);
		CHECK(number == lost);
		(void) test_work_off_duties(client);
	}
	join_all(thread);
	(void) test_work_off_duties(client);
	smart_space_usage(&client->client->space, &usage);
	CHECK(usage.trees == 0 && usage.used == 0 && node->memory->outside == 0);
	CHECK(smart_space_verify(&client->client->space, message, sizeof(message)) == SMART_OK);
	test_client_close(client);
	test_node_close(node);
}

int
main(void)
{
	stress(false);
	stress(true);
	stress_lost();
	return check_finish();
}

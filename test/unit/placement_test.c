/*
 * placement_test.c
 *	  On which memory nodes trees lie: small ones on one, chosen by room, large ones on all; what is full, away or closed
 *	  is passed over.
 */
#include <stdlib.h>
#include <string.h>

#include "compute/allocate/extents_parts.h"
#include "compute/allocate/placement.h"
#include "support/check.h"
#include "support/node.h"

#define PAGE_LEAF SMART_CLASS_LEAF(64) /* a slab of one page, one block */
#define NODES     3

static struct test_node *node;
static struct test_client *client;
static struct smart_space *space;

static void
open_nodes(uint32_t chunks)
{
	node = test_book_open(2, NODES, chunks);
	client = test_client_open(node, 1);
	space = &client->client->space;
}

static void
close_nodes(void)
{
	char message[200] = "";

	CHECK(smart_space_verify(space, message, sizeof(message)) == SMART_OK && message[0] == '\0');
	CHECK(node->memory->outside == 0);
	test_client_close(client);
	test_node_close(node);
}

/* What is free on a node, as it says. */
static void
set_room(unsigned int number, uint32_t room)
{
	smart_extents_set_room(space, number, node->memory->node[number].chunks - 1, room);
}

static uint64_t
make_tree(unsigned int *home)
{
	fabric_address root;
	uint64_t tree = test_tree_create(client, &root);

	*home = fabric_node(root);
	return tree;
}

/* Allocates blocks of a page each; how many of them lie on each node. */
static void
allocate(uint64_t tree, unsigned int count, unsigned int pages[NODES])
{
	fabric_address block;

	memset(pages, 0, NODES * sizeof(*pages));
	for (unsigned int i = 0; i < count; i++)
	{
		if (!CHECK(smart_space_allocate(space, tree, PAGE_LEAF, &block) == SMART_OK))
			break;
		pages[fabric_node(block)]++;
	}
}

/* ---- homes ---- */

/* A small tree lies where its root is, however many there are, and whatever the chunks of other nodes have free. */
static void
test_small_stay(void)
{
	uint64_t tree[30];
	unsigned int home[30];
	unsigned int pages[NODES];
	unsigned int trees[NODES] = {0};

	open_nodes(200);
	for (unsigned int i = 0; i < 30; i++)
	{
		tree[i] = make_tree(&home[i]);
		trees[home[i]]++;
	}
	for (unsigned int i = 0; i < NODES; i++)
		CHECK(trees[i] == 10);
	/* They grow by turns. */
	for (unsigned int round = 0; round < 5; round++)
		for (unsigned int i = 0; i < 30; i++)
		{
			allocate(tree[i], 100, pages);
			CHECK(pages[home[i]] == 100);
		}
	close_nodes();
}

/* Twice the room gets twice the trees, and one that is full gets none that another one has room for. */
static void
test_by_room(void)
{
	unsigned int trees[NODES] = {0};
	unsigned int home;

	open_nodes(101);
	set_room(0, 20);
	set_room(1, 40);
	set_room(2, 0);
	for (unsigned int i = 0; i < 60; i++)
	{
		(void) make_tree(&home);
		trees[home]++;
	}
	CHECK(trees[0] >= 19 && trees[0] <= 21 && trees[1] >= 39 && trees[1] <= 41 && trees[2] <= 1);
	close_nodes();
}

/* ---- large trees ---- */

/* Beyond a part of its home a tree is spread as the nodes have room. */
static void
test_large_spread(void)
{
	unsigned int pages[NODES];
	unsigned int home;
	uint64_t tree;

	open_nodes(81);
	tree = make_tree(&home);
	allocate(tree, 10 * SMART_CHUNK_PAGES, pages);
	CHECK(pages[home] == 10 * SMART_CHUNK_PAGES);
	set_room(0, 60);
	set_room(1, 60);
	set_room(2, 30);
	allocate(tree, 50 * SMART_CHUNK_PAGES, pages);
	CHECK(pages[0] >= 18 * SMART_CHUNK_PAGES && pages[0] <= 22 * SMART_CHUNK_PAGES);
	CHECK(pages[1] >= 18 * SMART_CHUNK_PAGES && pages[1] <= 22 * SMART_CHUNK_PAGES);
	CHECK(pages[2] >= 8 * SMART_CHUNK_PAGES && pages[2] <= 12 * SMART_CHUNK_PAGES);
	close_nodes();
}

/* 64 MiB are small on nodes that have more than eight times as much, unless somebody says otherwise. */
static void
test_small_limit(void)
{
	unsigned int pages[NODES];
	unsigned int home;
	uint64_t tree;

	open_nodes(1000);
	tree = make_tree(&home);
	allocate(tree, SMART_SMALL_PAGES, pages);
	CHECK(pages[home] == SMART_SMALL_PAGES);
	allocate(tree, 6 * SMART_SPREAD_PAGES, pages);
	for (unsigned int i = 0; i < NODES; i++)
		CHECK(pages[i] >= SMART_SPREAD_PAGES);
	/* A client may want less, or nothing, on one node. */
	smart_client_set_spread(client->client, 0);
	tree = make_tree(&home);
	allocate(tree, 6 * SMART_SPREAD_PAGES, pages);
	for (unsigned int i = 0; i < NODES; i++)
		CHECK(pages[i] >= SMART_SPREAD_PAGES);
	close_nodes();
}

/* Trees that grow by turns do not each come back to the same nodes, as those do of which each takes every third choice. */
static void
test_spread_in_step(void)
{
	unsigned int pages[NODES];
	unsigned int all[NODES] = {0};
	unsigned int of[NODES][NODES] = {{0}};
	unsigned int home;
	uint64_t tree[NODES];

	open_nodes(1000);
	smart_client_set_spread(client->client, 0);
	for (unsigned int i = 0; i < NODES; i++)
		tree[i] = make_tree(&home);
	for (unsigned int round = 0; round < 30; round++)
		for (unsigned int i = 0; i < NODES; i++)
		{
			allocate(tree[i], SMART_SPREAD_PAGES, pages);
			for (unsigned int j = 0; j < NODES; j++)
			{
				of[i][j] += pages[j];
				all[j] += pages[j];
			}
		}
	for (unsigned int j = 0; j < NODES; j++)
	{
		CHECK(all[j] >= 28 * SMART_SPREAD_PAGES && all[j] <= 32 * SMART_SPREAD_PAGES);
		for (unsigned int i = 0; i < NODES; i++)
			CHECK(of[i][j] >= 5 * SMART_SPREAD_PAGES);
	}
	close_nodes();
}

/* A tree that was very large, and is no more, does not stay where it was for as long as it takes to grow as large. */
static void
test_shrunk(void)
{
	static fabric_address block[60 * SMART_CHUNK_PAGES];
	unsigned int pages[NODES];
	unsigned int home;
	uint64_t tree;

	open_nodes(41);
	tree = make_tree(&home);
	for (unsigned int i = 0; i < 60 * SMART_CHUNK_PAGES; i++)
		CHECK(smart_space_allocate(space, tree, PAGE_LEAF, &block[i]) == SMART_OK);
	for (unsigned int i = 10 * SMART_CHUNK_PAGES; i < 60 * SMART_CHUNK_PAGES; i++)
		smart_space_retire(space, tree, PAGE_LEAF, block[i]);
	(void) smart_space_reclaim(space, tree);
	CHECK(test_work_off_duties(client) == 0);
	for (unsigned int i = 0; i < NODES; i++)
		set_room(i, 30);
	allocate(tree, 30 * SMART_CHUNK_PAGES, pages);
	for (unsigned int i = 0; i < NODES; i++)
		CHECK(pages[i] >= 8 * SMART_CHUNK_PAGES);
	close_nodes();
}

/* ---- what cannot be used ---- */

/* The home is full, does not answer, rests, or is closed: another one becomes home, and stays. */
static void
test_home_moves(void)
{
	unsigned int pages[NODES];
	unsigned int home;

	for (unsigned int reason = 0; reason < 4; reason++)
	{
		struct test_memory_node *memory;
		unsigned int other;
		uint64_t tree;

		open_nodes(200);
		tree = make_tree(&home);
		memory = &node->memory->node[home];
		allocate(tree, SMART_CHUNK_PAGES - SMART_SPARE_PAGES, pages);
		CHECK(pages[home] == SMART_CHUNK_PAGES - SMART_SPARE_PAGES);
		if (reason == 0)
			memory->chunks = 2;
		else if (reason == 1)
			memory->down = true;
		else if (reason == 2)
			smart_extents_rest_node(space, home, true);
		else
			smart_space_close_node(space, home, true);
		allocate(tree, SMART_CHUNK_PAGES, pages);
		CHECK(pages[home] == 0);
		other = pages[0] > 0 ? 0 : pages[1] > 0 ? 1 : 2;
		CHECK(pages[other] == SMART_CHUNK_PAGES);
		memory->chunks = 200;
		memory->down = false;
		smart_extents_rest_node(space, home, false);
		smart_space_close_node(space, home, false);
		allocate(tree, SMART_CHUNK_PAGES, pages);
		CHECK(pages[other] == SMART_CHUNK_PAGES);
		close_nodes();
	}
}

/* When all nodes are full, the last pages are found wherever they lie, and so is what others have freed. */
static void
test_found_elsewhere(void)
{
	fabric_address block[NODES];
	unsigned int pages[NODES];
	unsigned int home[NODES];
	uint64_t tree[NODES];
	fabric_address found;

	open_nodes(4);
	for (unsigned int i = 0; i < NODES; i++)
	{
		tree[i] = make_tree(&home[i]);
		CHECK(smart_space_allocate(space, tree[i], PAGE_LEAF, &block[i]) == SMART_OK);
	}
	CHECK(home[0] != home[1] && home[1] != home[2]);
	allocate(tree[0], 9 * SMART_CHUNK_PAGES - SMART_SPARE_PAGES - NODES, pages);
	CHECK(smart_space_allocate(space, tree[0], PAGE_LEAF, &found) == SMART_NO_SPACE);
	/* A removal gets every page but those that are left to others, of all nodes; and then all. */
	space->removing = true;
	allocate(tree[1], SMART_SPARE_PAGES - SMART_MEND_PAGES, pages);
	CHECK(smart_space_allocate(space, tree[1], PAGE_LEAF, &found) == SMART_NO_SPACE);
	for (unsigned int i = 0; i < SMART_MEND_PAGES; i++)
		CHECK(smart_space_allocate_spared(space, tree[1], PAGE_LEAF, SMART_SPACE_STANDBY, &found) == SMART_OK);
	/* Ones that were retired, and not reclaimed yet. */
	for (unsigned int i = 0; i < NODES; i++)
	{
		CHECK(smart_space_allocate_spared(space, tree[1], PAGE_LEAF, SMART_SPACE_STANDBY, &found) == SMART_NO_SPACE);
		smart_space_retire(space, tree[i], PAGE_LEAF, block[i]);
		CHECK(smart_space_allocate_spared(space, tree[1], PAGE_LEAF, SMART_SPACE_STANDBY, &found) == SMART_OK);
		CHECK(fabric_node(found) == home[i]);
	}
	space->removing = false;
	close_nodes();
}

/* ---- a restart ---- */

/* A home outlives a restart. */
static void
test_restart(void)
{
	unsigned int pages[NODES];
	unsigned int home;
	uint64_t tree;

	open_nodes(200);
	(void) make_tree(&home);
	tree = make_tree(&home);
	allocate(tree, 10, pages);
	CHECK(pages[home] == 10 && home != 0);
	test_client_close(client);
	smart_region_unmap(&node->region);
	CHECK(smart_extent_map(&node->region, node->region.fd) == SMART_OK);
	client = test_client_open(node, 1);
	space = &client->client->space;
	allocate(tree, 2 * SMART_CHUNK_PAGES, pages);
	CHECK(pages[home] == 2 * SMART_CHUNK_PAGES);
	close_nodes();
}

int
main(void)
{
	test_small_stay();
	test_by_room();
	test_large_spread();
	test_small_limit();
	test_spread_in_step();
	test_shrunk();
	test_home_moves();
	test_found_elsewhere();
	test_restart();
	return check_finish();
}

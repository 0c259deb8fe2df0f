/*
 * extents_nodes_test.c
 *	  Memory nodes of an extent map: trees on them, pending frees for them, what is theirs when they
 *	  are lost, and what the extent map knows when it is asked.
 */
#include <stdlib.h>
#include <string.h>

#include "compute/allocate/extents_parts.h"
#include "compute/allocate/slab.h"
#include "support/check.h"
#include "support/node.h"

#define PAGE_LEAF SMART_CLASS_LEAF(64) /* a slab of one page, one block */
#define NODES     3

static const struct smart_tree_owner no_owner = {.backend = -1};

static bool
whole(struct test_client *client)
{
	char message[200] = "";
	bool good = smart_space_verify(&client->client->space, message, sizeof(message)) == SMART_OK;

	return CHECK(good) || CHECK(strcmp(message, "") == 0);
}

static fabric_address
allocate(struct test_client *client, uint64_t tree)
{
	fabric_address block = 0;

	CHECK(smart_space_allocate(&client->client->space, tree, PAGE_LEAF, &block) == SMART_OK);
	return block;
}

static enum smart_node_state
state_of(struct test_client *client, unsigned int node)
{
	struct smart_node_info info = {.state = SMART_NODE_NONE};

	(void) smart_extents_node_info(&client->client->space, node, &info);
	return info.state;
}

/* Chunks and trees that a memory node has and the extent map does not know of, or the reverse: none. */
static bool
agree(struct test_client *client, unsigned int number)
{
	struct smart_space *space = &client->client->space;
	const struct test_memory_node *node = &client->node->memory->node[number];
	struct smart_node_info info;
	bool same = smart_extents_node_info(space, number, &info);

	for (uint32_t chunk = 1; chunk < node->chunks; chunk++)
		same = same && smart_extents_has_chunk(space, number, chunk) == node->taken[chunk];
	for (unsigned int i = 0; i < TEST_MEMORY_ROOTS; i++)
		same = same && (node->tree[i] == 0 || smart_extents_has_tree(space, node->tree[i]));
	return same && info.chunks == node->taken_count && info.trees == node->tree_count;
}

/* What the server's worker does: frees on the node what the extent map does not know. */
static void
reconcile(struct test_client *client, unsigned int number)
{
	struct smart_space *space = &client->client->space;
	struct test_memory *memory = client->node->memory;
	struct test_memory_node *node = &memory->node[number];

	for (uint32_t chunk = 1; chunk < node->chunks; chunk++)
		if (node->taken[chunk] && !smart_extents_has_chunk(space, number, chunk))
			CHECK(test_memory_give_chunk(memory, number, chunk));
	for (unsigned int i = 0; i < TEST_MEMORY_ROOTS; i++)
		if (node->tree[i] != 0 && !smart_extents_has_tree(space, node->tree[i]))
			CHECK(test_memory_drop_tree(memory, number, node->tree[i]));
}

/* ---- numbers ---- */

static void
test_numbers(void)
{
	struct test_node *node = test_book_open(2, NODES, 4);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	struct smart_node_info info;
	unsigned int number;

	CHECK(smart_extents_add_node(space, node->memory->node[1].incarnation, &number) == SMART_OK && number == 1);
	CHECK(smart_extents_node_info(space, 1, &info) && info.state == SMART_NODE_ACTIVE && info.chunks == 0 &&
		  info.incarnation == node->memory->node[1].incarnation && info.trees == 0 && info.pages_used == 0);
	CHECK(!smart_extents_node_info(space, NODES, &info));
	smart_extents_set_address(space, 1, 77);
	CHECK(smart_extents_node_info(space, 0, &info) && info.address == 0);
	CHECK(smart_extents_node_info(space, 1, &info) && info.address == 77);
	for (unsigned int i = NODES; i < FABRIC_NODES_MAX; i++)
		CHECK(smart_extents_add_node(space, 1000 + i, &number) == SMART_OK && number == i);
	CHECK(smart_extents_add_node(space, 7, &number) == SMART_NO_SPACE);
	CHECK(smart_extents_add_node(space, 1000 + NODES, &number) == SMART_OK && number == NODES);
	/* Nothing refers to it: its number is free at once. */
	smart_extents_set_address(space, 100, 78);
	smart_extents_lose_node(space, 100);
	CHECK(state_of(client, 100) == SMART_NODE_NONE);
	smart_extents_lose_node(space, 100);
	CHECK(smart_extents_add_node(space, 7, &number) == SMART_OK && number == 100);
	CHECK(smart_extents_node_info(space, 100, &info) && info.address == 0);
	whole(client);
	test_client_close(client);
	test_node_close(node);
}

/* ---- trees ---- */

static void
test_trees_made(void)
{
	struct test_node *node = test_book_open(2, NODES, 4);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	struct test_memory *memory = node->memory;
	struct smart_tree_info info;
	uint64_t cursor = 0;
	fabric_address root = 0;
	uint64_t id = 0;

	/* One that is down is not asked; one whose reply is lost is left a pending free, and the next one has the tree. */
	memory->node[0].down = true;
	memory->node[1].silent = true;
	CHECK(smart_space_create_tree(space, &no_owner, &id, &root) == SMART_OK && fabric_node(root) == 2);
	CHECK(memory->node[0].requests == 0 && memory->node[1].tree_count == 1 && memory->node[2].tree_count == 1);
	CHECK(memory->node[1].tree[1] != id && !smart_extents_has_tree(space, memory->node[1].tree[1]));
	CHECK(smart_extents_has_tree(space, id));
	memory->node[2].down = true;
	CHECK(smart_space_create_tree(space, &no_owner, &id, &root) != SMART_OK);
	whole(client);
	/* Neither of those that were given up is a tree. */
	CHECK(smart_space_next_tree(space, &cursor, &info) && info.id == id &&
		  !smart_space_next_tree(space, &cursor, &info));
	memory->node[1].silent = false;
	memory->node[0].down = memory->node[2].down = false;
	CHECK(test_work_off_duties(client) == 0);
	for (unsigned int i = 0; i < NODES; i++)
		CHECK(agree(client, i) && memory->node[i].tree_count == (i == 2));

	/* A full directory is passed over. */
	for (unsigned int i = 0; i < TEST_MEMORY_ROOTS; i++)
		memory->node[0].tree[i] = memory->node[0].tree[i] != 0 ? memory->node[0].tree[i] : 1;
	for (unsigned int i = 0; i < 4; i++)
		CHECK(smart_space_create_tree(space, &no_owner, &id, &root) == SMART_OK && fabric_node(root) != 0);
	whole(client);

	/* An interrupt ends it at once. */
	client->thread.stop = true;
	CHECK(smart_space_create_tree(space, &no_owner, &id, &root) == SMART_INTERRUPTED);
	client->thread.stop = false;
	whole(client);
	test_client_close(client);
	test_node_close(node);
}

/* ---- pending frees ---- */

/* A tree's blocks, each a page of its own. */
struct pages
{
	uint64_t tree;
	unsigned int count;
	fabric_address block[20 * SMART_CHUNK_PAGES];
};

static void
fill(struct test_client *client, struct pages *pages, unsigned int count)
{
	fabric_address root;

	pages->tree = test_tree_create(client, &root);
	pages->count = count;
	for (unsigned int i = 0; i < count; i++)
		pages->block[i] = allocate(client, pages->tree);
}

/* Gives back the pages that lie in this chunk, or those that do not. */
static void
empty(struct test_client *client, const struct pages *pages, uint32_t chunk, bool inside)
{
	struct smart_space *space = &client->client->space;

	for (unsigned int i = 0; i < pages->count; i++)
		if ((fabric_offset(pages->block[i]) / SMART_CHUNK_BYTES == chunk) == inside)
			smart_space_retire(space, pages->tree, PAGE_LEAF, pages->block[i]);
	smart_space_reclaim(space, pages->tree);
}

/* The node was told and has given the chunk again before its reply was seen. */
static void
test_given_again(void)
{
	static struct pages pages;
	struct test_node *node = test_book_open(2, 1, 12);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	struct test_memory *memory = node->memory;
	struct smart_pending_free pending;
	struct smart_pending_free later;

	fill(client, &pages, 4 * SMART_CHUNK_PAGES);
	CHECK(smart_space_drop_tree(space, pages.tree));
	CHECK(smart_pending_next(space, 0, &pending) && pending.kind == SMART_PENDING_GIVE_CHUNK);
	CHECK(smart_extents_has_chunk(space, 0, pending.chunk));
	CHECK(test_memory_give_chunk(memory, 0, pending.chunk));
	/* No other chunk is free there. */
	CHECK(memory->node[0].taken_count == 4);
	memory->node[0].chunks = 6;
	fill(client, &pages, 5 * SMART_CHUNK_PAGES - SMART_SPARE_PAGES);
	CHECK(smart_extents_has_chunk(space, 0, pending.chunk) && memory->node[0].taken[pending.chunk]);
	whole(client);
	/* The answer comes late, when the chunk is in use … */
	smart_pending_done(space, &pending);
	CHECK(smart_extents_has_chunk(space, 0, pending.chunk));
	/* … and when it is leaving again. */
	empty(client, &pages, pending.chunk, false);
	empty(client, &pages, pending.chunk, true);
	CHECK(smart_pending_next(space, 0, &later) && later.chunk == pending.chunk && later.entry == pending.entry);
	smart_pending_done(space, &pending);
	CHECK(smart_extents_has_chunk(space, 0, pending.chunk));
	whole(client);
	CHECK(test_work_off_duties(client) == 0 && agree(client, 0));
	/* A pending free is done once. */
	smart_pending_done(space, &later);
	whole(client);
	CHECK(memory->node[0].taken_count == SMART_EMPTY_CHUNKS && memory->outside == 0);
	test_client_close(client);
	test_node_close(node);
}

/* A node that hands out what the extent map has is not believed. */
static void
test_wrong_chunk(void)
{
	struct test_node *node = test_book_open(2, 1, 5);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	fabric_address block;
	fabric_address root;
	uint64_t tree = test_tree_create(client, &root);

	(void) allocate(client, tree);
	node->memory->node[0].taken[1] = 0;
	for (unsigned int i = 1; i < SMART_CHUNK_PAGES - SMART_SPARE_PAGES; i++)
		(void) allocate(client, tree);
	CHECK(smart_space_allocate(space, tree, PAGE_LEAF, &block) == SMART_CORRUPT);
	whole(client);
	test_client_close(client);
	test_node_close(node);
}

/* ---- lost ---- */

#define LOST_TREES 60

/* Trees, each with as many pages as its number, of which some have a part on node 1. */
struct forest
{
	uint64_t id[LOST_TREES];
	fabric_address block[LOST_TREES];
	bool touched[LOST_TREES];
};

static void
plant(struct test_client *client, struct forest *forest)
{
	struct smart_space *space = &client->client->space;
	uint64_t pages[FABRIC_NODES_MAX];
	fabric_address root;
	unsigned int touched = 0;

	for (unsigned int i = 0; i < LOST_TREES; i++)
	{
		forest->id[i] = test_tree_create(client, &root);
		for (unsigned int j = 0; j < i; j++)
			forest->block[i] = allocate(client, forest->id[i]);
		CHECK(smart_space_tree_nodes(space, forest->id[i], pages) && pages[0] + pages[1] + pages[2] == i);
		forest->touched[i] = pages[1] > 0 || fabric_node(root) == 1;
		touched += forest->touched[i];
	}
	CHECK(touched > LOST_TREES / 3 && touched < LOST_TREES);
}

/* Node 1 is lost: the trees with a part there are, and no other. */
static void
check_lost(struct test_client *client, const struct forest *forest)
{
	struct smart_space *space = &client->client->space;

	for (unsigned int i = 0; i < LOST_TREES; i++)
	{
		bool lost = forest->touched[i];
		struct smart_tree_info tree;
		fabric_address found;

		CHECK(smart_space_find_tree(space, forest->id[i], &found) == !lost);
		CHECK(smart_space_tree_lost(space, forest->id[i]) == lost);
		CHECK(smart_space_tree_info(space, forest->id[i], &tree) && tree.lost == lost && tree.pages == i);
		CHECK(smart_space_allocate(space, forest->id[i], PAGE_LEAF, &found) == (lost ? SMART_UNREACHABLE : SMART_OK));
		CHECK(lost || fabric_node(found) != 1);
	}
}

/* Another memory node takes the place of the lost one, and gets chunks and trees. */
static void
use_new_node(struct test_client *client)
{
	struct test_memory *memory = client->node->memory;
	fabric_address root;
	unsigned int number;

	memory->node[1].incarnation += 100;
	memset(memory->node[1].taken + 1, 0, memory->node[1].chunks - 1);
	memset(memory->node[1].tree, 0, sizeof(memory->node[1].tree));
	memory->node[1].taken_count = memory->node[1].tree_count = 0;
	CHECK(smart_extents_add_node(&client->client->space, memory->node[1].incarnation, &number) == SMART_OK &&
		  number == 1);
	smart_extents_set_room(&client->client->space, 1, memory->node[1].chunks - 1, memory->node[1].chunks - 1);
	for (unsigned int i = 0; i < LOST_TREES; i++)
	{
		uint64_t id = test_tree_create(client, &root);

		for (unsigned int j = 0; j < SMART_CHUNK_PAGES / 10; j++)
			(void) allocate(client, id);
	}
	whole(client);
	for (unsigned int i = 0; i < NODES; i++)
		CHECK(agree(client, i) && memory->node[i].tree_count >= LOST_TREES / 3 && memory->node[i].taken_count > 0);
}

static void
test_lost(void)
{
	struct test_node *node = test_book_open(2, NODES, 12);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	static struct pages before;
	struct forest forest;
	struct smart_node_info info;
	struct smart_pending_free pending;
	unsigned int number;

	/* With chunks that are free, and others to be given back. */
	fill(client, &before, 12 * SMART_CHUNK_PAGES);
	plant(client, &forest);
	CHECK(smart_space_drop_tree(space, before.tree));
	CHECK(smart_pending_next(space, 1, &pending));

	smart_extents_lose_node(space, 1);
	whole(client);
	CHECK(!smart_pending_next(space, 1, &pending));
	CHECK(smart_extents_node_info(space, 1, &info) && info.state == SMART_NODE_LOST && info.chunks > 0);
	check_lost(client, &forest);
	/* A client that was at it gives a block back. */
	smart_space_retire(space, forest.id[LOST_TREES - 1], PAGE_LEAF, forest.block[LOST_TREES - 1]);
	whole(client);

	/* The same memory, should it come back, is another node; its number is not that of the lost one. */
	CHECK(smart_extents_add_node(space, node->memory->node[1].incarnation, &number) == SMART_OK && number == NODES);
	smart_extents_lose_node(space, NODES);
	CHECK(state_of(client, NODES) == SMART_NODE_NONE);

	/* The number is free when the last one is gone. */
	for (unsigned int i = 0; i < LOST_TREES; i++)
		if (forest.touched[i])
		{
			CHECK(state_of(client, 1) == SMART_NODE_LOST);
			CHECK(smart_space_drop_tree(space, forest.id[i]));
			whole(client);
		}
	CHECK(state_of(client, 1) == SMART_NODE_NONE);
	CHECK(test_work_off_duties(client) == 0 && agree(client, 0) && agree(client, 2));
	use_new_node(client);
	test_client_close(client);
	test_node_close(node);
}

/* Pages that were taken before their node was lost become no slab; the chunk goes with the last of them. */
static void
test_lost_before_linked(void)
{
	struct test_node *node = test_book_open(2, 2, 12);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	fabric_address root;
	uint64_t tree = test_tree_create(client, &root);
	uint64_t deadline_ns = UINT64_MAX;
	unsigned int lost;
	uint32_t number;
	uint32_t page;

	do
		CHECK(smart_extents_storage.grow(space, smart_record_find(space, tree), 0, &deadline_ns) == SMART_OK &&
			  smart_slab_prepare(space, smart_record_find(space, tree), PAGE_LEAF, &page) == SMART_OK);
	while (fabric_node(smart_page_address(space, page)) == fabric_node(root));
	lost = fabric_node(smart_page_address(space, page));
	smart_extents_lose_node(space, lost);
	CHECK(state_of(client, lost) == SMART_NODE_LOST);
	number = smart_record_find(space, tree);
	space->locks->acquire(space->locks, smart_partition_lock(tree));
	CHECK(!smart_slab_link(space, number, PAGE_LEAF, page));
	space->locks->release(space->locks, smart_partition_lock(tree));
	CHECK(state_of(client, lost) == SMART_NODE_NONE);
	test_client_close(client);
	test_node_close(node);
}

/* ---- what the extent map knows while a client asks a memory node ---- */

static struct test_client *observer;

static void
lose_while_asked(struct test_memory *memory, unsigned int node)
{
	memory->asked = NULL;
	smart_extents_lose_node(&observer->client->space, node);
}

/* Another memory node gets the number of the one that is asked. */
static void
replace_while_asked(struct test_memory *memory, unsigned int node)
{
	unsigned int number;

	/* Not the first one, where the tree is, which is full. */
	if (node == 0)
		return;
	memory->asked = NULL;
	smart_extents_lose_node(&observer->client->space, node);
	CHECK(smart_extents_add_node(&observer->client->space, memory->node[node].incarnation + 100, &number) == SMART_OK);
	CHECK(number == node);
}

static void
look_while_asked(struct test_memory *memory, unsigned int node)
{
	struct smart_space *space = &observer->client->space;
	uint64_t id = smart_region_header(space->region)->incarnation + smart_region_header(space->region)->last_tree;
	struct smart_tree_info info;
	fabric_address root;
	uint64_t cursor = 0;
	bool making = !smart_region_header(space->region)->growing;

	/* On the way, and not to be freed; but nothing else is, and it is no tree yet. */
	CHECK(smart_extents_has_chunk(space, node, 9) == !making && !smart_extents_has_chunk(space, (node + 1) % NODES, 9));
	if (making)
	{
		CHECK(smart_extents_has_tree(space, id) && !smart_space_find_tree(space, id, &root));
		CHECK(!smart_space_drop_tree(space, id) && !smart_space_tree_info(space, id, &info));
		while (smart_space_next_tree(space, &cursor, &info))
			CHECK(info.id != id);
	}
}

static unsigned int
active_nodes(struct test_client *client)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < NODES; i++)
		count += state_of(client, i) == SMART_NODE_ACTIVE;
	return count;
}

static void
test_asked(void)
{
	struct test_node *node = test_book_open(2, NODES, 12);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	fabric_address root;
	fabric_address block;
	uint64_t id;

	observer = test_client_open(node, 2);
	node->memory->asked = look_while_asked;
	id = test_tree_create(client, &root);
	(void) allocate(client, id);
	whole(client);

	/* A reply that was lost leaves a chunk that the extent map does not know, and one of a tree. */
	node->memory->asked = NULL;
	for (unsigned int i = 0; i < NODES; i++)
		node->memory->node[i].silent = true;
	for (unsigned int i = 0; i < SMART_CHUNK_PAGES; i++)
		(void) smart_space_allocate(space, id, PAGE_LEAF, &block);
	for (unsigned int i = 0; i < NODES; i++)
	{
		node->memory->node[i].silent = false;
		CHECK(!agree(client, i));
		reconcile(client, i);
		CHECK(agree(client, i));
	}
	whole(client);

	/* A node that is lost while it is asked: neither chunk nor tree is taken for there. */
	node->memory->asked = lose_while_asked;
	id = test_tree_create(client, &root);
	CHECK(state_of(client, fabric_node(root)) == SMART_NODE_ACTIVE && smart_space_find_tree(space, id, &block));
	node->memory->asked = lose_while_asked;
	for (unsigned int i = 0; i < SMART_CHUNK_PAGES; i++)
		if (smart_space_allocate(space, id, PAGE_LEAF, &block) != SMART_OK)
			break;
	CHECK(node->memory->asked == NULL && active_nodes(client) == 1);
	whole(client);
	test_client_close(observer);
	test_client_close(client);
	test_node_close(node);
}

/* What a memory node has given is not the next one's that has its number. */
static void
test_replaced(void)
{
	struct test_node *node = test_book_open(2, NODES, 12);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	struct smart_node_info info;
	fabric_address root;
	uint64_t tree = test_tree_create(client, &root);

	observer = test_client_open(node, 2);
	CHECK(fabric_node(root) == 0);
	(void) allocate(client, tree);
	node->memory->node[0].chunks = 2;
	node->memory->asked = replace_while_asked;
	for (unsigned int i = 0; i < SMART_CHUNK_PAGES; i++)
		(void) allocate(client, tree);
	CHECK(node->memory->asked == NULL && node->memory->node[1].taken_count == 1);
	CHECK(smart_extents_node_info(space, 1, &info) && info.state == SMART_NODE_ACTIVE && info.chunks == 0);
	CHECK(!smart_space_tree_lost(space, tree));
	whole(client);
	test_client_close(observer);
	test_client_close(client);
	test_node_close(node);
}

/* ---- all at once, at random ---- */

#define TREES 12

static void
random_step(struct test_client *client, uint64_t *id, uint64_t *state)
{
	struct smart_space *space = &client->client->space;
	uint64_t *tree = &id[test_random(state) % TREES];
	fabric_address address;
	smart_status status;

	switch (test_random(state) % 24)
	{
		case 0:
			status = SMART_OK;
			if (*tree == 0)
				status = smart_space_create_tree(space, &no_owner, tree, &address);
			else
			{
				CHECK(smart_space_drop_tree(space, *tree));
				*tree = 0;
			}
			CHECK(status == SMART_OK || status == SMART_UNREACHABLE || status == SMART_TIMEOUT);
			break;
		case 1:
			(void) test_work_off_duties(client);
			break;
		case 2:
			smart_space_close_node(space, (unsigned int) (test_random(state) % NODES), test_random(state) % 3 == 0);
			break;
		default:
			for (unsigned int i = 0; i < 40 && *tree != 0; i++)
			{
				status = smart_space_allocate(space, *tree, i % 3 == 0 ? SMART_CLASS_LEAF(127) : PAGE_LEAF, &address);
				CHECK(status == SMART_OK || status == SMART_NO_SPACE || status == SMART_UNREACHABLE ||
					  status == SMART_TIMEOUT);
				if (status == SMART_OK && i % 2 == 0)
					smart_space_retire(space, *tree, i % 3 == 0 ? SMART_CLASS_LEAF(127) : PAGE_LEAF, address);
			}
	}
}

static void
test_random_failures(uint64_t seed)
{
	struct test_node *node = test_book_open(2, NODES, 10);
	struct test_client *client = test_client_open(node, seed);
	struct smart_space *space = &client->client->space;
	uint64_t id[TREES] = {0};
	uint64_t state = seed;

	node->memory->fail_one_in = 4;
	for (unsigned int step = 0; step < 4000; step++)
	{
		random_step(client, id, &state);
		if (step % 100 == 0)
			whole(client);
	}
	node->memory->fail_one_in = 0;
	smart_space_close_node(space, 1, true);
	for (unsigned int i = 0; i < TREES; i++)
		CHECK(id[i] == 0 || smart_space_drop_tree(space, id[i]));
	CHECK(test_work_off_duties(client) == 0);
	for (unsigned int i = 0; i < NODES; i++)
	{
		reconcile(client, i);
		CHECK(agree(client, i) && node->memory->node[i].tree_count == 0);
	}
	CHECK(smart_space_forget_node(space, 1));
	whole(client);
	CHECK(node->memory->outside == 0);
	test_client_close(client);
	test_node_close(node);
}

/* ---- a node that rests ---- */

/* Fills chunks on all nodes by halves, so that each has some to give. */
static void
fill_by_halves(struct test_client *client, uint64_t tree)
{
	static fabric_address block[3 * SMART_CHUNK_PAGES];

	for (unsigned int i = 0; i < 3 * SMART_CHUNK_PAGES; i++)
		block[i] = allocate(client, tree);
	for (unsigned int i = 0; i < 3 * SMART_CHUNK_PAGES; i += 2)
		smart_space_retire(&client->client->space, tree, PAGE_LEAF, block[i]);
	(void) smart_space_reclaim(&client->client->space, tree);
}

static void
test_rest(void)
{
	struct test_node *node = test_book_open(2, NODES, 4);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	uint64_t pages[FABRIC_NODES_MAX];
	fabric_address root;
	uint64_t tree;
	uint64_t other;

	CHECK(smart_space_create_tree(space, &no_owner, &tree, &root) == SMART_OK);
	CHECK(smart_space_create_tree(space, &no_owner, &other, &root) == SMART_OK);
	fill_by_halves(client, tree);
	smart_extents_rest_node(space, 1, true);
	smart_extents_rest_node(space, 1, true);
	whole(client);
	/* Its blocks come back meanwhile, and stay where they are. */
	(void) smart_space_reclaim(space, tree);
	for (unsigned int i = 0; i < SMART_CHUNK_PAGES; i++)
		CHECK(fabric_node(allocate(client, other)) != 1);
	whole(client);
	smart_extents_rest_node(space, 1, false);
	whole(client);
	for (unsigned int i = 0; i < 2 * SMART_CHUNK_PAGES; i++)
		(void) allocate(client, other);
	CHECK(smart_space_tree_nodes(space, other, pages) && pages[1] > 0);
	CHECK(smart_space_drop_tree(space, tree) && smart_space_drop_tree(space, other));
	whole(client);
	/* All its chunks leave while it rests. */
	smart_extents_rest_node(space, 2, true);
	whole(client);
	smart_extents_lose_node(space, 2);
	whole(client);
	test_client_close(client);
	test_node_close(node);
}

/* ---- a node that is closed ---- */

/* Neither chunks nor roots nor pages come from a closed node, also if it was closed while it was asked. */
static void
test_closed(void)
{
	struct test_node *node = test_book_open(2, NODES, 6);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	uint64_t pages[FABRIC_NODES_MAX];
	struct smart_node_info info;
	unsigned long requests;
	fabric_address root;
	uint64_t tree;
	uint64_t other;

	CHECK(smart_space_create_tree(space, &no_owner, &tree, &root) == SMART_OK);
	fill_by_halves(client, tree);
	CHECK(!smart_space_node_is_closed(space, 1) && !smart_space_node_is_closed(space, NODES));
	smart_space_close_node(space, 1, true);
	smart_space_close_node(space, 1, true);
	smart_space_close_node(space, NODES, true);
	CHECK(smart_space_node_is_closed(space, 1) && !smart_space_node_is_closed(space, NODES));
	CHECK(smart_extents_node_info(space, 1, &info) && info.closed && info.pages_free > 0 && info.pages_used > 0);
	whole(client);
	requests = node->memory->node[1].requests;
	for (unsigned int i = 0; i < NODES; i++)
		CHECK(smart_space_create_tree(space, &no_owner, &other, &root) == SMART_OK && fabric_node(root) != 1);
	for (unsigned int i = 0; i < 2 * SMART_CHUNK_PAGES; i++)
		CHECK(fabric_node(allocate(client, other)) != 1);
	CHECK(node->memory->node[1].requests == requests);
	whole(client);
	/* It is closed whether it rests or not. */
	smart_extents_rest_node(space, 1, true);
	whole(client);
	smart_extents_rest_node(space, 1, false);
	for (unsigned int i = 0; i < SMART_CHUNK_PAGES; i++)
		CHECK(fabric_node(allocate(client, other)) != 1);
	whole(client);
	/* Open again, it gives what is free there. */
	smart_space_close_node(space, 1, false);
	CHECK(!smart_space_node_is_closed(space, 1));
	whole(client);
	for (unsigned int i = 0; i < 3 * SMART_CHUNK_PAGES; i++)
		(void) allocate(client, other);
	CHECK(smart_space_tree_nodes(space, other, pages) && pages[1] > 0);
	whole(client);
	test_client_close(client);
	test_node_close(node);
}

/* What becomes free on a closed node leaves at once, as what is free; when nothing is left, the node is forgotten. */
static void
test_closed_empties(void)
{
	static struct pages pages;
	struct test_node *node = test_book_open(2, 2, 12);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	struct smart_node_info info;
	fabric_address root;
	unsigned int number;
	uint64_t tree = test_tree_create(client, &root);
	unsigned int closed = fabric_node(root);

	fill(client, &pages, 6 * SMART_CHUNK_PAGES);
	CHECK(smart_space_drop_tree(space, pages.tree));
	/* Some are kept, in case they are wanted. */
	CHECK(test_work_off_duties(client) == 0);
	CHECK(node->memory->node[0].taken_count + node->memory->node[1].taken_count == SMART_EMPTY_CHUNKS);
	CHECK(node->memory->node[closed].taken_count > 0);
	smart_space_close_node(space, closed, true);
	whole(client);
	CHECK(test_work_off_duties(client) == 0 && node->memory->node[closed].taken_count == 0);
	CHECK(!smart_space_forget_node(space, closed) && !smart_space_forget_node(space, 1 - closed));
	CHECK(smart_extents_node_info(space, closed, &info) && info.chunks == 0 && info.trees == 1);
	CHECK(smart_space_drop_tree(space, tree));
	/* It has yet to hear of it. */
	CHECK(!smart_space_forget_node(space, closed));
	CHECK(test_work_off_duties(client) == 0 && agree(client, closed));
	CHECK(smart_space_forget_node(space, closed) && !smart_space_forget_node(space, closed));
	CHECK(state_of(client, closed) == SMART_NODE_NONE && !smart_space_node_is_closed(space, closed));
	whole(client);
	/* The same region is another node when it comes again, and open. */
	CHECK(smart_extents_add_node(space, node->memory->node[closed].incarnation, &number) == SMART_OK);
	CHECK(number == closed && !smart_space_node_is_closed(space, closed));
	whole(client);
	test_client_close(client);
	test_node_close(node);
}

/* A chunk that is leaving does not come back from a closed node; the last pages of the others are left to removals. */
static void
test_closed_full(void)
{
	static struct pages pages;
	struct test_node *node = test_book_open(2, 2, 5);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	fabric_address root;
	fabric_address block;
	unsigned int count = 0;
	uint64_t tree;

	fill(client, &pages, 7 * SMART_CHUNK_PAGES);
	CHECK(smart_space_drop_tree(space, pages.tree));
	tree = test_tree_create(client, &root);
	smart_space_close_node(space, 1, true);
	while (count < 5 * SMART_CHUNK_PAGES && smart_space_allocate(space, tree, PAGE_LEAF, &block) == SMART_OK)
	{
		CHECK(fabric_node(block) == 0);
		count++;
	}
	CHECK(count == 4 * SMART_CHUNK_PAGES - SMART_SPARE_PAGES);
	space->removing = true;
	CHECK(smart_space_allocate(space, tree, PAGE_LEAF, &block) == SMART_OK && fabric_node(block) == 0);
	space->removing = false;
	whole(client);
	/* No node is open. */
	smart_space_close_node(space, 0, true);
	CHECK(smart_space_allocate(space, tree, PAGE_LEAF, &block) == SMART_UNREACHABLE);
	CHECK(smart_space_create_tree(space, &no_owner, &tree, &root) == SMART_UNREACHABLE);
	whole(client);
	test_client_close(client);
	test_node_close(node);
}

static void
close_while_asked(struct test_memory *memory, unsigned int node)
{
	memory->asked = NULL;
	smart_space_close_node(&observer->client->space, node, true);
	CHECK(!smart_space_forget_node(&observer->client->space, node));
}

static void
test_closed_while_asked(void)
{
	struct test_node *node = test_book_open(2, NODES, 6);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	unsigned int forgotten = 0;
	fabric_address root;
	uint64_t tree;

	observer = test_client_open(node, 2);
	node->memory->asked = close_while_asked;
	CHECK(smart_space_create_tree(space, &no_owner, &tree, &root) == SMART_OK);
	CHECK(!smart_space_node_is_closed(space, fabric_node(root)));
	node->memory->asked = close_while_asked;
	CHECK(!smart_space_node_is_closed(space, fabric_node(allocate(client, tree))));
	CHECK(node->memory->asked == NULL);
	whole(client);
	CHECK(test_work_off_duties(client) == 0);
	for (unsigned int i = 0; i < NODES; i++)
	{
		bool leaves = smart_space_node_is_closed(space, i) && i != fabric_node(root);

		CHECK(agree(client, i) && smart_space_forget_node(space, i) == leaves);
		forgotten += leaves;
	}
	CHECK(forgotten > 0);
	whole(client);
	test_client_close(observer);
	test_client_close(client);
	test_node_close(node);
}

int
main(void)
{
	test_numbers();
	test_rest();
	test_closed();
	test_closed_empties();
	test_closed_full();
	test_closed_while_asked();
	test_trees_made();
	test_given_again();
	test_wrong_chunk();
	test_lost();
	test_lost_before_linked();
	test_asked();
	test_replaced();
	for (uint64_t seed = 1; seed <= 5; seed++)
		test_random_failures(seed);
	return check_finish();
}

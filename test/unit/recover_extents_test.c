/*
 * recover_extents_test.c
 *	  A server with memory nodes that dies at any lock, batch or request: then the
 *	  extent map is recovered, and memory nodes and extent map agree again.
 *
 * A death is a jump out of whatever the client was at; the extent map and the memory
 * nodes stay as they are.  What recovery makes anew is filled with garbage before.
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compute/allocate/extents_parts.h"
#include "compute/recovery/recover.h"
#include "support/check.h"
#include "support/node.h"
#include "tree/tree.h"

#define NODES  3
#define CHUNKS 8 /* of a memory node */
#define TREES  6
#define KEYS   400
#define ROUNDS 400
#define NO_KEY UINT32_MAX

static const struct smart_tree_owner no_owner = {.backend = -1};

struct named
{
	uint64_t id; /* 0: there is none */
	uint8_t present[KEYS];
};

static struct test_node *node;
static struct test_client *client;
static struct test_client *dead[ROUNDS]; /* what they had allocated is theirs */
static struct smart_tree *dead_tree[ROUNDS];
static struct named named[TREES];
static uint32_t busy_tree;
static uint32_t busy_key;
static unsigned int lost_node; /* NODES: none */
static uint64_t state = 1;
static uint64_t lost_trees;
static uint64_t swept_trees;
static uint64_t closed_nodes;
static uint64_t stopped_recoveries;

static jmp_buf death;
static uint64_t steps_to_live; /* 0: for ever */

/* ---- a client that may die ---- */

static void (*real_acquire)(struct smart_lock_table *table, unsigned int lock);
static void (*real_release)(struct smart_lock_table *table, unsigned int lock);
static const struct fabric_provider *real_provider;
static struct fabric_provider mortal_provider;
static smart_status (*real_take_chunk)(struct smart_supply *supply, unsigned int number, uint32_t *chunk);
static smart_status (*real_make_tree)(struct smart_supply *supply, unsigned int number, uint64_t id,
									  const struct smart_tree_owner *owner, fabric_address *root);

static void
maybe_die(void)
{
	if (steps_to_live > 0 && --steps_to_live == 0)
		longjmp(death, 1);
}

static void
acquire(struct smart_lock_table *table, unsigned int lock)
{
	real_acquire(table, lock);
	maybe_die();
}

static void
release(struct smart_lock_table *table, unsigned int lock)
{
	maybe_die();
	real_release(table, lock);
}

static smart_status
execute(struct fabric *fabric, struct fabric_request *requests, int count)
{
	smart_status status;

	maybe_die();
	status = real_provider->execute(fabric, requests, count);
	maybe_die();
	return status;
}

static smart_status
take_chunk(struct smart_supply *supply, unsigned int number, uint32_t *chunk)
{
	smart_status status = real_take_chunk(supply, number, chunk);

	maybe_die();
	return status;
}

static smart_status
make_tree(struct smart_supply *supply, unsigned int number, uint64_t id, const struct smart_tree_owner *owner,
		  fabric_address *root)
{
	smart_status status = real_make_tree(supply, number, id, owner, root);

	maybe_die();
	return status;
}

static void
open_client(void)
{
	struct smart_supply *supply;

	client = test_client_open(node, test_random(&state));
	supply = &client->client->supply;
	real_provider = client->client->fabric->provider;
	mortal_provider = *real_provider;
	mortal_provider.execute = execute;
	client->client->fabric->provider = &mortal_provider;
	real_take_chunk = supply->take_chunk;
	real_make_tree = supply->make_tree;
	supply->take_chunk = take_chunk;
	supply->make_tree = make_tree;
}

static struct smart_space *
space(void)
{
	return &client->client->space;
}

/* ---- what it does ---- */

static struct smart_tree *
open_tree(const struct named *tree)
{
	struct smart_tree_options options = {.id = tree->id, .leaf_size = 1024, .fixed_length = 500};
	struct smart_tree *handle = NULL;

	CHECK(smart_space_find_tree(space(), tree->id, &options.root));
	CHECK(smart_tree_open(client->client->fabric, client->client->env, &client->client->services, &options, &handle) ==
		  SMART_OK);
	return handle;
}

static void
make_key(uint32_t key, uint8_t bytes[500])
{
	uint64_t hash = (key + 1) * UINT64_C(0x9e3779b97f4a7c15);

	memset(bytes, 7, 500);
	memcpy(bytes, &hash, 8);
}

static void
change(uint32_t which, unsigned int round)
{
	struct named *tree = &named[which];
	bool insert = test_random(&state) % 3 != 0;
	uint8_t bytes[500];

	dead_tree[round] = open_tree(tree);
	for (uint64_t left = test_random(&state) % 60; left > 0; left--)
	{
		uint32_t key = (uint32_t) (test_random(&state) % KEYS);
		smart_status status;
		bool done = false;

		make_key(key, bytes);
		busy_tree = which;
		busy_key = key;
		status = insert ? smart_tree_insert(dead_tree[round], bytes, 500, 500, &done)
						: smart_tree_remove(dead_tree[round], bytes, 500, &done);
		CHECK(status == SMART_OK || status == SMART_NO_SPACE || lost_node < NODES);
		if (status == SMART_OK)
		{
			CHECK(done == (insert != (bool) tree->present[key]));
			tree->present[key] = insert;
		}
		busy_key = NO_KEY;
		if (status != SMART_OK)
			break;
	}
	smart_tree_close(dead_tree[round]);
	dead_tree[round] = NULL;
}

static void
create(struct named *tree)
{
	fabric_address root;
	uint64_t id;

	memset(tree, 0, sizeof(*tree));
	if (smart_space_create_tree(space(), &no_owner, &id, &root) == SMART_OK)
		tree->id = id;
}

static void
drop(struct named *tree)
{
	uint64_t id = tree->id;

	tree->id = 0;
	CHECK(smart_space_drop_tree(space(), id));
}

/* In the order that extents.h tells. */
static void
work_off_duties(void)
{
	struct smart_pending_free pending;

	for (unsigned int i = 0; i < NODES; i++)
		while (!node->memory->node[i].down && smart_pending_next(space(), i, &pending))
		{
			if (pending.kind == SMART_PENDING_DROP_TREE)
				(void) test_memory_drop_tree(node->memory, i, pending.tree);
			smart_pending_done(space(), &pending);
			if (pending.kind == SMART_PENDING_GIVE_CHUNK)
				(void) test_memory_give_chunk(node->memory, i, pending.chunk);
		}
}

static void
lose_node(void)
{
	lost_node = (unsigned int) (test_random(&state) % NODES);
	node->memory->node[lost_node].down = true;
	smart_extents_lose_node(space(), lost_node);
}

/* Closes a node, if none is closed, or opens the one that is. */
static void
close_one(void)
{
	bool some = false;

	for (unsigned int i = 0; i < NODES; i++)
	{
		some = some || smart_space_node_is_closed(space(), i);
		smart_space_close_node(space(), i, false);
	}
	if (!some)
		smart_space_close_node(space(), (unsigned int) (test_random(&state) % NODES), true);
}

/* The memory of a lost node is another one's now. */
static void
replace_node(void)
{
	struct test_memory_node *memory = &node->memory->node[lost_node];
	struct smart_node_info info;
	unsigned int number = NODES;

	for (unsigned int i = 0; i < TREES; i++)
		if (named[i].id != 0 && smart_space_tree_lost(space(), named[i].id))
			drop(&named[i]);
	if (!CHECK(!smart_extents_node_info(space(), lost_node, &info)))
		return;
	memset(memory->taken + 1, 0, CHUNKS - 1);
	memset(memory->tree, 0, sizeof(memory->tree));
	memory->taken_count = memory->tree_count = 0;
	memory->incarnation += 16;
	memory->down = false;
	CHECK(smart_extents_add_node(space(), memory->incarnation, &number) == SMART_OK && number == lost_node);
	lost_node = NODES;
}

static void
live(unsigned int round)
{
	for (;;)
	{
		uint32_t which = (uint32_t) (test_random(&state) % TREES);
		struct named *tree = &named[which];
		uint64_t dice = test_random(&state) % 16;

		/* What takes few steps shall meet its death, too. */
		if ((tree->id == 0 || dice <= 5) && test_random(&state) % 8 == 0)
			steps_to_live = test_random(&state) % 12 + 1;
		if (tree->id == 0)
			create(tree);
		else if (smart_space_tree_lost(space(), tree->id) || dice <= 2)
			drop(tree);
		else if (dice == 3)
			work_off_duties();
		else if (dice == 4)
			(void) smart_space_reclaim(space(), tree->id);
		else if (dice == 5 && lost_node == NODES)
			lose_node();
		else if (dice == 6)
			close_one();
		else
			change(which, round);
	}
}

/* ---- garbage ---- */

static void
fill(void *memory, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *) memory)[i] = (uint8_t) test_random(&state);
}

static void
damage(void)
{
	struct smart_region *extents = &node->region;
	struct smart_region_header *header = smart_region_header(extents);

	for (uint32_t i = 0; i < header->remote_chunks; i++)
	{
		struct smart_chunk *chunk = smart_chunk_at(extents, SMART_HOME_CHUNKS + i);

		fill(chunk->free, sizeof(chunk->free));
		fill(&chunk->next, 4 * sizeof(uint32_t)); /* next, previous, list, free_pages */
		fill(smart_chunk_memory(extents, SMART_HOME_CHUNKS + i) + SMART_PAGE_BYTES,
			 SMART_CHUNK_PAGES * sizeof(struct smart_slab));
	}
	fill(&header->blocks, sizeof(header->blocks));
	fill(&header->unused_chunk, 3 * sizeof(uint32_t)); /* unused_chunk, empty_chunks, map_reserve */
	for (unsigned int i = 0; i < NODES; i++)
		fill(&smart_extents_node_at(extents, i)->chunks, 40 + sizeof(uint64_t)); /* to list */
}

/* ---- recovery ---- */

/* All that was not in the extent map is gone. */
static void
start_anew(unsigned int round)
{
	pthread_mutexattr_t checked;

	dead[round] = client;
	pthread_mutexattr_init(&checked);
	pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
	for (unsigned int i = 0; i < SMART_LOCK_COUNT; i++)
		pthread_mutex_init(&node->mutex[i], &checked);
	smart_epoch_init(node->compute.epoch, 4, 0);
	smart_pins_init(node->compute.pins, 4);
	smart_region_header(&node->region)->unsettled = 1;
	damage();
	open_client();
}

static void
verify_space(void)
{
	char message[200] = "";

	if (!CHECK(smart_space_verify(space(), message, sizeof(message)) == SMART_OK))
		fprintf(stderr, "%s\n", message);
}

/* Drops the trees that no index names, as their making was not acknowledged, or their dropping was begun. */
static void
drop_unnamed(void)
{
	struct smart_tree_info info;
	uint64_t cursor = 0;

	while (smart_space_next_tree(space(), &cursor, &info))
	{
		bool is_named = false;

		for (unsigned int i = 0; i < TREES; i++)
			is_named = is_named || named[i].id == info.id;
		if (!is_named)
		{
			CHECK(smart_space_drop_tree(space(), info.id));
			swept_trees++;
		}
	}
}

static void
check_content(uint32_t which)
{
	struct named *tree = &named[which];
	struct smart_tree *handle = open_tree(tree);
	uint8_t bytes[500];
	bool found = false;

	for (uint32_t key = 0; key < KEYS; key++)
	{
		make_key(key, bytes);
		CHECK(smart_tree_lookup(handle, bytes, 500, &found) == SMART_OK);
		CHECK(found == (bool) tree->present[key] || (busy_tree == which && busy_key == key));
		tree->present[key] = found;
	}
	smart_tree_close(handle);
}

static uint64_t
blocks_of(uint64_t id)
{
	struct named tree = {.id = id};
	struct smart_tree *handle = open_tree(&tree);
	struct smart_verify_report report = {.leaves = 0};
	char message[200] = "";
	uint64_t blocks;

	if (!CHECK(smart_tree_verify(handle, NULL, NULL, &report, message, sizeof(message)) == SMART_OK))
		fprintf(stderr, "%s\n", message);
	blocks = report.leaves;
	for (unsigned int kind = 1; kind <= SMART_NODE_KINDS; kind++)
		blocks += report.nodes[kind];
	smart_tree_close(handle);
	return blocks;
}

static uint64_t
blocks_in_use(void)
{
	uint32_t first = SMART_HOME_CHUNKS * SMART_CHUNK_PAGES;
	uint32_t pages = smart_region_header(&node->region)->remote_chunks * SMART_CHUNK_PAGES;
	uint64_t blocks = 0;

	for (uint32_t i = 0; i < pages; i++)
	{
		const struct smart_slab *slab = smart_slab_at(&node->region, first + i);

		if (slab->record != 0)
			blocks += slab->blocks - (unsigned int) __builtin_popcountll(slab->free | slab->retired);
	}
	return blocks;
}

/* No block is lost, none has two purposes. */
static void
check_blocks(const struct smart_recovery *recovery)
{
	struct smart_tree_info info;
	uint64_t cursor = 0;
	uint64_t blocks = 0;
	uint64_t lost = 0;

	while (smart_space_next_tree(space(), &cursor, &info))
	{
		lost += info.lost;
		if (!info.lost)
			blocks += blocks_of(info.id);
	}
	CHECK(blocks == blocks_in_use() && lost == recovery->lost);
	/* Of a tree that turns out to be lost some may have been counted. */
	CHECK(blocks == recovery->nodes + recovery->leaves || (lost > 0 && blocks < recovery->nodes + recovery->leaves));
}

/* As the server's worker after a lease; then what a node has and what the extent map knows are the same. */
static void
reconcile(unsigned int number)
{
	struct test_memory_node *memory = &node->memory->node[number];
	struct smart_node_info info;
	uint32_t known = 0;

	for (uint32_t chunk = 1; chunk < CHUNKS; chunk++)
	{
		if (memory->taken[chunk] && !smart_extents_has_chunk(space(), number, chunk))
			CHECK(test_memory_give_chunk(node->memory, number, chunk));
		/* But a chunk that is to be given back may have been. */
		known += smart_extents_has_chunk(space(), number, chunk);
	}
	for (unsigned int i = 0; i < TEST_MEMORY_ROOTS; i++)
		if (memory->tree[i] != 0 && !smart_extents_has_tree(space(), memory->tree[i]))
			CHECK(test_memory_drop_tree(node->memory, number, memory->tree[i]));
	CHECK(smart_extents_node_info(space(), number, &info) && info.chunks == known);
	work_off_duties();
	CHECK(smart_extents_node_info(space(), number, &info) && info.chunks == memory->taken_count &&
		  info.trees == memory->tree_count);
}

/*
 * One memory node is away, so that recovery stops half way, with only some blocks found yet; then another
 * one turns out to have lost its memory, and the first one comes back.
 */
static void
lose_node_during_recovery(void)
{
	struct smart_recovery recovery = {.message = ""};
	struct test_memory_node *away = &node->memory->node[test_random(&state) % NODES];
	smart_status status;

	lost_node = (unsigned int) ((away - node->memory->node + 1) % NODES);
	away->down = true;
	status = smart_space_recover(space(), client->client->fabric, client->client->env, &recovery);
	CHECK(status == SMART_OK || status == SMART_UNREACHABLE);
	stopped_recoveries += status == SMART_UNREACHABLE;
	away->down = false;
	node->memory->node[lost_node].down = true;
	smart_extents_rest_node(space(), lost_node, true);
	smart_extents_lose_node(space(), lost_node);
}

static void
recover_and_check(void)
{
	struct smart_recovery recovery = {.message = ""};
	bool closed[NODES];

	if (test_random(&state) % 8 == 0)
		close_one();
	for (unsigned int i = 0; i < NODES; i++)
	{
		closed[i] = smart_space_node_is_closed(space(), i);
		closed_nodes += closed[i];
	}
	if (lost_node == NODES && test_random(&state) % 8 == 0)
		lose_node_during_recovery();
	/* The node does not answer, and it was not declared lost before the death, or not to the end. */
	else if (lost_node < NODES)
		smart_extents_lose_node(space(), lost_node);
	if (!CHECK(smart_space_recover(space(), client->client->fabric, client->client->env, &recovery) == SMART_OK))
		fprintf(stderr, "%s\n", recovery.message);
	smart_region_header(&node->region)->unsettled = 0;
	verify_space();
	for (unsigned int i = 0; i < NODES; i++)
		CHECK(smart_space_node_is_closed(space(), i) == (closed[i] && i != lost_node));
	check_blocks(&recovery);
	drop_unnamed();
	for (uint32_t i = 0; i < TREES; i++)
		if (named[i].id != 0 && !smart_space_tree_lost(space(), named[i].id))
			check_content(i);
	busy_key = NO_KEY;
	lost_trees += recovery.lost;
	if (lost_node < NODES)
		replace_node();
	for (unsigned int i = 0; i < NODES; i++)
		reconcile(i);
	verify_space();
	CHECK(node->memory->outside == 0);
}

int
main(void)
{
	static unsigned int round; /* survives the jump */

	node = test_book_open(4, NODES, CHUNKS);
	real_acquire = node->locks.acquire;
	real_release = node->locks.release;
	node->locks.acquire = acquire;
	node->locks.release = release;
	lost_node = NODES;
	busy_key = NO_KEY;
	open_client();
	for (round = 0; round < ROUNDS; round++)
	{
		if (setjmp(death) == 0)
		{
			steps_to_live = test_random(&state) % (test_random(&state) % 2 == 0 ? 300 : 5000) + 1;
			live(round);
		}
		start_anew(round);
		recover_and_check();
	}
	CHECK(lost_trees > 0 && swept_trees > 0 && stopped_recoveries > 0 && closed_nodes > ROUNDS / 8);
	return check_finish();
}

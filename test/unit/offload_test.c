/*
 * offload_test.c
 *	  What a client makes of a memory node's replies to descents: hints, refusals,
 *	  and replies that are wrong in every way a memory node could make them.
 *
 * One client, on a provider without direct access whose memory node is this program;
 * it walks as the daemon does, and then damages the reply.
 */
#include <stdlib.h>
#include <string.h>

#include "support/cache.h"
#include "support/check.h"
#include "support/tree_client.h"
#include "tree/find/offload.h"
#include "tree/find/walk.h"

#define ENTRY       14
#define ENTRIES     20000
#define CACHE_BYTES (SMART_CACHE_BYTES_MIN * 16)
#define REGION      (UINT64_C(256) << 20)

enum damage
{
	AS_IT_IS,
	AS_HINTS,
	BUSY,
	REFUSED,
	WITHOUT_BLOCKS,
	WITHOUT_LEAF,
	TORN_LEAF,    /* a byte of the leaf is another */
	DEAD_NODES,   /* all nodes dead */
	OTHER_NODES,  /* of another prefix */
	FROZEN_SLOTS, /* all slots frozen */
	CUT_NODES,    /* shorter than they should be */
	SWAPPED,      /* links and blocks do not go together */
	EMPTIED,      /* all slots of nodes of another prefix say that nothing is there */
	DAMAGES
};

struct bench
{
	struct test_node *node;
	struct test_client *owner;
	struct smart_tree_options options;
	struct tree_client *client;
	struct smart_offload offload;
	enum damage damage;
};

static struct bench bench;

/* ---- the memory node ---- */

static const uint64_t *
find_words(void *argument, fabric_address address, uint32_t length)
{
	const struct sim_memory *memory = &bench.client->memory;

	if (fabric_node(address) != 0 || fabric_offset(address) + length > memory->bytes)
		return NULL;
	return (const uint64_t *) (const void *) (memory->base[0] + fabric_offset(address));
}

static uint64_t
load_word(void *argument, const uint64_t *word)
{
	return *word;
}

/* Words of a block in the reply, which the client believes to be the memory node's. */
static uint64_t *
block_words(struct fabric_path *path, uint32_t block)
{
	return path->answer + (path->block[block].bytes - (const uint8_t *) path->answer) / sizeof(uint64_t);
}

static void
damage_node(uint64_t *words, uint32_t length)
{
	switch (bench.damage)
	{
		case DEAD_NODES:
			words[0] = smart_node_with_state(words[0], SMART_DEAD);
			break;
		case OTHER_NODES:
			words[1]++;
			break;
		case FROZEN_SLOTS:
			for (uint32_t i = SMART_NODE_HEAD_WORDS; i < length / sizeof(uint64_t); i++)
				words[i] |= SMART_SLOT_FROZEN;
			break;
		case EMPTIED:
			words[1]++;
			for (uint32_t i = SMART_NODE_HEAD_WORDS; i < length / sizeof(uint64_t); i++)
				words[i] = smart_slot_make_empty(0, 255);
			break;
		default:
			break;
	}
}

static void
damage_path(struct fabric_path *path)
{
	for (uint32_t i = 0; i < path->count; i++)
	{
		struct fabric_path_block *block = &path->block[i];

		if (smart_slot_is_node(block->link))
		{
			damage_node(block_words(path, i), block->length);
			if (bench.damage == CUT_NODES)
				block->length -= 8;
		}
		else if (smart_slot_is_leaf(block->link) && bench.damage == TORN_LEAF)
			block_words(path, i)[1] ^= 1;
		if (bench.damage == SWAPPED && i + 1 < path->count)
			block->link = path->block[i + 1].link;
	}
	path->exact = bench.damage != AS_HINTS;
	if (bench.damage == WITHOUT_BLOCKS)
		path->count = 0;
	if (bench.damage == WITHOUT_LEAF && path->end == FABRIC_PATH_LEAF)
		path->count--;
}

static smart_status
descend(void *argument, const struct fabric_descent *descent, struct fabric_path *path)
{
	struct smart_walk_memory memory = {.find = find_words, .load = load_word, .exact = true};
	uint8_t answer[FABRIC_PATH_BYTES_MAX];

	if (bench.damage == REFUSED)
		return SMART_UNREACHABLE;
	CHECK(fabric_path_get(answer, smart_walk(&memory, descent, answer), path));
	damage_path(path);
	if (bench.damage == BUSY)
	{
		path->end = FABRIC_PATH_BUSY;
		path->count = 0;
	}
	return SMART_OK;
}

/* ---- entries ---- */

#define GAP 5 /* what begins with bytes of this remainder by 8 is taken out again: ranges are empty there */

static void
make_entry(uint8_t *entry, uint64_t number)
{
	number *= UINT64_C(0x9e3779b97f4a7c15);
	for (int i = 0; i < 8; i++)
		entry[i] = (uint8_t) (number >> (8 * (7 - i)));
	memset(entry + 8, 1, ENTRY - 8);
}

static bool
is_there(uint64_t number)
{
	uint8_t entry[ENTRY];

	make_entry(entry, number);
	return number < ENTRIES && entry[0] % 8 != GAP;
}

/* ---- lookups ---- */

static bool
look_up(uint64_t number)
{
	uint8_t entry[ENTRY];
	bool found = false;

	make_entry(entry, number);
	CHECK(smart_tree_lookup(bench.client->tree, entry, ENTRY, &found) == SMART_OK);
	return found;
}

static void
forget(enum damage damage)
{
	bench.damage = damage;
	smart_cache_init(bench.node->compute.cache, CACHE_BYTES, 8, 3);
	smart_offload_init(&bench.offload, SMART_OFFLOAD_ON);
}

static const struct fabric_counters *
counters(void)
{
	return &bench.client->sim.fabric.counters;
}

/* The round trips of a cold lookup. */
static uint64_t
cold(enum damage damage, uint64_t number, bool there)
{
	uint64_t before = counters()->round_trips;

	forget(damage);
	CHECK(look_up(number) == there);
	return counters()->round_trips - before;
}

/* ---- tests ---- */

static void
test_hints(void)
{
	unsigned int empty = 0;

	CHECK(cold(AS_IT_IS, 1, true) == 1);
	/* The leaf is READ; absence is looked for strictly, which takes the last node once more. */
	CHECK(cold(AS_HINTS, 1, true) == 2);
	for (uint64_t i = 0; i < ENTRIES; i++)
	{
		if (is_there(i))
			continue;
		CHECK(cold(AS_IT_IS, i, false) == 1);
		empty += bench.offload.path.end == FABRIC_PATH_EMPTY;
		CHECK(cold(AS_HINTS, i, false) == 2);
	}
	CHECK(empty > 100);
}

/* The cache shows nothing where the reply shows a leaf, or nodes that are none of the key's: only a proof counts. */
static void
test_stale_copies(enum damage damage)
{
	struct smart_cache *cache = bench.node->compute.cache;
	uint64_t words[SMART_NODE_WORDS_MAX];

	for (uint64_t number = 0; number < 100; number++)
	{
		if (!is_there(number))
			continue;
		CHECK(cold(AS_IT_IS, number, true) == 1);
		for (uint32_t i = 0; i < bench.offload.path.count; i++)
		{
			const struct fabric_path_block *block = &bench.offload.path.block[i];

			if (!smart_slot_is_node(block->link))
				continue;
			memcpy(words, block->bytes, block->length);
			for (uint32_t slot = SMART_NODE_HEAD_WORDS; slot < block->length / sizeof(uint64_t); slot++)
				words[slot] = slot == SMART_NODE_HEAD_WORDS ? smart_slot_make_empty(0, 255) : 0;
			test_cache_store(cache, 0, bench.options.id, block->link, words);
		}
		test_cache_drop(cache, 0, bench.options.id, 0);
		bench.damage = damage;
		CHECK(look_up(number));
	}
}

/* A client that is refused goes on by itself, and asks no more for a while. */
static void
test_refusals(void)
{
	uint64_t before = counters()->descents_busy;
	uint64_t descents;
	uint64_t trips;

	bench.offload.mode = SMART_OFFLOAD_OFF;
	smart_cache_init(bench.node->compute.cache, CACHE_BYTES, 8, 3);
	trips = counters()->round_trips;
	CHECK(look_up(1));
	trips = counters()->round_trips - trips;
	CHECK(trips >= 4);
	for (enum damage damage = BUSY; damage <= REFUSED; damage++)
	{
		descents = counters()->descents;
		CHECK(cold(damage, 1, true) == trips + 1 && counters()->descents == descents + 1);
		CHECK(bench.offload.node[0].not_before_ns != 0);
		bench.offload.node[0].not_before_ns = UINT64_MAX;
		smart_cache_init(bench.node->compute.cache, CACHE_BYTES, 8, 3);
		CHECK(look_up(1) && counters()->descents == descents + 1);
	}
	CHECK(counters()->descents_busy == before + 1);
}

/* No reply makes a lookup wrong, whatever it says. */
static void
test_wrong_answers(void)
{
	for (enum damage damage = WITHOUT_BLOCKS; damage < DAMAGES; damage++)
	{
		for (uint64_t i = 0; i < 500; i++)
		{
			uint64_t trips = cold(damage, i, is_there(i));

			/* A live leaf decides however it was reached; nothing else is concluded from what is not as it should be. */
			if (is_there(i))
				CHECK(trips > 1 || damage == FROZEN_SLOTS);
			else
				CHECK(trips > 1 || damage == WITHOUT_LEAF || damage == TORN_LEAF);
			cold(damage, ENTRIES + i, false);
			/* What the cache has learnt does no harm either. */
			bench.damage = AS_IT_IS;
			CHECK(look_up(i) == is_there(i) && !look_up(ENTRIES + i));
		}
	}
}

/* Inserts and removals of what the cache does not know, in between; the tree is then as it was. */
static void
test_changes(void)
{
	for (enum damage damage = AS_IT_IS; damage < DAMAGES; damage++)
	{
		for (uint64_t i = 0; i < 50; i++)
		{
			uint8_t entry[ENTRY];
			bool done;

			make_entry(entry, i);
			forget(damage);
			CHECK(smart_tree_insert(bench.client->tree, entry, ENTRY, ENTRY, &done) == SMART_OK &&
				  done == !is_there(i));
			CHECK(cold(damage, i, true) >= 1);
			forget(damage);
			CHECK(smart_tree_remove(bench.client->tree, entry, ENTRY, &done) == SMART_OK && done);
			CHECK(cold(damage, i, false) >= 1);
			forget(damage);
			if (is_there(i))
				CHECK(smart_tree_insert(bench.client->tree, entry, ENTRY, ENTRY, &done) == SMART_OK && done);
		}
	}
}

static void
open_tree(void)
{
	uint8_t entry[ENTRY];
	bool done;

	bench.options.leaf_size = SMART_LEAF_SIZE_MIN * 2;
	bench.options.fixed_length = ENTRY;
	bench.options.id = test_tree_create(bench.owner, &bench.options.root);
	bench.client = tree_client_open(bench.node, &bench.options, true, 1);
	bench.client->memory.bytes = REGION; /* as far as the region may grow meanwhile */
	bench.client->control.descend = descend;
	bench.client->services.offload = &bench.offload;
	forget(AS_IT_IS);
	for (uint64_t i = 0; i < ENTRIES; i++)
	{
		make_entry(entry, i);
		CHECK(smart_tree_insert(bench.client->tree, entry, ENTRY, ENTRY, &done) == SMART_OK && done);
	}
	for (uint64_t i = 0; i < ENTRIES; i++)
	{
		make_entry(entry, i);
		if (!is_there(i))
			CHECK(smart_tree_remove(bench.client->tree, entry, ENTRY, &done) == SMART_OK && done);
	}
}

int
main(void)
{
	bench.node = test_node_open(8, REGION);
	bench.node->compute.cache = aligned_alloc(128, (smart_cache_size(CACHE_BYTES, 8) + 127) / 128 * 128);
	CHECK(bench.node->compute.cache != NULL);
	smart_cache_init(bench.node->compute.cache, CACHE_BYTES, 8, 3);
	bench.owner = test_client_open(bench.node, 1);
	open_tree();
	test_hints();
	test_stale_copies(AS_IT_IS);
	test_stale_copies(EMPTIED);
	test_refusals();
	test_wrong_answers();
	test_changes();
	tree_client_close(bench.client);
	CHECK(smart_space_drop_tree(&bench.owner->client->space, bench.options.id));
	test_client_close(bench.owner);
	free(bench.node->compute.cache);
	bench.node->compute.cache = NULL;
	test_node_close(bench.node);
	return check_finish();
}

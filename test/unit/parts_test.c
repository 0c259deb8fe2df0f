/*
 * parts_test.c
 *	  What lookups READ of nodes that the cache does not have: how many READs, and how many bytes (B6).
 *
 * One client, on a provider without direct access; the cache has the root's word and no node, and whether it wants one
 * is the test's choice.  Nothing else changes the trees meanwhile.
 */
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/tree_client.h"

#define ENTRY    14 /* bytes: a number of four, and a TID */
#define PER_BYTE 25 /* entries with one byte: more than half of a leaf of 512 bytes */
#define HEAD     16
#define WHOLE    2064
#define PART     128
#define LEAF     320 /* as it was loaded; one that an entry was added to has 512 */

struct bench
{
	struct test_node *node;
	struct test_client *owner; /* of the trees */
	struct smart_tree_options options;
	struct tree_client *client;
};

/* ---- a cache of the root's word ---- */

static struct
{
	smart_slot root;
	bool wants;
	unsigned int stores; /* of direct-mapped nodes */
} cache;

static bool
cache_find(struct smart_services *services, uint64_t tree, smart_slot slot, uint64_t *words, uint64_t *moment)
{
	words[0] = cache.root;
	*moment = 0;
	return slot == 0 && cache.root != 0;
}

static void
cache_store(struct smart_services *services, uint64_t tree, smart_slot slot, const uint64_t *words, uint64_t moment)
{
	if (slot == 0)
		cache.root = words[0];
	else
		cache.stores += smart_slot_size(slot) == SMART_NODE_256;
}

static bool
cache_wants(struct smart_services *services, uint64_t tree, smart_slot slot)
{
	CHECK(smart_slot_size(slot) == SMART_NODE_256);
	return cache.wants;
}

/* ---- trees ---- */

/* Verbs reach the region as large as it is when a handle is opened: let it grow first. */
static void
grow_region(struct bench *bench)
{
	fabric_address root;
	fabric_address block;
	uint64_t id = test_tree_create(bench->owner, &root);

	for (int i = 0; i < 1500; i++)
		CHECK(smart_space_allocate(&bench->owner->client->space, id, SMART_CLASS_LEAF(127), &block) == SMART_OK);
	CHECK(smart_space_drop_tree(&bench->owner->client->space, id));
}

static void
make_entry(uint8_t *entry, uint32_t number)
{
	for (int i = 0; i < 4; i++)
		entry[i] = (uint8_t) (number >> (8 * (3 - i)));
	memset(entry + 4, 1, ENTRY - 4);
}

/* Entries that differ in the byte at this position, from 0 to bytes - 1, and then in the last one; below top, likewise. */
static void
open_tree(struct bench *bench, unsigned int top, unsigned int position, unsigned int bytes)
{
	struct smart_load *load;
	uint8_t entry[ENTRY];

	bench->options = (struct smart_tree_options){.leaf_size = SMART_LEAF_SIZE_DEFAULT, .fixed_length = ENTRY};
	bench->options.id = test_tree_create(bench->owner, &bench->options.root);
	bench->client = tree_client_open(bench->node, &bench->options, true, 1);
	CHECK(smart_load_begin(bench->client->tree, 100, &load) == SMART_OK);
	for (uint32_t i = 0; i < top * bytes * PER_BYTE; i++)
	{
		uint32_t byte = i / PER_BYTE % bytes;

		make_entry(entry, (i / PER_BYTE / bytes) << 24 | byte << (8 * (3 - position)) | i % PER_BYTE);
		CHECK(smart_load_add(load, entry, ENTRY) == SMART_OK);
	}
	CHECK(smart_load_finish(load) == SMART_OK);
	cache.root = 0;
	cache.wants = false;
	bench->client->services.cache_find = cache_find;
	bench->client->services.cache_store = cache_store;
	bench->client->services.cache_update = NULL;
	bench->client->services.cache_drop = NULL;
	bench->client->services.cache_wants = cache_wants;
}

static void
close_tree(struct bench *bench)
{
	tree_client_close(bench->client);
	CHECK(smart_space_drop_tree(&bench->owner->client->space, bench->options.id));
}

/* READs of a lookup, and their bytes. */
static uint64_t
lookup(struct bench *bench, uint32_t number, uint64_t *bytes)
{
	const struct fabric_counters *counters = &bench->client->sim.fabric.counters;
	uint64_t reads = counters->requests[FABRIC_READ];
	uint64_t before = counters->bytes[FABRIC_READ];
	uint8_t entry[ENTRY];
	bool found = false;

	cache.stores = 0;
	make_entry(entry, number);
	CHECK(smart_tree_lookup(bench->client->tree, entry, ENTRY, &found) == SMART_OK && found);
	*bytes = counters->bytes[FABRIC_READ] - before;
	return counters->requests[FABRIC_READ] - reads;
}

/* ---- one node ---- */

static void
check_root(struct bench *bench)
{
	uint64_t bytes;

	open_tree(bench, 1, 1, 256);
	/* The root's word; the header and the slots of another byte, since one is skipped; the slots; the leaf. */
	CHECK(lookup(bench, 200u << 16, &bytes) == 5 && bytes == 8 + HEAD + 8 + PART + LEAF && cache.stores == 0);
	/* The next time the byte is known. */
	CHECK(lookup(bench, 201u << 16, &bytes) == 3 && bytes == HEAD + PART + LEAF && cache.stores == 0);
	CHECK(lookup(bench, 15u << 16 | 3, &bytes) == 3 && bytes == HEAD + PART + LEAF);
	CHECK(lookup(bench, 2u << 16 | 3, &bytes) == 3 && bytes == HEAD + 3 * 8 + LEAF);
	CHECK(lookup(bench, 0, &bytes) == 3 && bytes == HEAD + 8 + LEAF);
	/* Where the cache wants the node, it is READ whole. */
	cache.wants = true;
	CHECK(lookup(bench, 201u << 16, &bytes) == 3 && bytes == HEAD + WHOLE + LEAF && cache.stores == 1);
	/* Who does not know whether the cache does takes it for wanted. */
	bench->client->services.cache_wants = NULL;
	CHECK(lookup(bench, 201u << 16, &bytes) == 3 && bytes == HEAD + WHOLE + LEAF && cache.stores == 1);
	close_tree(bench);
}

/* The covering slot stands far below the byte's own: the rest is READ, and kept. */
static void
check_gap(struct bench *bench)
{
	uint8_t entry[ENTRY];
	uint64_t bytes;
	bool added;

	open_tree(bench, 1, 0, 160);
	make_entry(entry, 0xff000001);
	CHECK(smart_tree_insert(bench->client->tree, entry, ENTRY, ENTRY, &added) == SMART_OK && added);
	cache.root = 0;
	lookup(bench, 3u << 24, &bytes);
	CHECK(lookup(bench, 0xff000001, &bytes) == 4 && bytes == HEAD + PART + WHOLE + SMART_LEAF_SIZE_DEFAULT);
	CHECK(cache.stores == 1);
	CHECK(lookup(bench, 159u << 24, &bytes) == 3 && bytes == HEAD + PART + SMART_LEAF_SIZE_DEFAULT &&
		  cache.stores == 0);
	close_tree(bench);
}

/* ---- below another node ---- */

static void
check_below(struct bench *bench)
{
	const uint64_t small = 64;
	uint64_t bytes;

	open_tree(bench, 3, 1, 256);
	lookup(bench, 1, &bytes);
	/* The root's node with its header first, as its link is of an earlier operation; the one below it in one piece. */
	cache.wants = true;
	CHECK(lookup(bench, 2u << 24 | 200u << 16, &bytes) == 4 && bytes == HEAD + small + WHOLE + LEAF &&
		  cache.stores == 1);
	cache.wants = false;
	CHECK(lookup(bench, 2u << 24 | 200u << 16, &bytes) == 5 && bytes == HEAD + small + HEAD + PART + LEAF);
	close_tree(bench);
}

/* A scan looks at what lies beside its key. */
static void
check_scan(struct bench *bench)
{
	const struct fabric_counters *counters;
	struct smart_scan *scan;
	struct smart_batch batch;
	uint8_t low[ENTRY];
	uint8_t high[ENTRY];
	uint64_t before;

	open_tree(bench, 1, 0, 256);
	counters = &bench->client->sim.fabric.counters;
	before = counters->bytes[FABRIC_READ];
	make_entry(low, 9u << 24);
	make_entry(high, 10u << 24);
	CHECK(smart_scan_open(bench->client->tree, &scan) == SMART_OK);
	CHECK(smart_scan_seek(scan, low, 4, high, 4, false) == SMART_OK);
	CHECK(smart_scan_next(scan, &batch) == SMART_OK && batch.count == PER_BYTE);
	CHECK(counters->bytes[FABRIC_READ] - before > WHOLE);
	smart_scan_close(scan);
	close_tree(bench);
}

int
main(void)
{
	struct bench bench;

	bench.node = test_node_open(8, UINT64_C(64) << 20);
	bench.owner = test_client_open(bench.node, 1);
	grow_region(&bench);
	check_root(&bench);
	check_gap(&bench);
	check_below(&bench);
	check_scan(&bench);
	test_client_close(bench.owner);
	test_node_close(bench.node);
	return check_finish();
}

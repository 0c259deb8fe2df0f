/*
 * offload_tcp_test.c
 *	  Descents that a memory node makes, over TCP: what a cold lookup costs in round
 *	  trips with and without them, that the cache learns the way, and that the answers
 *	  are the same.
 *
 * Real daemons; a handle with services of its own, which hand out blocks of one chunk
 * of each memory node and never use them again.
 */
#include <stdlib.h>
#include <string.h>

#include "compute/cache.h"
#include "support/check.h"
#include "support/memnodes.h"
#include "tree/offload.h"
#include "tree/tree.h"

#define DIGITS     5
#define VALUES     4
#define ENTRIES    1024 /* all numbers of so many digits */
#define ENTRY      8    /* bytes */
#define LEAF_SIZE  64
#define TIMEOUT_MS 30000
#define CLIENT     0

struct bench
{
	struct smart_services services; /* first */
	struct test_memnodes *nodes;
	unsigned int spread; /* memory nodes that blocks go to, in turn */
	unsigned int next_node;
	uint64_t used; /* bytes of each chunk */
	struct smart_cache *cache;
	struct smart_offload offload;
	struct test_remote remote;
	struct smart_tree *tree;
	uint64_t id;
	unsigned int height;
};

/* ---- services ---- */

static struct bench *
bench_of(struct smart_services *services)
{
	return (struct bench *) services;
}

static smart_status
allocate(struct smart_services *services, uint64_t tree, smart_class class, fabric_address *block)
{
	struct bench *bench = bench_of(services);

	if (bench->used + smart_class_bytes(class) > WIRE_CHUNK_BYTES)
		return SMART_NO_SPACE;
	*block = fabric_make_address(bench->next_node, bench->nodes->offset + bench->used);
	bench->next_node = (bench->next_node + 1) % bench->spread;
	bench->used += smart_class_bytes(class);
	return SMART_OK;
}

static void
retire(struct smart_services *services, uint64_t tree, smart_class class, fabric_address block)
{
}

static void
nothing(struct smart_services *services)
{
}

static smart_status
lock_leaf(struct smart_services *services, fabric_address leaf)
{
	return SMART_OK;
}

static void
unlock_leaf(struct smart_services *services, fabric_address leaf)
{
}

static bool
cache_find(struct smart_services *services, uint64_t tree, smart_slot slot, uint64_t *words)
{
	return smart_cache_find(bench_of(services)->cache, CLIENT, tree, slot, words);
}

static void
cache_store(struct smart_services *services, uint64_t tree, smart_slot slot, const uint64_t *words)
{
	smart_cache_store(bench_of(services)->cache, CLIENT, tree, slot, words);
}

static void
cache_update(struct smart_services *services, uint64_t tree, smart_slot slot, unsigned int index, uint64_t from,
			 uint64_t to)
{
	smart_cache_update(bench_of(services)->cache, CLIENT, tree, slot, index, from, to);
}

static void
cache_drop(struct smart_services *services, uint64_t tree, smart_slot slot)
{
	smart_cache_drop(bench_of(services)->cache, CLIENT, tree, slot);
}

/* ---- entries: the digits of a number, most significant first ---- */

static void
make_entry(uint8_t *entry, unsigned int number)
{
	memset(entry, 0, ENTRY);
	for (int digit = DIGITS - 1; digit >= 0; digit--, number /= VALUES)
		entry[digit] = (uint8_t) (10 + 20 * (number % VALUES));
}

static bool
look_up(struct bench *bench, const uint8_t *entry)
{
	bool found = false;

	CHECK(smart_tree_lookup(bench->tree, entry, ENTRY, &found) == SMART_OK);
	return found;
}

static void
forget_cache(struct bench *bench)
{
	smart_cache_init(bench->cache, SMART_CACHE_BYTES_MIN * 8, 1, 1);
}

/* The round trips of a lookup, by a client whose cache is empty if cold; *descents: those made for it. */
static uint64_t
cost(struct bench *bench, unsigned int number, bool cold, uint64_t *descents)
{
	const struct fabric_counters *counters = &bench->remote.fabric->counters;
	uint64_t trips = counters->round_trips;
	uint8_t entry[ENTRY];

	*descents = counters->descents;
	make_entry(entry, number);
	if (cold)
		forget_cache(bench);
	CHECK(look_up(bench, entry));
	*descents = counters->descents - *descents;
	return counters->round_trips - trips;
}

/* ---- a tree ---- */

static void
make_root(struct bench *bench)
{
	smart_slot empty = smart_tree_empty_root();
	struct fabric_request write = {.verb = FABRIC_WRITE,
								   .remote = fabric_make_address(0, bench->nodes->offset),
								   .local = &empty,
								   .length = sizeof(empty)};

	CHECK(fabric_execute(bench->remote.fabric, &write, 1) == SMART_OK);
	bench->used = SMART_UNIT;
}

static void
fill(struct bench *bench)
{
	struct smart_verify_report report = {.entries = 0};
	uint8_t entry[ENTRY];
	char message[256];
	bool added;

	for (unsigned int i = 0; i < ENTRIES; i++)
	{
		make_entry(entry, i);
		CHECK(smart_tree_insert(bench->tree, entry, ENTRY, ENTRY, &added) == SMART_OK && added);
	}
	CHECK(smart_tree_verify(bench->tree, NULL, NULL, &report, message, sizeof(message)) == SMART_OK);
	CHECK(report.entries == ENTRIES && report.height >= 4);
	bench->height = report.height;
}

static void
open_bench(struct bench *bench, struct test_memnodes *nodes, unsigned int spread)
{
	size_t bytes = (smart_cache_size(SMART_CACHE_BYTES_MIN * 8, 1) + 127) / 128 * 128;
	struct smart_tree_options options = {.id = ++bench->id,
										 .root = fabric_make_address(0, nodes->offset),
										 .leaf_size = LEAF_SIZE,
										 .fixed_length = ENTRY};

	bench->nodes = nodes;
	bench->spread = spread;
	bench->services = (struct smart_services){
		.allocate = allocate,
		.retire = retire,
		.enter = nothing,
		.leave = nothing,
		.lock_leaf = lock_leaf,
		.unlock_leaf = unlock_leaf,
		.cache_find = cache_find,
		.cache_store = cache_store,
		.cache_update = cache_update,
		.cache_drop = cache_drop,
		.offload = &bench->offload,
	};
	bench->cache = aligned_alloc(128, bytes);
	if (bench->cache == NULL)
		abort();
	forget_cache(bench);
	smart_offload_init(&bench->offload, SMART_OFFLOAD_OFF);
	test_remote_open(nodes, &bench->remote, 1, TIMEOUT_MS);
	make_root(bench);
	CHECK(smart_tree_open(bench->remote.fabric, &bench->remote.thread.env, &bench->services, &options, &bench->tree) ==
		  SMART_OK);
	fill(bench);
}

static void
close_bench(struct bench *bench)
{
	smart_tree_close(bench->tree);
	test_remote_close(&bench->remote);
	free(bench->cache);
}

/* ---- one memory node ---- */

/* A cold lookup takes one round trip instead of one for the root, each node and the leaf. */
static void
test_cold(struct bench *bench)
{
	uint64_t descents;

	bench->offload.mode = SMART_OFFLOAD_OFF;
	CHECK(cost(bench, ENTRIES / 2, true, &descents) == (uint64_t) bench->height + 1 && descents == 0);
	bench->offload.mode = SMART_OFFLOAD_ON;
	CHECK(cost(bench, ENTRIES / 2, true, &descents) == 1 && descents == 1);
	/* The way is known from now on: its neighbour needs its leaf, and no descent. */
	CHECK(cost(bench, ENTRIES / 2, false, &descents) == 1 && descents == 0);
	CHECK(cost(bench, ENTRIES / 2 + 1, false, &descents) == 1 && descents == 0);
	/* Another part of the tree, of which the cache has the root: from there on. */
	CHECK(cost(bench, 0, false, &descents) == 1 && descents == 1);
	CHECK(cost(bench, 1, false, &descents) == 1 && descents == 0);
}

/* The node's word about what is not there is as good as a strict descent's. */
static void
test_absent(struct bench *bench)
{
	const struct fabric_counters *counters = &bench->remote.fabric->counters;
	uint8_t entry[ENTRY];
	uint64_t trips;

	make_entry(entry, 7);
	entry[ENTRY - 1] = 1;
	forget_cache(bench);
	trips = counters->round_trips;
	CHECK(!look_up(bench, entry) && counters->round_trips - trips == 1);
	/* In no leaf's range. */
	CHECK(counters->descents_stopped == 0);
}

/* All of them, each from an empty cache, and what is beside them. */
static void
test_all(struct bench *bench, enum smart_offload_mode mode)
{
	uint8_t entry[ENTRY];

	bench->offload.mode = mode;
	for (unsigned int i = 0; i < ENTRIES; i += 3)
	{
		make_entry(entry, i);
		forget_cache(bench);
		CHECK(look_up(bench, entry));
		entry[DIGITS - 1]++;
		forget_cache(bench);
		CHECK(!look_up(bench, entry));
		entry[0]++;
		CHECK(!look_up(bench, entry));
	}
}

/* What was changed a moment ago is seen, also where the cache still shows what was there before. */
static void
test_changes(struct bench *bench)
{
	uint8_t entry[ENTRY];
	bool done;

	bench->offload.mode = SMART_OFFLOAD_ON;
	for (unsigned int i = 0; i < ENTRIES; i += 7)
	{
		make_entry(entry, i);
		CHECK(smart_tree_remove(bench->tree, entry, ENTRY, &done) == SMART_OK && done);
		forget_cache(bench);
		CHECK(!look_up(bench, entry));
		CHECK(smart_tree_insert(bench->tree, entry, ENTRY, ENTRY, &done) == SMART_OK && done);
		forget_cache(bench);
		CHECK(look_up(bench, entry));
	}
}

/* ---- the rule ---- */

/* What it does follows from what was measured; here it is told what that was. */
static void
test_rule(struct bench *bench)
{
	struct smart_offload_node *node = &bench->offload.node[0];
	uint64_t descents;

	smart_offload_init(&bench->offload, SMART_OFFLOAD_AUTO);
	/* Nothing is known of READs: they are measured first, then a descent is. */
	CHECK(cost(bench, 5, true, &descents) >= 2 && node->trip_ns > 0);
	CHECK(cost(bench, 5, true, &descents) == 1 && descents == 1 && node->descent_ns > 0);
	*node = (struct smart_offload_node){.trip_ns = 1000000000, .descent_ns = 1500000000};
	CHECK(cost(bench, 5, true, &descents) == 1 && descents == 1);
	*node = (struct smart_offload_node){.trip_ns = 1, .descent_ns = UINT64_C(1) << 50};
	CHECK(cost(bench, 5, true, &descents) == (uint64_t) bench->height + 1 && descents == 0);
	/* It was busy a moment ago. */
	bench->offload.mode = SMART_OFFLOAD_ON;
	node->not_before_ns = UINT64_MAX;
	CHECK(cost(bench, 5, true, &descents) == (uint64_t) bench->height + 1 && descents == 0);
	node->not_before_ns = 1;
	CHECK(cost(bench, 5, true, &descents) == 1 && descents == 1 && node->not_before_ns == 0);
}

/* A memory node that does not go on costs the limit; one that closed the connection costs a READ more. */
static void
test_failures(struct bench *bench)
{
	struct fabric *fabric = bench->remote.fabric;
	uint32_t generation = bench->nodes->generation[0];
	uint8_t entry[ENTRY];
	bool found;

	smart_offload_init(&bench->offload, SMART_OFFLOAD_ON);
	make_entry(entry, 9);
	forget_cache(bench);
	test_memnode_freeze(bench->nodes, 0);
	fabric_remote_set_timeout(fabric, 150);
	CHECK(smart_tree_lookup(bench->tree, entry, ENTRY, &found) == SMART_TIMEOUT);
	test_memnode_thaw(bench->nodes, 0);
	fabric_remote_set_timeout(fabric, TIMEOUT_MS);
	/* Nothing can have changed, so nobody else has to connect again. */
	CHECK(bench->nodes->generation[0] == generation);
	CHECK(look_up(bench, entry));
}

int
main(void)
{
	struct test_memnodes *nodes = test_memnodes_open(2, true);
	struct bench bench = {.id = 0};

	open_bench(&bench, nodes, 1);
	test_cold(&bench);
	test_absent(&bench);
	test_all(&bench, SMART_OFFLOAD_ON);
	CHECK(bench.remote.fabric->counters.descents_stopped == 0);
	test_all(&bench, SMART_OFFLOAD_AUTO);
	test_changes(&bench);
	test_rule(&bench);
	test_failures(&bench);
	close_bench(&bench);

	/* Blocks on two memory nodes in turn: walks end where the other one's begin. */
	open_bench(&bench, nodes, 2);
	test_all(&bench, SMART_OFFLOAD_ON);
	CHECK(bench.remote.fabric->counters.descents_stopped > 0);
	test_changes(&bench);
	close_bench(&bench);
	test_memnodes_close(nodes);
	return check_finish();
}

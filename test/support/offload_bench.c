/*
 * offload_bench.c
 *	  A tree on real memory nodes and a client of it.
 */
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/offload_bench.h"

#define LEAF_SIZE   64
#define CLIENT      0
#define CACHE_BYTES (SMART_CACHE_BYTES_MIN * 8)

/* ---- services ---- */

static struct offload_bench *
bench_of(struct smart_services *services)
{
	return (struct offload_bench *) services;
}

static smart_status
allocate(struct smart_services *services, uint64_t tree, smart_class class, fabric_address *block)
{
	struct offload_bench *bench = bench_of(services);

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

/* ---- entries: the digits of a number, most significant first ---- */

void
offload_make_entry(uint8_t *entry, unsigned int number)
{
	memset(entry, 0, OFFLOAD_ENTRY);
	for (int digit = OFFLOAD_DIGITS - 1; digit >= 0; digit--, number /= OFFLOAD_VALUES)
		entry[digit] = (uint8_t) (10 + 20 * (number % OFFLOAD_VALUES));
}

bool
offload_look_up(struct offload_bench *bench, const uint8_t *entry)
{
	bool found = false;

	CHECK(smart_tree_lookup(bench->tree, entry, OFFLOAD_ENTRY, &found) == SMART_OK);
	return found;
}

void
offload_forget_cache(struct offload_bench *bench)
{
	smart_cache_init(bench->cache, CACHE_BYTES, 1, 1);
}

uint64_t
offload_cost(struct offload_bench *bench, unsigned int number, bool cold, uint64_t *descents)
{
	const struct fabric_counters *counters = &bench->remote.fabric->counters;
	uint64_t trips = counters->round_trips;
	uint8_t entry[OFFLOAD_ENTRY];

	*descents = counters->descents;
	offload_make_entry(entry, number);
	if (cold)
		offload_forget_cache(bench);
	CHECK(offload_look_up(bench, entry));
	*descents = counters->descents - *descents;
	return counters->round_trips - trips;
}

/* ---- a tree ---- */

static void
make_root(struct offload_bench *bench)
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
fill(struct offload_bench *bench)
{
	struct smart_verify_report report = {.entries = 0};
	uint8_t entry[OFFLOAD_ENTRY];
	char message[256];
	bool added;

	for (unsigned int i = 0; i < OFFLOAD_ENTRIES; i++)
	{
		offload_make_entry(entry, i);
		CHECK(smart_tree_insert(bench->tree, entry, OFFLOAD_ENTRY, OFFLOAD_ENTRY, &added) == SMART_OK && added);
	}
	CHECK(smart_tree_verify(bench->tree, NULL, NULL, &report, message, sizeof(message)) == SMART_OK);
	CHECK(report.entries == OFFLOAD_ENTRIES && report.height >= 4);
	bench->height = report.height;
}

/* An entry on a longest path, and its neighbour, which lies there, too. */
static void
find_deep(struct offload_bench *bench)
{
	uint64_t descents;

	for (bench->deep = OFFLOAD_ENTRIES / 2; bench->deep + 1 < OFFLOAD_ENTRIES; bench->deep++)
	{
		if (offload_cost(bench, bench->deep, true, &descents) == bench->height + 1 &&
			offload_cost(bench, bench->deep + 1, false, &descents) == 1)
			return;
	}
	CHECK(false);
}

void
offload_bench_open(struct offload_bench *bench, struct test_memnodes *nodes, unsigned int spread, uint64_t id)
{
	size_t bytes = (smart_cache_size(CACHE_BYTES, 1) + 127) / 128 * 128;
	struct smart_tree_options options = {.id = id,
										 .root = fabric_make_address(0, nodes->offset),
										 .leaf_size = LEAF_SIZE,
										 .fixed_length = OFFLOAD_ENTRY};

	memset(bench, 0, sizeof(*bench));
	bench->nodes = nodes;
	bench->spread = spread;
	bench->services = (struct smart_services){
		.allocate = allocate,
		.retire = retire,
		.enter = nothing,
		.leave = nothing,
		.lock_leaf = lock_leaf,
		.unlock_leaf = unlock_leaf,
		.offload = &bench->offload,
	};
	bench->cache = aligned_alloc(128, bytes);
	if (bench->cache == NULL)
		abort();
	offload_forget_cache(bench);
	smart_cache_services_init(&bench->services, bench->cache, CLIENT);
	smart_offload_init(&bench->offload, SMART_OFFLOAD_OFF);
	test_remote_open(nodes, &bench->remote, 1, OFFLOAD_TIMEOUT_MS);
	make_root(bench);
	CHECK(smart_tree_open(bench->remote.fabric, &bench->remote.thread.env, &bench->services, &options, &bench->tree) ==
		  SMART_OK);
	fill(bench);
	find_deep(bench);
}

void
offload_bench_close(struct offload_bench *bench)
{
	smart_tree_close(bench->tree);
	test_remote_close(&bench->remote);
	free(bench->cache);
}

/* ---- what both transports have in common ---- */

void
offload_check_all(struct offload_bench *bench, enum smart_offload_mode mode)
{
	uint8_t entry[OFFLOAD_ENTRY];

	bench->offload.mode = mode;
	for (unsigned int i = 0; i < OFFLOAD_ENTRIES; i += 3)
	{
		offload_make_entry(entry, i);
		offload_forget_cache(bench);
		CHECK(offload_look_up(bench, entry));
		entry[OFFLOAD_DIGITS - 1]++;
		offload_forget_cache(bench);
		CHECK(!offload_look_up(bench, entry));
		entry[0]++;
		CHECK(!offload_look_up(bench, entry));
	}
}

void
offload_check_changes(struct offload_bench *bench, enum smart_offload_mode mode)
{
	uint8_t entry[OFFLOAD_ENTRY];
	bool done;

	bench->offload.mode = mode;
	for (unsigned int i = 0; i < OFFLOAD_ENTRIES; i += 7)
	{
		offload_make_entry(entry, i);
		CHECK(smart_tree_remove(bench->tree, entry, OFFLOAD_ENTRY, &done) == SMART_OK && done);
		offload_forget_cache(bench);
		CHECK(!offload_look_up(bench, entry));
		CHECK(smart_tree_insert(bench->tree, entry, OFFLOAD_ENTRY, OFFLOAD_ENTRY, &done) == SMART_OK && done);
		offload_forget_cache(bench);
		CHECK(offload_look_up(bench, entry));
	}
}

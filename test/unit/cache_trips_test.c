/*
 * cache_trips_test.c
 *	  What the compute node's cache is for: round trips of lookups and inserts by
 *	  two clients that share it, while the tree grows and its nodes are replaced.
 *
 * On a provider without direct access.  Exact where nothing changes its shape,
 * bounds on the average elsewhere.
 */
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/tree_client.h"

#define ENTRY   14
#define ENTRIES 60000
#define CLIENTS 2

struct bench
{
	struct test_node *node;
	struct tree_client *client[CLIENTS];
	uint64_t *number;
};

static void
open_cache(struct test_node *node, size_t bytes)
{
	node->compute.cache = aligned_alloc(128, (smart_cache_size(bytes, 8) + 127) / 128 * 128);
	CHECK(node->compute.cache != NULL);
	smart_cache_init(node->compute.cache, bytes, 8, 3);
}

/* Verbs reach the region as large as it is when a handle is opened: let it grow first. */
static void
grow_region(struct test_client *owner)
{
	fabric_address root;
	fabric_address block;
	uint64_t id = test_tree_create(owner, &root);

	for (int i = 0; i < 1500; i++)
		CHECK(smart_space_allocate(&owner->client->space, id, SMART_CLASS_LEAF(127), &block) == SMART_OK);
	CHECK(smart_space_drop_tree(&owner->client->space, id));
}

static void
make_entry(const struct bench *bench, unsigned int i, uint8_t *entry)
{
	for (int byte = 0; byte < 8; byte++)
		entry[byte] = (uint8_t) (bench->number[i] >> (56 - 8 * byte));
	memset(entry + 8, 1, ENTRY - 8);
}

static uint64_t
trips(const struct bench *bench)
{
	uint64_t sum = 0;

	for (int i = 0; i < CLIENTS; i++)
		sum += bench->client[i]->sim.fabric.counters.round_trips;
	return sum;
}

/* Inserts by both clients in turn; returns the round trips. */
static uint64_t
insert(struct bench *bench, unsigned int from, unsigned int to)
{
	uint64_t before = trips(bench);
	uint8_t entry[ENTRY];
	bool added;

	for (unsigned int i = from; i < to; i++)
	{
		make_entry(bench, i, entry);
		CHECK(smart_tree_insert(bench->client[i % CLIENTS]->tree, entry, ENTRY, ENTRY, &added) == SMART_OK && added);
	}
	return trips(bench) - before;
}

/* Lookups of everything, by the client that did not insert it. */
static uint64_t
look_up(struct bench *bench, unsigned int to)
{
	uint64_t before = trips(bench);
	uint8_t entry[ENTRY];
	bool found;

	for (unsigned int i = 0; i < to; i++)
	{
		make_entry(bench, i, entry);
		CHECK(smart_tree_lookup(bench->client[(i + 1) % CLIENTS]->tree, entry, ENTRY, &found) == SMART_OK && found);
	}
	return trips(bench) - before;
}

static void
run(struct bench *bench, size_t cache_bytes, bool shared)
{
	struct smart_tree_options options = {.leaf_size = SMART_LEAF_SIZE_DEFAULT, .fixed_length = ENTRY, .shared = shared};
	struct test_client *owner;
	struct smart_cache_stat stat;
	uint64_t cost;

	open_cache(bench->node, cache_bytes);
	owner = test_client_open(bench->node, 1);
	options.id = test_tree_create(owner, &options.root);
	for (unsigned int i = 0; i < CLIENTS; i++)
		bench->client[i] = tree_client_open(bench->node, &options, true, i + 1);
	insert(bench, 0, ENTRIES / 2);
	cost = insert(bench, ENTRIES / 2, ENTRIES);
	/* What inserts left for their clients' next operations, and these gave up, is done by the next client that comes there. */
	look_up(bench, ENTRIES);
	smart_cache_stat(bench->node->compute.cache, &stat);
	if (stat.counters.evictions == 0)
	{
		/* All that changed the tree told the cache: no client was misled, nor had to READ a node. */
		CHECK(look_up(bench, ENTRIES) == ENTRIES);
		CHECK(cost < (uint64_t) ENTRIES / 2 * (shared ? 34 : 24) / 10);
	}
	else
	{
		CHECK(look_up(bench, ENTRIES) < (uint64_t) ENTRIES * 2);
		CHECK(cost < (uint64_t) ENTRIES / 2 * (shared ? 5 : 4));
	}
	for (unsigned int i = 0; i < CLIENTS; i++)
		tree_client_close(bench->client[i]);
	CHECK(smart_space_drop_tree(&owner->client->space, options.id));
	test_client_close(owner);
	CHECK((stat.counters.evictions > 0) == (cache_bytes < ENTRIES));
	CHECK(stat.counters.updates > 100 && stat.counters.skips == 0);
	free(bench->node->compute.cache);
	bench->node->compute.cache = NULL;
}

/* ---- what an insert leaves for its client's next operation ---- */

/*
 * Inserts, and between them lookups of something else that cost one round trip: how many
 * of these took a CAS along, that makes a block live?  late: two epochs begin before
 * each lookup, so that the block may be another's.
 */
static uint64_t
count_left(struct bench *bench, unsigned int from, unsigned int to, bool late)
{
	const struct fabric_counters *counters = &bench->client[0]->sim.fabric.counters;
	uint8_t entry[ENTRY];
	uint64_t left = 0;
	bool flag;

	for (unsigned int i = from; i < to; i++)
	{
		struct fabric_counters before;

		make_entry(bench, i, entry);
		CHECK(smart_tree_insert(bench->client[0]->tree, entry, ENTRY, ENTRY, &flag) == SMART_OK && flag);
		for (int epochs = 0; late && epochs < 2; epochs++)
			CHECK(smart_epoch_try_advance(bench->node->compute.epoch));
		make_entry(bench, i / 2, entry);
		before = *counters;
		CHECK(smart_tree_lookup(bench->client[0]->tree, entry, ENTRY, &flag) == SMART_OK && flag);
		if (counters->round_trips - before.round_trips == 1)
			left += counters->requests[FABRIC_CAS] - before.requests[FABRIC_CAS];
	}
	return left;
}

static void
run_left(struct bench *bench)
{
	struct smart_tree_options options = {.leaf_size = SMART_LEAF_SIZE_DEFAULT, .fixed_length = ENTRY};
	struct test_client *owner;

	open_cache(bench->node, 1 << 20);
	owner = test_client_open(bench->node, 1);
	options.id = test_tree_create(owner, &options.root);
	bench->client[0] = tree_client_open(bench->node, &options, true, 1);
	CHECK(count_left(bench, 0, 3000, false) > 50);
	CHECK(count_left(bench, 3000, 6000, true) == 0);
	tree_client_close(bench->client[0]);
	CHECK(smart_space_drop_tree(&owner->client->space, options.id));
	test_client_close(owner);
	free(bench->node->compute.cache);
	bench->node->compute.cache = NULL;
}

/* ---- long keys that begin alike: chains of nodes, one below the other ---- */

#define DEEP_KEYS  100
#define DEEP_BYTES 1000

static bool
is_dead(void *argument, const uint8_t *entry, size_t length)
{
	return true;
}

/* Key i shares all but its last bytes with longer ones. */
static size_t
make_deep(uint8_t *entry, unsigned int i)
{
	size_t length = DEEP_BYTES / DEEP_KEYS * i;

	memset(entry, 'x', length);
	memset(entry + length, 0, 8);
	entry[length + 7] = (uint8_t) i;
	return length + 8;
}

/* A change deep down costs no more than one at the top; nor does a walk descend from the root at every step. */
static void
check_deep(struct bench *bench)
{
	struct test_client *owner;
	struct smart_tree_options options = {.leaf_size = SMART_LEAF_SIZE_DEFAULT};
	uint8_t entry[DEEP_BYTES + 8];
	uint64_t visited;
	uint64_t removed;
	uint64_t before;
	bool done;

	open_cache(bench->node, (size_t) 1 << 20);
	owner = test_client_open(bench->node, 1);
	options.id = test_tree_create(owner, &options.root);
	for (unsigned int i = 0; i < CLIENTS; i++)
		bench->client[i] = tree_client_open(bench->node, &options, true, i + 1);
	for (unsigned int i = 1; i <= DEEP_KEYS; i++)
	{
		size_t length = make_deep(entry, i);

		CHECK(smart_tree_insert(bench->client[0]->tree, entry, length, length, &done) == SMART_OK && done);
	}
	before = trips(bench);
	for (unsigned int i = 1; i <= DEEP_KEYS; i += 2)
	{
		size_t length = make_deep(entry, i);

		CHECK(smart_tree_remove(bench->client[1]->tree, entry, length, &done) == SMART_OK && done);
	}
	CHECK(trips(bench) - before < DEEP_KEYS / 2 * 20);
	before = trips(bench);
	CHECK(smart_tree_bulk_delete(bench->client[0]->tree, &(struct smart_victims){.dead = is_dead}, NULL, &visited,
								 &removed) == SMART_OK);
	CHECK(removed == DEEP_KEYS / 2 && trips(bench) - before < DEEP_KEYS / 2 * 30);
	before = trips(bench);
	CHECK(smart_tree_bulk_delete(bench->client[0]->tree, &(struct smart_victims){.dead = is_dead}, NULL, &visited,
								 &removed) == SMART_OK);
	CHECK(removed == 0 && trips(bench) - before < DEEP_BYTES * 2);
	for (unsigned int i = 0; i < CLIENTS; i++)
		tree_client_close(bench->client[i]);
	CHECK(smart_space_drop_tree(&owner->client->space, options.id));
	test_client_close(owner);
	free(bench->node->compute.cache);
	bench->node->compute.cache = NULL;
}

int
main(void)
{
	struct bench bench = {.node = test_node_open(8, 256 << 20), .number = calloc(ENTRIES, sizeof(uint64_t))};
	struct test_client *owner = test_client_open(bench.node, 1);
	uint64_t state = 1;

	grow_region(owner);
	test_client_close(owner);
	for (unsigned int i = 0; i < ENTRIES; i++)
		bench.number[i] = test_random(&state);
	for (int shared = 0; shared < 2; shared++)
	{
		/* Room for all nodes, and for a fraction of them. */
		run(&bench, (size_t) 1 << 20, shared);
		run(&bench, SMART_CACHE_BYTES_MIN, shared);
	}
	run_left(&bench);
	check_deep(&bench);
	free(bench.number);
	test_node_close(bench.node);
	return check_finish();
}

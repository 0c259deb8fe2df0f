/*
 * hints_test.c
 *	  Leaf hints: what an append costs with them, and that a key that is there
 *	  is not added again, whatever the leaf has gone through, even if the leaf has it twice (I7).
 */
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/tree_client.h"

#define CACHE_BYTES ((size_t) 1 << 20)
#define CLIENTS     2
#define KEY         10
#define PAYLOAD     2
#define MODEL       3000
#define GROWN       20000

struct bench
{
	struct test_node *node;
	struct tree_client *client[CLIENTS];
	bool fixed;
};

static void
open_tree(struct bench *bench, bool shared)
{
	struct smart_tree_options options = {.leaf_size = SMART_LEAF_SIZE_DEFAULT,
										 .fixed_length = bench->fixed ? KEY + PAYLOAD : 0,
										 .shared = shared,
										 .hints = true,
										 .payload = PAYLOAD};
	struct test_client *owner = test_client_open(bench->node, 1);

	options.id = test_tree_create(owner, &options.root);
	test_client_close(owner);
	for (unsigned int i = 0; i < CLIENTS; i++)
		bench->client[i] = tree_client_open(bench->node, &options, true, i + 1);
}

static void
close_tree(struct bench *bench)
{
	for (unsigned int i = 0; i < CLIENTS; i++)
		tree_client_close(bench->client[i]);
}

static struct fabric_counters
cost(const struct bench *bench)
{
	struct fabric_counters sum = bench->client[0]->sim.fabric.counters;

	sum.round_trips += bench->client[1]->sim.fabric.counters.round_trips;
	sum.requests[FABRIC_READ] += bench->client[1]->sim.fabric.counters.requests[FABRIC_READ];
	return sum;
}

/* The payload tells which client put it there, so that equal keys need not be equal entries. */
static bool
insert(struct bench *bench, unsigned int client, uint64_t number)
{
	uint8_t entry[KEY + PAYLOAD] = {0};
	bool added;

	for (int i = 0; i < 8; i++)
		entry[2 + i] = (uint8_t) (number >> (56 - 8 * i));
	memset(entry + KEY, 1 + (int) client, PAYLOAD);
	CHECK(smart_tree_insert(bench->client[client]->tree, entry, KEY, sizeof(entry), &added) == SMART_OK);
	return added;
}

static bool
is_there(struct bench *bench, unsigned int client, uint64_t number)
{
	uint8_t key[KEY] = {0};
	bool found;

	for (int i = 0; i < 8; i++)
		key[2 + i] = (uint8_t) (number >> (56 - 8 * i));
	CHECK(smart_tree_lookup(bench->client[client]->tree, key, KEY, &found) == SMART_OK);
	return found;
}

/* What an insert costs; it adds the key, or not. */
static void
check_insert(struct bench *bench, unsigned int client, uint64_t number, bool added, unsigned int trips,
			 unsigned int reads)
{
	struct fabric_counters before = cost(bench);

	CHECK(insert(bench, client, number) == added);
	CHECK(cost(bench).round_trips == before.round_trips + trips);
	CHECK(cost(bench).requests[FABRIC_READ] == before.requests[FABRIC_READ] + reads);
}

/* The second append to a leaf, by whatever client, is one round trip; a key that is there is found. */
static void
check_cost(struct bench *bench)
{
	open_tree(bench, false);
	for (uint64_t i = 1; i <= 4; i++)
		CHECK(insert(bench, 0, i * 7919 % 8 * 100));
	CHECK(insert(bench, 1, 3) && insert(bench, 1, 5));
	for (uint64_t i = 2; i <= 4; i++)
		check_insert(bench, (unsigned int) i % CLIENTS, i * 5, true, 1, 1);
	for (uint64_t i = 1; i <= 4; i++)
		CHECK(!insert(bench, 1, i * 5) && !insert(bench, 0, i * 7919 % 8 * 100) && is_there(bench, 1, i * 5));
	close_tree(bench);
}

/*
 * A tree that grows from nothing: what changes of structure add to the one round trip, or three
 * in shared mode, of each insert.
 */
static void
check_changes(struct bench *bench, bool shared, uint64_t most)
{
	struct fabric_counters before;

	open_tree(bench, shared);
	before = cost(bench);
	for (uint64_t i = 1; i <= GROWN; i++)
		CHECK(insert(bench, 0, (i * UINT64_C(0x9e3779b97f4a7c15)) >> 44));
	CHECK(cost(bench).round_trips - before.round_trips <= most);
	close_tree(bench);
}

/* What a walk or a scan met. */
struct met
{
	uint64_t count;
	uint64_t number; /* of the last entry */
	uint8_t by;      /* the client that put it there */
};

static bool
meet(void *argument, const uint8_t *entry, size_t length)
{
	struct met *met = argument;
	uint64_t number = 0;

	for (int i = 0; i < 8; i++)
		number = number << 8 | entry[2 + i];
	CHECK(length == KEY + PAYLOAD && (met->count == 0 || number > met->number));
	*met = (struct met){.count = met->count + 1, .number = number, .by = entry[KEY]};
	return true;
}

static void
scan(struct bench *bench, bool backward, struct met *met)
{
	struct smart_scan *scan;
	struct smart_batch batch;
	uint8_t entry[KEY + PAYLOAD];

	CHECK(smart_scan_open(bench->client[1]->tree, &scan) == SMART_OK);
	CHECK(smart_scan_seek(scan, (const uint8_t *) "", 0, (const uint8_t *) "", 0, backward) == SMART_OK);
	while (smart_scan_next(scan, &batch) == SMART_OK)
	{
		for (uint32_t i = 0; i < batch.count; i++)
		{
			memcpy(entry, batch.prefix, batch.prefix_length);
			memcpy(entry + batch.prefix_length, batch.bytes + batch.items[i].offset, batch.items[i].length);
			meet(met, entry, batch.prefix_length + batch.items[i].length);
		}
	}
	smart_scan_close(scan);
}

/* A walk over all entries meets so many, the last one put there by this client.  Bytes that are used. */
static uint64_t
check_entries(struct bench *bench, uint64_t count, unsigned int client)
{
	struct smart_verify_report report;
	struct met met = {0};
	char message[200];

	CHECK(smart_tree_verify(bench->client[0]->tree, meet, &met, &report, message, sizeof(message)) == SMART_OK);
	CHECK(report.entries == count && met.count == count && met.by == 1 + client);
	for (int backward = 0; backward < 2; backward++)
	{
		met = (struct met){0};
		scan(bench, backward != 0, &met);
		CHECK(met.count == count && met.by == 1 + client);
	}
	return report.bytes_used;
}

static bool
remove_one(struct bench *bench, uint64_t number)
{
	uint8_t key[KEY] = {0};
	bool removed;

	for (int i = 0; i < 8; i++)
		key[2 + i] = (uint8_t) (number >> (56 - 8 * i));
	CHECK(smart_tree_remove(bench->client[0]->tree, key, KEY, &removed) == SMART_OK);
	return removed;
}

/* A key that is in its leaf twice, with another payload in front of the first one's or behind it, is there once. */
static void
check_twin(struct bench *bench, unsigned int first)
{
	unsigned int second = 1 - first;
	uint64_t used;

	open_tree(bench, false);
	CHECK(insert(bench, first, 90) && insert(bench, first, 70) && insert(bench, first, 80));
	CHECK(insert(bench, first, 60) && insert(bench, first, 50));
	used = check_entries(bench, 5, first);
	/* With the READ in the batch of the append; then the leaf has no leaf hint, and is READ first. */
	check_insert(bench, second, 90, false, 1, 1);
	CHECK(check_entries(bench, 5, first) > used);
	used = check_entries(bench, 5, first);
	check_insert(bench, second, 90, false, 1, 1);
	CHECK(check_entries(bench, 5, first) == used);
	/* Appends and rewrites of the leaf. */
	CHECK(insert(bench, second, 40) && !insert(bench, first, 90) && insert(bench, second, 10));
	check_entries(bench, 7, first);
	for (uint64_t i = 0; i < 9; i++)
		CHECK(insert(bench, second, 11 + i));
	used = check_entries(bench, 16, first);
	CHECK(!insert(bench, second, 90) && check_entries(bench, 16, first) > used);
	CHECK(remove_one(bench, 90) && !is_there(bench, 1, 90) && !remove_one(bench, 90));
	check_entries(bench, 15, first);
	close_tree(bench);
}

static unsigned int damaged;

/* The first READ of a batch brings something else. */
static void
damage(void *argument, const struct fabric_request *request)
{
	if (request->verb != FABRIC_READ || damaged++ > 0)
		return;
	memset(request->local, 0xff, request->length);
}

/* What a READ brings counts only if it fits: else it goes again before the insert says anything. */
static void
check_torn(struct bench *bench)
{
	open_tree(bench, false);
	CHECK(insert(bench, 0, 90) && insert(bench, 0, 70) && insert(bench, 0, 80));
	CHECK(insert(bench, 0, 60) && insert(bench, 0, 50) && insert(bench, 0, 40));
	bench->client[1]->control.observe = damage;
	damaged = 0;
	check_insert(bench, 1, 75, true, 2, 2);
	damaged = 0;
	check_insert(bench, 1, 75, false, 2, 2);
	bench->client[1]->control.observe = NULL;
	check_entries(bench, 7, 0);
	close_tree(bench);
}

/* Keys that ascend cost one round trip but for the leaves' ends, however many find room in a leaf. */
static void
check_ascending(struct bench *bench)
{
	uint64_t before;

	open_tree(bench, false);
	for (uint64_t i = 0; i < 100; i++)
		CHECK(insert(bench, 0, i));
	before = cost(bench).round_trips;
	for (uint64_t i = 100; i < 1100; i++)
		CHECK(insert(bench, i % CLIENTS, i));
	CHECK(cost(bench).round_trips - before < 1000 * 13 / 10);
	for (uint64_t i = 0; i < 1100; i++)
		CHECK(!insert(bench, 1, i));
	close_tree(bench);
}

static bool
is_multiple(void *argument, const uint8_t *entry, size_t length)
{
	return entry[KEY - 1] % 3 == 0;
}

/* Against a plain model: inserts, removals and bulk deletes by both clients, leaves that split, shrink and merge. */
static void
check_model(struct bench *bench)
{
	bool *there = calloc(MODEL, sizeof(*there));
	uint64_t state = 5;
	uint64_t visited;
	uint64_t removed;

	open_tree(bench, false);
	for (unsigned int i = 0; i < 40000; i++)
	{
		uint64_t number = test_random(&state) % MODEL;
		unsigned int client = (unsigned int) (test_random(&state) % CLIENTS);
		uint8_t key[KEY] = {0};
		bool done;

		key[KEY - 2] = (uint8_t) (number >> 8);
		key[KEY - 1] = (uint8_t) number;
		if (test_random(&state) % 3 != 0)
		{
			CHECK(insert(bench, client, number) == !there[number]);
			there[number] = true;
		}
		else
		{
			CHECK(smart_tree_remove(bench->client[client]->tree, key, KEY, &done) == SMART_OK && done == there[number]);
			there[number] = false;
		}
		if (i % 10000 != 9999)
			continue;
		CHECK(smart_tree_bulk_delete(bench->client[client]->tree, &(struct smart_victims){.dead = is_multiple}, NULL,
									 &visited, &removed) == SMART_OK);
		for (number = 0; number < MODEL; number++)
			there[number] &= (number & 0xff) % 3 != 0;
	}
	for (uint64_t number = 0; number < MODEL; number++)
		CHECK(is_there(bench, 0, number) == there[number]);
	free(there);
	close_tree(bench);
}

/* Where other compute nodes append, too, a leaf is READ and locked. */
static void
check_shared(struct bench *bench)
{
	uint64_t before;

	open_tree(bench, true);
	for (uint64_t i = 10; i < 15; i++)
		CHECK(insert(bench, 0, i));
	before = cost(bench).round_trips;
	CHECK(insert(bench, 0, 3) && insert(bench, 0, 4));
	CHECK(cost(bench).round_trips == before + 6);
	close_tree(bench);
}

int
main(void)
{
	struct bench bench = {.node = test_node_open(8, 256 << 20)};

	bench.node->compute.cache = aligned_alloc(128, (smart_cache_size(CACHE_BYTES, 8) + 127) / 128 * 128);
	smart_cache_init(bench.node->compute.cache, CACHE_BYTES, 8, 3);
	for (int fixed = 0; fixed < 2; fixed++)
	{
		bench.fixed = fixed != 0;
		check_cost(&bench);
		/* Entries of one length do not have the node READ with the leaf unless a leaf hint asks for it. */
		check_changes(&bench, false, GROWN + GROWN * (fixed != 0 ? 64 : 60) / 1000);
		check_changes(&bench, true, 3 * GROWN + GROWN * (fixed != 0 ? 52 : 50) / 1000);
		check_twin(&bench, 0);
		check_twin(&bench, 1);
		check_torn(&bench);
		check_ascending(&bench);
		check_model(&bench);
		check_shared(&bench);
	}
	free(bench.node->compute.cache);
	bench.node->compute.cache = NULL;
	test_node_close(bench.node);
	return check_finish();
}

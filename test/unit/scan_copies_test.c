/*
 * scan_copies_test.c
 *	  Scans by leaf copies (A6): what a scan costs once another has kept its leaves, that it meets what was changed
 *	  since, and that it keeps nothing in the place of what is there.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "support/cache.h"
#include "support/check.h"
#include "support/tree_client.h"

#define KEY     8
#define ENTRIES 6000u
#define CLIENTS 2
#define TREE    11 /* of the leaves that no tree has */

struct bench
{
	struct test_node *node;
	struct test_client *owner;
	struct tree_client *client[CLIENTS];
	bool there[2 * ENTRIES];
};

static void
open_bench(struct bench *bench, size_t cache_bytes)
{
	struct smart_tree_options options = {.leaf_size = 512, .fixed_length = KEY, .value = true};
	fabric_address block;

	memset(bench->there, 0, sizeof(bench->there));
	bench->node = test_node_open(8, 64 << 20);
	bench->node->compute.cache = aligned_alloc(128, (smart_cache_size(cache_bytes, 8) + 127) / 128 * 128);
	CHECK(bench->node->compute.cache != NULL);
	smart_cache_init(bench->node->compute.cache, cache_bytes, 8, 3);
	bench->owner = test_client_open(bench->node, 1);
	options.id = test_tree_create(bench->owner, &options.root);
	/* Verbs reach the region as large as it is when a handle is opened: let it grow first. */
	for (int i = 0; i < 1500; i++)
		CHECK(smart_space_allocate(&bench->owner->client->space, options.id, SMART_CLASS_LEAF(8), &block) == SMART_OK);
	for (unsigned int i = 0; i < CLIENTS; i++)
		bench->client[i] = tree_client_open(bench->node, &options, true, i + 1);
}

static void
close_bench(struct bench *bench)
{
	for (unsigned int i = 0; i < CLIENTS; i++)
		tree_client_close(bench->client[i]);
	test_client_close(bench->owner);
	free(bench->node->compute.cache);
	bench->node->compute.cache = NULL;
	test_node_close(bench->node);
}

static void
make_entry(uint8_t *entry, unsigned int number, uint64_t value)
{
	smart_put_be64(entry, (uint64_t) number << 20);
	memcpy(entry + KEY, &value, sizeof(value));
}

static void
insert(struct bench *bench, unsigned int client, unsigned int number)
{
	uint8_t entry[KEY + SMART_VALUE_BYTES];
	bool added;

	make_entry(entry, number, number);
	CHECK(smart_tree_insert(bench->client[client]->tree, entry, KEY, sizeof(entry), &added) == SMART_OK && added);
	bench->there[number] = true;
}

static void
drop(struct bench *bench, unsigned int client, unsigned int number)
{
	uint8_t entry[KEY + SMART_VALUE_BYTES];
	bool removed;

	make_entry(entry, number, number);
	CHECK(smart_tree_remove(bench->client[client]->tree, entry, KEY, &removed) == SMART_OK && removed);
	bench->there[number] = false;
}

static uint64_t
reads(const struct bench *bench)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < CLIENTS; i++)
		sum += bench->client[i]->sim.fabric.counters.requests[FABRIC_READ];
	return sum;
}

/* A scan of all, which has to find exactly what is there; result: its READs. */
static uint64_t
scan(struct bench *bench, unsigned int client, bool backward)
{
	uint64_t before = reads(bench);
	bool met[2 * ENTRIES] = {false};
	struct smart_scan *scan;
	struct smart_batch batch;
	smart_status status;

	CHECK(smart_scan_open(bench->client[client]->tree, &scan) == SMART_OK);
	status = smart_scan_seek(scan, NULL, 0, NULL, 0, backward);
	while (status == SMART_OK && (status = smart_scan_next(scan, &batch)) == SMART_OK)
	{
		for (uint32_t i = 0; i < batch.count; i++)
		{
			uint8_t entry[2 * KEY];
			unsigned int number;

			CHECK(batch.prefix_length + batch.items[i].length == KEY);
			memcpy(entry, batch.prefix, batch.prefix_length);
			memcpy(entry + batch.prefix_length, batch.bytes + batch.items[i].offset, batch.items[i].length);
			number = (unsigned int) (smart_load_be64(entry) >> 20);
			CHECK(number < 2 * ENTRIES && !met[number]);
			met[number] = true;
		}
	}
	CHECK(status == SMART_DONE && memcmp(met, bench->there, sizeof(met)) == 0);
	smart_scan_close(scan);
	return reads(bench) - before;
}

/* A scan keeps what it READs; what another client changes then is met by the next one, who READs no more than that. */
static void
check_changes(void)
{
	struct bench bench;
	uint64_t cold;
	uint64_t warm;

	open_bench(&bench, 4 << 20);
	for (unsigned int i = 0; i < ENTRIES; i++)
		insert(&bench, 0, 2 * i);
	scan(&bench, 0, false);
	warm = scan(&bench, 1, false);
	CHECK(warm <= 16);
	CHECK(scan(&bench, 1, true) <= 16);
	/* Appends, divisions and removals by the one client, scans by the other. */
	for (unsigned int i = 0; i < ENTRIES; i += 3)
	{
		insert(&bench, 0, 2 * i + 1);
		if (i % 999 == 0)
			scan(&bench, 1, i % 2 == 0);
	}
	for (unsigned int i = 0; i < ENTRIES; i += 5)
	{
		drop(&bench, 1, 2 * i);
		if (i % 995 == 0)
			scan(&bench, 0, i % 2 == 0);
	}
	cold = scan(&bench, 0, false);
	warm = scan(&bench, 1, false);
	CHECK(warm <= 16 && warm <= cold);
	close_bench(&bench);
}

/* ---- which of them stay in the cache ---- */

static smart_slot
leaf(unsigned int number)
{
	return smart_slot_make_leaf(0, 8, (uint64_t) (number + 1) * 8 * SMART_UNIT);
}

static bool
ask(struct smart_cache *cache, unsigned int number, bool ahead, uint64_t *ticket)
{
	uint8_t copy[8 * SMART_UNIT];

	return test_cache_leaf(cache, 0, TREE, leaf(number), ahead, copy, ticket);
}

/* Scans of many more leaves than there is room for leave the leaves of lookups where they are, hot or not. */
static void
check_resistance(void)
{
	struct smart_cache *cache = test_cache_open(256 << 10);
	uint8_t copy[8 * SMART_UNIT] = {0};
	uint64_t evictions;
	uint64_t ticket;
	unsigned int stay = 0;

	for (unsigned int i = 0; i < 2000; i++)
	{
		CHECK(!ask(cache, i, false, &ticket));
		test_cache_keep_leaf(cache, 0, TREE, leaf(i), copy, 0, ticket, SMART_KEEP_READ);
	}
	for (unsigned int i = 0; i < 2000; i++)
		stay += ask(cache, i, true, &ticket);
	CHECK(stay > 100);
	evictions = test_cache_stat(cache).counters.evictions;
	for (unsigned int i = 2000; i < 50000; i++)
	{
		CHECK(!ask(cache, i, true, &ticket) && ticket == 0);
		/* A ticket of when there was room still. */
		test_cache_keep_leaf(cache, 0, TREE, leaf(i), copy, 0, CACHE_GENERATION, SMART_KEEP_SPARE);
	}
	CHECK(test_cache_stat(cache).counters.evictions == evictions);
	for (unsigned int i = 0; i < 2000; i++)
		stay -= ask(cache, i, false, &ticket);
	CHECK(stay == 0);
	free(cache);
}

/* Who asks in vain asks less often, and all the same finds out that it is worth while again. */
static void
check_asking(void)
{
	struct smart_cache *cache = test_cache_open(256 << 10);
	uint8_t copy[8 * SMART_UNIT] = {0};
	unsigned int asked = 0;
	unsigned int kept = 0;
	uint64_t ticket;

	/* Room is worth a question. */
	while (test_cache_asks(cache, 0) && kept < 2000)
	{
		if (!ask(cache, kept, true, &ticket) && ticket != 0)
			test_cache_keep_leaf(cache, 0, TREE, leaf(kept), copy, 0, ticket, SMART_KEEP_SPARE);
		kept++;
	}
	CHECK(kept > 100 && kept < 2000);
	for (unsigned int i = 0; i < 1600; i++)
	{
		if (!test_cache_asks(cache, 0))
			continue;
		asked++;
		CHECK(!ask(cache, 2000 + i, true, &ticket));
	}
	CHECK(asked > 20 && asked < 400);
	for (unsigned int i = 0; i < 100000 && asked > 0; i++)
	{
		if (test_cache_asks(cache, 0) && ask(cache, 0, true, &ticket))
			asked = i % 64 == 0 && test_cache_asks(cache, 0) && test_cache_asks(cache, 0) ? 0 : asked;
	}
	CHECK(asked == 0);
	free(cache);
}

int
main(void)
{
	check_changes();
	check_resistance();
	check_asking();
	return check_finish();
}

/*
 * cache_results_test.c
 *	  Cached results in the cache: what is kept, what a block takes away, and what
 *	  has to go for it; and what they are for, on a tree: lookups without a verb.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "support/cache.h"
#include "support/tree_client.h"

#define TREE        77
#define SMALL_BYTES ((size_t) 64 << 10)

/* An equality prefix of so many bytes that begin with a number. */
static void
make_point(uint8_t *point, unsigned int number, unsigned int length)
{
	memset(point, 'p', length);
	memcpy(point, &number, length < sizeof(number) ? length : sizeof(number));
}

/* Tails of so many bytes in all: one entry. */
static void
make_tails(struct smart_result *cached, unsigned int number, unsigned int length)
{
	cached->hot = false;
	cached->length = length;
	memset(cached->tails, (int) (number & 0xff), length);
	if (length > 0)
		cached->tails[0] = (uint8_t) (length - 1);
}

/* Asks, and keeps what was not there; was it there? */
static bool
ask(struct smart_cache *cache, unsigned int number, unsigned int length, unsigned int tails)
{
	uint8_t point[SMART_RESULT_BYTES_MAX];
	struct smart_result cached;
	struct smart_result expected;

	make_point(point, number, length);
	make_tails(&expected, number, tails);
	if (test_cache_result(cache, 1, TREE, point, length, &cached))
	{
		CHECK(cached.length == tails && memcmp(cached.tails, expected.tails, tails) == 0);
		return true;
	}
	expected.ticket = cached.ticket;
	if (cached.ticket != 0)
		test_cache_keep_result(cache, 0, TREE, point, length, &expected);
	return false;
}

/* ---- single cached results ---- */

static void
check_lengths(void)
{
	struct smart_cache *cache = test_cache_open((size_t) 1 << 20);
	uint8_t point[SMART_RESULT_BYTES_MAX];
	struct smart_result cached;

	for (unsigned int length = 1; length <= SMART_RESULT_BYTES_MAX - 8; length += 3)
	{
		for (unsigned int tails = 0; length + tails <= SMART_RESULT_BYTES_MAX; tails += tails < 8 ? 1 : 16)
		{
			CHECK(!ask(cache, 1 + tails, length, tails) || length < 4);
			if (length >= 4)
				CHECK(ask(cache, 1 + tails, length, tails));
		}
	}
	/* Another tree's, and a longer prefix, are others. */
	make_point(point, 500, 20);
	CHECK(!ask(cache, 500, 20, 10) && ask(cache, 500, 20, 10));
	CHECK(!test_cache_result(cache, 0, TREE + 1, point, 20, &cached));
	CHECK(!test_cache_result(cache, 0, TREE, point, 19, &cached));
	/* One that is too long is not kept. */
	cached.length = SMART_RESULT_BYTES_MAX - 18;
	CHECK(cached.ticket != 0);
	test_cache_keep_result(cache, 0, TREE, point, 19, &cached);
	CHECK(!test_cache_result(cache, 0, TREE, point, 19, &cached));
	free(cache);
}

/* ---- blocks ---- */

static uint64_t
change(struct smart_cache *cache, const uint8_t *point)
{
	struct smart_blocked blocked = test_cache_block(cache, 0, TREE, point, 8);

	return test_cache_unblock(cache, &blocked);
}

static void
check_block(void)
{
	struct smart_cache *cache = test_cache_open(SMALL_BYTES);
	uint8_t point[8];
	struct smart_result cached;
	struct smart_blocked blocked;
	struct smart_blocked again;

	make_point(point, 9, 8);
	CHECK(!ask(cache, 9, 8, 7) && ask(cache, 9, 8, 7));
	CHECK(!test_cache_result(cache, 0, TREE, (const uint8_t *) "other---", 8, &cached) && cached.ticket != 0);
	blocked = test_cache_block(cache, 0, TREE, point, 8);
	/* Neither found nor to be kept, until all clients that block it have ended. */
	CHECK(!test_cache_result(cache, 1, TREE, point, 8, &cached) && cached.ticket == 0);
	again = test_cache_block(cache, 1, TREE, point, 8);
	CHECK(test_cache_unblock(cache, &blocked) == 0);
	CHECK(!test_cache_result(cache, 1, TREE, point, 8, &cached) && cached.ticket == 0);
	CHECK(test_cache_unblock(cache, &again) == 0 && change(cache, point) != 0);
	CHECK(!ask(cache, 9, 8, 7) && ask(cache, 9, 8, 7));
	CHECK(test_cache_stat(cache).counters.blocks == 3 && test_cache_stat(cache).counters.result_drops == 1);
	free(cache);
}

/* A2: a ticket of before a change is worth nothing after it. */
static void
check_ticket(void)
{
	struct smart_cache *cache = test_cache_open(SMALL_BYTES);
	uint8_t point[8];
	struct smart_result early;
	struct smart_result cached;

	make_point(point, 9, 8);
	CHECK(!test_cache_result(cache, 1, TREE, point, 8, &early) && early.ticket != 0);
	change(cache, point);
	make_tails(&early, 9, 7);
	test_cache_keep_result(cache, 1, TREE, point, 8, &early);
	CHECK(!test_cache_result(cache, 1, TREE, point, 8, &cached));
	CHECK(test_cache_stat(cache).counters.result_refusals == 1 && test_cache_stat(cache).results == 0);
	/* The client that made the change knows what there is, until the next one. */
	early.ticket = change(cache, point);
	CHECK(early.ticket != 0);
	test_cache_keep_result(cache, 1, TREE, point, 8, &early);
	CHECK(test_cache_result(cache, 0, TREE, point, 8, &cached) && cached.length == 7);
	early.ticket = change(cache, point);
	CHECK(change(cache, point) != 0);
	test_cache_keep_result(cache, 1, TREE, point, 8, &early);
	CHECK(!test_cache_result(cache, 0, TREE, point, 8, &cached));
	free(cache);
}

/* The one that blocked last need not be the one that changed it last: neither knows. */
static void
check_overlap(void)
{
	struct smart_cache *cache = test_cache_open(SMALL_BYTES);
	uint8_t point[8];
	struct smart_blocked first;
	struct smart_blocked last;

	make_point(point, 9, 8);
	first = test_cache_block(cache, 0, TREE, point, 8);
	last = test_cache_block(cache, 1, TREE, point, 8);
	CHECK(test_cache_unblock(cache, &first) == 0);
	CHECK(test_cache_unblock(cache, &last) == 0);
	free(cache);
}

/* Another client has every lock: a block does without, and takes all cached results of its version away. */
static void
check_void(void)
{
	struct smart_cache *cache = test_cache_open(SMART_CACHE_BYTES_MIN);
	struct cache_part part = cache_part_of(cache, 0, TREE, CACHE_RESULT_KEY);
	uint8_t point[8];
	unsigned int there = 0;

	for (unsigned int i = 0; i < 64; i++)
		CHECK(!ask(cache, i, 8, 7));
	make_point(point, 9, 8);
	CHECK(cache->partitions == 1 && cache_try_lock(&part));
	change(cache, point);
	cache_unlock(&part);
	CHECK(test_cache_stat(cache).counters.voids == 1);
	for (unsigned int i = 0; i < 64; i++)
	{
		bool found = ask(cache, i, 8, 7);

		CHECK(i != 9 || !found);
		there += found;
	}
	/* There are sixteen versions. */
	CHECK(there >= 32 && there < 64);
	/* What was kept since is good. */
	for (unsigned int i = 0; i < 64; i++)
		CHECK(ask(cache, i, 8, 7));
	free(cache);
}

/* The head of the bucket that an equality prefix's cached result is in. */
static const uint32_t *
head_of(const struct cache_part *part, unsigned int number)
{
	uint8_t point[8];

	make_point(point, number, 8);
	return cache_head(part, TREE, (XXH3_64bits_withSeed(point, 8, TREE) & ~(uint64_t) 0x3f) | CACHE_RESULT_KEY);
}

static unsigned int
count_frames(const struct cache_part *part, const uint32_t *head)
{
	unsigned int count = 0;

	for (uint32_t number = *head; number != 0; number = cache_frame_at(part, number)->next)
		count++;
	return count;
}

/* A search for a cached result goes through so many frames of its bucket at most: a block misses none behind them. */
static void
check_long_bucket(void)
{
	struct smart_cache *cache = test_cache_open((size_t) 512 << 10);
	struct cache_part part = cache_part_of(cache, 0, TREE, CACHE_RESULT_KEY);
	const uint32_t *head = head_of(&part, 0);
	unsigned int others[100];
	unsigned int count = 0;
	uint8_t point[8];

	CHECK(cache->partitions == 1 && !ask(cache, 0, 8, 7) && ask(cache, 0, 8, 7));
	for (unsigned int number = 1; count < sizeof(others) / sizeof(others[0]); number++)
	{
		if (head_of(&part, number) != head)
			continue;
		CHECK(!ask(cache, number, 8, 7));
		others[count++] = number;
	}
	CHECK(count_frames(&part, head) == 1 + count);
	make_point(point, 0, 8);
	change(cache, point);
	CHECK(count_frames(&part, head) == count);
	for (unsigned int i = 0; i < count; i++)
	{
		make_point(point, others[i], 8);
		change(cache, point);
	}
	CHECK(*head == 0 && !ask(cache, 0, 8, 7));
	free(cache);
}

/* ---- room ---- */

static void
store_node(struct smart_cache *cache, unsigned int kind, uint64_t number)
{
	uint64_t words[SMART_NODE_WORDS_MAX] = {0};

	test_cache_store(cache, 0, TREE, smart_slot_make_node(0, kind, number * SMART_UNIT), words);
}

/* Nodes that are used stay, whatever cached results pass through; those that are used come to have the rest. */
static void
check_room(void)
{
	struct smart_cache *cache = test_cache_open((size_t) 512 << 10);
	unsigned int hot = (unsigned int) (test_cache_stat(cache).size / 4 / 48);
	uint64_t words[SMART_NODE_WORDS_MAX];
	unsigned int nodes_lost = 0;
	unsigned int results = 0;
	struct smart_cache_stat stat;

	for (unsigned int i = 0; i < 200000; i++)
	{
		uint64_t node = 1 + i % 200;

		if (!test_cache_find(cache, 0, TREE, smart_slot_make_node(0, 3, node * SMART_UNIT), words))
		{
			nodes_lost += i >= 200;
			store_node(cache, 3, node);
		}
		ask(cache, i % hot, 8, 7);
		ask(cache, 1000000 + i, 8, 7);
	}
	for (unsigned int i = 0; i < hot; i++)
		results += ask(cache, i, 8, 7);
	stat = test_cache_stat(cache);
	CHECK(nodes_lost < 200000 / 20 && results > hot / 2);
	CHECK(stat.results > hot && stat.result_bytes + stat.bytes[3] <= stat.size);
	CHECK(stat.result_bytes + stat.bytes[3] > stat.size * 7 / 8);
	free(cache);
}

/* ---- a tree ---- */

#define ENTRIES 500
#define KEY     10 /* an equality prefix of eight bytes, and two that tell its entries apart */
#define ENTRY   12

struct bench
{
	struct test_node *node;
	struct tree_client *client[2];
};

static size_t
first_eight(void *argument, const uint8_t *bytes, size_t length)
{
	return 8;
}

static void
make_entry(uint8_t *entry, unsigned int point, unsigned int number)
{
	uint64_t mixed = (point + 1) * UINT64_C(0x9e3779b97f4a7c15);

	for (int i = 0; i < 8; i++)
		entry[i] = (uint8_t) (mixed >> (56 - 8 * i));
	entry[8] = (uint8_t) (number >> 8);
	entry[9] = (uint8_t) number;
	entry[10] = entry[11] = 0xee;
}

static uint64_t
trips(const struct bench *bench)
{
	return bench->client[0]->sim.fabric.counters.round_trips + bench->client[1]->sim.fabric.counters.round_trips;
}

static bool
look_up(struct bench *bench, unsigned int client, unsigned int point, unsigned int number)
{
	uint8_t entry[ENTRY];
	bool found;

	make_entry(entry, point, number);
	CHECK(smart_tree_lookup(bench->client[client]->tree, entry, KEY, &found) == SMART_OK);
	return found;
}

static void
insert(struct bench *bench, unsigned int client, unsigned int point, unsigned int number)
{
	uint8_t entry[ENTRY];
	bool added;

	make_entry(entry, point, number);
	CHECK(smart_tree_insert(bench->client[client]->tree, entry, KEY, ENTRY, &added) == SMART_OK && added);
}

/* Goes to a scan's end; how many entries it has met. */
static unsigned int
count_entries(struct smart_scan *scan)
{
	unsigned int count = 0;
	struct smart_batch batch;

	while (smart_scan_next(scan, &batch) == SMART_OK)
		count += batch.count;
	return count;
}

/* The entries of an equality prefix: by what is known of it, or else by a scan, which keeps what it finds. */
static unsigned int
count_point(struct bench *bench, unsigned int client, unsigned int point)
{
	struct smart_tree *tree = bench->client[client]->tree;
	uint8_t from[ENTRY];
	uint8_t to[ENTRY];
	struct smart_result cached;
	struct smart_scan *scan;
	unsigned int count;

	make_entry(from, point, 0);
	if (smart_tree_result(tree, from, 8, &cached))
		return cached.length / (1 + ENTRY - 8);
	CHECK(smart_scan_open(tree, &scan) == SMART_OK);
	memcpy(to, from, 8);
	CHECK(smart_scan_seek(scan, from, 8, to, smart_successor(to, 8), false) == SMART_OK);
	smart_scan_keep(scan, cached.ticket);
	count = count_entries(scan);
	smart_scan_close(scan);
	return count;
}

static bool
is_odd(void *argument, const uint8_t *entry, size_t length)
{
	return (entry[9] & 1) != 0;
}

static void
open_tree(struct bench *bench, bool shared)
{
	struct smart_tree_options options = {.leaf_size = SMART_LEAF_SIZE_DEFAULT,
										 .fixed_length = ENTRY,
										 .shared = shared,
										 .point = first_eight};
	struct test_client *owner = test_client_open(bench->node, 1);

	options.id = test_tree_create(owner, &options.root);
	test_client_close(owner);
	for (unsigned int i = 0; i < 2; i++)
		bench->client[i] = tree_client_open(bench->node, &options, true, i + 1);
}

static void
close_tree(struct bench *bench)
{
	for (unsigned int i = 0; i < 2; i++)
		tree_client_close(bench->client[i]);
}

/* Asked twice, a cached result costs nothing, for every client; changes are seen at once. */
static void
check_tree(struct bench *bench)
{
	uint64_t before;
	uint64_t visited;
	uint64_t removed;
	uint8_t entry[ENTRY];
	bool done;

	open_tree(bench, false);
	for (unsigned int i = 0; i < ENTRIES; i++)
		insert(bench, 0, i, 1);
	for (unsigned int i = 0; i < ENTRIES; i++)
		CHECK(look_up(bench, 0, i, 1));
	before = trips(bench);
	for (unsigned int i = 0; i < ENTRIES; i++)
		CHECK(look_up(bench, 1, i, 1) && !look_up(bench, 1, i, 2) && count_point(bench, 1, i) == 1);
	CHECK(trips(bench) == before);
	/* Another entry of the prefix, by the other client; the cached result of before is gone. */
	insert(bench, 1, 7, 2);
	insert(bench, 1, 7, 0);
	CHECK(look_up(bench, 0, 7, 2) && look_up(bench, 0, 7, 0) && look_up(bench, 0, 7, 1) &&
		  count_point(bench, 0, 7) == 3);
	make_entry(entry, 7, 1);
	CHECK(smart_tree_remove(bench->client[1]->tree, entry, KEY, &done) == SMART_OK && done);
	CHECK(!look_up(bench, 0, 7, 1) && look_up(bench, 0, 7, 2) && count_point(bench, 0, 7) == 2);
	CHECK(look_up(bench, 0, 8, 1) && count_point(bench, 0, 8) == 1);
	CHECK(smart_tree_bulk_delete(bench->client[1]->tree, &(struct smart_victims){.dead = is_odd}, NULL, &visited,
								 &removed) == SMART_OK);
	CHECK(removed == ENTRIES - 1);
	for (unsigned int i = 0; i < ENTRIES; i++)
		CHECK(!look_up(bench, 0, i, 1) && (i == 7 || count_point(bench, 0, i) == 0));
	CHECK(look_up(bench, 0, 7, 2) && look_up(bench, 0, 7, 0));
	close_tree(bench);
}

/* An equality prefix with more entries than a cached result holds, and one with more than a leaf does. */
static void
check_many(struct bench *bench)
{
	open_tree(bench, false);
	insert(bench, 0, 1, 1);
	for (unsigned int i = 0; i < 30; i++)
		insert(bench, 0, 0, i);
	CHECK(count_point(bench, 1, 0) == 30 && count_point(bench, 1, 0) == 30 && count_point(bench, 1, 1) == 1);
	for (unsigned int i = 30; i < 300; i++)
		insert(bench, 0, 0, i);
	CHECK(count_point(bench, 1, 0) == 300 && look_up(bench, 1, 0, 299) && !look_up(bench, 1, 0, 300));
	close_tree(bench);
}

/* ---- scans ---- */

/* Is the prefix's cached result known, and does it tell of so many entries?  If not, *ticket is to keep it with. */
static bool
is_known(struct bench *bench, unsigned int point, unsigned int entries, uint64_t *ticket)
{
	uint8_t entry[ENTRY];
	struct smart_result cached;
	bool known;

	make_entry(entry, point, 0);
	known = smart_tree_result(bench->client[1]->tree, entry, 8, &cached);
	CHECK(!known || cached.length == entries * (1 + ENTRY - 8));
	*ticket = known ? 0 : cached.ticket;
	return known;
}

/* Positions a scan on an equality prefix's range; said: among those of smart_scan_points. */
static void
seek_point(struct smart_scan *scan, unsigned int point, bool said, uint64_t ticket)
{
	bool backward = (point & 1) != 0;
	uint8_t from[ENTRY];
	uint8_t to[ENTRY];
	size_t to_length;

	make_entry(from, point, 0);
	memcpy(to, from, 8);
	to_length = smart_successor(to, 8);
	CHECK((said ? smart_scan_seek_point : smart_scan_seek)(scan, from, 8, to, to_length, backward) == SMART_OK);
	smart_scan_keep(scan, ticket);
}

#define SAID 8 /* prefixes at a time */

/* What a scan keeps others know; not if the prefix was blocked since the ticket was given. */
static void
check_scan(struct bench *bench)
{
	struct smart_point points[SAID];
	uint8_t entries[SAID][ENTRY];
	uint64_t tickets[SAID];
	struct smart_scan *scan;
	uint64_t before;
	uint64_t ticket;

	open_tree(bench, false);
	CHECK(smart_scan_open(bench->client[0]->tree, &scan) == SMART_OK);
	for (unsigned int i = 0; i < ENTRIES; i++)
		insert(bench, 0, i, 1);
	for (unsigned int i = 0; i < 100; i++)
	{
		CHECK(!is_known(bench, i, 1, &ticket) && ticket != 0);
		if (i == 50)
			insert(bench, 1, i, 2);
		seek_point(scan, i, false, ticket);
		if (i == 60)
			insert(bench, 1, i, 2);
		CHECK(count_entries(scan) == (i == 50 || i == 60 ? 2 : 1));
	}
	before = trips(bench);
	for (unsigned int i = 0; i < 100; i++)
		CHECK(is_known(bench, i, 1, &ticket) == (i != 50 && i != 60));
	CHECK(trips(bench) == before);

	/* Several prefixes at once; one of them changes when its leaf has been READ. */
	for (unsigned int i = 0; i < SAID; i++)
	{
		CHECK(!is_known(bench, 100 + 2 * i, 1, &tickets[i]));
		make_entry(entries[i], 100 + 2 * i, 0);
		points[i] = (struct smart_point){.bytes = entries[i], .length = 8};
	}
	CHECK(smart_scan_points(scan, points, SAID, false) == SMART_OK);
	insert(bench, 1, 106, 2);
	for (unsigned int i = 0; i < SAID; i++)
	{
		seek_point(scan, 100 + 2 * i, true, tickets[i]);
		CHECK(count_entries(scan) >= 1);
		CHECK(is_known(bench, 100 + 2 * i, 1, &ticket) == (i != 3));
	}
	smart_scan_close(scan);
	close_tree(bench);
}

/* Where other compute nodes write, nothing is known. */
static void
check_shared(struct bench *bench)
{
	uint64_t before;

	open_tree(bench, true);
	insert(bench, 0, 3, 1);
	/* The leaf becomes live with its maker's next operation. */
	CHECK(look_up(bench, 0, 3, 1));
	before = trips(bench);
	for (unsigned int i = 0; i < 10; i++)
		CHECK(look_up(bench, 1, 3, 1));
	CHECK(trips(bench) == before + 10);
	CHECK(!is_known(bench, 3, 1, &before) && before == 0);
	close_tree(bench);
}

int
main(void)
{
	struct bench bench = {.node = test_node_open(8, 256 << 20)};
	size_t bytes = (size_t) 1 << 20;

	check_lengths();
	check_block();
	check_ticket();
	check_overlap();
	check_void();
	check_long_bucket();
	check_room();
	bench.node->compute.cache = aligned_alloc(128, (smart_cache_size(bytes, 8) + 127) / 128 * 128);
	smart_cache_init(bench.node->compute.cache, bytes, 8, 3);
	check_tree(&bench);
	check_many(&bench);
	check_scan(&bench);
	check_shared(&bench);
	free(bench.node->compute.cache);
	bench.node->compute.cache = NULL;
	test_node_close(bench.node);
	return check_finish();
}

/*
 * many_test.c
 *	  Inserts and removals that go together: what they cost in round trips, what each of them is told, and that the tree
 *	  has afterwards what as many single ones would have left.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compute/cache/cache.h"
#include "support/check.h"
#include "support/tree_client.h"

#define ENTRY   14 /* bytes: a number, and a TID */
#define LONGEST 60
#define AT_ONCE SMART_POINTS_MAX
#define MANY    20000
#define LEAF    512
#define CACHE   (4 << 20)

struct bench
{
	struct test_node *node;
	struct test_client *owner;
	struct tree_client *client;
	struct smart_tree_options options;
};

static struct smart_leaf_locks locks;
static struct smart_cache *cache;

static size_t
number_point(void *argument, const uint8_t *bytes, size_t length)
{
	return 8;
}

/* Exclusive, remote, with the server's cache and leaf locks; results: with cached results and leaf hints, too. */
static struct bench
open_bench(bool fixed, bool results)
{
	struct bench bench = {.node = test_node_open(8, 256 << 20)};

	cache = aligned_alloc(128, CACHE);
	if (cache == NULL)
		abort();
	smart_cache_init(cache, CACHE, 8, 1);
	bench.node->compute.leaf_locks = &locks;
	bench.node->compute.cache = cache;
	bench.owner = test_client_open(bench.node, 1);
	bench.options = (struct smart_tree_options){.leaf_size = LEAF,
												.fixed_length = fixed ? ENTRY : 0,
												.point = results ? number_point : NULL,
												.hints = results};
	bench.options.id = test_tree_create(bench.owner, &bench.options.root);
	bench.client = tree_client_open(bench.node, &bench.options, true, 2);
	return bench;
}

static void
close_bench(struct bench *bench)
{
	struct smart_verify_report report;
	char message[256] = "";

	if (!CHECK(smart_tree_verify(bench->client->tree, NULL, NULL, &report, message, sizeof(message)) == SMART_OK))
		printf("%s\n", message);
	tree_client_close(bench->client);
	test_client_close(bench->owner);
	test_node_close(bench->node);
	free(cache);
}

static uint64_t
trips(const struct bench *bench)
{
	return bench->client->sim.fabric.counters.round_trips;
}

static void
make_entry(uint8_t *entry, uint64_t number)
{
	for (int i = 0; i < 8; i++)
		entry[i] = (uint8_t) (number >> (8 * (7 - i)));
	memset(entry + 8, 1, LONGEST - 8);
}

/* Numbers, ascending, as additions of this length; of another one for each number where length is 0. */
static void
make_additions(struct smart_addition *additions, uint8_t (*bytes)[LONGEST], const uint64_t *numbers, unsigned int count,
			   uint32_t length)
{
	for (unsigned int i = 0; i < count; i++)
	{
		uint32_t own = length != 0 ? length : 9 + (uint32_t) (numbers[i] * 7 % (LONGEST - 9));

		make_entry(bytes[i], numbers[i]);
		additions[i] = (struct smart_addition){.bytes = bytes[i], .key_length = own, .length = own};
	}
}

/* Adds them together; how many were not there. */
static unsigned int
add(struct bench *bench, const uint64_t *numbers, unsigned int count, uint32_t length)
{
	static struct smart_addition additions[MANY];
	static uint8_t bytes[MANY][LONGEST];
	unsigned int added = 0;

	make_additions(additions, bytes, numbers, count, length);
	CHECK(smart_tree_insert_many(bench->client->tree, additions, count) == SMART_OK);
	for (unsigned int i = 0; i < count; i++)
	{
		CHECK(additions[i].settled);
		added += additions[i].added;
	}
	return added;
}

static bool
is_there(struct bench *bench, uint64_t number, uint32_t length)
{
	uint8_t entry[LONGEST];
	bool found = false;

	make_entry(entry, number);
	CHECK(smart_tree_lookup(bench->client->tree, entry, length, &found) == SMART_OK);
	return found;
}

static uint64_t
count_entries(struct bench *bench)
{
	struct smart_verify_report report = {0};
	char message[256] = "";

	if (!CHECK(smart_tree_verify(bench->client->tree, NULL, NULL, &report, message, sizeof(message)) == SMART_OK))
		printf("%s\n", message);
	return report.entries;
}

/* Loads number 0, gap, 2 * gap .. with leaves that are half full. */
static void
load(struct bench *bench, unsigned int count, uint64_t gap)
{
	struct smart_load *load;
	uint8_t entry[LONGEST];

	CHECK(smart_load_begin(bench->client->tree, 50, &load) == SMART_OK);
	for (unsigned int i = 0; i < count; i++)
	{
		make_entry(entry, i * gap);
		CHECK(smart_load_add(load, entry, ENTRY) == SMART_OK);
	}
	CHECK(smart_load_finish(load) == SMART_OK);
}

/* One entry for each of many leaves: a batch that READs, and one that publishes. */
static void
check_round_trips(void)
{
	struct bench bench = open_bench(true, false);
	uint64_t numbers[AT_ONCE];
	uint64_t before;

	load(&bench, MANY, 1000);
	for (unsigned int round = 0; round < 3; round++)
	{
		for (unsigned int i = 0; i < AT_ONCE; i++)
			numbers[i] = (uint64_t) i * (MANY / AT_ONCE) * 1000 + 1 + round;
		before = trips(&bench);
		CHECK(add(&bench, numbers, AT_ONCE, ENTRY) == AT_ONCE);
		/* The first time the cache learns the way. */
		/* At first leaves have to grow, and the cache learns the way. */
		CHECK(round < 2 || trips(&bench) - before == 2);
	}
	/* What is there is told after one. */
	before = trips(&bench);
	CHECK(add(&bench, numbers, AT_ONCE, ENTRY) == 0 && trips(&bench) - before == 1);
	/* Several of one leaf go together, once that has grown. */
	for (unsigned int i = 0; i < 6; i++)
		numbers[i] = 500000 + 100 + i;
	CHECK(add(&bench, numbers, 1, ENTRY) == 1);
	before = trips(&bench);
	CHECK(add(&bench, numbers, 6, ENTRY) == 5 && trips(&bench) - before == 2);
	CHECK(count_entries(&bench) == MANY + 3 * AT_ONCE + 6);
	close_bench(&bench);
}

static int
compare_numbers(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *) a;
	uint64_t right = *(const uint64_t *) b;

	return left < right ? -1 : left > right;
}

/* From nothing, in portions; every second portion has keys of the one before it. */
static void
check_growth(bool fixed, bool results, bool random)
{
	struct bench bench = open_bench(fixed, results);
	uint64_t state = 7;
	uint64_t previous[256] = {0};
	uint64_t total = 0;
	uint64_t cost = 0;

	for (unsigned int round = 0; round < 60; round++)
	{
		uint64_t numbers[256];
		unsigned int news = 0;

		for (unsigned int i = 0; i < 256; i++)
		{
			uint64_t number = random ? test_random(&state) >> 30 : round * 256 + i;

			numbers[i] = round % 2 == 1 && i % 8 == 0 ? previous[i] : number;
		}
		qsort(numbers, 256, sizeof(numbers[0]), compare_numbers);
		for (unsigned int i = 0; i < 256; i++)
			news += (i == 0 || numbers[i] != numbers[i - 1]) &&
					!is_there(&bench, numbers[i], fixed ? ENTRY : 9 + (uint32_t) (numbers[i] * 7 % (LONGEST - 9)));
		cost -= trips(&bench);
		CHECK(add(&bench, numbers, 256, fixed ? ENTRY : 0) == news);
		cost += trips(&bench);
		total += news;
		memcpy(previous, numbers, sizeof(previous));
	}
	CHECK(count_entries(&bench) == total);
	printf("%s, %s, %s: %.3f round trips for an entry\n", fixed ? "fixed" : "variable",
		   results ? "with results" : "without results", random ? "random" : "ascending",
		   (double) cost / (double) total);
	CHECK(cost < total / (random ? 10 : 20));
	close_bench(&bench);
}

/* Leaves without room give way together, each to as many as its entries need: no leaf costs round trips of its own. */
static void
check_divisions(void)
{
	struct bench bench = open_bench(true, true);
	static uint64_t numbers[MANY];
	unsigned int count = 0;
	uint64_t before;

	load(&bench, MANY, 1000);
	/* The cache learns the way. */
	for (unsigned int i = 0; i < AT_ONCE; i++)
		CHECK(is_there(&bench, (uint64_t) i * (MANY / AT_ONCE) * 1000, ENTRY));
	for (unsigned int i = 0; i < AT_ONCE; i++)
	{
		for (unsigned int j = 0; j < 40; j++)
			numbers[count++] = (uint64_t) i * (MANY / AT_ONCE) * 1000 + 1 + j;
	}
	before = trips(&bench);
	CHECK(add(&bench, numbers, count, ENTRY) == count);
	printf("%d leaves divided: %u round trips\n", AT_ONCE, (unsigned int) (trips(&bench) - before));
	CHECK(trips(&bench) - before < AT_ONCE);
	/* One leaf, and far more entries than it has room for. */
	for (unsigned int i = 0; i < 900; i++)
		numbers[i] = (uint64_t) MANY / 2 * 1000 + 50 + i;
	before = trips(&bench);
	CHECK(add(&bench, numbers, 900, ENTRY) == 900);
	printf("a leaf divided: %u round trips\n", (unsigned int) (trips(&bench) - before));
	CHECK(trips(&bench) - before < 30);
	/* Behind all others. */
	for (unsigned int i = 0; i < 5000; i++)
		numbers[i] = (uint64_t) MANY * 1000 + i;
	before = trips(&bench);
	CHECK(add(&bench, numbers, 5000, ENTRY) == 5000);
	printf("entries behind all: %u round trips for 5000\n", (unsigned int) (trips(&bench) - before));
	CHECK(trips(&bench) - before < 100);
	CHECK(count_entries(&bench) == MANY + count + 900 + 5000);
	close_bench(&bench);
}

/* An entry that begins with this byte. */
static struct smart_addition
one_byte(uint8_t *entry, uint8_t byte, uint32_t length)
{
	memset(entry, 'e', length);
	entry[0] = byte;
	return (struct smart_addition){.bytes = entry, .key_length = length, .length = length};
}

/* Behind an entry that is longer than a leaf its block has room for a short one, and others that come then find none. */
static void
check_long_leaf(void)
{
	static const uint8_t behind[] = {0xf0, 0xf2, 0xf4, 0xf6};
	struct bench bench = open_bench(false, false);
	uint8_t bytes[16][LEAF + 8];
	struct smart_addition all[16];
	unsigned int count = 0;
	bool added;
	bool found;

	/* A node, and behind its leaves one of a long entry, and of a short one. */
	for (unsigned int i = 0; i < 10; i++, count++)
		all[count] = one_byte(bytes[count], (uint8_t) (16 * i), LONGEST);
	all[count] = one_byte(bytes[count], 0xe0, LEAF + 8);
	count++;
	all[count] = one_byte(bytes[count], 0xe8, 20);
	count++;
	for (unsigned int i = 0; i < count; i++)
		CHECK(smart_tree_insert(bench.client->tree, all[i].bytes, all[i].length, all[i].length, &added) == SMART_OK);
	for (unsigned int i = 0; i < sizeof(behind); i++, count++)
		all[count] = one_byte(bytes[count], behind[i], LONGEST);
	CHECK(smart_tree_insert_many(bench.client->tree, all + 12, 4) == SMART_OK);
	for (unsigned int i = 0; i < count; i++)
	{
		found = false;
		CHECK(smart_tree_lookup(bench.client->tree, all[i].bytes, all[i].length, &found) == SMART_OK && found);
	}
	CHECK(count_entries(&bench) == count);
	close_bench(&bench);
}

/* A leaf whose lock another client holds is left for later, and others are not. */
static unsigned int refusals;
static bool (*real_try)(struct smart_services *services, fabric_address leaf);

static bool
refuse_some(struct smart_services *services, fabric_address leaf)
{
	if (refusals > 0 && --refusals % 2 == 0)
		return false;
	return real_try(services, leaf);
}

static void
check_locks(void)
{
	struct bench bench = open_bench(true, true);
	uint64_t numbers[AT_ONCE];

	load(&bench, MANY, 1000);
	real_try = bench.client->services.try_lock_leaf;
	bench.client->services.try_lock_leaf = refuse_some;
	for (unsigned int i = 0; i < AT_ONCE; i++)
		numbers[i] = (uint64_t) i * (MANY / AT_ONCE) * 1000 + 1;
	refusals = 100;
	CHECK(add(&bench, numbers, AT_ONCE, ENTRY) == AT_ONCE && refusals == 0);
	/* All are refused: they go one by one, which waits. */
	refusals = 0;
	for (unsigned int i = 0; i < AT_ONCE; i++)
		numbers[i]++;
	CHECK(add(&bench, numbers, AT_ONCE, ENTRY) == AT_ONCE);
	CHECK(count_entries(&bench) == MANY + 2 * AT_ONCE);
	for (unsigned int lock = 0; lock < SMART_LOCK_LEAVES; lock++)
		CHECK(locks.holder[lock] == 0);
	close_bench(&bench);
}

/* ---- removals ---- */

/* Numbers that are to go: every step-th one, from first on. */
struct victims
{
	uint64_t first;
	uint64_t step;
	uint64_t end;
	uint8_t key[LONGEST];
};

static uint64_t
number_of(const uint8_t *entry)
{
	uint64_t number = 0;

	for (int i = 0; i < 8; i++)
		number = number << 8 | entry[i];
	return number;
}

/* smart_dead_fn */
static bool
is_victim(void *argument, const uint8_t *entry, size_t length)
{
	const struct victims *victims = argument;
	uint64_t number = number_of(entry);

	return number >= victims->first && number < victims->end && (number - victims->first) % victims->step == 0;
}

/* smart_next_key_fn */
static bool
next_victim(void *argument, const uint8_t *from, size_t from_length, const uint8_t **key, size_t *key_length)
{
	struct victims *victims = argument;
	uint8_t bytes[LONGEST] = {0};
	uint64_t number;

	memcpy(bytes, from, from_length < LONGEST ? from_length : LONGEST);
	number = number_of(bytes);
	number = number <= victims->first
				 ? victims->first
				 : victims->first + (number - victims->first + victims->step - 1) / victims->step * victims->step;
	make_entry(victims->key, number);
	if (smart_compare_bytes(victims->key, ENTRY, from, from_length) < 0)
		make_entry(victims->key, number += victims->step);
	*key = victims->key;
	*key_length = ENTRY;
	return number < victims->end;
}

/* Removes them, by their keys or by a look at all; returns how many. */
static uint64_t
remove_together(struct bench *bench, struct victims *victims, bool by_keys)
{
	const struct smart_victims those = {.dead = is_victim, .argument = victims};
	uint64_t visited;
	uint64_t removed = 0;

	if (by_keys)
		CHECK(smart_tree_remove_many(bench->client->tree, &those, next_victim, &removed) == SMART_OK);
	else
		CHECK(smart_tree_bulk_delete(bench->client->tree, &those, NULL, &visited, &removed) == SMART_OK);
	return removed;
}

/* Few of each leaf, many, all of a range, what is gone already, and all: in a few round trips for many leaves. */
static void
check_removals(bool by_keys, bool results)
{
	static const struct
	{
		unsigned int first; /* in thousandths, as step and end */
		unsigned int step;
		unsigned int end;
		unsigned int removed;
		unsigned int most; /* round trips */
	} steps[] = {
		{0, 100, MANY, MANY / 100, 60},
		{0, 100, MANY, 0, 60},
		{5, 10, MANY, MANY / 10, 100},
		{1000, 1, 9000, 8000 - 80 - 800, 2000},
		{0, 1, MANY, MANY - MANY / 100 - MANY / 10 - (8000 - 80 - 800), 3000},
	};
	struct bench bench = open_bench(true, results);
	uint64_t left = MANY;

	load(&bench, MANY, 1000);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
	{
		struct victims victims = {.first = steps[i].first * UINT64_C(1000),
								  .step = steps[i].step * UINT64_C(1000),
								  .end = steps[i].end * UINT64_C(1000)};
		uint64_t before = trips(&bench);

		CHECK(remove_together(&bench, &victims, by_keys) == steps[i].removed);
		printf("%u removals, %s: %u round trips\n", steps[i].removed, by_keys ? "by keys" : "by a look at all",
			   (unsigned int) (trips(&bench) - before));
		CHECK(trips(&bench) - before <= steps[i].most);
		left -= steps[i].removed;
		CHECK(count_entries(&bench) == left && !is_there(&bench, victims.first, ENTRY));
		CHECK(is_there(&bench, 1000, ENTRY) == (i + 1 < sizeof(steps) / sizeof(steps[0])));
	}
	close_bench(&bench);
}

/* Leaves whose locks others hold lose their entries later. */
static void
check_removals_locked(void)
{
	for (int by_keys = 0; by_keys < 2; by_keys++)
	{
		struct bench bench = open_bench(true, true);
		struct victims victims = {.step = 50000, .end = MANY * UINT64_C(1000)};

		load(&bench, MANY, 1000);
		real_try = bench.client->services.try_lock_leaf;
		bench.client->services.try_lock_leaf = refuse_some;
		refusals = 300;
		CHECK(remove_together(&bench, &victims, by_keys) == MANY / 50 && refusals == 0);
		CHECK(count_entries(&bench) == MANY - MANY / 50);
		for (unsigned int lock = 0; lock < SMART_LOCK_LEAVES; lock++)
			CHECK(locks.holder[lock] == 0);
		close_bench(&bench);
	}
}

/* ---- wrong arguments ---- */

/* What is asked for wrongly, and nothing at all. */
static void
check_arguments(void)
{
	struct bench bench = open_bench(false, false);
	uint8_t bytes[2][LONGEST];
	struct smart_addition additions[2];
	const uint64_t numbers[2] = {1, 2};

	make_additions(additions, bytes, numbers, 2, ENTRY);
	additions[1].key_length = SMART_KEY_MAX + 1;
	additions[1].length = SMART_KEY_MAX + 1;
	CHECK(smart_tree_insert_many(bench.client->tree, additions, 2) == SMART_TOO_LONG);
	CHECK(smart_tree_insert_many(bench.client->tree, additions, 0) == SMART_OK);
	CHECK(smart_tree_insert_many(bench.client->tree, additions, 1) == SMART_OK && additions[0].added);
	CHECK(count_entries(&bench) == 1);
	close_bench(&bench);
}

/* ---- a cached node that is no more ---- */

/* A loop without end is told from a long one. */
#define QUESTIONS_MAX 1000

static unsigned int questions;

static bool
asks_often(struct smart_env *env)
{
	return ++questions > QUESTIONS_MAX;
}

static void
remove_numbers(struct bench *bench, const uint64_t *numbers, unsigned int count)
{
	uint8_t entry[LONGEST];
	bool removed = false;

	for (unsigned int i = 0; i < count; i++)
	{
		make_entry(entry, numbers[i]);
		CHECK(smart_tree_remove(bench->client->tree, entry, ENTRY, &removed) == SMART_OK && removed);
	}
}

/*
 * DIVIDE: the tree's only leaf is full, and the cache knows a node above that is gone, whose slot led to a leaf in the same
 * place.  Narrowed, the leaf would be pending with no node to put the rest in: no insert of a key above would ever end.
 */
static void
check_roots_leaf(void)
{
	struct bench bench = open_bench(true, false);
	struct smart_services *services = &bench.client->services;
	uint64_t words[SMART_NODE_WORDS_MAX] = {0};
	uint64_t numbers[100];
	smart_slot node = 0;
	smart_slot leaf = 0;
	uint64_t moment;

	/* More than a leaf has room for, with first bytes of their own: a node at the root. */
	for (unsigned int i = 0; i < 100; i++)
		numbers[i] = (uint64_t) (2 * i) << 56;
	CHECK(add(&bench, numbers, 100, ENTRY) == 100 && is_there(&bench, 0, ENTRY));
	CHECK(services->cache_find(services, bench.options.id, 0, &node, &moment) && smart_slot_is_node(node));
	CHECK(services->cache_find(services, bench.options.id, node, words, &moment));
	/* A leaf again, with room for few more. */
	remove_numbers(&bench, numbers, 100);
	CHECK(add(&bench, numbers, 30, ENTRY) == 30 && is_there(&bench, 0, ENTRY));
	CHECK(services->cache_find(services, bench.options.id, 0, &leaf, &moment) && smart_slot_is_leaf(leaf));
	memset(words + SMART_NODE_HEAD_WORDS, 0, sizeof(words) - SMART_NODE_HEAD_WORDS * sizeof(words[0]));
	words[SMART_NODE_HEAD_WORDS] = leaf;
	services->cache_store(services, bench.options.id, node, words, 0);
	services->cache_store(services, bench.options.id, 0, &node, 0);
	bench.client->client->thread.env.interrupted = asks_often;
	CHECK(add(&bench, numbers, 100, ENTRY) == 70);
	CHECK(questions <= QUESTIONS_MAX);
	for (unsigned int i = 0; i < 100; i++)
		CHECK(is_there(&bench, numbers[i], ENTRY));
	close_bench(&bench);
}

/* ---- values ---- */

/* Leaves with values give way together, too; what is changed in the same round has its new value in the parts. */
static void
check_values(void)
{
	static struct smart_addition additions[MANY];
	static uint8_t bytes[MANY][LONGEST];
	struct bench bench = open_bench(true, false);
	uint64_t before = 0;

	tree_client_close(bench.client);
	bench.options.fixed_length = 8;
	bench.options.value = true;
	bench.client = tree_client_open(bench.node, &bench.options, true, 2);
	for (uint64_t round = 0; round < 3; round++)
	{
		unsigned int count = 4000u << round;
		unsigned int added = 0;

		for (unsigned int i = 0; i < count; i++)
		{
			uint64_t value = i + round;

			make_entry(bytes[i], (uint64_t) i << (42 - round));
			memcpy(bytes[i] + 8, &value, sizeof(value));
			additions[i] = (struct smart_addition){.bytes = bytes[i], .key_length = 8, .length = 16};
		}
		before = trips(&bench);
		CHECK(smart_tree_upsert_many(bench.client->tree, additions, count) == SMART_OK);
		for (unsigned int i = 0; i < count; i++)
			added += additions[i].added;
		CHECK(added == (round == 0 ? count : count / 2));
		printf("%u keys with values: %u round trips\n", count, (unsigned int) (trips(&bench) - before));
		CHECK(trips(&bench) - before < count / 10);
		for (uint64_t i = 0; i < count; i++)
		{
			uint64_t value = 0;
			bool found = false;

			CHECK(smart_tree_get(bench.client->tree, bytes[i], 8, &value, &found) == SMART_OK);
			CHECK(found && value == i + round);
		}
	}
	CHECK(count_entries(&bench) == 16000);
	close_bench(&bench);
}

/* ---- by pointers ---- */

/* Entries of one leaf go in together: each is told whether it was there, and none goes into a leaf of others. */
static void
check_direct(bool fixed)
{
	static uint64_t numbers[MANY];
	uint32_t length = fixed ? ENTRY : 0;
	struct bench bench = {.node = test_node_open(8, 256 << 20)};

	bench.node->compute.leaf_locks = &locks;
	bench.owner = test_client_open(bench.node, 1);
	bench.options = (struct smart_tree_options){.leaf_size = LEAF, .fixed_length = fixed ? ENTRY : 0};
	bench.options.id = test_tree_create(bench.owner, &bench.options.root);
	bench.client = tree_client_open(bench.node, &bench.options, false, 2);
	for (unsigned int i = 0; i < MANY / 2; i++)
		numbers[i] = 2 * i;
	CHECK(add(&bench, numbers, MANY / 2, length) == MANY / 2);
	for (unsigned int i = 0; i < MANY; i++)
		numbers[i] = i;
	CHECK(add(&bench, numbers, MANY, length) == MANY / 2);
	CHECK(add(&bench, numbers, MANY, length) == 0);
	/* Each twice. */
	for (unsigned int i = 0; i < MANY; i++)
		numbers[i] = MANY + i / 2;
	CHECK(add(&bench, numbers, MANY, length) == MANY / 2);
	for (unsigned int i = 0; fixed && i < MANY + MANY / 2; i++)
		CHECK(is_there(&bench, i, ENTRY));
	CHECK(!fixed || !is_there(&bench, MANY + MANY / 2, ENTRY));
	cache = NULL;
	close_bench(&bench);
}

int
main(void)
{
	check_direct(true);
	check_direct(false);
	check_arguments();
	check_round_trips();
	check_divisions();
	check_long_leaf();
	check_locks();
	for (int by_keys = 0; by_keys < 2; by_keys++)
	{
		for (int results = 0; results < 2; results++)
			check_removals(by_keys, results);
	}
	check_removals_locked();
	check_roots_leaf();
	check_values();
	for (int fixed = 0; fixed < 2; fixed++)
	{
		for (int results = 0; results < 2; results++)
		{
			check_growth(fixed, results, true);
			check_growth(fixed, results, false);
		}
	}
	return check_finish();
}

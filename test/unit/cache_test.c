/*
 * cache_test.c
 *	  The ART cache by itself: what it keeps, what has to go, and in which order.
 *
 * Copies are made up: each word tells its key and its place, so that a wrong one
 * shows.  Random choices come from a fixed seed.
 */
#include <stdlib.h>
#include <string.h>

#include "compute/cache/cache.h"
#include "support/cache.h"
#include "support/check.h"

#define TREE        77
#define CANARY      0x5c
#define GUARD       4096
#define SMALL_BYTES ((size_t) 64 << 10)

struct bench
{
	struct smart_cache *cache;
	uint8_t *end; /* of its memory; GUARD bytes of CANARY follow */
};

static struct bench
open_cache(size_t bytes)
{
	size_t size = smart_cache_size(bytes, 2);
	size_t rounded = (size + GUARD + 127) / 128 * 128;
	struct bench bench = {.cache = aligned_alloc(128, rounded)};

	CHECK(bench.cache != NULL && size >= bytes && size < bytes + bytes / 8 + 4096);
	/* Not zeros: an init must not rely on them. */
	memset(bench.cache, CANARY, rounded);
	smart_cache_init(bench.cache, bytes, 2, 42);
	bench.end = (uint8_t *) bench.cache + size;
	return bench;
}

static void
close_cache(struct bench *bench)
{
	bool whole = true;

	for (int i = 0; i < GUARD; i++)
		whole &= bench->end[i] == CANARY;
	CHECK(whole);
	free(bench->cache);
}

static smart_slot
node_slot(unsigned int kind, uint64_t number)
{
	return smart_slot_make_node(0, kind, number * 64 * 64);
}

/* A slot to a leaf in every word, so that a copy names no children. */
static void
make_words(uint64_t *words, uint64_t tree, smart_slot slot)
{
	unsigned int count = SMART_NODE_HEAD_WORDS + smart_kind_slots(smart_slot_size(slot));

	for (unsigned int i = 0; i < count; i++)
		words[i] = SMART_SLOT_LEAF | (slot * 31 + tree * 7 + i * 64);
}

static void
store(struct bench *bench, smart_slot slot)
{
	uint64_t words[SMART_NODE_WORDS_MAX];

	make_words(words, TREE, slot);
	test_cache_store(bench->cache, 0, TREE, slot, words);
}

/* Is it there?  If so, with the right words and nothing behind them. */
static bool
find(struct bench *bench, uint64_t tree, smart_slot slot)
{
	uint64_t expected[SMART_NODE_WORDS_MAX];
	uint64_t words[SMART_NODE_WORDS_MAX + 1];
	unsigned int count = SMART_NODE_HEAD_WORDS + smart_kind_slots(smart_slot_size(slot));
	bool found;

	memset(words, CANARY, sizeof(words));
	found = test_cache_find(bench->cache, 1, tree, slot, words);
	if (!found)
		return false;
	make_words(expected, tree, slot);
	CHECK(memcmp(words, expected, count * sizeof(uint64_t)) == 0);
	CHECK(((uint8_t *) &words[count])[0] == CANARY);
	return true;
}

static struct smart_cache_stat
stat_of(const struct bench *bench)
{
	struct smart_cache_stat stat;

	smart_cache_stat(bench->cache, &stat);
	return stat;
}

static uint64_t
bytes_in_use(const struct smart_cache_stat *stat)
{
	uint64_t bytes = 0;

	for (unsigned int kind = 1; kind <= SMART_NODE_KINDS; kind++)
		bytes += stat->bytes[kind];
	return bytes;
}

/* ---- single copies ---- */

static void
check_kinds(size_t bytes)
{
	struct bench bench = open_cache(bytes);
	struct smart_cache_stat stat;

	for (unsigned int kind = 1; kind <= SMART_NODE_KINDS; kind++)
	{
		smart_slot slot = node_slot(kind, kind);

		CHECK(!find(&bench, TREE, slot));
		store(&bench, slot);
		CHECK(find(&bench, TREE, slot));
		/* The same address under another kind, and another tree: other copies. */
		CHECK(!find(&bench, TREE, node_slot(kind % SMART_NODE_KINDS + 1, kind)));
		CHECK(!find(&bench, TREE + 1, slot));
		CHECK(stat_of(&bench).frames[kind] == 1);
	}
	for (unsigned int kind = 1; kind <= SMART_NODE_KINDS; kind++)
		CHECK(find(&bench, TREE, node_slot(kind, kind)));
	test_cache_drop(bench.cache, 0, TREE, node_slot(3, 3));
	CHECK(!find(&bench, TREE, node_slot(3, 3)) && find(&bench, TREE, node_slot(4, 4)));
	test_cache_drop(bench.cache, 0, TREE, node_slot(3, 3));
	stat = stat_of(&bench);
	CHECK(stat.counters.drops == 1 && stat.frames[3] == 0 && stat.frames[4] == 1 && stat.counters.stores == 6 &&
		  stat.counters.evictions == 0);
	CHECK(stat.counters.hits == 13 && stat.counters.misses == 19 && stat.counters.skips == 0);
	close_cache(&bench);
}

/* Partial key and flag of a slot do not tell nodes apart; root words are by tree. */
static void
check_keys(void)
{
	struct bench bench = open_cache(SMALL_BYTES);
	smart_slot slot = node_slot(2, 9);
	uint64_t words[SMART_NODE_WORDS_MAX];
	uint64_t root = node_slot(6, 5);

	store(&bench, slot);
	CHECK(test_cache_find(bench.cache, 0, TREE, smart_slot_with_pk(slot, 200), words));
	CHECK(test_cache_find(bench.cache, 0, TREE, slot | SMART_SLOT_FROZEN, words));
	CHECK(!test_cache_find(bench.cache, 0, TREE, 0, words));
	for (uint64_t tree = 1; tree <= 20; tree++)
	{
		root = node_slot(6, tree);
		test_cache_store(bench.cache, 0, tree, 0, &root);
	}
	for (uint64_t tree = 1; tree <= 20; tree++)
		CHECK(test_cache_find(bench.cache, 0, tree, 0, words) && words[0] == node_slot(6, tree));
	root = node_slot(5, 1);
	test_cache_store(bench.cache, 0, 3, 0, &root);
	CHECK(test_cache_find(bench.cache, 0, 3, 0, words) && words[0] == root);
	test_cache_drop(bench.cache, 0, 3, 0);
	CHECK(!test_cache_find(bench.cache, 0, 3, 0, words) && test_cache_find(bench.cache, 0, 4, 0, words));
	close_cache(&bench);
}

static void
check_update(void)
{
	struct bench bench = open_cache(SMALL_BYTES);
	smart_slot slot = node_slot(4, 9);
	uint64_t words[SMART_NODE_WORDS_MAX];
	uint64_t expected[SMART_NODE_WORDS_MAX];

	make_words(expected, TREE, slot);
	store(&bench, slot);
	test_cache_update(bench.cache, 0, TREE, slot, 5, expected[5], 640);
	CHECK(test_cache_find(bench.cache, 0, TREE, slot, words) && words[5] == 640);
	words[5] = expected[5];
	CHECK(memcmp(words, expected, 64 * sizeof(uint64_t)) == 0);
	/* What is there already is no news. */
	test_cache_update(bench.cache, 0, TREE, slot, 5, expected[5], 640);
	CHECK(test_cache_find(bench.cache, 0, TREE, slot, words) && words[5] == 640);
	/* A copy that missed a change goes. */
	test_cache_update(bench.cache, 0, TREE, slot, 5, 704, 768);
	CHECK(!test_cache_find(bench.cache, 0, TREE, slot, words));
	test_cache_update(bench.cache, 0, TREE, slot, 5, 704, 768);
	CHECK(stat_of(&bench).counters.updates == 1 && stat_of(&bench).counters.drops == 1);
	close_cache(&bench);
}

/* Of a node of 62 slots only those in use are kept; it goes over to longer frames as it fills up.  A small cache packs them. */
static void
check_short(size_t cache_bytes, bool packs)
{
	struct bench bench = open_cache(cache_bytes);
	smart_slot slot = node_slot(4, 9);
	uint64_t expected[SMART_NODE_WORDS_MAX] = {0};
	uint64_t words[SMART_NODE_WORDS_MAX];
	uint64_t bytes;

	make_words(words, TREE, slot);
	memcpy(expected, words, (SMART_NODE_HEAD_WORDS + 2) * sizeof(uint64_t));
	test_cache_store(bench.cache, 0, TREE, slot, expected);
	bytes = stat_of(&bench).bytes[4];
	CHECK(bytes > 0 && bytes <= 7 * sizeof(uint64_t));
	for (unsigned int i = SMART_NODE_HEAD_WORDS + 2; i < 64; i++)
	{
		expected[i] = words[i];
		test_cache_update(bench.cache, 0, TREE, slot, i, 0, expected[i]);
		memset(words, CANARY, sizeof(words));
		CHECK(test_cache_find(bench.cache, 0, TREE, slot, words) && memcmp(words, expected, 64 * 8) == 0);
		make_words(words, TREE, slot);
		CHECK(stat_of(&bench).bytes[4] >= bytes && stat_of(&bench).frames[4] == 1);
		bytes = stat_of(&bench).bytes[4];
	}
	CHECK((bytes < 64 * sizeof(uint64_t)) == packs && stat_of(&bench).counters.updates == 60);
	close_cache(&bench);
}

/* A slot that a short copy does not have counts as unused: another change of it shows that the copy has missed one. */
static void
check_short_stale(void)
{
	struct bench bench = open_cache(SMALL_BYTES);
	smart_slot slot = node_slot(4, 9);
	uint64_t words[SMART_NODE_WORDS_MAX] = {1, 2, 640, 704};

	test_cache_store(bench.cache, 0, TREE, slot, words);
	test_cache_update(bench.cache, 0, TREE, slot, 40, 768, 832);
	CHECK(!test_cache_find(bench.cache, 0, TREE, slot, words) && stat_of(&bench).counters.drops == 1);
	close_cache(&bench);
}

/* ---- room ---- */

static void
check_full(size_t bytes, unsigned int kind)
{
	struct bench bench = open_cache(bytes);
	uint64_t count = 4 * bytes / smart_kind_bytes(kind);
	struct smart_cache_stat stat;
	uint64_t there = 0;

	for (uint64_t i = 1; i <= count; i++)
	{
		store(&bench, node_slot(kind, i));
		CHECK(find(&bench, TREE, node_slot(kind, i)));
	}
	for (uint64_t i = 1; i <= count; i++)
		there += find(&bench, TREE, node_slot(kind, i));
	stat = stat_of(&bench);
	CHECK(there == stat.frames[kind] && stat.counters.evictions == count - there && stat.counters.stores == count);
	/* Nothing is lost between the frames but the ends of spans, which are wide for the longest kind in a small cache. */
	CHECK(bytes_in_use(&stat) <= stat.size && bytes_in_use(&stat) >= stat.size / 2);
	CHECK(kind > 4 || bytes_in_use(&stat) >= stat.size * 7 / 8);
	for (uint64_t i = 1; i <= count; i++)
		test_cache_drop(bench.cache, 0, TREE, node_slot(kind, i));
	stat = stat_of(&bench);
	CHECK(stat.frames[kind] == 0 && bytes_in_use(&stat) == 0 && stat.counters.drops == there);
	close_cache(&bench);
}

/* A large cache packs from when it is full. */
static void
check_full_packs(void)
{
	struct bench bench = open_cache((size_t) 2 << 20);
	uint64_t count = 0;
	struct smart_cache_stat stat;

	while (stat_of(&bench).counters.evictions == 0)
		store(&bench, node_slot(4, ++count));
	for (uint64_t i = 1; i <= 8 * count; i++)
	{
		store(&bench, node_slot(4, count + i));
		CHECK(find(&bench, TREE, node_slot(4, count + i)));
	}
	stat = stat_of(&bench);
	CHECK(stat.frames[4] > count);
	close_cache(&bench);
}

/* What does not get short enough for a small cache's spans is not kept, nor what was there before. */
static void
check_long(void)
{
	struct bench bench = open_cache(SMALL_BYTES);
	smart_slot slot = node_slot(SMART_NODE_256, 7);
	uint64_t words[SMART_NODE_WORDS_MAX];
	uint64_t state = 1;

	store(&bench, slot);
	CHECK(find(&bench, TREE, slot));
	for (unsigned int i = 0; i < SMART_NODE_WORDS_MAX; i++)
		words[i] = (state = state * UINT64_C(6364136223846793005) + 1) | UINT64_C(0xff00ff0000000001);
	test_cache_store(bench.cache, 0, TREE, slot, words);
	CHECK(!find(&bench, TREE, slot) && stat_of(&bench).frames[SMART_NODE_256] == 0);
	store(&bench, slot);
	CHECK(find(&bench, TREE, slot));
	close_cache(&bench);
}

/* What is used stays, however much passes through. */
static void
check_second_chance(void)
{
	struct bench bench = open_cache((size_t) 1 << 20);
	uint64_t capacity = stat_of(&bench).size / 96;
	uint64_t used = capacity / 4;
	uint64_t lost = 0;

	for (uint64_t i = 1; i <= used; i++)
		store(&bench, node_slot(1, i));
	for (uint64_t i = 0; i < 6 * capacity; i++)
	{
		smart_slot slot = node_slot(1, 1 + i % used);

		if (!find(&bench, TREE, slot))
		{
			lost++;
			store(&bench, slot);
		}
		store(&bench, node_slot(1, 1000000 + i));
	}
	CHECK(stat_of(&bench).counters.evictions > 4 * capacity);
	/* By chance alone it would be more than one in five. */
	CHECK(lost < 6 * capacity / 16);
	close_cache(&bench);
}

#define FAMILIES 400

/* A node, and one of the children that it names. */
static void
store_family(struct bench *bench, uint64_t family)
{
	uint64_t words[SMART_NODE_WORDS_MAX] = {0};

	for (uint64_t child = 0; child < 4; child++)
		words[SMART_NODE_HEAD_WORDS + child] = node_slot(1, 1000 * family + child);
	test_cache_store(bench->cache, 0, TREE, node_slot(1, family), words);
	store(bench, node_slot(1, 1000 * family));
}

static unsigned int
parents_there(struct bench *bench)
{
	uint64_t words[SMART_NODE_WORDS_MAX];
	unsigned int parents = 0;

	for (uint64_t family = 1; family <= FAMILIES; family++)
		parents += test_cache_find(bench->cache, 0, TREE, node_slot(1, family), words);
	return parents;
}

/* A node with a child in the cache stays, though only the child is asked for. */
static void
check_paths(void)
{
	struct bench bench = open_cache((size_t) 256 << 10);
	unsigned int lost = 0;
	unsigned int children = 0;

	for (uint64_t family = 1; family <= FAMILIES; family++)
		store_family(&bench, family);
	for (uint64_t i = 0; i < 50000; i++)
	{
		uint64_t family = 1 + i % FAMILIES;

		store(&bench, node_slot(1, 1000000 + i));
		if (find(&bench, TREE, node_slot(1, 1000 * family)))
			continue;
		lost++;
		store_family(&bench, family);
	}
	CHECK(stat_of(&bench).counters.evictions > 40000 && lost < 5000);
	for (uint64_t family = 1; family <= FAMILIES; family++)
		children += find(&bench, TREE, node_slot(1, 1000 * family));
	CHECK(children > FAMILIES * 9 / 10 && parents_there(&bench) >= children);
	/* Without their children they go like anything else. */
	for (uint64_t family = 1; family <= FAMILIES; family++)
		test_cache_drop(bench.cache, 0, TREE, node_slot(1, 1000 * family));
	for (uint64_t i = 0; i < 50000; i++)
		store(&bench, node_slot(1, 2000000 + i));
	CHECK(parents_there(&bench) < FAMILIES / 10);
	close_cache(&bench);
}

/* The working set becomes one of another kind: room follows, and back again. */
static void
check_shifts(size_t bytes)
{
	struct bench bench = open_cache(bytes);

	for (unsigned int round = 0; round < 2 * SMART_NODE_KINDS; round++)
	{
		unsigned int kind = 1 + round * 5 % SMART_NODE_KINDS;
		/* A third of the room: in a small cache a span has room for but one frame of the longest kind. */
		uint64_t count = bytes / (smart_kind_bytes(kind) + 64) / 3;
		struct smart_cache_stat stat;
		uint64_t there = 0;

		for (uint64_t i = 0; i < 30 * count; i++)
		{
			smart_slot slot = node_slot(kind, 1 + 10000 * round + i % count);

			if (!find(&bench, TREE, slot))
				store(&bench, slot);
		}
		for (uint64_t i = 0; i < count; i++)
			there += find(&bench, TREE, node_slot(kind, 1 + 10000 * round + i));
		CHECK(there >= count * 9 / 10);
		stat = stat_of(&bench);
		CHECK(bytes_in_use(&stat) <= stat.size);
	}
	CHECK(stat_of(&bench).counters.moves > 0);
	close_cache(&bench);
}

/* Several partitions: as one. */
static void
check_large(void)
{
	struct bench bench = open_cache((size_t) 32 << 20);
	uint64_t there = 0;
	struct smart_cache_stat stat;

	for (uint64_t i = 1; i <= 100000; i++)
		store(&bench, node_slot(1 + i % 3, i));
	for (uint64_t i = 1; i <= 100000; i++)
		there += find(&bench, TREE, node_slot(1 + i % 3, i));
	stat = stat_of(&bench);
	CHECK(there == 100000 && stat.counters.evictions == 0);
	CHECK(stat.frames[1] + stat.frames[2] + stat.frames[3] == 100000);
	close_cache(&bench);
}

/* Large nodes are wanted as long as there is room, and then now and then. */
static void
check_wants(void)
{
	const uint64_t questions = 16000;
	struct bench bench = open_cache(SMALL_BYTES);
	uint64_t wanted = 0;

	CHECK(test_cache_wants(bench.cache, 0, TREE, node_slot(SMART_NODE_256, 1)));
	for (uint64_t i = 1; stat_of(&bench).counters.evictions == 0; i++)
		store(&bench, node_slot(1, i));
	CHECK(stat_of(&bench).counters.parts == 0);
	for (uint64_t i = 0; i < questions; i++)
		wanted += test_cache_wants(bench.cache, 0, TREE, node_slot(SMART_NODE_256, 1));
	CHECK(wanted > questions / 20 && wanted < questions / 13);
	CHECK(stat_of(&bench).counters.parts == questions - wanted);
	close_cache(&bench);
}

int
main(void)
{
	check_kinds(SMALL_BYTES);
	check_kinds((size_t) 16 << 20);
	check_keys();
	check_update();
	check_short(SMALL_BYTES, true);
	check_short((size_t) 16 << 20, false);
	check_full_packs();
	check_long();
	check_short_stale();
	for (unsigned int kind = 1; kind <= SMART_NODE_KINDS; kind++)
	{
		check_full(SMALL_BYTES, kind);
		check_full((size_t) 1 << 20, kind);
	}
	check_full(SMART_CACHE_BYTES_MIN, 1);
	check_second_chance();
	check_paths();
	check_shifts((size_t) 256 << 10);
	check_shifts((size_t) 2 << 20);
	check_large();
	check_wants();
	return check_finish();
}

/*
 * cache_hints_test.c
 *	  Leaf hints in the cache: what is kept, how little room it takes, what a
 *	  block takes away, and what has to go for it.
 */
#include "support/cache.h"

#define TREE        77
#define SMALL_BYTES ((size_t) 64 << 10)

static smart_slot
leaf(unsigned int number)
{
	return smart_slot_make_leaf(number & 0xff, 8, (uint64_t) (number + 1) * 8 * SMART_UNIT);
}

/* Of a leaf, by its number; some know their greatest key. */
static struct smart_leaf_hint
make_hint(unsigned int number)
{
	struct smart_leaf_hint hint = {.identity = number * UINT64_C(0x9e3779b97f4a7c15),
								   .meta = ~(uint64_t) number,
								   .prefix_length = (uint16_t) (SMART_KEY_MAX - number % 5),
								   .greatest_length = (uint8_t) (number % 9)};

	memset(hint.greatest, (int) (number & 0xff), hint.greatest_length);
	return hint;
}

static uint64_t
change(struct smart_cache *cache, unsigned int number)
{
	struct smart_blocked blocked = test_cache_block_hint(cache, 0, leaf(number));

	return test_cache_unblock(cache, &blocked);
}

/* The client that changed the leaf last keeps its leaf hint. */
static void
keep(struct smart_cache *cache, unsigned int number)
{
	struct smart_leaf_hint hint = make_hint(number);
	uint64_t ticket = change(cache, number);

	CHECK(ticket != 0);
	test_cache_keep_hint(cache, 0, leaf(number), &hint, ticket, false);
}

static bool
is_kept(struct smart_cache *cache, unsigned int number)
{
	struct smart_leaf_hint expected = make_hint(number);
	struct smart_leaf_hint hint;

	/* Whatever partial key and flag lead to it. */
	if (!test_cache_hint(cache, 1, smart_slot_with_pk(leaf(number), 7) | SMART_SLOT_FROZEN, &hint))
		return false;
	CHECK(hint.identity == expected.identity && hint.meta == expected.meta);
	CHECK(hint.prefix_length == expected.prefix_length && hint.greatest_length == expected.greatest_length);
	CHECK(memcmp(hint.greatest, expected.greatest, expected.greatest_length) == 0);
	return true;
}

static void
check_keep(void)
{
	struct smart_cache *cache = test_cache_open(SMALL_BYTES);
	struct smart_leaf_hint hint = make_hint(3);

	for (unsigned int i = 0; i < 100; i++)
	{
		CHECK(!is_kept(cache, i));
		keep(cache, i);
		CHECK(is_kept(cache, i));
	}
	/* Another length at the same place is another leaf. */
	CHECK(!test_cache_hint(cache, 0, smart_slot_make_leaf(0, 7, smart_slot_address(leaf(3))), &hint));
	CHECK(test_cache_stat(cache).hints == 100 && test_cache_stat(cache).counters.hint_stores == 100 &&
		  test_cache_stat(cache).counters.hint_blocks == 100);
	CHECK(test_cache_stat(cache).counters.hint_hits == 100 && test_cache_stat(cache).counters.hint_misses == 101 &&
		  test_cache_stat(cache).results == 0);
	/* A leaf hint takes 40 bytes, or 48 with the greatest key's. */
	CHECK(test_cache_stat(cache).hint_bytes == 12 * 40 + 88 * 48);
	free(cache);
}

/* From block to unblock there is none, and none is kept with a ticket of before. */
static void
check_block(void)
{
	struct smart_cache *cache = test_cache_open(SMALL_BYTES);
	struct smart_leaf_hint hint = make_hint(9);
	struct smart_blocked first;
	struct smart_blocked last;
	uint64_t ticket;

	keep(cache, 9);
	ticket = change(cache, 9);
	CHECK(!is_kept(cache, 9) && test_cache_stat(cache).counters.hint_drops == 1);
	first = test_cache_block_hint(cache, 0, leaf(9));
	test_cache_keep_hint(cache, 1, leaf(9), &hint, ticket, true);
	CHECK(!is_kept(cache, 9) && test_cache_stat(cache).counters.result_refusals == 1);
	last = test_cache_block_hint(cache, 1, leaf(9));
	CHECK(test_cache_unblock(cache, &first) == 0 && test_cache_unblock(cache, &last) == 0);
	test_cache_keep_hint(cache, 1, leaf(9), &hint, ticket, true);
	CHECK(!is_kept(cache, 9));
	keep(cache, 9);
	CHECK(is_kept(cache, 9));
	free(cache);
}

/* Another client has the lock all the time: a block does without, and takes all leaf hints of its version away. */
static void
check_void(void)
{
	struct smart_cache *cache = test_cache_open(SMART_CACHE_BYTES_MIN);
	struct cache_part part = cache_part_of(cache, 0, 0, leaf(0));
	unsigned int there = 0;

	for (unsigned int i = 0; i < 64; i++)
		keep(cache, i);
	CHECK(cache->partitions == 1 && cache_try_lock(&part));
	change(cache, 9);
	cache_unlock(&part);
	CHECK(test_cache_stat(cache).counters.voids == 1 && !is_kept(cache, 9));
	for (unsigned int i = 0; i < 64; i++)
		there += is_kept(cache, i);
	/* There are sixteen versions. */
	CHECK(there >= 32 && there < 64);
	free(cache);
}

/* Nodes that are used stay, whatever leaf hints pass through; leaf hints that are used come to have the rest. */
static void
check_room(void)
{
	struct smart_cache *cache = test_cache_open((size_t) 512 << 10);
	unsigned int hot = (unsigned int) (test_cache_stat(cache).size / 4 / 48);
	uint64_t words[SMART_NODE_WORDS_MAX] = {0};
	unsigned int nodes_lost = 0;
	unsigned int kept = 0;
	struct smart_cache_stat stat;

	for (unsigned int i = 0; i < 200000; i++)
	{
		smart_slot node = smart_slot_make_node(0, 3, (uint64_t) (i % 200 + 1) * SMART_UNIT);

		if (!test_cache_find(cache, 0, TREE, node, words))
		{
			nodes_lost += i >= 200;
			test_cache_store(cache, 0, TREE, node, words);
		}
		if (!is_kept(cache, i % hot))
			keep(cache, i % hot);
		if (!is_kept(cache, 1000000 + i))
			keep(cache, 1000000 + i);
	}
	for (unsigned int i = 0; i < hot; i++)
		kept += is_kept(cache, i);
	stat = test_cache_stat(cache);
	CHECK(nodes_lost < 200000 / 20 && kept > hot / 2);
	CHECK(stat.hints > hot && stat.hint_bytes + stat.bytes[3] <= stat.size);
	CHECK(stat.hint_bytes + stat.bytes[3] > stat.size * 7 / 8);
	free(cache);
}

/* A node finds room soon, although the cache is full of leaf hints that are all used; they have the rest. */
static void
check_nodes_first(void)
{
	struct smart_cache *cache = test_cache_open((size_t) 512 << 10);
	unsigned int all = (unsigned int) (test_cache_stat(cache).size / 48);
	uint64_t words[SMART_NODE_WORDS_MAX] = {0};
	unsigned int lost = 0;

	for (unsigned int i = 0; i < all; i++)
	{
		keep(cache, i);
		is_kept(cache, i);
	}
	for (unsigned int i = 0; i < 12 * 128; i++)
	{
		smart_slot node = smart_slot_make_node(0, 5, (uint64_t) (i % 128 + 1) * 16 * SMART_UNIT);

		if (!test_cache_find(cache, 0, TREE, node, words))
		{
			lost += i >= 128;
			test_cache_store(cache, 0, TREE, node, words);
		}
		is_kept(cache, i * 31 % all);
	}
	CHECK(lost < 3 * 128 && test_cache_stat(cache).frames[5] > 128 * 7 / 8);
	CHECK(test_cache_stat(cache).hint_bytes + test_cache_stat(cache).bytes[5] > test_cache_stat(cache).size * 7 / 8);
	free(cache);
}

int
main(void)
{
	check_keep();
	check_block();
	check_void();
	check_room();
	check_nodes_first();
	return check_finish();
}

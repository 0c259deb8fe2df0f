/*
 * cache_pack_test.c
 *	  Packed nodes: whatever the words are, unpacking gives the same ones, and what leads to near blocks gets short.
 */
#include <string.h>

#include "base/bytes.h"
#include "compute/cache/pack.h"
#include "support/check.h"
#include "support/env_thread.h"

#define ROUNDS 20000
#define CANARY UINT64_C(0x5c5c5c5c5c5c5c5c)

static uint64_t state = 88172645463325252u;

/* Packs and unpacks a node of this kind; how many words it took. */
static unsigned int
there_and_back(unsigned int kind, const uint64_t *words)
{
	unsigned int slots = smart_kind_slots(kind);
	uint64_t packed[CACHE_PACKED_MAX + 1];
	uint64_t back[SMART_NODE_WORDS_MAX + 1];
	unsigned int count;

	for (unsigned int i = 0; i <= CACHE_PACKED_MAX; i++)
		packed[i] = CANARY;
	back[SMART_NODE_HEAD_WORDS + slots] = CANARY;
	count = cache_pack(words, slots, packed);
	CHECK(count >= CACHE_PACKED_HEAD && count <= CACHE_PACKED_HEAD + slots && packed[count] == CANARY);
	/* What stands behind is of another copy. */
	memset(packed + count, 0xa5, (CACHE_PACKED_MAX - count) * sizeof(uint64_t));
	cache_unpack(packed, slots, back);
	CHECK(memcmp(words, back, (SMART_NODE_HEAD_WORDS + slots) * sizeof(uint64_t)) == 0);
	CHECK(back[SMART_NODE_HEAD_WORDS + slots] == CANARY);
	return count;
}

/* A word with some of its bits. */
static uint64_t
some_word(void)
{
	uint64_t word = test_random(&state);

	if (test_random(&state) % 4 == 0)
		word &= test_random(&state);
	return test_random(&state) % 8 == 0 ? 0 : word << test_random(&state) % 64;
}

static void
check_any_words(void)
{
	for (unsigned int round = 0; round < ROUNDS; round++)
	{
		unsigned int kind = 1 + round % SMART_NODE_KINDS;
		unsigned int used = (unsigned int) (test_random(&state) % (smart_kind_slots(kind) + 1));
		uint64_t words[SMART_NODE_WORDS_MAX] = {0};

		for (unsigned int i = 0; i < SMART_NODE_HEAD_WORDS + used; i++)
			words[i] = some_word();
		there_and_back(kind, words);
	}
}

static smart_slot
some_slot(unsigned int pk, uint64_t reach)
{
	fabric_address address = (test_random(&state) % reach * SMART_UNIT + reach * SMART_UNIT) | test_random(&state) % 2
																								   << FABRIC_NODE_SHIFT;

	switch (test_random(&state) % 4)
	{
		case 0:
			return smart_slot_make_node(pk, 1 + (unsigned int) (test_random(&state) % SMART_NODE_KINDS), address);
		case 1:
			return smart_slot_make_empty(pk, pk + (unsigned int) (test_random(&state) % (256 - pk)));
		default:
			return smart_slot_make_leaf(pk, 1 + (unsigned int) (test_random(&state) % 8), address);
	}
}

/* Slots as they are: near or far, in order or not, frozen now and then. */
static void
check_slots(void)
{
	for (unsigned int round = 0; round < ROUNDS; round++)
	{
		unsigned int kind = 1 + round % SMART_NODE_KINDS;
		unsigned int slots = smart_kind_slots(kind);
		unsigned int used = 1 + (unsigned int) (test_random(&state) % slots);
		uint64_t reach = UINT64_C(1) << test_random(&state) % 34;
		uint64_t words[SMART_NODE_WORDS_MAX] = {test_random(&state), test_random(&state)};

		for (unsigned int i = 0; i < used; i++)
		{
			unsigned int pk = (unsigned int) (test_random(&state) % 256);
			unsigned int at = kind == SMART_NODE_256 ? pk : i;

			words[SMART_NODE_HEAD_WORDS + at] = some_slot(pk, reach);
			if (test_random(&state) % 64 == 0)
				words[SMART_NODE_HEAD_WORDS + at] |= SMART_SLOT_FROZEN;
		}
		there_and_back(kind, words);
	}
}

/* A loaded node's leaves: of two lengths, on two memory nodes, within a MB. */
static void
check_short(unsigned int kind, unsigned int used, unsigned int step, unsigned int most)
{
	uint64_t words[SMART_NODE_WORDS_MAX] = {test_random(&state), test_random(&state)};

	for (unsigned int i = 0; i < used; i++)
	{
		unsigned int at = kind == SMART_NODE_256 ? i * step : i;
		fabric_address address = ((UINT64_C(1) << 38) + i * UINT64_C(256)) | (uint64_t) (i % 2) << FABRIC_NODE_SHIFT;

		words[SMART_NODE_HEAD_WORDS + at] = smart_slot_make_leaf(i * step, 3 + i % 2, address);
	}
	CHECK(there_and_back(kind, words) <= most);
}

int
main(void)
{
	check_any_words();
	check_slots();
	check_short(SMART_NODE_6, 4, 3, 5);
	check_short(SMART_NODE_126, 100, 2, 40);
	check_short(SMART_NODE_256, 128, 2, 50);
	check_short(SMART_NODE_256, 256, 1, 100);
	return check_finish();
}

/*
 * cover_test.c
 *	  src/tree/step/cover.h: the search by wide registers against a plain loop.
 */
#include <stdint.h>
#include <string.h>

#include "support/check.h"
#include "tree/step/cover.h"

#define SLOTS  126 /* of the widest kind that is searched */
#define ROUNDS 200

static uint64_t state = 88172645463325252u;

static uint64_t
next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint64_t
plain(const uint64_t *slots, unsigned int count, uint64_t limit)
{
	uint64_t best = 0;

	for (unsigned int i = 0; i < count; i++)
		best = slots[i] <= limit && slots[i] > best ? slots[i] : best;
	return best;
}

static bool
agrees(const uint64_t *slots, unsigned int count, uint64_t limit)
{
	return smart_cover_wide(slots, count, limit) == plain(slots, count, limit) &&
		   smart_cover_each(slots, count, limit) == plain(slots, count, limit);
}

/* Slots of all kinds: any number, unused ones, unused and frozen ones, and numbers beside the limit and the sign bit. */
static uint64_t
any_slot(uint64_t limit)
{
	switch (next() % 6)
	{
		case 0:
			return 0;
		case 1:
			return 1;
		case 2:
			return limit + next() % 3 - 1;
		case 3:
			return (UINT64_C(1) << 63) + next() % 3 - 1;
		default:
			return next();
	}
}

static void
test_against_loop(void)
{
	/* One word in front: pairs need not begin at 16 bytes. */
	uint64_t room[1 + SLOTS] __attribute__((aligned(64)));

	for (unsigned int count = 15; count <= SLOTS; count++)
	{
		bool good = true;

		for (int round = 0; round < ROUNDS; round++)
		{
			uint64_t limit = next() | ((UINT64_C(1) << SMART_SLOT_PK_SHIFT) - 1);
			uint64_t *slots = room + round % 2;

			for (unsigned int i = 0; i < count; i++)
				slots[i] = any_slot(limit);
			good &= agrees(slots, count, limit) && agrees(slots, count, UINT64_MAX) && agrees(slots, count, 0);
		}
		CHECK(good);
	}
}

/* The one slot that counts is found wherever it stands. */
static void
test_each_place(void)
{
	uint64_t slots[SLOTS];

	for (unsigned int count = 15; count <= SLOTS; count++)
	{
		bool good = true;

		for (unsigned int place = 0; place < count; place++)
		{
			memset(slots, 0xff, sizeof(slots));
			slots[place] = UINT64_C(7) << SMART_SLOT_PK_SHIFT;
			good &= smart_cover_scan(slots, count, 7) == slots[place] && smart_cover_scan(slots, count, 6) == 0;
		}
		CHECK(good);
	}
}

int
main(void)
{
	test_against_loop();
	test_each_place();
	return check_finish();
}

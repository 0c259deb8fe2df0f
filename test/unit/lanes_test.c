/*
 * lanes_test.c
 *	  Lanes (tree/lanes.h): whatever the sequence, each key is in one stretch, and the stretches of a lane ascend; what
 *	  processes add in order is in lanes, and what comes in any order is not.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "support/check.h"
#include "support/env_thread.h"
#include "support/must.h"
#include "tree/lanes.h"

#define KEYS     4000
#define ROUNDS   200
#define SHORTEST 32

static uint64_t seed = 88172645463325252u;
static uint64_t keys[KEYS];
static struct smart_lanes lanes;

struct result
{
	bool good;
	uint64_t loose;
	int used; /* lanes */
};

static uint64_t
below(uint64_t limit)
{
	return test_random(&seed) % limit;
}

/* Checks a stretch, and notes what its lane ends with. */
static void
take(struct result *result, const struct smart_stretch *ended, uint64_t *next, uint64_t end[SMART_LANES])
{
	if (ended->count == 0)
		return;
	result->good &= ended->begin == *next && ended->count <= KEYS - *next;
	*next += ended->count;
	if (ended->lane == SMART_LANES_LOOSE)
	{
		result->loose += ended->count;
		return;
	}
	result->good &= ended->lane >= 0 && ended->lane < SMART_LANES && ended->count >= SHORTEST;
	if (ended->lane < result->used)
		result->good &= end[ended->lane] < keys[ended->begin];
	else
		result->good &= ended->lane == result->used++;
	for (uint64_t i = ended->begin + 1; i < *next; i++)
		result->good &= keys[i - 1] < keys[i];
	end[ended->lane] = keys[*next - 1];
}

static struct result
run(uint64_t count)
{
	struct result result = {.good = true};
	struct smart_stretch ended;
	uint64_t end[SMART_LANES];
	uint64_t next = 0;

	smart_lanes_begin(&lanes, SHORTEST);
	for (uint64_t i = 0; i < count; i++)
	{
		uint8_t key[9] = {1};

		(void) smart_put_be64(key + 1, keys[i]);
		if (smart_lanes_add(&lanes, key, sizeof(key), &ended))
		{
			result.good &= ended.count > 0 || i == 0;
			take(&result, &ended, &next, end);
		}
	}
	smart_lanes_finish(&lanes, &ended);
	take(&result, &ended, &next, end);
	result.good &= next == count;
	return result;
}

/* Several writers, each in ascending order within its own range or among the others, in pieces of some keys. */
static void
interleave(int writers, bool apart, uint64_t piece)
{
	uint64_t next[SMART_LANES] = {0};
	int count = 0;

	while (count < KEYS)
	{
		int writer = (int) below((uint64_t) writers);

		for (uint64_t i = 0; i < piece && count < KEYS; i++)
			keys[count++] = apart ? (uint64_t) writer * 2 * KEYS + ++next[writer]
								  : ++next[writer] * (uint64_t) writers + (uint64_t) writer;
	}
}

static void
check_any(void)
{
	bool good = true;

	for (int round = 0; round < ROUNDS; round++)
	{
		uint64_t chaos = 1 + below(200);
		uint64_t key = 0;

		for (int i = 0; i < KEYS; i++)
			keys[i] = key = below(chaos) == 0 ? below(3 * KEYS) : key + below(3);
		good &= run(below(KEYS + 1)).good;
	}
	CHECK(good);
}

int
main(void)
{
	struct result result;

	result = run(0);
	CHECK(result.good && result.used == 0 && result.loose == 0);
	check_any();

	interleave(1, true, 10);
	result = run(KEYS);
	CHECK(result.good && result.used == 1 && result.loose == 0);
	interleave(4, true, 50);
	result = run(KEYS);
	CHECK(result.good && result.used == 4 && result.loose == 0);
	interleave(8, false, 50);
	result = run(KEYS);
	CHECK(result.good && result.used <= SMART_LANES && result.loose < KEYS / 4);

	/* Each stretch lies below the one before: more than there are lanes. */
	for (uint64_t i = 0; i < KEYS; i++)
		keys[i] = (KEYS / 50 - i / 50) * 50 + i % 50;
	result = run(KEYS);
	CHECK(result.good && result.used == SMART_LANES && result.loose == KEYS - SMART_LANES * 50);
	/* Pieces that are not worth a lane; the same key again and again; any order. */
	interleave(4, true, SHORTEST / 8);
	result = run(KEYS);
	CHECK(result.good && result.loose > KEYS / 2);
	memset(keys, 0, sizeof(keys));
	result = run(KEYS);
	CHECK(result.good && result.loose == KEYS);
	for (int i = 0; i < KEYS; i++)
		keys[i] = test_random(&seed);
	result = run(KEYS);
	CHECK(result.good && result.loose == KEYS);
	return check_finish();
}

/*
 * lanes.c
 *	  What of a sequence of keys is in order already, so that it need not be sorted but only merged.
 */
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "tree/lanes.h"

static void
put_key(struct smart_lane_key *to, const uint8_t *key, int length)
{
	smart_assert(length > 0 && length <= SMART_KEY_MAX);
	smart_copy_short(to->bytes, key, (size_t) length);
	to->length = length;
}

static int
compare(const struct smart_lane_key *left, const uint8_t *key, int length)
{
	return smart_compare_bytes(left->bytes, (size_t) left->length, key, (size_t) length);
}

void
smart_lanes_begin(struct smart_lanes *lanes, uint64_t shortest)
{
	smart_assert(shortest > 0);
	lanes->shortest = shortest;
	lanes->number = 0;
	lanes->begin = 0;
	lanes->count = 0;
	lanes->ceiling = SMART_LANES_LOOSE;
}

/* The lane that ends nearest above a key; below 0: there is none. */
static int
find_ceiling(const struct smart_lanes *lanes, const uint8_t *key, int length)
{
	int best = SMART_LANES_LOOSE;

	for (int i = 0; i < lanes->count; i++)
	{
		const struct smart_lane_key *end = &lanes->end[i];

		if (compare(end, key, length) > 0 && (best < 0 || compare(&lanes->end[best], end->bytes, end->length) > 0))
			best = i;
	}
	return best;
}

/* The lane that ends nearest below the current stretch, which leaves the others to lower ones; a new one, or none. */
static int
find_lane(struct smart_lanes *lanes)
{
	const struct smart_lane_key *first = &lanes->first;
	int best = SMART_LANES_LOOSE;

	for (int i = 0; i < lanes->count; i++)
	{
		const struct smart_lane_key *end = &lanes->end[i];

		if (compare(end, first->bytes, first->length) < 0 &&
			(best < 0 || compare(&lanes->end[best], end->bytes, end->length) < 0))
			best = i;
	}
	if (best < 0 && lanes->count < SMART_LANES)
		best = lanes->count++;
	return best;
}

void
smart_lanes_finish(struct smart_lanes *lanes, struct smart_stretch *ended)
{
	*ended =
		(struct smart_stretch){.begin = lanes->begin, .count = lanes->number - lanes->begin, .lane = SMART_LANES_LOOSE};
	if (ended->count >= lanes->shortest)
		ended->lane = find_lane(lanes);
	if (ended->lane >= 0)
		put_key(&lanes->end[ended->lane], lanes->last.bytes, lanes->last.length);
	lanes->begin = lanes->number;
	smart_assert(lanes->count <= SMART_LANES && ended->lane < lanes->count);
}

bool
smart_lanes_add(struct smart_lanes *lanes, const uint8_t *key, int length, struct smart_stretch *ended)
{
	bool begins = lanes->number == 0 || compare(&lanes->last, key, length) >= 0 ||
				  (lanes->ceiling >= 0 && compare(&lanes->end[lanes->ceiling], key, length) < 0);

	if (begins)
	{
		smart_lanes_finish(lanes, ended);
		put_key(&lanes->first, key, length);
		lanes->ceiling = find_ceiling(lanes, key, length);
	}
	put_key(&lanes->last, key, length);
	lanes->number++;
	smart_assert(lanes->begin < lanes->number && lanes->ceiling < lanes->count);
	return begins;
}

/*
 * ranges.c
 *	  Walks the byte ranges that the conditions of a scan select.
 *
 * The points of the leading columns are the digits of a counter whose last
 * digit runs fastest; each state of the counter is one range.
 */
#include "postgres.h"

#include "am/ranges.h"
#include "base/assert.h"
#include "base/bytes.h"

#define ENDS_ROOM 512 /* bytes of the ends of ranges, at first */

/*
 * Appends to a string of the current range.  What goes beyond the longest key
 * is cut: no entry is long enough for it to matter, since no encoding of a
 * column is a prefix of another one.
 */
static inline uint32
append_span(const struct smart_ranges *ranges, uint8 *out, uint32 length, struct smart_span span)
{
	uint32 taken = Min(span.length, SMART_KEY_MAX - length);

	memcpy(out + length, smart_span_bytes(ranges, span), taken);
	return length + taken;
}

/* Closes the prefix with the interval of the column behind the points. */
static void
close_range(struct smart_ranges *ranges)
{
	const struct smart_column_set *set = &ranges->columns[ranges->nprefix];
	uint32 prefix_length = ranges->from_length;

	smart_assert(!set->has_points);
	memcpy(ranges->to, ranges->from, prefix_length);
	ranges->from_length = append_span(ranges, ranges->from, prefix_length, set->low);
	if (set->high.length > 0)
		ranges->to_length = append_span(ranges, ranges->to, prefix_length, set->high);
	else
		ranges->to_length = smart_successor(ranges->to, prefix_length);
}

/* Narrows the range to the wide interval of a column with points, which begins at start in its bounds. */
static void
clip_range(struct smart_ranges *ranges, const struct smart_column_set *set, uint32 start)
{
	uint8 end[SMART_KEY_MAX + 1];
	uint32 length;

	memcpy(end, ranges->from, start);
	length = append_span(ranges, end, start, set->low);
	if (smart_compare_bytes(end, length, ranges->from, ranges->from_length) > 0)
	{
		memcpy(ranges->from, end, length);
		ranges->from_length = length;
	}
	if (set->high.length == 0)
		return;
	length = append_span(ranges, end, start, set->high);
	if (ranges->to_length == 0 || smart_compare_bytes(end, length, ranges->to, ranges->to_length) < 0)
	{
		memcpy(ranges->to, end, length);
		ranges->to_length = length;
	}
}

/* Makes the range of the current points.  False: it is empty. */
static bool
make_range(struct smart_ranges *ranges)
{
	uint32 start[INDEX_MAX_KEYS];
	uint32 length = 0;

	for (int i = 0; i < ranges->nprefix; i++)
	{
		const struct smart_column_set *set = &ranges->columns[i];
		struct smart_span point = ranges->points[set->first + ranges->current[i]];

		smart_assert(ranges->current[i] < set->count);
		if (length + point.length > SMART_COLUMNS_MAX)
			return false; /* no entry is long enough */
		start[i] = length;
		length = append_span(ranges, ranges->from, length, point);
	}
	ranges->from_length = length;
	if (ranges->nprefix < ranges->codec->nkeys)
		close_range(ranges);
	else
	{
		memcpy(ranges->to, ranges->from, length);
		ranges->to_length = smart_successor(ranges->to, length);
	}
	for (int i = 0; i < ranges->nprefix; i++)
	{
		if (ranges->columns[i].wide)
			clip_range(ranges, &ranges->columns[i], start[i]);
	}
	return ranges->to_length == 0 ||
		   smart_compare_bytes(ranges->from, ranges->from_length, ranges->to, ranges->to_length) < 0;
}

/* Moves the counter of points by one.  False: it has been through. */
static bool
step(struct smart_ranges *ranges, bool backward)
{
	for (int i = ranges->nprefix - 1; i >= 0; i--)
	{
		uint32 last = ranges->columns[i].count - 1;

		if (ranges->current[i] != (backward ? 0 : last))
		{
			ranges->current[i] += backward ? -1 : 1;
			return true;
		}
		ranges->current[i] = backward ? last : 0;
	}
	return false;
}

bool
smart_ranges_first(struct smart_ranges *ranges, bool backward)
{
	if (ranges->never)
		return false;
	for (int i = 0; i < ranges->nprefix; i++)
	{
		smart_assert(ranges->columns[i].count > 0);
		ranges->current[i] = backward ? ranges->columns[i].count - 1 : 0;
	}
	return make_range(ranges) || smart_ranges_next(ranges, backward);
}

bool
smart_ranges_next(struct smart_ranges *ranges, bool backward)
{
	while (step(ranges, backward))
	{
		if (make_range(ranges))
			return true;
	}
	return false;
}

void
smart_ranges_go(struct smart_ranges *ranges, const uint32 *position)
{
	memcpy(ranges->current, position, ranges->nprefix * sizeof(uint32));
	if (!make_range(ranges))
		elog(ERROR, "marked position of an index scan is not in any of its ranges");
}

/* ---- ranges to come ---- */

static void
add_end(struct smart_ends *ends, const uint8 *bytes, uint32 length)
{
	uint32 start = ends->start[ends->count];

	if (start + length > ends->room)
	{
		uint32 room = Max(2 * ends->room, start + length + ENDS_ROOM);

		ends->bytes = ends->bytes == NULL ? MemoryContextAlloc(ends->context, room) : repalloc(ends->bytes, room);
		ends->room = room;
	}
	memcpy(ends->bytes + start, bytes, length);
	ends->start[++ends->count] = start + length;
}

void
smart_ranges_ahead(struct smart_ranges *ranges, bool backward, unsigned int most, struct smart_ends *ends)
{
	uint32 current[INDEX_MAX_KEYS];

	smart_assert(most <= SMART_POINTS_MAX);
	memcpy(current, ranges->current, ranges->nprefix * sizeof(uint32));
	ends->count = 0;
	ends->start[0] = 0;
	do
		add_end(ends, backward ? ranges->to : ranges->from, backward ? ranges->to_length : ranges->from_length);
	while (ends->count < most && smart_ranges_next(ranges, backward));
	smart_ranges_go(ranges, current);
}

/* ---- conditions on later columns ---- */

bool
smart_ranges_find_point(const struct smart_ranges *ranges, const struct smart_column_set *set, const uint8 *bytes,
						int length, uint32 *before)
{
	uint32 low = 0;
	uint32 high = set->count;

	while (low < high)
	{
		uint32 middle = low + (high - low) / 2;
		struct smart_span point = ranges->points[set->first + middle];
		int order = smart_compare_bytes(bytes, length, smart_span_bytes(ranges, point), point.length);

		if (order == 0)
			return true;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	*before = low;
	return false;
}

/* bytes: of the column and those behind it. */
static bool
match_interval(const struct smart_ranges *ranges, const struct smart_column_set *set, const uint8 *bytes, int length)
{
	struct smart_span low = set->low;
	struct smart_span high = set->high;

	return smart_compare_bytes(bytes, length, smart_span_bytes(ranges, low), low.length) >= 0 &&
		   (high.length == 0 || smart_compare_bytes(bytes, length, smart_span_bytes(ranges, high), high.length) < 0);
}

bool
smart_ranges_match(const struct smart_ranges *ranges, const uint8 *entry, int length)
{
	const struct smart_codec *codec = ranges->codec;
	int key_length = smart_codec_key_length(codec, entry, length);
	uint32 before;

	smart_assert(ranges->filtered && key_length > SMART_TID_SHORTEST);
	for (int i = ranges->nprefix + 1; i < codec->nkeys; i++)
	{
		const struct smart_column_set *set = &ranges->columns[i];
		int start;
		int end;

		if (!set->constrained)
			continue;
		start = smart_codec_columns_end(codec, entry, key_length, i);
		if (set->has_points)
		{
			end = smart_codec_columns_end(codec, entry, key_length, i + 1);
			if (!smart_ranges_find_point(ranges, set, entry + start, end - start, &before))
				return false;
		}
		if ((set->wide || !set->has_points) && !match_interval(ranges, set, entry + start, key_length - start))
			return false;
	}
	return true;
}

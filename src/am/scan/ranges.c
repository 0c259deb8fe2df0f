/*
 * ranges.c
 *	  Walks the byte ranges that the conditions of a scan select.
 *
 * The points of the leading columns are the digits of a counter whose last digit runs fastest; each state of
 * the counter is one range.
 *
 * Conditions on later columns are checked for each entry, and tell how far a scan may leap.  With a condition
 * on b and none on a, an index on (a, b) has for each value of a one place where entries can be.  An entry with
 * b too small tells that the next one is where b begins, with the same a; one with b too great, that it has
 * another a.  The first column that does not satisfy its condition decides, for any number of columns, and
 * behind a range on a, too.
 */
#include "postgres.h"

#include "am/scan/ranges.h"
#include "base/assert.h"
#include "base/bytes.h"

/*
 * Appends to a string of the current range.  What goes beyond the longest key is cut: no entry is long enough for it to
 * matter, since no encoding of a column is a prefix of another one.
 */
static inline uint32
append_span(const struct smart_ranges *ranges, uint8 *out, uint32 length, struct smart_span span)
{
	uint32 taken = Min(span.length, SMART_KEY_MAX - length);

	smart_assert(length <= SMART_KEY_MAX && (span.length == 0 || span.offset + span.length <= ranges->used));
	memcpy(out + length, smart_span_bytes(ranges, span), taken);
	return length + taken;
}

/* Narrows the range to the wide interval of a column with points, which begins at start in its bounds. */
static void
clip_range(struct smart_ranges *ranges, const struct smart_column_set *set, uint32 start)
{
	uint8 end[SMART_KEY_MAX + 1];
	uint32 length;

	smart_assert(set->wide && set->has_points);
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
	const struct smart_column_set *behind = &ranges->columns[ranges->nprefix];
	uint32 start[INDEX_MAX_KEYS];
	uint32 length = 0;
	struct smart_span high = {0};

	smart_assert(!ranges->never && ranges->nprefix <= ranges->codec->nkeys);
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
	memcpy(ranges->to, ranges->from, length);
	ranges->from_length = length;
	/* The interval of the column behind the points closes the prefix. */
	if (ranges->nprefix < ranges->codec->nkeys)
	{
		smart_assert(!behind->has_points);
		ranges->from_length = append_span(ranges, ranges->from, length, behind->low);
		high = behind->high;
	}
	ranges->to_length =
		high.length > 0 ? append_span(ranges, ranges->to, length, high) : (uint32) smart_successor(ranges->to, length);
	for (int i = 0; i < ranges->nprefix; i++)
	{
		if (ranges->columns[i].wide)
			clip_range(ranges, &ranges->columns[i], start[i]);
	}
	smart_assert(ranges->from_length <= SMART_KEY_MAX && ranges->to_length <= SMART_KEY_MAX);
	return ranges->to_length == 0 ||
		   smart_compare_bytes(ranges->from, ranges->from_length, ranges->to, ranges->to_length) < 0;
}

bool
smart_ranges_are_one_key(const struct smart_ranges *ranges)
{
	bool one = smart_ranges_are_points(ranges);

	for (int i = 0; one && i < ranges->nprefix; i++)
	{
		const struct smart_column_set *set = &ranges->columns[i];

		one = set->count == 1 && smart_span_bytes(ranges, ranges->points[set->first])[0] == SMART_NOT_NULL;
	}
	return one;
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
	for (;;)
	{
		int i;

		/* Moves the counter of points by one. */
		for (i = ranges->nprefix - 1; i >= 0; i--)
		{
			uint32 last = ranges->columns[i].count - 1;

			smart_assert(ranges->current[i] <= last);
			if (ranges->current[i] != (backward ? 0 : last))
			{
				ranges->current[i] += backward ? -1 : 1;
				break;
			}
			ranges->current[i] = backward ? last : 0;
		}
		if (i < 0)
			return false;
		if (make_range(ranges))
			return true;
	}
}

void
smart_ranges_go(struct smart_ranges *ranges, const uint32 *position)
{
	memcpy(ranges->current, position, ranges->nprefix * sizeof(uint32));
	if (!make_range(ranges))
		elog(ERROR, "marked position of an index scan is not in any of its ranges");
}

/* ---- conditions on later columns ---- */

/* What a column would have to be instead. */
enum instead
{
	AS_IT_IS,
	ANOTHER, /* the string that was found */
	NONE     /* with the same columns before it, nothing in this direction will do */
};

/* Is this encoding one of the column's points?  If not, *before says how many of them are less. */
static bool
find_point(const struct smart_ranges *ranges, const struct smart_column_set *set, const uint8 *bytes, int length,
		   uint32 *before)
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
static inline bool
is_below(const struct smart_ranges *ranges, const uint8 *bytes, int length, struct smart_span low)
{
	return smart_compare_bytes(bytes, length, smart_span_bytes(ranges, low), low.length) < 0;
}

static inline bool
is_above(const struct smart_ranges *ranges, const uint8 *bytes, int length, struct smart_span high)
{
	return high.length > 0 && smart_compare_bytes(bytes, length, smart_span_bytes(ranges, high), high.length) >= 0;
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
			if (!find_point(ranges, set, entry + start, end - start, &before))
				return false;
		}
		if ((set->wide || !set->has_points) && (is_below(ranges, entry + start, key_length - start, set->low) ||
												is_above(ranges, entry + start, key_length - start, set->high)))
			return false;
	}
	return true;
}

/*
 * What a column would have to be instead of bytes, which are its own and those of the columns behind it: the next one of
 * its points (backward: the one before), or the end of its interval that lies ahead, that is its first string or,
 * backward, the first one behind it.
 */
static enum instead
find_instead(const struct smart_ranges *ranges, const struct smart_column_set *set, const uint8 *bytes, int width,
			 int length, bool backward, struct smart_span *found, bool *is_point)
{
	uint32 before;
	bool below;

	*is_point = set->has_points && !find_point(ranges, set, bytes, width, &before);
	if (*is_point)
	{
		if (before == (backward ? 0 : set->count))
			return NONE;
		*found = ranges->points[set->first + (backward ? before - 1 : before)];
		return ANOTHER;
	}
	if (set->has_points && !set->wide)
		return AS_IT_IS;
	below = is_below(ranges, bytes, length, set->low);
	if (!below && !is_above(ranges, bytes, length, set->high))
		return AS_IT_IS;
	if (below == backward)
		return NONE;
	*found = backward ? set->high : set->low;
	return ANOTHER;
}

int
smart_ranges_skip(const struct smart_ranges *ranges, const uint8 *entry, int entry_length, bool backward, uint8 *key,
				  uint32 *length)
{
	const struct smart_codec *codec = ranges->codec;
	int key_length = smart_codec_key_length(codec, entry, entry_length);

	smart_assert(ranges->filtered && key_length > SMART_TID_SHORTEST);
	for (int i = ranges->nprefix + 1; i < codec->nkeys; i++)
	{
		const struct smart_column_set *set = &ranges->columns[i];
		struct smart_span found = {0};
		enum instead instead;
		bool is_point;
		int start;
		int width;

		if (!set->constrained)
			continue;
		start = smart_codec_columns_end(codec, entry, key_length, i);
		width = smart_codec_columns_end(codec, entry, key_length, i + 1) - start;
		instead = find_instead(ranges, set, entry + start, width, key_length - start, backward, &found, &is_point);
		if (instead == AS_IT_IS)
			continue;

		/* The columns before, and what this one would have to be. */
		memcpy(key, entry, (Size) start);
		*length = (uint32) start;
		if (instead == ANOTHER)
			*length = append_span(ranges, key, *length, found);
		/* Forward, behind all that begin with the columns before; backward, before all that are behind the point. */
		if (backward ? (instead == ANOTHER && is_point) : instead == NONE)
			*length = (uint32) smart_successor(key, *length);
		return start;
	}
	return -1;
}

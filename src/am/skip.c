/*
 * skip.c
 *	  Over entries that the conditions on later columns rule out.
 *
 * With a condition on b and none on a, an index on (a, b) has for each value of a
 * one place where entries can be.  An entry with b too small tells that the next one
 * is where b begins, with the same a; one with b too great, that it has another a.
 * The first column that does not satisfy its condition decides; so it goes for any
 * number of columns, and behind a range on a, too.
 */
#include "postgres.h"

#include "am/skip.h"
#include "base/assert.h"
#include "base/bytes.h"

/* What a column would have to be instead. */
enum instead
{
	AS_IT_IS,
	ANOTHER, /* the string that was found */
	NONE     /* with the same columns before it, nothing in this direction will do */
};

/* Among points: the first one behind, or the last one before. */
static enum instead
other_point(const struct smart_ranges *ranges, const struct smart_column_set *set, const uint8 *bytes, int length,
			bool backward, struct smart_span *found)
{
	uint32 before;

	if (smart_ranges_find_point(ranges, set, bytes, length, &before))
		return AS_IT_IS;
	if (before == (backward ? 0 : set->count))
		return NONE;
	*found = ranges->points[set->first + (backward ? before - 1 : before)];
	return ANOTHER;
}

/*
 * The end of an interval that lies ahead: its first string, or backward the first one behind it.  bytes: of the
 * column and those behind it.
 */
static enum instead
interval_end(const struct smart_ranges *ranges, const struct smart_column_set *set, const uint8 *bytes, int length,
			 bool backward, struct smart_span *found)
{
	bool below = smart_compare_bytes(bytes, length, smart_span_bytes(ranges, set->low), set->low.length) < 0;
	bool above = set->high.length > 0 &&
				 smart_compare_bytes(bytes, length, smart_span_bytes(ranges, set->high), set->high.length) >= 0;

	if (!below && !above)
		return AS_IT_IS;
	if (below == backward)
		return NONE;
	*found = backward ? set->high : set->low;
	return ANOTHER;
}

/* Puts the string together: the columns before, and what the column would have to be. */
static uint32
make_key(const struct smart_ranges *ranges, enum instead instead, struct smart_span found, bool is_point, bool backward,
		 uint8 *key, uint32 length)
{
	if (instead == ANOTHER)
	{
		uint32 taken = Min(found.length, SMART_KEY_MAX - length);

		memcpy(key + length, smart_span_bytes(ranges, found), taken);
		length += taken;
	}
	/* Forward, behind all that begin with the columns before; backward, before all that are behind the point. */
	if (backward ? (instead == ANOTHER && is_point) : instead == NONE)
		length = (uint32) smart_successor(key, length);
	return length;
}

int
smart_skip(const struct smart_ranges *ranges, const uint8 *entry, int entry_length, bool backward, uint8 *key,
		   uint32 *length)
{
	const struct smart_codec *codec = ranges->codec;
	int key_length = smart_codec_key_length(codec, entry, entry_length);

	for (int i = ranges->nprefix + 1; i < codec->nkeys; i++)
	{
		const struct smart_column_set *set = &ranges->columns[i];
		struct smart_span found = {0};
		enum instead instead = AS_IT_IS;
		bool is_point = set->has_points;
		int start;
		int width;

		if (!set->constrained)
			continue;
		start = smart_codec_columns_end(codec, entry, key_length, i);
		width = smart_codec_columns_end(codec, entry, key_length, i + 1) - start;
		if (set->has_points)
			instead = other_point(ranges, set, entry + start, width, backward, &found);
		if (instead == AS_IT_IS && (set->wide || !set->has_points))
		{
			instead = interval_end(ranges, set, entry + start, key_length - start, backward, &found);
			is_point = false;
		}
		if (instead == AS_IT_IS)
			continue;
		memcpy(key, entry, (Size) start);
		*length = make_key(ranges, instead, found, is_point, backward, key, (uint32) start);
		return start;
	}
	return -1;
}

/*
 * selection.c
 *	  What the conditions selected so far on each column: points and intervals.
 *
 * Nothing here knows a type or an operator: strings are compared.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "am/selection.h"
#include "base/assert.h"
#include "base/bytes.h"
#include "tree/tree.h"

#define BYTES_ROOM  (4 * SMART_COLUMNS_MAX)
#define POINTS_ROOM 16

struct smart_ranges *
smart_ranges_make(const struct smart_codec *codec)
{
	struct smart_ranges *ranges = palloc(sizeof(struct smart_ranges));

	ranges->codec = codec;
	ranges->scratch = AllocSetContextCreate(CurrentMemoryContext, "smart index keys", ALLOCSET_SMALL_SIZES);
	ranges->room = BYTES_ROOM;
	ranges->bytes = palloc(ranges->room);
	ranges->bytes[smart_value_low.offset] = SMART_NOT_NULL;
	ranges->bytes[smart_value_high.offset] = SMART_NOT_NULL + 1;
	ranges->points_room = POINTS_ROOM;
	ranges->points = palloc(ranges->points_room * sizeof(struct smart_span));
	return ranges;
}

/* Makes room for length more bytes and returns where they go. */
uint8 *
smart_selection_reserve(struct smart_ranges *ranges, uint32 length)
{
	Size needed = (Size) ranges->used + length;

	if (needed > ranges->room)
	{
		Size room = Max(needed, 2 * (Size) ranges->room);

		if (room > PG_UINT32_MAX)
			ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
							errmsg("the arrays of an index condition have too many elements")));
		ranges->bytes = repalloc_huge(ranges->bytes, room);
		ranges->room = (uint32) room;
	}
	return ranges->bytes + ranges->used;
}

/* Keeps the length bytes that were written at smart_selection_reserve(). */
struct smart_span
smart_selection_keep(struct smart_ranges *ranges, uint32 length)
{
	struct smart_span span = {.offset = ranges->used, .length = length};

	ranges->used += length;
	smart_assert(ranges->used <= ranges->room);
	return span;
}

/* The first string behind all that begin with this one; encodings begin with a byte below 0xFF, so there is one. */
struct smart_span
smart_selection_successor(struct smart_ranges *ranges, struct smart_span span)
{
	uint8 *out = smart_selection_reserve(ranges, span.length);
	uint32 length;

	memcpy(out, ranges->bytes + span.offset, span.length);
	length = (uint32) smart_successor(out, span.length);
	smart_assert(length > 0);
	return smart_selection_keep(ranges, length);
}

int
smart_selection_compare(const struct smart_ranges *ranges, struct smart_span a, struct smart_span b)
{
	return smart_compare_bytes(ranges->bytes + a.offset, a.length, ranges->bytes + b.offset, b.length);
}

void
smart_selection_add_point(struct smart_ranges *ranges, struct smart_span point)
{
	if (ranges->npoints == ranges->points_room)
	{
		ranges->points = repalloc_huge(ranges->points, 2 * (Size) ranges->points_room * sizeof(struct smart_span));
		ranges->points_room *= 2;
	}
	ranges->points[ranges->npoints++] = point;
}

static int
compare_points(const void *a, const void *b, void *ranges)
{
	return smart_selection_compare(ranges, *(const struct smart_span *) a, *(const struct smart_span *) b);
}

/* Sorts the points from first on and drops doubles. */
void
smart_selection_sort_points(struct smart_ranges *ranges, uint32 first)
{
	struct smart_span *points = ranges->points + first;
	uint32 count = ranges->npoints - first;
	uint32 kept = 0;

	qsort_arg(points, count, sizeof(struct smart_span), compare_points, ranges);
	for (uint32 i = 0; i < count; i++)
	{
		if (kept == 0 || smart_selection_compare(ranges, points[kept - 1], points[i]) != 0)
			points[kept++] = points[i];
	}
	ranges->npoints = first + kept;
}

/* Lets only those points of a column stay that are also among the count ones from other on, which are the last. */
static void
intersect_points(struct smart_ranges *ranges, struct smart_column_set *set, uint32 other)
{
	uint32 kept = 0;
	uint32 mine = 0;
	uint32 theirs = other;

	while (mine < set->count && theirs < ranges->npoints)
	{
		struct smart_span point = ranges->points[set->first + mine];
		int order = smart_selection_compare(ranges, point, ranges->points[theirs]);

		if (order == 0)
			ranges->points[set->first + kept++] = point;
		mine += order <= 0;
		theirs += order >= 0;
	}
	set->count = kept;
	ranges->npoints = other;
}

/* Restricts a column to the points from first on, which are sorted. */
void
smart_selection_restrict_to_points(struct smart_ranges *ranges, int column, uint32 first)
{
	struct smart_column_set *set = &ranges->columns[column];

	set->constrained = true;
	if (set->has_points)
		intersect_points(ranges, set, first);
	else
	{
		set->has_points = true;
		set->first = first;
		set->count = ranges->npoints - first;
	}
	if (set->count == 0)
		ranges->never = true;
}

static void
restrict_to_interval(struct smart_ranges *ranges, int column, const struct smart_choice *choice)
{
	struct smart_column_set *set = &ranges->columns[column];

	set->constrained = true;
	set->wide |= choice->wide;
	if (smart_selection_compare(ranges, choice->low, set->low) > 0)
		set->low = choice->low;
	if (set->high.length == 0 || smart_selection_compare(ranges, choice->high, set->high) < 0)
		set->high = choice->high;
}

void
smart_selection_restrict(struct smart_ranges *ranges, int column, const struct smart_choice *choice)
{
	if (choice->nothing)
		ranges->never = true;
	else if (choice->is_point)
	{
		smart_selection_add_point(ranges, choice->low);
		smart_selection_restrict_to_points(ranges, column, ranges->npoints - 1);
	}
	else
		restrict_to_interval(ranges, column, choice);
}

/* Can an entry have this encoding of a column and lie in its interval, whatever follows? */
static bool
reaches_interval(const struct smart_ranges *ranges, const struct smart_column_set *set, struct smart_span point)
{
	bool begins_low = point.length <= set->low.length &&
					  memcmp(smart_span_bytes(ranges, point), smart_span_bytes(ranges, set->low), point.length) == 0;

	return (begins_low || smart_selection_compare(ranges, point, set->low) >= 0) &&
		   (set->high.length == 0 || smart_selection_compare(ranges, point, set->high) < 0);
}

/* Brings the points of a column and its interval together. */
void
smart_selection_settle(struct smart_ranges *ranges, struct smart_column_set *set)
{
	uint32 kept = 0;

	if (!set->has_points)
	{
		if (set->high.length > 0 && smart_selection_compare(ranges, set->low, set->high) >= 0)
			ranges->never = true;
		return;
	}
	for (uint32 i = 0; i < set->count; i++)
	{
		struct smart_span point = ranges->points[set->first + i];

		if (reaches_interval(ranges, set, point))
			ranges->points[set->first + kept++] = point;
	}
	set->count = kept;
	if (kept == 0)
		ranges->never = true;
}

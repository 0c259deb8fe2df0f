/*
 * scankey.c
 *	  Turns scan keys into what they select on each column: points and intervals.
 *
 * The codec gives one condition's bound as bytes.  Here it becomes an interval or a point, and is intersected
 * with the other conditions on its column; from then on strings are compared, and no type or operator matters.
 *
 * A row comparison selects an interval of several columns.  Entries are ordered by their columns as rows are,
 * so (a, b) > (1, 2) is one end of one interval: behind all entries that begin with 1, 2.  The fields of the
 * row are put one behind the other as long as each of them is a single encoding; the last one has an end like
 * that of any condition.  What cannot be said of the columns behind is left out, and the end is that of all
 * entries which begin with what was said.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

#include "am/codec/encode.h"
#include "am/scan/scankey.h"
#include "base/assert.h"
#include "base/bytes.h"
#include "tree/tree.h"

#define BYTES_ROOM  (4 * SMART_COLUMNS_MAX)
#define POINTS_ROOM 16

/* The strings {SMART_NOT_NULL} and its successor, between which all values lie: the first ones in every set of bytes. */
#define VALUE_LOW  ((struct smart_span){.offset = 0, .length = 1})
#define VALUE_HIGH ((struct smart_span){.offset = 1, .length = 1})

/* What one condition selects on its column. */
struct choice
{
	bool nothing;
	bool is_point;         /* the one encoding low */
	bool wide;             /* the columns behind are in low or high, too */
	struct smart_span low; /* low <= column < high */
	struct smart_span high;
};

struct smart_ranges *
smart_ranges_make(void)
{
	struct smart_ranges *ranges = palloc(sizeof(struct smart_ranges));

	ranges->codec = NULL;
	ranges->scratch = AllocSetContextCreate(CurrentMemoryContext, "smart index keys", ALLOCSET_SMALL_SIZES);
	ranges->room = BYTES_ROOM;
	ranges->bytes = palloc(ranges->room);
	ranges->bytes[VALUE_LOW.offset] = SMART_NOT_NULL;
	ranges->bytes[VALUE_HIGH.offset] = SMART_NOT_NULL + 1;
	ranges->points_room = POINTS_ROOM;
	ranges->points = palloc(ranges->points_room * sizeof(struct smart_span));
	return ranges;
}

void
smart_ranges_use(struct smart_ranges *ranges, const struct smart_codec *codec)
{
	ranges->codec = codec;
}

bool
smart_ranges_rest(struct smart_ranges *ranges)
{
	MemoryContextReset(ranges->scratch);
	return ranges->room == BYTES_ROOM && ranges->points_room == POINTS_ROOM;
}

/* ---- strings ---- */

/* Makes room for length more bytes and returns where they go: good until the next call. */
static uint8 *
reserve(struct smart_ranges *ranges, uint32 length)
{
	Size needed = (Size) ranges->used + length;

	if (needed > ranges->room)
	{
		Size room = Max(needed, 2 * (Size) ranges->room);

		if (room > PG_UINT32_MAX)
			ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					errmsg("the arrays of an index condition have too many elements"));
		ranges->bytes = repalloc_huge(ranges->bytes, room);
		ranges->room = (uint32) room;
	}
	smart_assert(needed <= ranges->room);
	return ranges->bytes + ranges->used;
}

/* Keeps the first length bytes that were written there. */
static struct smart_span
keep(struct smart_ranges *ranges, uint32 length)
{
	struct smart_span span = {.offset = ranges->used, .length = length};

	ranges->used += length;
	smart_assert(ranges->used <= ranges->room);
	return span;
}

/* The first string behind all that begin with this one; encodings begin with a byte below 0xFF, so there is one. */
static struct smart_span
successor(struct smart_ranges *ranges, struct smart_span span)
{
	uint8 *out = reserve(ranges, span.length);
	uint32 length;

	memcpy(out, ranges->bytes + span.offset, span.length);
	length = (uint32) smart_successor(out, span.length);
	smart_assert(length > 0);
	return keep(ranges, length);
}

/* Less than, equal to or greater than zero, as memcmp(); a string is above one that it begins with. */
static int
compare_spans(const struct smart_ranges *ranges, struct smart_span a, struct smart_span b)
{
	return smart_compare_bytes(ranges->bytes + a.offset, a.length, ranges->bytes + b.offset, b.length);
}

/* ---- points ---- */

static void
add_point(struct smart_ranges *ranges, struct smart_span point)
{
	if (ranges->npoints == ranges->points_room)
	{
		ranges->points = repalloc_huge(ranges->points, 2 * (Size) ranges->points_room * sizeof(struct smart_span));
		ranges->points_room *= 2;
	}
	smart_assert(ranges->npoints < ranges->points_room && point.offset + point.length <= ranges->used);
	ranges->points[ranges->npoints++] = point;
}

static int
compare_points(const void *a, const void *b, void *ranges)
{
	return compare_spans(ranges, *(const struct smart_span *) a, *(const struct smart_span *) b);
}

/* Restricts a column to the points from first on, which are sorted and the last ones. */
static void
restrict_to_points(struct smart_ranges *ranges, int column, uint32 first)
{
	struct smart_column_set *set = &ranges->columns[column];

	smart_assert(first <= ranges->npoints);
	set->constrained = true;
	if (set->has_points)
	{
		uint32 kept = 0;
		uint32 mine = 0;
		uint32 theirs = first;

		smart_assert(set->first + set->count <= first);
		while (mine < set->count && theirs < ranges->npoints)
		{
			struct smart_span point = ranges->points[set->first + mine];
			int order = compare_spans(ranges, point, ranges->points[theirs]);

			if (order == 0)
				ranges->points[set->first + kept++] = point;
			mine += order <= 0;
			theirs += order >= 0;
		}
		set->count = kept;
		ranges->npoints = first;
	}
	else
	{
		set->has_points = true;
		set->first = first;
		set->count = ranges->npoints - first;
	}
	if (set->count == 0)
		ranges->never = true;
}

/* ---- one condition ---- */

/* Restricts a column to what one more condition selects. */
static void
restrict_column(struct smart_ranges *ranges, int column, const struct choice *choice)
{
	struct smart_column_set *set = &ranges->columns[column];

	if (choice->nothing)
	{
		ranges->never = true;
		return;
	}
	if (choice->is_point)
	{
		add_point(ranges, choice->low);
		restrict_to_points(ranges, column, ranges->npoints - 1);
		return;
	}
	set->constrained = true;
	set->wide |= choice->wide;
	if (compare_spans(ranges, choice->low, set->low) > 0)
		set->low = choice->low;
	if (set->high.length == 0 || compare_spans(ranges, choice->high, set->high) < 0)
		set->high = choice->high;
}

/* The bound of a condition whose bytes were just written at reserve(), as an interval. */
static struct choice
interval_of(struct smart_ranges *ranges, const struct smart_bound *bound)
{
	struct choice choice = {.low = VALUE_LOW, .high = VALUE_HIGH};
	struct smart_span span;

	if (bound->kind == SMART_BOUND_NEVER)
		return (struct choice){.nothing = true};
	span = keep(ranges, (uint32) bound->length);
	switch (bound->kind)
	{
		case SMART_BOUND_EQUAL:
			choice.is_point = true;
			choice.low = choice.high = span;
			break;
		case SMART_BOUND_PREFIX:
			choice.low = span;
			choice.high = successor(ranges, span);
			break;
		case SMART_BOUND_LESS:
			choice.high = span;
			break;
		case SMART_BOUND_LESS_EQUAL:
			choice.high = successor(ranges, span);
			break;
		case SMART_BOUND_GREATER_EQUAL:
			choice.low = span;
			break;
		case SMART_BOUND_GREATER:
			choice.low = successor(ranges, span);
			break;
		case SMART_BOUND_NEVER:
			break;
	}
	if (bound->recheck)
		ranges->recheck = true;
	return choice;
}

static struct choice
compare_choice(struct smart_ranges *ranges, int column, int strategy, Datum argument, Oid type)
{
	struct smart_bound bound;

	smart_assert(column >= 0 && column < ranges->codec->nkeys);
	smart_codec_bound(ranges->codec, column, strategy, argument, type, reserve(ranges, SMART_COLUMNS_MAX),
					  SMART_COLUMNS_MAX, &bound);
	return interval_of(ranges, &bound);
}

/* ---- arrays ---- */

/* The smallest interval around two choices. */
static void
unite(struct smart_ranges *ranges, struct choice *all, struct choice one)
{
	smart_assert(!one.nothing && !one.is_point);
	if (all->nothing)
	{
		*all = one;
		return;
	}
	if (compare_spans(ranges, one.low, all->low) < 0)
		all->low = one.low;
	if (compare_spans(ranges, one.high, all->high) > 0)
		all->high = one.high;
}

/*
 * column operator ANY (array).  If every element selects a point, the condition selects these points; else it selects
 * the interval around what its elements select.
 */
static void
apply_array(struct smart_ranges *ranges, ScanKey key)
{
	ArrayType *array = DatumGetArrayTypeP(key->sk_argument);
	int column = key->sk_attno - 1;
	uint32 first = ranges->npoints;
	uint32 kept = 0;
	struct choice hull = {.nothing = true};
	struct smart_span *points;
	Datum *elements;
	bool *nulls;
	int count;
	int16 length;
	bool byval;
	char align;

	get_typlenbyvalalign(ARR_ELEMTYPE(array), &length, &byval, &align);
	deconstruct_array(array, ARR_ELEMTYPE(array), length, byval, align, &elements, &nulls, &count);
	for (int i = 0; i < count; i++)
	{
		struct choice choice = {.nothing = true};

		if (!nulls[i])
			choice = compare_choice(ranges, column, key->sk_strategy, elements[i], key->sk_subtype);
		if (choice.is_point)
			add_point(ranges, choice.low);
		else if (!choice.nothing)
			unite(ranges, &hull, choice);
	}

	/* Sort the points and drop doubles. */
	points = ranges->points + first;
	qsort_arg(points, ranges->npoints - first, sizeof(struct smart_span), compare_points, ranges);
	for (uint32 i = 0; i < ranges->npoints - first; i++)
	{
		if (kept == 0 || compare_spans(ranges, points[kept - 1], points[i]) != 0)
			points[kept++] = points[i];
	}
	ranges->npoints = first + kept;
	if (hull.nothing)
	{
		restrict_to_points(ranges, column, first);
		return;
	}
	/* Half-open ranges have no gap between them; other elements leave some inside of the interval. */
	if (key->sk_strategy == BTEqualStrategyNumber || key->sk_strategy > BTGreaterStrategyNumber)
		ranges->recheck = true;
	if (ranges->npoints > first)
	{
		struct smart_span last = ranges->points[ranges->npoints - 1];

		unite(ranges, &hull, (struct choice){.low = ranges->points[first], .high = successor(ranges, last)});
		ranges->npoints = first;
	}
	restrict_column(ranges, column, &hull);
}

/* ---- rows ---- */

/* The row that columns are compared with. */
struct fields
{
	int count;
	Oid types[INDEX_MAX_KEYS];
	Datum values[INDEX_MAX_KEYS];
	bool isnull[INDEX_MAX_KEYS];
};

/* Where an interval ends: before its bytes, or behind all strings that begin with them. */
struct edge
{
	bool behind;
	uint32 length; /* 0: nothing is known */
	uint8 bytes[SMART_COLUMNS_MAX];
};

/* The bound of a field's column, which is to be written behind what the edge has. */
static struct smart_bound
field_bound(const struct smart_codec *codec, int column, int strategy, const struct fields *fields, int field,
			struct edge *edge)
{
	Oid class_type = codec->columns[column].normalizer.type;
	Oid type = fields->types[field];
	struct smart_bound bound;

	smart_assert(field < fields->count && edge->length < SMART_COLUMNS_MAX);
	/* Codec and operators of classes of arrays, enums and records take all of these as one type. */
	if (IsPolymorphicType(class_type) || class_type == RECORDOID)
		type = InvalidOid;
	smart_codec_bound(codec, column, strategy, fields->values[field], type, edge->bytes + edge->length,
					  (int) (SMART_COLUMNS_MAX - edge->length), &bound);
	return bound;
}

/*
 * Finds the edge of all that satisfies the comparison, which lies at the lower or (upwards false) at the upper end of
 * the interval.  False: nothing satisfies it.
 */
static bool
find_edge(const struct smart_codec *codec, int first, int strategy, const struct fields *fields, bool upwards,
		  struct edge *edge)
{
	int last = fields->count - 1;
	int i = 0;
	struct smart_bound bound;

	/* What is equal up to here belongs to it, as far as is known. */
	edge->length = 0;
	edge->behind = !upwards;
	for (;; i++)
	{
		int column = first + i;

		/* The planner has counted the columns that are fit. */
		smart_assert(column < codec->nkeys && codec->columns[column].flip == codec->columns[first].flip);
		smart_assert(!codec->columns[column].normalizer.unordered);
		if (fields->isnull[i])
		{
			/* Rows that are equal up to a NULL compare as NULL. */
			edge->behind = upwards;
			return i > 0;
		}
		if (edge->length == SMART_COLUMNS_MAX)
			return true;
		if (i < last)
		{
			bound = field_bound(codec, column, BTEqualStrategyNumber, fields, i, edge);
			if (bound.kind == SMART_BOUND_EQUAL)
			{
				smart_assert(!bound.recheck);
				edge->length += (uint32) bound.length;
				continue;
			}
			/* No value is known to equal the field, and so rows differ here already. */
		}
		bound = field_bound(codec, column, strategy, fields, i, edge);
		break;
	}
	if (bound.kind != SMART_BOUND_PREFIX)
	{
		smart_assert(bound.kind >= SMART_BOUND_LESS && bound.kind <= SMART_BOUND_GREATER);
		smart_assert(upwards == (bound.kind >= SMART_BOUND_GREATER_EQUAL));
		edge->length += (uint32) bound.length;
		edge->behind = bound.kind == SMART_BOUND_LESS_EQUAL || bound.kind == SMART_BOUND_GREATER;
	}
	return true;
}

/*
 * What is selected by "column, and those behind it, strategy row": the columns from column on are compared, one by one,
 * with the fields of row, a record of at most as many; strategy is one of btree's, but not =.  Selects more
 * than that where normalized keys cannot tell: the comparison has to be asked again.
 */
static struct choice
row_choice(struct smart_ranges *ranges, int column, int strategy, Datum row)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(row);
	TupleDesc description = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header), HeapTupleHeaderGetTypMod(header));
	HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(header), .t_data = header};
	struct choice choice = {.low = VALUE_LOW, .high = VALUE_HIGH, .wide = true};
	bool upwards = (strategy > BTEqualStrategyNumber) == (ranges->codec->columns[column].flip == 0);
	struct fields fields = {.count = description->natts};
	struct edge edge;
	struct smart_span span;

	smart_assert(strategy >= BTLessStrategyNumber && strategy <= BTGreaterStrategyNumber &&
				 strategy != BTEqualStrategyNumber);
	smart_assert(fields.count >= 1 && fields.count <= INDEX_MAX_KEYS);
	heap_deform_tuple(&tuple, description, fields.values, fields.isnull);
	for (int i = 0; i < fields.count; i++)
		fields.types[i] = TupleDescAttr(description, i)->atttypid;
	ReleaseTupleDesc(description);
	if (!find_edge(ranges->codec, column, strategy, &fields, upwards, &edge))
		return (struct choice){.nothing = true};
	if (edge.length == 0)
		return choice;
	memcpy(reserve(ranges, edge.length), edge.bytes, edge.length);
	span = keep(ranges, edge.length);
	if (edge.behind)
		span = successor(ranges, span);
	if (upwards)
		choice.low = span;
	else
		choice.high = span;
	return choice;
}

/* ---- all conditions ---- */

static void
apply_key(struct smart_ranges *ranges, ScanKey key)
{
	int column = key->sk_attno - 1;
	struct choice choice;

	smart_assert(column >= 0 && column < ranges->codec->nkeys);
	if (key->sk_flags & (SK_SEARCHNULL | SK_SEARCHNOTNULL))
	{
		struct smart_bound bound;

		smart_codec_null_bound(ranges->codec, column, (key->sk_flags & SK_SEARCHNULL) != 0,
							   reserve(ranges, SMART_COLUMNS_MAX), SMART_COLUMNS_MAX, &bound);
		choice = interval_of(ranges, &bound);
	}
	else if (key->sk_flags & SK_ISNULL)
		choice = (struct choice){.nothing = true};
	else if (key->sk_flags & SK_SEARCHARRAY)
	{
		apply_array(ranges, key);
		return;
	}
	else if (key->sk_strategy > SMART_STRATEGY_ROW)
		choice = row_choice(ranges, column, key->sk_strategy - SMART_STRATEGY_ROW, key->sk_argument);
	else
		choice = compare_choice(ranges, column, key->sk_strategy, key->sk_argument, key->sk_subtype);
	restrict_column(ranges, column, &choice);
}

/* Drops those points of a column that its interval rules out, when all conditions are known. */
static void
intersect(struct smart_ranges *ranges, struct smart_column_set *set)
{
	uint32 kept = 0;

	if (!set->has_points)
	{
		if (set->high.length > 0 && compare_spans(ranges, set->low, set->high) >= 0)
			ranges->never = true;
		return;
	}
	for (uint32 i = 0; i < set->count; i++)
	{
		struct smart_span point = ranges->points[set->first + i];
		bool begins_low =
			point.length <= set->low.length &&
			memcmp(smart_span_bytes(ranges, point), smart_span_bytes(ranges, set->low), point.length) == 0;

		smart_assert(i == 0 || compare_spans(ranges, ranges->points[set->first + i - 1], point) < 0);
		/* Can an entry have this encoding of a column and lie in its interval, whatever follows? */
		if ((begins_low || compare_spans(ranges, point, set->low) >= 0) &&
			(set->high.length == 0 || compare_spans(ranges, point, set->high) < 0))
			ranges->points[set->first + kept++] = point;
	}
	set->count = kept;
	if (kept == 0)
		ranges->never = true;
}

void
smart_ranges_set(struct smart_ranges *ranges, ScanKey keys, int nkeys)
{
	int ncolumns = ranges->codec->nkeys;
	MemoryContext old;

	MemoryContextReset(ranges->scratch);
	old = MemoryContextSwitchTo(ranges->scratch);
	ranges->never = ranges->recheck = ranges->filtered = false;
	ranges->used = VALUE_HIGH.offset + VALUE_HIGH.length;
	ranges->npoints = 0;
	memset(ranges->columns, 0, ncolumns * sizeof(struct smart_column_set));

	for (int i = 0; i < nkeys && !ranges->never; i++)
		apply_key(ranges, &keys[i]);
	for (int i = 0; i < ncolumns && !ranges->never; i++)
	{
		if (ranges->columns[i].constrained)
			intersect(ranges, &ranges->columns[i]);
	}

	ranges->nprefix = 0;
	while (ranges->nprefix < ncolumns && ranges->columns[ranges->nprefix].has_points)
		ranges->nprefix++;
	for (int i = ranges->nprefix + 1; i < ncolumns; i++)
		ranges->filtered |= ranges->columns[i].constrained;
	smart_assert(ranges->nprefix <= ncolumns && ranges->used <= ranges->room);
	MemoryContextSwitchTo(old);
}

/*
 * scankey.c
 *	  Turns scan keys into what they select on each column.
 *
 * The codec gives one condition's bound; here it becomes an interval or a
 * point, and selection.c intersects it with the other conditions on its column.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "am/row_bound.h"
#include "am/selection.h"
#include "base/assert.h"
#include "base/bytes.h"
#include "tree/tree.h"

/* The bound of a condition whose bytes were just written at smart_selection_reserve(), as an interval. */
static struct smart_choice
interval_of(struct smart_ranges *ranges, const struct smart_bound *bound)
{
	struct smart_choice choice = {.low = smart_value_low, .high = smart_value_high};
	struct smart_span span;

	if (bound->kind == SMART_BOUND_NEVER)
		return (struct smart_choice){.nothing = true};
	span = smart_selection_keep(ranges, (uint32) bound->length);
	switch (bound->kind)
	{
		case SMART_BOUND_EQUAL:
			choice.is_point = true;
			choice.low = choice.high = span;
			break;
		case SMART_BOUND_PREFIX:
			choice.low = span;
			choice.high = smart_selection_successor(ranges, span);
			break;
		case SMART_BOUND_LESS:
			choice.high = span;
			break;
		case SMART_BOUND_LESS_EQUAL:
			choice.high = smart_selection_successor(ranges, span);
			break;
		case SMART_BOUND_GREATER_EQUAL:
			choice.low = span;
			break;
		case SMART_BOUND_GREATER:
			choice.low = smart_selection_successor(ranges, span);
			break;
		case SMART_BOUND_NEVER:
			break;
	}
	if (bound->recheck)
		ranges->recheck = true;
	return choice;
}

static struct smart_choice
compare_choice(struct smart_ranges *ranges, int column, int strategy, Datum argument, Oid type)
{
	struct smart_bound bound;

	smart_codec_bound(ranges->codec, column, strategy, argument, type,
					  smart_selection_reserve(ranges, SMART_COLUMNS_MAX), SMART_COLUMNS_MAX, &bound);
	return interval_of(ranges, &bound);
}

static struct smart_choice
null_choice(struct smart_ranges *ranges, int column, bool isnull)
{
	struct smart_bound bound;

	smart_codec_null_bound(ranges->codec, column, isnull, smart_selection_reserve(ranges, SMART_COLUMNS_MAX),
						   SMART_COLUMNS_MAX, &bound);
	return interval_of(ranges, &bound);
}

/* The smallest interval around two choices. */
static void
unite(struct smart_ranges *ranges, struct smart_choice *all, struct smart_choice one)
{
	if (all->nothing)
	{
		*all = one;
		return;
	}
	if (smart_selection_compare(ranges, one.low, all->low) < 0)
		all->low = one.low;
	if (smart_selection_compare(ranges, one.high, all->high) > 0)
		all->high = one.high;
}

/* The elements of a key's array, in memory that lives until the next keys come. */
static int
array_elements(ScanKey key, Datum **elements, bool **nulls)
{
	ArrayType *array = DatumGetArrayTypeP(key->sk_argument);
	int count;
	int16 length;
	bool byval;
	char align;

	get_typlenbyvalalign(ARR_ELEMTYPE(array), &length, &byval, &align);
	deconstruct_array(array, ARR_ELEMTYPE(array), length, byval, align, elements, nulls, &count);
	return count;
}

/*
 * column operator ANY (array).  If every element selects a point, so does the
 * condition; else it selects the interval around what its elements do.
 */
static void
apply_array(struct smart_ranges *ranges, ScanKey key)
{
	int column = key->sk_attno - 1;
	uint32 first = ranges->npoints;
	struct smart_choice hull = {.nothing = true};
	Datum *elements;
	bool *nulls;
	int count = array_elements(key, &elements, &nulls);

	for (int i = 0; i < count; i++)
	{
		struct smart_choice choice = {.nothing = true};

		if (!nulls[i])
			choice = compare_choice(ranges, column, key->sk_strategy, elements[i], key->sk_subtype);
		if (choice.is_point)
			smart_selection_add_point(ranges, choice.low);
		else if (!choice.nothing)
			unite(ranges, &hull, choice);
	}

	smart_selection_sort_points(ranges, first);
	if (hull.nothing)
	{
		smart_selection_restrict_to_points(ranges, column, first);
		return;
	}
	/* Half-open ranges have no gap between them; other elements leave some inside of the interval. */
	if (key->sk_strategy == BTEqualStrategyNumber || key->sk_strategy > BTGreaterStrategyNumber)
		ranges->recheck = true;
	if (ranges->npoints > first)
	{
		struct smart_span last = ranges->points[ranges->npoints - 1];

		unite(ranges, &hull,
			  (struct smart_choice){.low = ranges->points[first], .high = smart_selection_successor(ranges, last)});
		ranges->npoints = first;
	}
	smart_selection_restrict(ranges, column, &hull);
}

static void
apply_key(struct smart_ranges *ranges, ScanKey key)
{
	int column = key->sk_attno - 1;
	struct smart_choice choice;

	smart_assert(column >= 0 && column < ranges->codec->nkeys);
	if (key->sk_flags & (SK_SEARCHNULL | SK_SEARCHNOTNULL))
		choice = null_choice(ranges, column, (key->sk_flags & SK_SEARCHNULL) != 0);
	else if (key->sk_flags & SK_ISNULL)
		choice = (struct smart_choice){.nothing = true};
	else if (key->sk_flags & SK_SEARCHARRAY)
	{
		apply_array(ranges, key);
		return;
	}
	else if (key->sk_strategy > SMART_STRATEGY_ROW)
		choice = smart_row_choice(ranges, column, key->sk_strategy - SMART_STRATEGY_ROW, key->sk_argument);
	else
		choice = compare_choice(ranges, column, key->sk_strategy, key->sk_argument, key->sk_subtype);
	smart_selection_restrict(ranges, column, &choice);
}

void
smart_ranges_set(struct smart_ranges *ranges, ScanKey keys, int nkeys)
{
	int ncolumns = ranges->codec->nkeys;
	MemoryContext old;

	MemoryContextReset(ranges->scratch);
	old = MemoryContextSwitchTo(ranges->scratch);
	ranges->never = ranges->recheck = ranges->filtered = false;
	ranges->used = smart_value_high.offset + smart_value_high.length;
	ranges->npoints = 0;
	memset(ranges->columns, 0, ncolumns * sizeof(struct smart_column_set));

	for (int i = 0; i < nkeys && !ranges->never; i++)
		apply_key(ranges, &keys[i]);
	for (int i = 0; i < ncolumns && !ranges->never; i++)
	{
		if (ranges->columns[i].constrained)
			smart_selection_settle(ranges, &ranges->columns[i]);
	}

	ranges->nprefix = 0;
	while (ranges->nprefix < ncolumns && ranges->columns[ranges->nprefix].has_points)
		ranges->nprefix++;
	for (int i = ranges->nprefix + 1; i < ncolumns; i++)
		ranges->filtered |= ranges->columns[i].constrained;
	MemoryContextSwitchTo(old);
}

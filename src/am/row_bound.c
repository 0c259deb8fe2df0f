/*
 * row_bound.c
 *	  Row comparisons as bounds on several columns.
 *
 * Entries are ordered by their columns as rows are, so (a, b) > (1, 2) is one end of one
 * interval: behind all entries that begin with 1, 2.  The fields of the row are put one
 * behind the other as long as each of them is a single encoding; the last one has
 * an end like that of any condition.  What cannot be said of the columns behind
 * is left out, and the end is that of all entries which begin with what was said.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "nodes/supportnodes.h"
#include "utils/typcache.h"

#include "am/row_bound.h"
#include "base/assert.h"
#include "base/bytes.h"

extern PGDLLEXPORT Datum smart_row_bound(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum smart_row_bound_support(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(smart_row_bound);
PG_FUNCTION_INFO_V1(smart_row_bound_support);

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

static void
take_fields(Datum row, struct fields *fields)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(row);
	TupleDesc description = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header), HeapTupleHeaderGetTypMod(header));
	HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(header), .t_data = header};

	smart_assert(description->natts >= 1 && description->natts <= INDEX_MAX_KEYS);
	heap_deform_tuple(&tuple, description, fields->values, fields->isnull);
	fields->count = description->natts;
	for (int i = 0; i < fields->count; i++)
		fields->types[i] = TupleDescAttr(description, i)->atttypid;
	ReleaseTupleDesc(description);
}

/* A field's type as codec and operators name it: classes of arrays, enums and records take all of them as one type. */
static Oid
argument_type(const struct smart_image *image, Oid type)
{
	return IsPolymorphicType(image->type) || image->type == RECORDOID ? InvalidOid : type;
}

/* The bound of a field's column, which is to be written behind what the edge has. */
static struct smart_bound
field_bound(const struct smart_codec *codec, int column, int strategy, const struct fields *fields, int field,
			struct edge *edge)
{
	Oid type = argument_type(&codec->columns[column].image, fields->types[field]);
	struct smart_bound bound;

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
		smart_assert(!codec->columns[column].image.unordered);
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

struct smart_choice
smart_row_choice(struct smart_ranges *ranges, int column, int strategy, Datum row)
{
	struct smart_choice choice = {.low = smart_value_low, .high = smart_value_high, .wide = true};
	bool upwards = (strategy > BTEqualStrategyNumber) == (ranges->codec->columns[column].flip == 0);
	struct fields fields;
	struct edge edge;
	struct smart_span span;

	smart_assert(strategy >= BTLessStrategyNumber && strategy <= BTGreaterStrategyNumber &&
				 strategy != BTEqualStrategyNumber);
	take_fields(row, &fields);
	if (!find_edge(ranges->codec, column, strategy, &fields, upwards, &edge))
		return (struct smart_choice){.nothing = true};
	if (edge.length == 0)
		return choice;
	memcpy(smart_selection_reserve(ranges, edge.length), edge.bytes, edge.length);
	span = smart_selection_keep(ranges, edge.length);
	if (edge.behind)
		span = smart_selection_successor(ranges, span);
	if (upwards)
		choice.low = span;
	else
		choice.high = span;
	return choice;
}

/*
 * smart_row_bound("any", record) returns boolean
 *
 * The function of the operators <* <=* >=* >*, by which the planner (row_conditions.c) gives the row of a comparison to a
 * scan.  The comparison itself stays a filter, which tells rows apart; so all may pass where the
 * executor asks again.
 */
Datum
smart_row_bound(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(true);
}

/*
 * smart_row_bound_support(internal) returns internal
 *
 * Is asked to simplify what was written in a query, and never what the planner makes later.  Without the comparison
 * rows would depend on the plan.  Error: FEATURE_NOT_SUPPORTED.
 */
Datum
smart_row_bound_support(PG_FUNCTION_ARGS)
{
	if (IsA(PG_GETARG_POINTER(0), SupportRequestSimplify))
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("operators <*, <=*, >=* and >* are for index conditions that the planner makes"),
						errhint("Compare rows: (a, b) > (1, 2).")));
	PG_RETURN_POINTER(NULL);
}

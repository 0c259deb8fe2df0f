/*
 * range.c
 *	  Normalized keys of ranges and multiranges.
 *
 * Ranges compare by their lower bounds, then by their upper ones; empty ones are below all others:
 *
 *	00							empty
 *	01							lower bound: none
 *	02 key, 00 or 01			lower bound, inclusive or exclusive
 *	00 key, 00 or 01			upper bound, exclusive or inclusive
 *	01							upper bound: none
 *
 * A multirange is its ranges, none of them empty, and 00.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/multirangetypes.h"
#include "utils/rangetypes.h"
#include "utils/typcache.h"

#include "am/codec/normalizer.h"

#define MARK_EMPTY      0x00 /* also the end of a multirange */
#define MARK_NO_LOWER   0x01
#define MARK_LOWER      0x02
#define MARK_UPPER      0x00
#define MARK_NO_UPPER   0x01
#define LOWER_INCLUSIVE 0x00
#define LOWER_EXCLUSIVE 0x01
#define UPPER_EXCLUSIVE 0x00
#define UPPER_INCLUSIVE 0x01

static uint8 *
put_bound(const struct smart_normalizer *normalizer, const RangeBound *bound, uint8 *out, uint8 *limit)
{
	smart_assert(out == NULL || out <= limit);
	if (bound->infinite)
		return smart_put_byte(out, limit, bound->lower ? MARK_NO_LOWER : MARK_NO_UPPER);
	out = smart_put_byte(out, limit, bound->lower ? MARK_LOWER : MARK_UPPER);
	out = smart_put_normalized(normalizer->part, bound->val, out, limit);
	/* A lower bound that leaves its value out is above one that does not; an upper one is below */
	return smart_put_byte(out, limit, bound->inclusive != bound->lower);
}

static uint8 *
range_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	TypeCacheEntry *type = unconstify(TypeCacheEntry *, (const TypeCacheEntry *) normalizer->details);
	RangeType *range = DatumGetRangeTypeP(value);
	RangeBound lower;
	RangeBound upper;
	bool empty;

	range_deserialize(type, range, &lower, &upper, &empty);
	if (empty)
		out = smart_put_byte(out, limit, MARK_EMPTY);
	else
		out = put_bound(normalizer, &upper, put_bound(normalizer, &lower, out, limit), limit);
	smart_free_copy(range, value);
	return out;
}

static uint8 *
multirange_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	TypeCacheEntry *type = unconstify(TypeCacheEntry *, (const TypeCacheEntry *) normalizer->details);
	MultirangeType *multirange = DatumGetMultirangeTypeP(value);

	for (uint32 i = 0; i < multirange->rangeCount && out != NULL; i++)
	{
		RangeBound lower;
		RangeBound upper;

		multirange_get_bounds(type, multirange, i, &lower, &upper);
		out = put_bound(normalizer, &upper, put_bound(normalizer, &lower, out, limit), limit);
	}
	out = smart_put_byte(out, limit, MARK_EMPTY);
	smart_free_copy(multirange, value);
	return out;
}

/* The end of a bound that has a value unless its mark is none, or NULL */
static const uint8 *
bound_end(const struct smart_normalizer *normalizer, const uint8 *p, const uint8 *limit, uint8 flip, uint8 none)
{
	uint8 mark;

	p = smart_get_byte(p, limit, flip, &mark);
	if (p == NULL || mark == none)
		return p;
	return smart_skip(smart_normalizer_end(normalizer->part, p, limit, flip), limit, 1);
}

static const uint8 *
range_end(const struct smart_normalizer *normalizer, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	if (bytes < limit && (*bytes ^ flip) == MARK_EMPTY)
		return bytes + 1;
	bytes = bound_end(normalizer, bytes, limit, flip, MARK_NO_LOWER);
	bytes = bound_end(normalizer, bytes, limit, flip, MARK_NO_UPPER);
	smart_assert(bytes == NULL || bytes <= limit);
	return bytes;
}

static const uint8 *
multirange_end(const struct smart_normalizer *normalizer, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	while (bytes != NULL && bytes < limit && (*bytes ^ flip) != MARK_EMPTY)
		bytes = range_end(normalizer, bytes, limit, flip);
	return smart_skip(bytes, limit, 1);
}

/* ---- back to the range ---- */

/* Reads a bound at p, whose value is built in a new chunk; returns its end */
static const uint8 *
get_bound(const struct smart_normalizer *normalizer, const uint8 *p, const uint8 *limit, bool lower, RangeBound *bound)
{
	const TypeCacheEntry *type = normalizer->details;
	const struct smart_normalizer *part = normalizer->part;
	const uint8 *end;
	char *space;

	memset(bound, 0, sizeof(*bound));
	bound->lower = lower;
	bound->infinite = *p++ == (lower ? MARK_NO_LOWER : MARK_NO_UPPER);
	if (bound->infinite)
		return p;
	end = smart_normalizer_end(part, p, limit, 0);
	smart_assert(end != NULL && end < limit);
	space = palloc(Max(end - p + part->decode_extra + VARHDRSZ, type->rngelemtype->typlen));
	bound->val = part->decode(part, p, end - p, NULL, space);
	bound->inclusive = *end == (lower ? LOWER_INCLUSIVE : UPPER_INCLUSIVE);
	return end + 1;
}

static Datum
range_decode(const struct smart_normalizer *normalizer, const uint8 *bytes, int length, const uint8 *residue,
			 char *space)
{
	TypeCacheEntry *type = unconstify(TypeCacheEntry *, (const TypeCacheEntry *) normalizer->details);
	bool by_reference = !type->rngelemtype->typbyval;
	RangeBound lower = {.lower = true};
	RangeBound upper = {.lower = false};
	bool empty = *bytes == MARK_EMPTY;
	RangeType *range;

	if (!empty)
	{
		const uint8 *middle = get_bound(normalizer, bytes, bytes + length, true, &lower);

		(void) get_bound(normalizer, middle, bytes + length, false, &upper);
	}
	range = smart_make_range(type, &lower, &upper, empty);
	smart_assert(VARSIZE(range) <= (Size) (length + normalizer->decode_extra));
	memcpy(space, range, VARSIZE(range));
	pfree(range);
	if (by_reference && !empty && !lower.infinite)
		pfree(DatumGetPointer(lower.val));
	if (by_reference && !empty && !upper.infinite)
		pfree(DatumGetPointer(upper.val));
	return PointerGetDatum(space);
}

/* Sets what ranges and multiranges have in common */
static void
add_bounds(struct smart_normalizer *normalizer, TypeCacheEntry *range)
{
	smart_normalizer_add_part(normalizer, range->rngelemtype->type_id, range->rng_collation,
							  range->rng_cmp_proc_finfo.fn_oid);
	normalizer->details = range;
	smart_assert(normalizer->part != NULL && normalizer->part->next == NULL);
}

static void
finish_range(struct smart_normalizer *normalizer)
{
	TypeCacheEntry *type = lookup_type_cache(normalizer->value_type, TYPECACHE_RANGE_INFO);
	int wider;

	if (type->rngelemtype == NULL)
		elog(ERROR, "type %u of a column of index \"%s\" is not a range", normalizer->value_type,
			 normalizer->index_name);
	add_bounds(normalizer, type);
	if (normalizer->forgets)
		return;

	/* A range has its type, its flags, and alignment, headers and padding of the bounds beyond its key. */
	wider = Max(type->rngelemtype->typlen - normalizer->part->width, 0);
	normalizer->decode = range_decode;
	normalizer->decode_extra =
		sizeof(Oid) + 1 + 2 * (MAXIMUM_ALIGNOF + VARHDRSZ + normalizer->part->decode_extra + wider);
}

static void
finish_multirange(struct smart_normalizer *normalizer)
{
	TypeCacheEntry *type = lookup_type_cache(normalizer->value_type, TYPECACHE_MULTIRANGE_INFO);

	if (type->rngtype == NULL)
		elog(ERROR, "type %u of a column of index \"%s\" is not a multirange", normalizer->value_type,
			 normalizer->index_name);
	add_bounds(normalizer, type->rngtype);
}

SMART_NORMALIZER(range, finish_range, .encode = range_encode, .end = range_end);
SMART_NORMALIZER(multirange, finish_multirange, .forgets = true, .encode = multirange_encode, .end = multirange_end);

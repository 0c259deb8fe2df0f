/*
 * image_range.c - images of ranges and multiranges
 *
 * Ranges compare by their lower bounds, then by their upper ones; empty ones are below all others:
 *
 *	00							empty
 *	01							lower bound: none
 *	02 image, 00 or 01			lower bound, inclusive or exclusive
 *	00 image, 00 or 01			upper bound, exclusive or inclusive
 *	01							upper bound: none
 *
 * A multirange is its ranges, none of them empty, and 00.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/multirangetypes.h"
#include "utils/rangetypes.h"
#include "utils/typcache.h"

#include "am/image.h"

#define MARK_EMPTY      0x00 /* also the end of a multirange */
#define MARK_NO_LOWER   0x01
#define MARK_LOWER      0x02
#define MARK_UPPER      0x00
#define MARK_NO_UPPER   0x01
#define LOWER_INCLUSIVE 0x00
#define LOWER_EXCLUSIVE 0x01
#define UPPER_EXCLUSIVE 0x00
#define UPPER_INCLUSIVE 0x01

SMART_IMAGE_FUNCTION(smart_image_range);
SMART_IMAGE_FUNCTION(smart_image_multirange);

static uint8 *
put_bound(const struct smart_image *image, const RangeBound *bound, uint8 *out, uint8 *limit)
{
	if (bound->infinite)
		return smart_put_byte(out, limit, bound->lower ? MARK_NO_LOWER : MARK_NO_UPPER);
	out = smart_put_byte(out, limit, bound->lower ? MARK_LOWER : MARK_UPPER);
	if (out != NULL)
		out = smart_put_image(image->part, bound->val, out, limit);
	/* A lower bound that leaves its value out is above one that does not; an upper one is below */
	return out == NULL ? NULL : smart_put_byte(out, limit, bound->inclusive != bound->lower);
}

static uint8 *
range_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	RangeType *range = DatumGetRangeTypeP(value);
	RangeBound lower;
	RangeBound upper;
	bool empty;

	range_deserialize(unconstify(TypeCacheEntry *, (const TypeCacheEntry *) image->details), range, &lower, &upper,
					  &empty);
	if (empty)
		out = smart_put_byte(out, limit, MARK_EMPTY);
	else
	{
		out = put_bound(image, &lower, out, limit);
		if (out != NULL)
			out = put_bound(image, &upper, out, limit);
	}
	if (PointerGetDatum(range) != value)
		pfree(range);
	return out;
}

static uint8 *
multirange_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	MultirangeType *multirange = DatumGetMultirangeTypeP(value);
	TypeCacheEntry *type = unconstify(TypeCacheEntry *, (const TypeCacheEntry *) image->details);

	for (uint32 i = 0; i < multirange->rangeCount && out != NULL; i++)
	{
		RangeBound lower;
		RangeBound upper;

		multirange_get_bounds(type, multirange, i, &lower, &upper);
		out = put_bound(image, &lower, out, limit);
		if (out != NULL)
			out = put_bound(image, &upper, out, limit);
	}
	if (out != NULL)
		out = smart_put_byte(out, limit, MARK_EMPTY);
	if (PointerGetDatum(multirange) != value)
		pfree(multirange);
	return out;
}

/* The end of a bound that has a value unless its mark is none, or NULL */
static const uint8 *
bound_end(const struct smart_image *image, const uint8 *p, const uint8 *limit, uint8 flip, uint8 none)
{
	if (p == NULL || p >= limit)
		return NULL;
	if ((*p++ ^ flip) == none)
		return p;
	p = smart_image_end(image->part, p, limit, flip);
	return p == NULL || p >= limit ? NULL : p + 1;
}

static const uint8 *
range_end(const struct smart_image *image, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	if (bytes < limit && (*bytes ^ flip) == MARK_EMPTY)
		return bytes + 1;
	bytes = bound_end(image, bytes, limit, flip, MARK_NO_LOWER);
	return bound_end(image, bytes, limit, flip, MARK_NO_UPPER);
}

static const uint8 *
multirange_end(const struct smart_image *image, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	while (bytes != NULL && bytes < limit && (*bytes ^ flip) != MARK_EMPTY)
		bytes = range_end(image, bytes, limit, flip);
	return bytes == NULL || bytes >= limit ? NULL : bytes + 1;
}

/* ---- back to the range ---- */

/* Reads a bound at p, whose value is built in a new chunk; returns its end */
static const uint8 *
get_bound(const struct smart_image *image, const uint8 *p, const uint8 *limit, bool lower, RangeBound *bound)
{
	const TypeCacheEntry *type = image->details;
	const struct smart_image *part = image->part;
	const uint8 *end;
	char *space;

	memset(bound, 0, sizeof(*bound));
	bound->lower = lower;
	bound->infinite = *p++ == (lower ? MARK_NO_LOWER : MARK_NO_UPPER);
	if (bound->infinite)
		return p;
	end = smart_image_end(part, p, limit, 0);
	space = palloc(Max(end - p + part->decode_extra + VARHDRSZ, type->rngelemtype->typlen));
	bound->val = part->decode(part, p, end - p, NULL, space);
	bound->inclusive = *end == (lower ? LOWER_INCLUSIVE : UPPER_INCLUSIVE);
	return end + 1;
}

static Datum
range_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	TypeCacheEntry *type = unconstify(TypeCacheEntry *, (const TypeCacheEntry *) image->details);
	bool by_reference = !type->rngelemtype->typbyval;
	RangeBound lower = {.lower = true};
	RangeBound upper = {.lower = false};
	bool empty = *bytes == MARK_EMPTY;
	RangeType *range;

	if (!empty)
	{
		const uint8 *middle = get_bound(image, bytes, bytes + length, true, &lower);

		(void) get_bound(image, middle, bytes + length, false, &upper);
	}
	range = smart_make_range(type, &lower, &upper, empty);
	memcpy(space, range, VARSIZE(range));
	pfree(range);
	if (by_reference && !empty && !lower.infinite)
		pfree(DatumGetPointer(lower.val));
	if (by_reference && !empty && !upper.infinite)
		pfree(DatumGetPointer(upper.val));
	return PointerGetDatum(space);
}

/* By how much a range may be longer than its image: its type, flags, and alignment, headers and padding of the bounds */
static int
decode_extra(const struct smart_image *part, const TypeCacheEntry *element)
{
	int wider = Max(element->typlen - part->width, 0);

	return sizeof(Oid) + 1 + 2 * (MAXIMUM_ALIGNOF + VARHDRSZ + part->decode_extra + wider);
}

/* Sets what ranges and multiranges have in common */
static void
set_parts(struct smart_image *image, TypeCacheEntry *range)
{
	image->part = smart_image_of_part(image, range->rngelemtype->type_id, range->rng_collation,
									  range->rng_cmp_proc_finfo.fn_oid, NULL);
	image->details = range;
	image->unordered = image->part->unordered;
	image->version = image->part->version;
}

Datum
smart_image_range(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.encode = range_encode, .end = range_end};
	struct smart_image *image = (struct smart_image *) DatumGetPointer(smart_image_set(fcinfo, &form));
	TypeCacheEntry *type = lookup_type_cache(image->value_type, TYPECACHE_RANGE_INFO);

	if (type->rngelemtype == NULL)
		elog(ERROR, "type %u of a column of index \"%s\" is not a range", image->value_type, image->index_name);
	set_parts(image, type);
	image->forgets = image->part->forgets || image->part->residue_width > 0;
	if (!image->forgets)
	{
		image->decode = range_decode;
		image->decode_extra = decode_extra(image->part, type->rngelemtype);
	}
	return PointerGetDatum(image);
}

Datum
smart_image_multirange(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.forgets = true, .encode = multirange_encode, .end = multirange_end};
	struct smart_image *image = (struct smart_image *) DatumGetPointer(smart_image_set(fcinfo, &form));
	TypeCacheEntry *type = lookup_type_cache(image->value_type, TYPECACHE_MULTIRANGE_INFO);

	if (type->rngtype == NULL)
		elog(ERROR, "type %u of a column of index \"%s\" is not a multirange", image->value_type, image->index_name);
	set_parts(image, type->rngtype);
	return PointerGetDatum(image);
}

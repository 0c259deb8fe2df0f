/*
 * array.c
 *	  Normalized keys of arrays and of oidvector.
 *
 * Arrays compare element by element, a NULL being above all values, then by the number of elements and at last by
 * dimensions and their lower bounds:
 *
 *	01 key, or 02 for a NULL	each element
 *	00							behind the last one
 *	number of dimensions, elements of each if there are several of them, lower bound of each
 *
 * A lower bound of 1 is a byte 01; a lesser one has 00 before it and a greater one 02.  An oidvector compares by its
 * length first.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/arrayaccess.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "am/codec/normalizer.h"

#define MARK_END   0x00
#define MARK_VALUE 0x01
#define MARK_NULL  0x02

#define BOUND_BELOW 0x00
#define BOUND_ONE   0x01
#define BOUND_ABOVE 0x02

/* Bytes of an array beside its elements and the bits of its NULLs, which are fewer than the marks of the elements */
#define ARRAY_HEAD_MAX (ARR_OVERHEAD_WITHNULLS(MAXDIM, 0) + 2 * MAXIMUM_ALIGNOF)

#define VECTOR_HEAD (offsetof(oidvector, values) - VARHDRSZ)

/* How elements lie in an array */
struct element
{
	Oid type;
	int16 length;
	bool byval;
	char align;
};

static uint8 *
array_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	const struct element *element = normalizer->details;
	ArrayType *array = DatumGetArrayTypeP(value);
	int ndim = ARR_NDIM(array);
	int count = ArrayGetNItems(ndim, ARR_DIMS(array));
	array_iter iterator;

	smart_assert(out <= limit && normalizer->part != NULL);
	array_iter_setup(&iterator, (AnyArrayType *) array);
	for (int i = 0; i < count && out != NULL; i++)
	{
		bool isnull;
		Datum part = array_iter_next(&iterator, &isnull, i, element->length, element->byval, element->align);

		out = smart_put_byte(out, limit, isnull ? MARK_NULL : MARK_VALUE);
		if (!isnull)
			out = smart_put_normalized(normalizer->part, part, out, limit);
	}
	out = smart_put_byte(out, limit, MARK_END);

	out = smart_put_byte(out, limit, (uint8) ndim);
	for (int i = 0; i < ndim && ndim > 1; i++)
		out = smart_put_number(out, limit, ARR_DIMS(array)[i]);
	for (int i = 0; i < ndim; i++)
	{
		int bound = ARR_LBOUND(array)[i];

		out = smart_put_byte(out, limit, bound < 1 ? BOUND_BELOW : bound == 1 ? BOUND_ONE : BOUND_ABOVE);
		if (bound != 1)
			out = smart_put_number(out, limit, bound);
	}
	smart_free_copy(array, value);
	return out;
}

static const uint8 *
array_end(const struct smart_normalizer *normalizer, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	const uint8 *p = bytes;
	uint8 ndim = 0;
	uint8 mark;

	while ((p = smart_get_byte(p, limit, flip, &mark)) != NULL && mark != MARK_END)
	{
		if (mark == MARK_VALUE)
			p = smart_normalizer_end(normalizer->part, p, limit, flip);
	}
	p = smart_get_byte(p, limit, flip, &ndim);
	if (ndim > MAXDIM)
		return NULL;
	p = smart_skip(p, limit, ndim > 1 ? ndim * 4 : 0);
	for (int i = 0; i < ndim && p != NULL; i++)
	{
		p = smart_get_byte(p, limit, flip, &mark);
		if (p != NULL && mark != BOUND_ONE)
			p = smart_skip(p, limit, 4);
	}
	smart_assert(p == NULL || (p > bytes && p <= limit));
	return p;
}

/* The element values by value or in a chunk of their own, since the server copies them into the array */
static Datum
array_decode(const struct smart_normalizer *normalizer, const uint8 *bytes, int length, const uint8 *residue,
			 char *space)
{
	const struct element *element = normalizer->details;
	const struct smart_normalizer *part = normalizer->part;
	Datum *values = palloc(length * sizeof(Datum));
	bool *nulls = palloc(length * sizeof(bool));
	char *content = palloc((Size) length * MAXALIGN(element->length));
	const uint8 *p = bytes;
	int dims[MAXDIM];
	int bounds[MAXDIM];
	int count;
	int ndim;
	ArrayType *array;

	for (count = 0; *p != MARK_END; count++)
	{
		nulls[count] = *p++ == MARK_NULL;
		if (nulls[count])
			continue;
		values[count] = part->decode(part, p, part->width, NULL, content + (Size) count * MAXALIGN(element->length));
		p += part->width;
	}
	ndim = p[1];
	p += 2;
	smart_assert(count < length && ndim <= MAXDIM);
	dims[0] = count;
	for (int i = 0; ndim > 1 && i < ndim; i++, p += 4)
		dims[i] = smart_load_int32(p);
	for (int i = 0; i < ndim; i++)
	{
		uint8 mark = *p++;

		bounds[i] = mark == BOUND_ONE ? 1 : smart_load_int32(p);
		p += mark == BOUND_ONE ? 0 : 4;
	}
	smart_assert(p == bytes + length);

	array = construct_md_array(values, nulls, ndim, dims, bounds, element->type, element->length, element->byval,
							   element->align);
	smart_assert(VARSIZE(array) <= (Size) (length + normalizer->decode_extra));
	memcpy(space, array, VARSIZE(array));
	pfree(array);
	pfree(content);
	pfree(nulls);
	pfree(values);
	return PointerGetDatum(space);
}

static void
finish_array(struct smart_normalizer *normalizer)
{
	struct element element;
	TypeCacheEntry *type;

	memset(&element, 0, sizeof(element));
	element.type = get_element_type(normalizer->value_type);
	if (!OidIsValid(element.type))
		elog(ERROR, "type %u of a column of index \"%s\" is not an array", normalizer->value_type,
			 normalizer->index_name);
	get_typlenbyvalalign(element.type, &element.length, &element.byval, &element.align);
	type = lookup_type_cache(element.type, TYPECACHE_CMP_PROC);
	smart_normalizer_add_part(normalizer, element.type, normalizer->collation, type->cmp_proc);
	normalizer->details = smart_normalizer_keep(&element, sizeof(element));
	smart_assert(normalizer->part != NULL && normalizer->part->next == NULL);

	/* It can be returned if its elements are not much longer in an array than they are in the normalized key. */
	normalizer->forgets = normalizer->forgets || normalizer->part->width == 0 || element.length <= 0 ||
						  (int) att_align_nominal(element.length, element.align) > 1 + normalizer->part->width;
	normalizer->decode = normalizer->forgets ? NULL : array_decode;
	normalizer->decode_extra = normalizer->forgets ? 0 : ARRAY_HEAD_MAX;
}

/* ---- oidvector ---- */

static uint8 *
oidvector_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	oidvector *vector = (oidvector *) PG_DETOAST_DATUM(value);

	out = smart_put_word32(out, limit, (uint32) vector->dim1);
	for (int i = 0; i < vector->dim1 && out != NULL; i++)
		out = smart_put_word32(out, limit, vector->values[i]);
	smart_free_copy(vector, value);
	return out;
}

static const uint8 *
oidvector_end(const struct smart_normalizer *normalizer, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	uint32 count = 0;
	const uint8 *p = smart_get_word32(bytes, limit, flip, &count);

	return smart_skip(p, limit, 4 * (Size) count);
}

static Datum
oidvector_decode(const struct smart_normalizer *normalizer, const uint8 *bytes, int length, const uint8 *residue,
				 char *space)
{
	oidvector *vector = (oidvector *) space;
	int count = length / 4 - 1;

	smart_assert(length % 4 == 0 && smart_load_be32(bytes) == (uint32) count);
	SET_VARSIZE(vector, offsetof(oidvector, values) + count * sizeof(Oid));
	vector->ndim = 1;
	vector->dataoffset = 0;
	vector->elemtype = OIDOID;
	vector->dim1 = count;
	vector->lbound1 = 0;
	for (int i = 0; i < count; i++)
		vector->values[i] = smart_load_be32(bytes + 4 + 4 * i);
	return PointerGetDatum(vector);
}

SMART_NORMALIZER(array, finish_array, .encode = array_encode, .end = array_end);
SMART_NORMALIZER(oidvector, NULL, .decode_extra = VECTOR_HEAD, .encode = oidvector_encode, .end = oidvector_end,
				 .decode = oidvector_decode);

/*
 * image_array.c - images of arrays and of oidvector
 *
 * Arrays compare element by element, a NULL being above all values, then by the number of elements and at last by
 * dimensions and their lower bounds:
 *
 *	01 image, or 02 for a NULL	each element
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

#include "am/image.h"

#define MARK_END   0x00
#define MARK_VALUE 0x01
#define MARK_NULL  0x02

#define BOUND_BELOW 0x00
#define BOUND_ONE   0x01
#define BOUND_ABOVE 0x02

#define INT32_SIGN UINT32_C(0x80000000)

/* Bytes of an array beside its elements and the bits of its NULLs, which are fewer than the marks of the elements */
#define ARRAY_HEAD_MAX (ARR_OVERHEAD_WITHNULLS(MAXDIM, 0) + 2 * MAXIMUM_ALIGNOF)

#define VECTOR_HEAD (offsetof(oidvector, values) - VARHDRSZ)

SMART_IMAGE_FUNCTION(smart_image_array);
SMART_IMAGE_FUNCTION(smart_image_oidvector);

/* How elements lie in an array */
struct element
{
	Oid type;
	int16 length;
	bool byval;
	char align;
};

static uint8 *
put_int32(uint8 *out, uint8 *limit, int32 number)
{
	uint8 bytes[4];

	smart_put_be32(bytes, (uint32) number ^ INT32_SIGN);
	return smart_put_bytes(out, limit, bytes, sizeof(bytes));
}

static int32
get_int32(const uint8 *bytes)
{
	return (int32) (smart_get_be32(bytes) ^ INT32_SIGN);
}

static uint8 *
put_bound(uint8 *out, uint8 *limit, int bound)
{
	uint8 mark = bound < 1 ? BOUND_BELOW : bound == 1 ? BOUND_ONE : BOUND_ABOVE;

	out = smart_put_byte(out, limit, mark);
	return out == NULL || mark == BOUND_ONE ? out : put_int32(out, limit, bound);
}

static uint8 *
put_shape(uint8 *out, uint8 *limit, const ArrayType *array)
{
	int ndim = ARR_NDIM(array);

	out = smart_put_byte(out, limit, (uint8) ndim);
	for (int i = 0; i < ndim && ndim > 1 && out != NULL; i++)
		out = put_int32(out, limit, ARR_DIMS(array)[i]);
	for (int i = 0; i < ndim && out != NULL; i++)
		out = put_bound(out, limit, ARR_LBOUND(array)[i]);
	return out;
}

static uint8 *
put_elements(const struct smart_image *image, ArrayType *array, uint8 *out, uint8 *limit)
{
	const struct element *element = image->details;
	int count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	array_iter iterator;

	array_iter_setup(&iterator, (AnyArrayType *) array);
	for (int i = 0; i < count && out != NULL; i++)
	{
		bool isnull;
		Datum value = array_iter_next(&iterator, &isnull, i, element->length, element->byval, element->align);

		out = smart_put_byte(out, limit, isnull ? MARK_NULL : MARK_VALUE);
		if (out != NULL && !isnull)
			out = smart_put_image(image->part, value, out, limit);
	}
	return out == NULL ? NULL : smart_put_byte(out, limit, MARK_END);
}

static uint8 *
array_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	ArrayType *array = DatumGetArrayTypeP(value);

	out = put_elements(image, array, out, limit);
	if (out != NULL)
		out = put_shape(out, limit, array);
	if (PointerGetDatum(array) != value)
		pfree(array);
	return out;
}

/* The end of a shape, or NULL */
static const uint8 *
shape_end(const uint8 *p, const uint8 *limit, uint8 flip)
{
	int ndim;

	if (p >= limit)
		return NULL;
	ndim = *p++ ^ flip;
	if (ndim > MAXDIM || limit - p < (ndim > 1 ? ndim * 4 : 0))
		return NULL;
	p += ndim > 1 ? ndim * 4 : 0;
	for (int i = 0; i < ndim; i++)
	{
		if (p >= limit)
			return NULL;
		p += (*p ^ flip) == BOUND_ONE ? 1 : 5;
	}
	return p <= limit ? p : NULL;
}

static const uint8 *
array_end(const struct smart_image *image, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	const uint8 *p = bytes;

	while (p != NULL && p < limit)
	{
		uint8 mark = *p++ ^ flip;

		if (mark == MARK_END)
			return shape_end(p, limit, flip);
		if (mark == MARK_VALUE)
			p = smart_image_end(image->part, p, limit, flip);
	}
	return NULL;
}

/* ---- back to the array ---- */

/* The elements, in values and nulls, which have room for all; sets *count and returns where the shape begins */
static const uint8 *
get_elements(const struct smart_image *image, const uint8 *p, Datum *values, bool *nulls, char *space, int *count)
{
	const struct element *element = image->details;

	for (*count = 0; *p != MARK_END; (*count)++)
	{
		nulls[*count] = *p++ == MARK_NULL;
		if (nulls[*count])
			continue;
		values[*count] = image->part->decode(image->part, p, image->part->width, NULL, space);
		p += image->part->width;
		space += MAXALIGN(element->length);
	}
	return p + 1;
}

static void
get_shape(const uint8 *p, int count, int *ndim, int *dims, int *bounds)
{
	*ndim = *p++;
	dims[0] = count;
	for (int i = 0; i<*ndim && * ndim> 1; i++, p += 4)
		dims[i] = get_int32(p);
	for (int i = 0; i < *ndim; i++)
	{
		uint8 mark = *p++;

		bounds[i] = mark == BOUND_ONE ? 1 : get_int32(p);
		p += mark == BOUND_ONE ? 0 : 4;
	}
}

static Datum
array_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	const struct element *element = image->details;
	Datum *values = palloc(length * sizeof(Datum));
	bool *nulls = palloc(length * sizeof(bool));
	char *content = palloc((Size) length * MAXALIGN(element->length));
	int dims[MAXDIM];
	int bounds[MAXDIM];
	int count;
	int ndim;
	const uint8 *shape = get_elements(image, bytes, values, nulls, content, &count);
	ArrayType *array;

	get_shape(shape, count, &ndim, dims, bounds);
	array = construct_md_array(values, nulls, ndim, dims, bounds, element->type, element->length, element->byval,
							   element->align);
	memcpy(space, array, VARSIZE(array));
	pfree(array);
	pfree(content);
	pfree(nulls);
	pfree(values);
	return PointerGetDatum(space);
}

/* An array of such elements is not much longer than its image, and the image tells all of it */
static bool
is_returnable(const struct smart_image *part, const struct element *element)
{
	return !part->forgets && part->residue_width == 0 && part->width > 0 && element->length > 0 &&
		   (int) att_align_nominal(element->length, element->align) <= 1 + part->width;
}

Datum
smart_image_array(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.encode = array_encode, .end = array_end};
	struct smart_image *image = (struct smart_image *) DatumGetPointer(smart_image_set(fcinfo, &form));
	struct element element;
	TypeCacheEntry *type;

	memset(&element, 0, sizeof(element));
	element.type = get_element_type(image->value_type);
	if (!OidIsValid(element.type))
		elog(ERROR, "type %u of a column of index \"%s\" is not an array", image->value_type, image->index_name);
	get_typlenbyvalalign(element.type, &element.length, &element.byval, &element.align);
	type = lookup_type_cache(element.type, TYPECACHE_CMP_PROC);
	image->part = smart_image_of_part(image, element.type, image->collation, type->cmp_proc, NULL);
	image->details = smart_image_keep(&element, sizeof(element));
	image->unordered = image->part->unordered;
	image->version = image->part->version;
	image->forgets = !is_returnable(image->part, &element);
	if (!image->forgets)
	{
		image->decode = array_decode;
		image->decode_extra = ARRAY_HEAD_MAX;
	}
	return PointerGetDatum(image);
}

/* ---- oidvector ---- */

static uint8 *
oidvector_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	oidvector *vector = (oidvector *) PG_DETOAST_DATUM(value);
	uint8 word[4];

	smart_put_be32(word, (uint32) vector->dim1);
	out = smart_put_bytes(out, limit, word, sizeof(word));
	for (int i = 0; i < vector->dim1 && out != NULL; i++)
	{
		smart_put_be32(word, vector->values[i]);
		out = smart_put_bytes(out, limit, word, sizeof(word));
	}
	if (PointerGetDatum(vector) != value)
		pfree(vector);
	return out;
}

static const uint8 *
oidvector_end(const struct smart_image *image, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	Size room = limit - bytes;
	uint32 count;

	if (room < 4)
		return NULL;
	count = smart_get_be32(bytes) ^ (flip == 0 ? 0 : PG_UINT32_MAX);
	return count > (room - 4) / 4 ? NULL : bytes + 4 + 4 * count;
}

static Datum
oidvector_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	oidvector *vector = (oidvector *) space;
	int count = length / 4 - 1;

	SET_VARSIZE(vector, offsetof(oidvector, values) + count * sizeof(Oid));
	vector->ndim = 1;
	vector->dataoffset = 0;
	vector->elemtype = OIDOID;
	vector->dim1 = count;
	vector->lbound1 = 0;
	for (int i = 0; i < count; i++)
		vector->values[i] = smart_get_be32(bytes + 4 + 4 * i);
	return PointerGetDatum(vector);
}

Datum
smart_image_oidvector(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.decode_extra = VECTOR_HEAD,
											.encode = oidvector_encode,
											.end = oidvector_end,
											.decode = oidvector_decode};

	return smart_image_set(fcinfo, &form);
}

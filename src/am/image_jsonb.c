/*
 * image_jsonb.c - images of jsonb
 *
 * Values of different kinds compare by their kind, containers of one kind by their number of elements and then element
 * by element, an object's keys being elements in the order in which they are stored:
 *
 *	01							an empty array that is the whole value: below everything, unlike one within another value
 *	02							null
 *	03 image as of text			string, also a key
 *	04 image as of numeric		number
 *	05, 06						false, true
 *	07 count element ...		array
 *	08 count key element ...	object
 *
 * A count is a byte, or FF and four bytes.  Strings compare under the collation of the database, whatever the column's
 * is.
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"

#include "am/image.h"

#define MARK_NOTHING 0x01
#define MARK_NULL    0x02
#define MARK_STRING  0x03
#define MARK_NUMBER  0x04
#define MARK_FALSE   0x05
#define MARK_TRUE    0x06
#define MARK_ARRAY   0x07
#define MARK_OBJECT  0x08

#define COUNT_LONG 0xFF

SMART_IMAGE_FUNCTION(smart_image_jsonb);

static const struct smart_image *
image_of_strings(const struct smart_image *image)
{
	return image->part;
}

static const struct smart_image *
image_of_numbers(const struct smart_image *image)
{
	return image->part->next;
}

static uint8 *
put_container(uint8 *out, uint8 *limit, uint8 mark, uint32 count)
{
	uint8 bytes[6] = {mark, COUNT_LONG};

	if (count >= COUNT_LONG)
	{
		smart_put_be32(bytes + 2, count);
		return smart_put_bytes(out, limit, bytes, sizeof(bytes));
	}
	bytes[1] = (uint8) count;
	return smart_put_bytes(out, limit, bytes, 2);
}

static uint8 *
put_string(const struct smart_image *image, const JsonbValue *value, uint8 *out, uint8 *limit)
{
	text *string = cstring_to_text_with_len(value->val.string.val, value->val.string.len);

	out = smart_put_byte(out, limit, MARK_STRING);
	if (out != NULL)
		out = smart_put_image(image_of_strings(image), PointerGetDatum(string), out, limit);
	pfree(string);
	return out;
}

static uint8 *
put_scalar(const struct smart_image *image, const JsonbValue *value, uint8 *out, uint8 *limit)
{
	switch (value->type)
	{
		case jbvNull:
			return smart_put_byte(out, limit, MARK_NULL);
		case jbvString:
			return put_string(image, value, out, limit);
		case jbvNumeric:
			out = smart_put_byte(out, limit, MARK_NUMBER);
			if (out != NULL)
				out = smart_put_image(image_of_numbers(image), NumericGetDatum(value->val.numeric), out, limit);
			return out;
		case jbvBool:
			return smart_put_byte(out, limit, value->val.boolean ? MARK_TRUE : MARK_FALSE);
		default:
			elog(ERROR, "unexpected kind %d of a value within jsonb", (int) value->type);
	}
}

/* What the iterator came to, the end of a container being nothing.  A scalar lies in an array for its own. */
static uint8 *
put_step(const struct smart_image *image, JsonbIteratorToken step, const JsonbValue *value, bool whole, uint8 *out,
		 uint8 *limit)
{
	switch (step)
	{
		case WJB_BEGIN_ARRAY:
			if (value->val.array.rawScalar)
				return out;
			if (whole && value->val.array.nElems == 0)
				return smart_put_byte(out, limit, MARK_NOTHING);
			return put_container(out, limit, MARK_ARRAY, (uint32) value->val.array.nElems);
		case WJB_BEGIN_OBJECT:
			return put_container(out, limit, MARK_OBJECT, (uint32) value->val.object.nPairs);
		case WJB_KEY:
		case WJB_VALUE:
		case WJB_ELEM:
			return put_scalar(image, value, out, limit);
		default:
			return out;
	}
}

static void
end_iteration(JsonbIterator *iterator)
{
	while (iterator != NULL)
	{
		JsonbIterator *outer = iterator->parent;

		pfree(iterator);
		iterator = outer;
	}
}

static uint8 *
jsonb_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	Jsonb *jsonb = DatumGetJsonbP(value);
	JsonbIterator *iterator = JsonbIteratorInit(&jsonb->root);
	bool whole = true;
	JsonbIteratorToken step;
	JsonbValue part;

	while (out != NULL && (step = JsonbIteratorNext(&iterator, &part, false)) != WJB_DONE)
	{
		out = put_step(image, step, &part, whole, out, limit);
		whole = false;
	}
	end_iteration(iterator);
	if (PointerGetDatum(jsonb) != value)
		pfree(jsonb);
	return out;
}

/* The end of a count, or NULL */
static const uint8 *
get_count(const uint8 *p, const uint8 *limit, uint8 flip, uint32 *count)
{
	if (p >= limit)
		return NULL;
	*count = *p++ ^ flip;
	if (*count != COUNT_LONG)
		return p;
	if (limit - p < 4)
		return NULL;
	*count = smart_get_be32(p) ^ (flip == 0 ? 0 : PG_UINT32_MAX);
	return p + 4;
}

static const uint8 *
jsonb_end(const struct smart_image *image, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	const uint8 *p = bytes;
	uint64 left = 1; /* values and keys */

	for (; left > 0 && p != NULL && p < limit; left--)
	{
		uint8 mark = *p++ ^ flip;
		uint32 count = 0;

		if (mark == MARK_STRING)
			p = smart_image_end(image_of_strings(image), p, limit, flip);
		else if (mark == MARK_NUMBER)
			p = smart_image_end(image_of_numbers(image), p, limit, flip);
		else if (mark == MARK_ARRAY || mark == MARK_OBJECT)
			p = get_count(p, limit, flip, &count);
		left += mark == MARK_OBJECT ? 2 * (uint64) count : count;
	}
	return left == 0 ? p : NULL;
}

Datum
smart_image_jsonb(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.forgets = true, .encode = jsonb_encode, .end = jsonb_end};
	struct smart_image *image = (struct smart_image *) DatumGetPointer(smart_image_set(fcinfo, &form));
	const struct smart_image *numbers = smart_image_of_part(image, NUMERICOID, InvalidOid, F_NUMERIC_CMP, NULL);

	image->part = smart_image_of_part(image, TEXTOID, DEFAULT_COLLATION_OID, F_BTTEXTCMP, numbers);
	image->unordered = image->part->unordered;
	image->version = image->part->version;
	return PointerGetDatum(image);
}

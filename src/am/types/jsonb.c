/*
 * jsonb.c
 *	  Normalized keys of jsonb.
 *
 * Values of different kinds compare by their kind, containers of one kind by their number of elements and then element
 * by element, an object's keys being elements in the order in which they are stored:
 *
 *	01							an empty array that is the whole value: below everything, unlike one within another value
 *	02							null
 *	03 key as of text			string, also a key
 *	04 key as of numeric			number
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

#include "am/codec/normalizer.h"

#define MARK_NOTHING 0x01
#define MARK_NULL    0x02
#define MARK_STRING  0x03
#define MARK_NUMBER  0x04
#define MARK_FALSE   0x05
#define MARK_TRUE    0x06
#define MARK_ARRAY   0x07
#define MARK_OBJECT  0x08

#define COUNT_LONG 0xFF

/* Parts of the normalizer: that of strings, and behind it that of numbers */
#define STRINGS(normalizer) ((normalizer)->part)
#define NUMBERS(normalizer) ((normalizer)->part->next)

static uint8 *
put_container(uint8 *out, uint8 *limit, uint8 mark, uint32 count)
{
	out = smart_put_byte(out, limit, mark);
	if (count < COUNT_LONG)
		return smart_put_byte(out, limit, (uint8) count);
	return smart_put_word32(smart_put_byte(out, limit, COUNT_LONG), limit, count);
}

static uint8 *
put_scalar(const struct smart_normalizer *normalizer, const JsonbValue *value, uint8 *out, uint8 *limit)
{
	text *string;

	switch (value->type)
	{
		case jbvNull:
			return smart_put_byte(out, limit, MARK_NULL);
		case jbvString:
			string = cstring_to_text_with_len(value->val.string.val, value->val.string.len);
			out = smart_put_byte(out, limit, MARK_STRING);
			out = smart_put_normalized(STRINGS(normalizer), PointerGetDatum(string), out, limit);
			pfree(string);
			return out;
		case jbvNumeric:
			out = smart_put_byte(out, limit, MARK_NUMBER);
			return smart_put_normalized(NUMBERS(normalizer), NumericGetDatum(value->val.numeric), out, limit);
		case jbvBool:
			return smart_put_byte(out, limit, value->val.boolean ? MARK_TRUE : MARK_FALSE);
		default:
			elog(ERROR, "unexpected kind %d of a value within jsonb", (int) value->type);
	}
}

static uint8 *
jsonb_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	Jsonb *jsonb = DatumGetJsonbP(value);
	JsonbIterator *iterator = JsonbIteratorInit(&jsonb->root);
	bool whole = true;
	JsonbIteratorToken step;
	JsonbValue part;

	for (; out != NULL && (step = JsonbIteratorNext(&iterator, &part, false)) != WJB_DONE; whole = false)
	{
		if (step == WJB_KEY || step == WJB_VALUE || step == WJB_ELEM)
			out = put_scalar(normalizer, &part, out, limit);
		else if (step == WJB_BEGIN_OBJECT)
			out = put_container(out, limit, MARK_OBJECT, (uint32) part.val.object.nPairs);
		/* A scalar lies in an array for its own. */
		else if (step == WJB_BEGIN_ARRAY && whole && part.val.array.nElems == 0)
			out = smart_put_byte(out, limit, MARK_NOTHING);
		else if (step == WJB_BEGIN_ARRAY && !part.val.array.rawScalar)
			out = put_container(out, limit, MARK_ARRAY, (uint32) part.val.array.nElems);
	}
	/* Where the room was not enough, the iterator is still within containers. */
	smart_assert(out == NULL || (out <= limit && iterator == NULL));
	while (iterator != NULL)
	{
		JsonbIterator *outer = iterator->parent;

		pfree(iterator);
		iterator = outer;
	}
	smart_free_copy(jsonb, value);
	return out;
}

static const uint8 *
jsonb_end(const struct smart_normalizer *normalizer, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	const uint8 *p = bytes;
	uint64 left = 1; /* values and keys */

	for (; left > 0 && p != NULL; left--)
	{
		uint8 mark = 0;
		uint8 count = 0;
		uint32 long_count = 0;

		p = smart_get_byte(p, limit, flip, &mark);
		if (mark == MARK_STRING)
			p = smart_normalizer_end(STRINGS(normalizer), p, limit, flip);
		else if (mark == MARK_NUMBER)
			p = smart_normalizer_end(NUMBERS(normalizer), p, limit, flip);
		else if (mark == MARK_ARRAY || mark == MARK_OBJECT)
			p = smart_get_byte(p, limit, flip, &count);
		if (count == COUNT_LONG)
			p = smart_get_word32(p, limit, flip, &long_count);
		else
			long_count = count;
		left += mark == MARK_OBJECT ? 2 * (uint64) long_count : long_count;
	}
	smart_assert(p == NULL || (p > bytes && p <= limit));
	return p;
}

static void
finish_jsonb(struct smart_normalizer *normalizer)
{
	smart_normalizer_add_part(normalizer, NUMERICOID, InvalidOid, F_NUMERIC_CMP);
	smart_normalizer_add_part(normalizer, TEXTOID, DEFAULT_COLLATION_OID, F_BTTEXTCMP);
	smart_assert(NUMBERS(normalizer)->value_type == NUMERICOID && NUMBERS(normalizer)->next == NULL);
}

SMART_NORMALIZER(jsonb, finish_jsonb, .forgets = true, .encode = jsonb_encode, .end = jsonb_end);

/*
 * integer.c
 *	  Normalized keys of the integers, and of types that are integers inside.
 *
 * Unsigned types (bool, "char" too, oid, pg_lsn, xid8, tid) are their big-endian bytes.  Signed ones (money too) have
 * the sign bit flipped, which moves the negative numbers below the others.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "storage/itemptr.h"

#include "am/codec/normalizer.h"

/* Defines the callbacks of a type whose Datum is a number: how it is written, loaded, got from a Datum and made one */
#define CALLBACKS(scope, name, put, load, to, from)                                                              \
	scope uint8 *name##_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit) \
	{                                                                                                            \
		smart_assert(normalizer->width == sizeof(to(value)) && normalizer->width <= limit - out);                \
		return put(out, to(value));                                                                              \
	}                                                                                                            \
	scope Datum name##_decode(const struct smart_normalizer *normalizer, const uint8 *bytes, int length,         \
							  const uint8 *residue, char *space)                                                 \
	{                                                                                                            \
		smart_assert(length == normalizer->width && (size_t) length == sizeof(load(bytes)));                     \
		return from(load(bytes));                                                                                \
	}

static inline uint8 *
put_byte(uint8 *out, uint8 byte)
{
	*out = byte;
	return out + 1;
}

static inline char
load_byte(const uint8 *bytes)
{
	return (char) *bytes;
}

CALLBACKS(static, bool, put_byte, load_byte, DatumGetBool, BoolGetDatum)
CALLBACKS(static, char, put_byte, load_byte, DatumGetChar, CharGetDatum)
CALLBACKS(static, oid, smart_put_be32, smart_load_be32, DatumGetObjectId, ObjectIdGetDatum)
CALLBACKS(static, word, smart_put_be64, smart_load_be64, DatumGetUInt64, UInt64GetDatum)
CALLBACKS(static, int2, smart_put_int16, smart_load_int16, DatumGetInt16, Int16GetDatum)
CALLBACKS(, smart_int4, smart_put_int32, smart_load_int32, DatumGetInt32, Int32GetDatum)
CALLBACKS(, smart_int8, smart_put_int64, smart_load_int64, DatumGetInt64, Int64GetDatum)

static uint8 *
tid_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	ItemPointer tid = (ItemPointer) DatumGetPointer(value);

	smart_assert(normalizer->width == SMART_TID_PLAIN && normalizer->width <= limit - out);
	out = smart_put_be32(out, ItemPointerGetBlockNumberNoCheck(tid));
	return smart_put_be16(out, ItemPointerGetOffsetNumberNoCheck(tid));
}

static Datum
tid_decode(const struct smart_normalizer *normalizer, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	ItemPointerData tid;

	smart_assert(length == normalizer->width);
	ItemPointerSet(&tid, smart_load_be32(bytes), smart_load_be16(bytes + 4));
	memcpy(space, &tid, sizeof(tid));
	return PointerGetDatum(space);
}

/* A Datum of a short integer type holds the value sign-extended, so one constructor serves all three */
static enum smart_argument_place
integer_place(const struct smart_normalizer *normalizer, Datum argument, Oid argtype, Datum *value, Datum *high)
{
	int64 least = normalizer->type == INT2OID   ? PG_INT16_MIN
				  : normalizer->type == INT4OID ? PG_INT32_MIN
												: PG_INT64_MIN;
	int64 greatest = normalizer->type == INT2OID   ? PG_INT16_MAX
					 : normalizer->type == INT4OID ? PG_INT32_MAX
												   : PG_INT64_MAX;
	int64 number;

	switch (argtype)
	{
		case INT2OID:
			number = DatumGetInt16(argument);
			break;
		case INT4OID:
			number = DatumGetInt32(argument);
			break;
		case INT8OID:
			number = DatumGetInt64(argument);
			break;
		default:
			elog(ERROR, "type %u is not an integer type", argtype);
	}
	*value = Int64GetDatum(Max(least, Min(greatest, number)));
	if (number < least)
		return SMART_ARGUMENT_BELOW;
	if (number > greatest)
		return SMART_ARGUMENT_ABOVE;
	return SMART_ARGUMENT_AT;
}

SMART_NORMALIZER(bool, NULL, .width = 1, .encode = bool_encode, .decode = bool_decode);
SMART_NORMALIZER(char, NULL, .width = 1, .encode = char_encode, .decode = char_decode);
SMART_NORMALIZER(oid, NULL, .width = 4, .encode = oid_encode, .decode = oid_decode);
/* 64 bits without a sign: pg_lsn and xid8 */
SMART_NORMALIZER(word, NULL, .width = 8, .encode = word_encode, .decode = word_decode);
SMART_NORMALIZER(int2, NULL, .width = 2, .encode = int2_encode, .decode = int2_decode, .place = integer_place);
SMART_NORMALIZER(int4, NULL, .width = 4, .encode = smart_int4_encode, .decode = smart_int4_decode,
				 .place = integer_place);
SMART_NORMALIZER(int8, NULL, .width = 8, .encode = smart_int8_encode, .decode = smart_int8_decode,
				 .place = integer_place);
/* As int8, but alone in its family */
SMART_NORMALIZER(money, NULL, .width = 8, .encode = smart_int8_encode, .decode = smart_int8_decode);
SMART_NORMALIZER(tid, NULL, .width = 6, .encode = tid_encode, .decode = tid_decode);

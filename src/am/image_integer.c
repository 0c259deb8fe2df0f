/*
 * image_integer.c - images of the integers, and of types that are integers inside
 *
 * Unsigned types (bool, "char" too, oid, pg_lsn, xid8, tid) are their big-endian bytes.  Signed ones (money too) have the
 * sign bit flipped, which moves the negative numbers below the others.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "storage/itemptr.h"

#include "am/image.h"

SMART_IMAGE_FUNCTION(smart_image_bool);
SMART_IMAGE_FUNCTION(smart_image_oid);
SMART_IMAGE_FUNCTION(smart_image_int2);
SMART_IMAGE_FUNCTION(smart_image_int4);
SMART_IMAGE_FUNCTION(smart_image_int8);
SMART_IMAGE_FUNCTION(smart_image_money);
SMART_IMAGE_FUNCTION(smart_image_char);
SMART_IMAGE_FUNCTION(smart_image_word);
SMART_IMAGE_FUNCTION(smart_image_tid);

static uint8 *
bool_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	*out = DatumGetBool(value) ? 1 : 0;
	return out + 1;
}

static Datum
bool_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	return BoolGetDatum(*bytes != 0);
}

static uint8 *
oid_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	return smart_put_be32(out, DatumGetObjectId(value));
}

static Datum
oid_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	return ObjectIdGetDatum(smart_get_be32(bytes));
}

static uint8 *
int2_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	return smart_put_be16(out, (uint16) DatumGetInt16(value) ^ UINT16_C(0x8000));
}

static Datum
int2_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	return Int16GetDatum((int16) (smart_get_be16(bytes) ^ UINT16_C(0x8000)));
}

static uint8 *
int4_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	return smart_put_be32(out, (uint32) DatumGetInt32(value) ^ UINT32_C(0x80000000));
}

static Datum
int4_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	return Int32GetDatum((int32) (smart_get_be32(bytes) ^ UINT32_C(0x80000000)));
}

static uint8 *
int8_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	return smart_put_be64(out, (uint64) DatumGetInt64(value) ^ UINT64_C(0x8000000000000000));
}

static Datum
int8_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	return Int64GetDatum((int64) (smart_get_be64(bytes) ^ UINT64_C(0x8000000000000000)));
}

static uint8 *
char_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	*out = (uint8) DatumGetChar(value);
	return out + 1;
}

static Datum
char_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	return CharGetDatum((char) *bytes);
}

static uint8 *
word_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	return smart_put_be64(out, DatumGetUInt64(value));
}

static Datum
word_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	return UInt64GetDatum(smart_get_be64(bytes));
}

static uint8 *
tid_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	ItemPointer tid = (ItemPointer) DatumGetPointer(value);

	out = smart_put_be32(out, ItemPointerGetBlockNumberNoCheck(tid));
	return smart_put_be16(out, ItemPointerGetOffsetNumberNoCheck(tid));
}

static Datum
tid_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	ItemPointerData tid;

	ItemPointerSet(&tid, smart_get_be32(bytes), smart_get_be16(bytes + 4));
	memcpy(space, &tid, sizeof(tid));
	return PointerGetDatum(space);
}

static int64
integer_argument(Datum argument, Oid argtype)
{
	switch (argtype)
	{
		case INT2OID:
			return DatumGetInt16(argument);
		case INT4OID:
			return DatumGetInt32(argument);
		case INT8OID:
			return DatumGetInt64(argument);
		default:
			elog(ERROR, "type %u is not an integer type", argtype);
	}
}

/* A Datum of a short integer type holds the value sign-extended, so one constructor serves all three */
static enum smart_place
integer_place(const struct smart_image *image, Datum argument, Oid argtype, Datum *value, Datum *high)
{
	int64 number = integer_argument(argument, argtype);
	int64 least = image->type == INT2OID ? PG_INT16_MIN : image->type == INT4OID ? PG_INT32_MIN : PG_INT64_MIN;
	int64 greatest = image->type == INT2OID ? PG_INT16_MAX : image->type == INT4OID ? PG_INT32_MAX : PG_INT64_MAX;

	*value = Int64GetDatum(Max(least, Min(greatest, number)));
	if (number < least)
		return SMART_PLACE_BELOW;
	if (number > greatest)
		return SMART_PLACE_ABOVE;
	return SMART_PLACE_AT;
}

Datum
smart_image_bool(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.width = 1, .encode = bool_encode, .decode = bool_decode};

	return smart_image_set(fcinfo, &form);
}

Datum
smart_image_oid(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.width = 4, .encode = oid_encode, .decode = oid_decode};

	return smart_image_set(fcinfo, &form);
}

Datum
smart_image_int2(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.width = 2,
											.encode = int2_encode,
											.decode = int2_decode,
											.place = integer_place};

	return smart_image_set(fcinfo, &form);
}

Datum
smart_image_int4(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.width = 4,
											.encode = int4_encode,
											.decode = int4_decode,
											.place = integer_place};

	return smart_image_set(fcinfo, &form);
}

Datum
smart_image_int8(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.width = 8,
											.encode = int8_encode,
											.decode = int8_decode,
											.place = integer_place};

	return smart_image_set(fcinfo, &form);
}

/* As int8, but alone in its family */
Datum
smart_image_money(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.width = 8, .encode = int8_encode, .decode = int8_decode};

	return smart_image_set(fcinfo, &form);
}

Datum
smart_image_char(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.width = 1, .encode = char_encode, .decode = char_decode};

	return smart_image_set(fcinfo, &form);
}

/* 64 bits without a sign: pg_lsn and xid8 */
Datum
smart_image_word(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.width = 8, .encode = word_encode, .decode = word_decode};

	return smart_image_set(fcinfo, &form);
}

Datum
smart_image_tid(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.width = 6, .encode = tid_encode, .decode = tid_decode};

	return smart_image_set(fcinfo, &form);
}

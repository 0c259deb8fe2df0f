/*
 * image_float.c - images of float4 and float8
 *
 * The bits of an IEEE number order like sign and magnitude: non-negative numbers get the sign bit set, negative ones are
 * complemented.  SQL has one zero and one NaN, greater than all, so both are made one before; the residue keeps their
 * sign (the other bits of a NaN, which SQL cannot tell apart, come back as those of the usual one).
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "utils/float.h"

#include "am/image.h"

#define FLOAT8_SIGN UINT64_C(0x8000000000000000)
#define FLOAT4_SIGN UINT32_C(0x80000000)

SMART_IMAGE_FUNCTION(smart_image_float4);
SMART_IMAGE_FUNCTION(smart_image_float8);

static uint8 *
float8_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	float8 number = DatumGetFloat8(value);
	uint64 bits;

	if (number == 0)
		number = 0; /* drops the sign */
	else if (unlikely(isnan(number)))
		number = get_float8_nan();
	memcpy(&bits, &number, sizeof(bits));
	return smart_put_be64(out, bits & FLOAT8_SIGN ? ~bits : bits | FLOAT8_SIGN);
}

static Datum
float8_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	uint64 bits = smart_get_be64(bytes);
	float8 number;

	bits = bits & FLOAT8_SIGN ? bits & ~FLOAT8_SIGN : ~bits;
	if (*residue)
		bits |= FLOAT8_SIGN;
	memcpy(&number, &bits, sizeof(number));
	return Float8GetDatum(number);
}

static void
float8_residue(const struct smart_image *image, Datum value, uint8 *residue)
{
	float8 number = DatumGetFloat8(value);

	*residue = (number == 0 || isnan(number)) && signbit(number);
}

static uint8 *
float4_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	float4 number = DatumGetFloat4(value);
	uint32 bits;

	if (number == 0)
		number = 0; /* drops the sign */
	else if (unlikely(isnan(number)))
		number = get_float4_nan();
	memcpy(&bits, &number, sizeof(bits));
	return smart_put_be32(out, bits & FLOAT4_SIGN ? ~bits : bits | FLOAT4_SIGN);
}

static Datum
float4_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	uint32 bits = smart_get_be32(bytes);
	float4 number;

	bits = bits & FLOAT4_SIGN ? bits & ~FLOAT4_SIGN : ~bits;
	if (*residue)
		bits |= FLOAT4_SIGN;
	memcpy(&number, &bits, sizeof(number));
	return Float4GetDatum(number);
}

static void
float4_residue(const struct smart_image *image, Datum value, uint8 *residue)
{
	float4 number = DatumGetFloat4(value);

	*residue = (number == 0 || isnan(number)) && signbit(number);
}

/* Every float4 is a float8 */
static enum smart_place
float8_place(const struct smart_image *image, Datum argument, Oid argtype, Datum *value, Datum *high)
{
	if (argtype != FLOAT4OID)
		elog(ERROR, "type %u is not a floating-point type", argtype);
	*value = Float8GetDatum((float8) DatumGetFloat4(argument));
	return SMART_PLACE_AT;
}

/*
 * The operators compare as float8, so a float8 between two neighbouring float4 lies below the upper one.  Rounding goes
 * to one of the two (an infinity counts as a neighbour of the greatest number).
 */
static enum smart_place
float4_place(const struct smart_image *image, Datum argument, Oid argtype, Datum *value, Datum *high)
{
	float8 number = DatumGetFloat8(argument);
	float4 near = (float4) number;

	if (argtype != FLOAT8OID)
		elog(ERROR, "type %u is not a floating-point type", argtype);
	if (isnan(number) || (float8) near == number)
	{
		*value = Float4GetDatum(near);
		return SMART_PLACE_AT;
	}
	if ((float8) near < number)
		near = nextafterf(near, get_float4_infinity());
	Assert((float8) near > number);
	*value = Float4GetDatum(near);
	return SMART_PLACE_BELOW;
}

Datum
smart_image_float4(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.width = 4,
											.residue_width = 1,
											.encode = float4_encode,
											.decode = float4_decode,
											.residue = float4_residue,
											.place = float4_place};

	return smart_image_set(fcinfo, &form);
}

Datum
smart_image_float8(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.width = 8,
											.residue_width = 1,
											.encode = float8_encode,
											.decode = float8_decode,
											.residue = float8_residue,
											.place = float8_place};

	return smart_image_set(fcinfo, &form);
}

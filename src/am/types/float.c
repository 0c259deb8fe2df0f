/*
 * float.c
 *	  Normalized keys of float4 and float8.
 *
 * The bits of an IEEE number order like sign and magnitude: non-negative numbers get the sign bit set, negative ones
 * are complemented.  SQL has one zero and one NaN, greater than all, so both are made one before; the residue keeps
 * their sign (the other bits of a NaN, which SQL cannot tell apart, come back as those of the usual one).
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "utils/float.h"

#include "am/codec/normalizer.h"

/* Of a zero and of a NaN, the normalized key forgets the sign */
static inline bool
loses_sign(float8 number)
{
	return (number == 0 || isnan(number)) && signbit(number);
}

/* Defines the callbacks of a type: how it is written, loaded, got from a Datum and made one, and gets a sign */
#define CALLBACKS(name, put, load, to, from, with_sign)                                                           \
	static uint8 *name##_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit) \
	{                                                                                                             \
		name number = to(value);                                                                                  \
                                                                                                                  \
		smart_assert(normalizer->width == sizeof(number) && normalizer->width <= limit - out);                    \
		if (number == 0)                                                                                          \
			number = 0; /* drops the sign */                                                                      \
		else if (unlikely(isnan(number)))                                                                         \
			number = get_##name##_nan();                                                                          \
		return put(out, number);                                                                                  \
	}                                                                                                             \
	static Datum name##_decode(const struct smart_normalizer *normalizer, const uint8 *bytes, int length,         \
							   const uint8 *residue, char *space)                                                 \
	{                                                                                                             \
		smart_assert(length == normalizer->width && residue != NULL);                                             \
		return from(*residue ? with_sign(load(bytes), -1) : load(bytes));                                         \
	}                                                                                                             \
	static void name##_residue(const struct smart_normalizer *normalizer, Datum value, uint8 *residue)            \
	{                                                                                                             \
		smart_assert(normalizer->residue_width == sizeof(*residue));                                              \
		*residue = loses_sign(to(value));                                                                         \
	}

CALLBACKS(float4, smart_put_float32, smart_load_float32, DatumGetFloat4, Float4GetDatum, copysignf)
CALLBACKS(float8, smart_put_float64, smart_load_float64, DatumGetFloat8, Float8GetDatum, copysign)

/* Every float4 is a float8 */
static enum smart_argument_place
float8_place(const struct smart_normalizer *normalizer, Datum argument, Oid argtype, Datum *value, Datum *high)
{
	if (argtype != FLOAT4OID)
		elog(ERROR, "type %u is not a floating-point type", argtype);
	*value = Float8GetDatum((float8) DatumGetFloat4(argument));
	return SMART_ARGUMENT_AT;
}

/*
 * The operators compare as float8, so a float8 between two neighbouring float4 lies below the upper one.  Rounding goes
 * to one of the two (an infinity counts as a neighbour of the greatest number).
 */
static enum smart_argument_place
float4_place(const struct smart_normalizer *normalizer, Datum argument, Oid argtype, Datum *value, Datum *high)
{
	float8 number = DatumGetFloat8(argument);
	float4 near = (float4) number;

	if (argtype != FLOAT8OID)
		elog(ERROR, "type %u is not a floating-point type", argtype);
	if (isnan(number) || (float8) near == number)
	{
		*value = Float4GetDatum(near);
		return SMART_ARGUMENT_AT;
	}
	if ((float8) near < number)
		near = nextafterf(near, get_float4_infinity());
	smart_assert((float8) near > number);
	*value = Float4GetDatum(near);
	return SMART_ARGUMENT_BELOW;
}

SMART_NORMALIZER(float4, NULL, .width = 4, .residue_width = 1, .encode = float4_encode, .decode = float4_decode,
				 .residue = float4_residue, .place = float4_place);
SMART_NORMALIZER(float8, NULL, .width = 8, .residue_width = 1, .encode = float8_encode, .decode = float8_decode,
				 .residue = float8_residue, .place = float8_place);

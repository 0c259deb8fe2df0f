/*
 * seg.c
 *	  Normalized keys of seg, a type of the extension of that name: intervals whose bounds are measured values.
 *
 * A bound is the number; what is said of it; the number of significant digits; and whether it is an approximate one
 * (~).  Of a lower bound the vaguer one is below, of an upper one above: there the last two are complemented.
 */
#include "postgres.h"

#include "fmgr.h"

#include "am/codec/normalizer.h"

#define BOUND_WIDTH (sizeof(float4) + 3)

/* As the extension stores it since its first version */
struct seg
{
	float4 lower;
	float4 upper;
	int8 lower_digits;
	int8 upper_digits;
	char lower_sign; /* '<', '>' or '~' in front of the number, '-' if there is none, or 0 */
	char upper_sign;
};

/* Where the sign of a bound puts it; none: where one without a number is */
static uint8
rank_of(char sign, uint8 none)
{
	switch (sign)
	{
		case '-':
			return none;
		case '<':
			return 1;
		case '>':
			return 3;
		default:
			return 2;
	}
}

static uint8 *
put_bound(uint8 *out, float4 number, uint8 rank, int8 digits, char sign, uint8 flip)
{
	out = smart_put_float32(out, number == 0 ? 0 : number);
	*out++ = rank;
	*out++ = ((uint8) digits ^ 0x80) ^ flip;
	*out++ = (sign == '~' ? 0 : 1) ^ flip;
	return out;
}

static uint8 *
seg_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	const struct seg *seg = (const struct seg *) DatumGetPointer(value);

	smart_assert(normalizer->width == 2 * BOUND_WIDTH && normalizer->width <= limit - out);
	out = put_bound(out, seg->lower, rank_of(seg->lower_sign, 0), seg->lower_digits, seg->lower_sign, 0);
	return put_bound(out, seg->upper, rank_of(seg->upper_sign, 4), seg->upper_digits, seg->upper_sign, 0xFF);
}

SMART_NORMALIZER(seg, NULL, .width = 2 * BOUND_WIDTH, .forgets = true, .encode = seg_encode);

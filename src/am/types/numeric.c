/*
 * numeric.c
 *	  Normalized keys of numeric.
 *
 * A positive number is its weight (the power of 10000 that its first digit stands for) and its digits to the base of
 * 10000, none of them zero at either end:
 *
 *	weight	one byte if it is near zero, else a byte and two more
 *	digit	two bytes, the first of which is never 00
 *	end		00
 *
 * A negative number is the complement of that.  Zero, NaN and the infinities are single bytes.  The residue is the
 * number of digits that are displayed behind the point, which comparisons do not look at.
 *
 * The server gives out a numeric's digits as text only, or as a message.  So it is read and built here as it is stored,
 * a format that no version may change, since data directories are taken over by pg_upgrade.
 */
#include "postgres.h"

#include "utils/numeric.h"

#include "am/codec/normalizer.h"

/* The first byte of a normalized key */
#define FIRST_NAN      0xFF
#define FIRST_INFINITY 0xFE /* negative: complemented, as all that follow */
#define FIRST_LARGE    0xED /* a weight above WEIGHT_MAX, in the next two bytes */
#define FIRST_NEAR     0x88 /* and up to 100 more: the weight */
#define FIRST_SMALL    0x87 /* a weight below WEIGHT_MIN, in the next two bytes */
#define FIRST_ZERO     0x80
#define WEIGHT_MIN     (-20)
#define WEIGHT_MAX     80
#define WEIGHT_BIAS    32768
#define DIGIT_BIAS     256

/* How a value is stored: a header of 16 bits, in the long form also the weight, then the digits, all in host order */
#define HEADER_KIND           0xC000
#define HEADER_NEGATIVE       0x4000 /* the long form of a negative number; 0: of another one */
#define HEADER_SHORT          0x8000
#define HEADER_SPECIAL        0xC000
#define SPECIAL_KIND          0xF000
#define SPECIAL_NAN           0xC000
#define SPECIAL_INFINITY      0xD000
#define SPECIAL_MINUS         0xF000
#define LONG_SCALE            0x3FFF
#define SHORT_NEGATIVE        0x2000
#define SHORT_SCALE_SHIFT     7
#define SHORT_SCALE           0x3F
#define SHORT_WEIGHT          0x3F
#define SHORT_WEIGHT_NEGATIVE 0x40

/* A value taken apart */
struct number
{
	uint16 special; /* one of SPECIAL_*, or 0 */
	bool negative;
	int weight;
	int scale;
	int count;          /* of digits; 0: zero */
	const char *digits; /* two bytes each, not aligned */
};

static uint16
get_word(const char *bytes)
{
	uint16 word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

static void
take_apart(const struct varlena *value, struct number *number)
{
	const char *data = VARDATA_ANY(value);
	uint16 header = get_word(data);
	Size head = sizeof(header);

	*number = (struct number){0};
	if ((header & HEADER_KIND) == HEADER_SPECIAL)
	{
		number->special = header & SPECIAL_KIND;
		return;
	}
	if ((header & HEADER_KIND) == HEADER_SHORT)
	{
		number->negative = (header & SHORT_NEGATIVE) != 0;
		number->scale = header >> SHORT_SCALE_SHIFT & SHORT_SCALE;
		number->weight = header & SHORT_WEIGHT;
		if (header & SHORT_WEIGHT_NEGATIVE)
			number->weight -= SHORT_WEIGHT + 1;
	}
	else
	{
		number->negative = (header & HEADER_NEGATIVE) != 0;
		number->scale = header & LONG_SCALE;
		number->weight = (int16) get_word(data + head);
		head += sizeof(int16);
	}
	number->digits = data + head;
	number->count = (VARSIZE_ANY_EXHDR(value) - head) / sizeof(uint16);

	/* Neither end has zeros in what the server makes, but nothing keeps them from being there. */
	while (number->count > 0 && get_word(number->digits) == 0)
	{
		number->digits += sizeof(uint16);
		number->count--;
		number->weight--;
	}
	while (number->count > 0 && get_word(number->digits + (number->count - 1) * sizeof(uint16)) == 0)
		number->count--;
}

static uint8 *
numeric_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	struct varlena *numeric = PG_DETOAST_DATUM_PACKED(value);
	struct number number;
	uint16 flip;

	take_apart(numeric, &number);
	flip = number.negative ? 0xFFFF : 0;
	if (number.special == SPECIAL_NAN)
		out = smart_put_byte(out, limit, FIRST_NAN);
	else if (number.special != 0)
		out = smart_put_byte(out, limit, number.special == SPECIAL_MINUS ? FIRST_INFINITY ^ 0xFF : FIRST_INFINITY);
	else if (number.count == 0)
		out = smart_put_byte(out, limit, FIRST_ZERO);
	else
	{
		if (number.weight >= WEIGHT_MIN && number.weight <= WEIGHT_MAX)
			out = smart_put_byte(out, limit, (FIRST_NEAR + (number.weight - WEIGHT_MIN)) ^ flip);
		else
		{
			out = smart_put_byte(out, limit, (number.weight < WEIGHT_MIN ? FIRST_SMALL : FIRST_LARGE) ^ flip);
			out = smart_put_word16(out, limit, (number.weight + WEIGHT_BIAS) ^ flip);
		}
		for (int i = 0; i < number.count && out != NULL; i++)
			out = smart_put_word16(out, limit, (get_word(number.digits + i * sizeof(uint16)) + DIGIT_BIAS) ^ flip);
		out = smart_put_byte(out, limit, (uint8) flip);
	}
	smart_free_copy(numeric, value);
	return out;
}

static void
numeric_residue(const struct smart_normalizer *normalizer, Datum value, uint8 *residue)
{
	struct varlena *numeric = PG_DETOAST_DATUM_PACKED(value);
	struct number number;

	take_apart(numeric, &number);
	smart_assert(normalizer->residue_width == sizeof(uint16) && number.scale <= LONG_SCALE);
	smart_put_be16(residue, (uint16) number.scale);
	smart_free_copy(numeric, value);
}

/* Where the digits begin in a normalized key whose first byte is not complemented; 0: there are none */
static int
digits_start(uint8 first)
{
	if (first == FIRST_ZERO || first >= FIRST_INFINITY)
		return 0;
	return first == FIRST_SMALL || first == FIRST_LARGE ? 3 : 1;
}

static const uint8 *
numeric_end(const struct smart_normalizer *normalizer, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	uint8 first;
	int start;

	if (bytes >= limit)
		return NULL;
	first = *bytes ^ flip;
	if (first < FIRST_ZERO)
	{
		first ^= 0xFF;
		flip ^= 0xFF;
	}
	start = digits_start(first);
	smart_assert(first >= FIRST_ZERO);
	if (start == 0)
		return bytes + 1;
	for (const uint8 *p = bytes + start; p < limit; p += 2)
	{
		if (*p == flip)
			return p + 1;
	}
	return NULL;
}

/* Builds what take_apart() has taken apart; *count digits follow at the result */
static char *
build_head(char *out, const struct number *number)
{
	bool is_short =
		number->scale <= SHORT_SCALE && number->weight >= -SHORT_WEIGHT - 1 && number->weight <= SHORT_WEIGHT;
	int16 weight = number->weight;
	uint16 header;

	smart_assert(number->scale <= LONG_SCALE && number->weight == weight);
	if (number->special != 0)
		header = number->special;
	else if (is_short)
		header = HEADER_SHORT | (number->negative ? SHORT_NEGATIVE : 0) | number->scale << SHORT_SCALE_SHIFT |
				 (weight < 0 ? SHORT_WEIGHT_NEGATIVE : 0) | (weight & SHORT_WEIGHT);
	else
		header = (number->negative ? HEADER_NEGATIVE : 0) | number->scale;
	memcpy(out, &header, sizeof(header));
	out += sizeof(header);
	if (number->special == 0 && !is_short)
	{
		memcpy(out, &weight, sizeof(weight));
		out += sizeof(weight);
	}
	return out;
}

static Datum
numeric_decode(const struct smart_normalizer *normalizer, const uint8 *bytes, int length, const uint8 *residue,
			   char *space)
{
	struct number number = {.scale = smart_load_be16(residue)};
	char data[SMART_KEY_MAX + sizeof(uint32)];
	uint8 flip = *bytes < FIRST_ZERO ? 0xFF : 0;
	uint8 first = *bytes ^ flip;
	int start = digits_start(first);
	char *out;

	if (first == FIRST_NAN)
		number.special = SPECIAL_NAN;
	else if (first == FIRST_INFINITY)
		number.special = flip ? SPECIAL_MINUS : SPECIAL_INFINITY;
	else if (start == 3)
		number.weight = (smart_load_be16(bytes + 1) ^ (flip << 8 | flip)) - WEIGHT_BIAS;
	else if (start == 1)
		number.weight = first - FIRST_NEAR + WEIGHT_MIN;
	number.negative = flip != 0;

	out = build_head(data, &number);
	for (const uint8 *p = bytes + start; start > 0 && p < bytes + length - 1; p += 2)
	{
		uint16 digit = (smart_load_be16(p) ^ (flip << 8 | flip)) - DIGIT_BIAS;

		memcpy(out, &digit, sizeof(digit));
		out += sizeof(digit);
	}
	smart_assert((int) VARHDRSZ_SHORT + (out - data) <= length + normalizer->decode_extra);
	return smart_make_varlena(space, data, out - data);
}

/* A zero that is stored in the long form is four bytes longer than its normalized key */
SMART_NORMALIZER(numeric, NULL, .residue_width = 2, .decode_extra = 4, .encode = numeric_encode, .end = numeric_end,
				 .decode = numeric_decode, .residue = numeric_residue);

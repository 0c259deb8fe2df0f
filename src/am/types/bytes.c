/*
 * bytes.c
 *	  Normalized keys of bytea, bit strings, uuid and hardware addresses.
 *
 * A uuid, a macaddr and a macaddr8 are their bytes.  In a bytea, 00 becomes 00 FF, and 00 00 ends it: so a value sorts
 * before its extensions.  A bit string is its bytes like that, and how many bits of the last byte belong to it.
 */
#include "postgres.h"

#include "utils/inet.h"
#include "utils/uuid.h"

#include "am/codec/normalizer.h"

static uint8 *
bytea_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	struct varlena *bytea = PG_DETOAST_DATUM_PACKED(value);

	out = smart_put_escaped(out, limit, (uint8 *) VARDATA_ANY(bytea), VARSIZE_ANY_EXHDR(bytea));
	out = smart_put_bytes(out, limit, SMART_ESCAPED_END, 2);
	smart_free_copy(bytea, value);
	return out;
}

static Datum
bytea_decode(const struct smart_normalizer *normalizer, const uint8 *bytes, int length, const uint8 *residue,
			 char *space)
{
	const uint8 *end = bytes + length - 2;

	smart_assert(length >= 2 && end[0] == 0 && end[1] == 0);
	(void) smart_get_escaped(bytes, end, smart_begin_varlena(space, smart_get_escaped(bytes, end, NULL)));
	return PointerGetDatum(space);
}

static uint8 *
bytea_pattern(const struct smart_normalizer *normalizer, int strategy, Datum pattern, uint8 *out, uint8 *limit,
			  bool *exact, bool *recheck)
{
	struct smart_prefix prefix;

	smart_pattern_prefix(strategy, PG_DETOAST_DATUM_PACKED(pattern), InvalidOid, &prefix);
	out = smart_put_escaped(out, limit, prefix.bytes, prefix.length);
	if (prefix.whole)
		out = smart_put_bytes(out, limit, SMART_ESCAPED_END, 2);
	smart_assert(out == NULL || out <= limit);
	*exact = prefix.whole && out != NULL;
	*recheck = !prefix.whole && !prefix.open;
	pfree(prefix.bytes);
	return out == NULL ? limit : out;
}

/*
 * The bytes compare before the number of bits, and unused bits are zero.  So that number only matters between strings
 * of as many bytes.
 */
static uint8 *
bits_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	struct varlena *bits = PG_DETOAST_DATUM_PACKED(value);
	const uint8 *data = (const uint8 *) VARDATA_ANY(bits);
	int32 count;

	memcpy(&count, data, sizeof(count));
	out = smart_put_escaped(out, limit, data + sizeof(count), VARSIZE_ANY_EXHDR(bits) - sizeof(count));
	out = smart_put_bytes(out, limit, SMART_ESCAPED_END, 2);
	out = smart_put_byte(out, limit, count > 0 ? (count - 1) % BITS_PER_BYTE + 1 : 0);
	smart_free_copy(bits, value);
	return out;
}

static const uint8 *
bits_end(const struct smart_normalizer *normalizer, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	return smart_skip(smart_escaped_end(normalizer, bytes, limit, flip), limit, 1);
}

static Datum
bits_decode(const struct smart_normalizer *normalizer, const uint8 *bytes, int length, const uint8 *residue,
			char *space)
{
	const uint8 *end = bytes + length - 3;
	int plain = smart_get_escaped(bytes, end, NULL);
	int32 count = plain == 0 ? 0 : (plain - 1) * BITS_PER_BYTE + end[2];
	char *data = smart_begin_varlena(space, sizeof(count) + plain);

	smart_assert(length >= 3 && end[0] == 0 && end[1] == 0 && end[2] <= BITS_PER_BYTE);
	memcpy(data, &count, sizeof(count));
	(void) smart_get_escaped(bytes, end, data + sizeof(count));
	return PointerGetDatum(space);
}

/* What a value of fixed length is in memory, it is in the normalized key */
static uint8 *
plain_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	smart_assert(normalizer->width > 0 && normalizer->width <= limit - out);
	memcpy(out, DatumGetPointer(value), normalizer->width);
	return out + normalizer->width;
}

static Datum
plain_decode(const struct smart_normalizer *normalizer, const uint8 *bytes, int length, const uint8 *residue,
			 char *space)
{
	smart_assert(length == normalizer->width);
	memcpy(space, bytes, normalizer->width);
	return PointerGetDatum(space);
}

SMART_NORMALIZER(bytea, NULL, .squeezable = true, .encode = bytea_encode, .end = smart_escaped_end,
				 .decode = bytea_decode, .pattern = bytea_pattern);
/* The number of bits is longer than the end by a byte */
SMART_NORMALIZER(bits, NULL, .decode_extra = 1, .encode = bits_encode, .end = bits_end, .decode = bits_decode);
SMART_NORMALIZER(uuid, NULL, .width = UUID_LEN, .encode = plain_encode, .decode = plain_decode);
SMART_NORMALIZER(macaddr, NULL, .width = sizeof(macaddr), .encode = plain_encode, .decode = plain_decode);
SMART_NORMALIZER(macaddr8, NULL, .width = sizeof(macaddr8), .encode = plain_encode, .decode = plain_decode);

/*
 * image_bytes.c - images of bytea, bit strings and uuid
 *
 * A uuid is its bytes.  In a bytea, 00 becomes 00 FF, and 00 00 ends it: so a value sorts before its extensions.  A bit
 * string is its bytes like that, and how many bits of the last byte belong to it.
 */
#include "postgres.h"

#include "utils/uuid.h"

#include "am/image.h"

SMART_IMAGE_FUNCTION(smart_image_bytea);
SMART_IMAGE_FUNCTION(smart_image_bits);
SMART_IMAGE_FUNCTION(smart_image_uuid);

uint8 *
smart_put_escaped(uint8 *out, uint8 *limit, const uint8 *bytes, Size length)
{
	const uint8 *end = bytes + length;

	while (bytes < end)
	{
		const uint8 *zero = memchr(bytes, 0, end - bytes);

		out = smart_put_bytes(out, limit, bytes, (zero == NULL ? end : zero) - bytes);
		if (out == NULL || zero == NULL)
			return out;
		out = smart_put_bytes(out, limit, "\0\xFF", 2);
		if (out == NULL)
			return NULL;
		bytes = zero + 1;
	}
	return out;
}

static uint8 *
bytea_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	struct varlena *bytea = PG_DETOAST_DATUM_PACKED(value);
	uint8 *end = smart_put_escaped(out, limit, (uint8 *) VARDATA_ANY(bytea), VARSIZE_ANY_EXHDR(bytea));

	if (end != NULL)
		end = smart_put_bytes(end, limit, "\0\0", 2);
	if (unlikely(PointerGetDatum(bytea) != value))
		pfree(bytea);
	return end;
}

const uint8 *
smart_escaped_end(const struct smart_image *image, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	const uint8 *p = bytes;

	while ((p = memchr(p, flip, limit - p)) != NULL && p + 1 < limit)
	{
		if (p[1] == flip)
			return p + 2;
		p += 2;
	}
	return NULL;
}

/* How many bytes are escaped from bytes to end: each 00 there stands for itself and has a byte behind it that goes */
static int
plain_length(const uint8 *bytes, const uint8 *end)
{
	int length = end - bytes;

	for (const uint8 *p = bytes; (p = memchr(p, 0, end - p)) != NULL; p += 2)
		length--;
	return length;
}

static void
get_escaped(const uint8 *bytes, const uint8 *end, char *out)
{
	while (bytes < end)
	{
		*out++ = (char) *bytes;
		bytes += *bytes == 0 ? 2 : 1;
	}
}

/* Writes the header of a varlena of length bytes, a short one if it can be; where its data goes */
static char *
begin_varlena(char *space, Size length)
{
	if (length + VARHDRSZ_SHORT <= VARATT_SHORT_MAX)
		SET_VARSIZE_SHORT(space, length + VARHDRSZ_SHORT);
	else
		SET_VARSIZE(space, length + VARHDRSZ);
	return VARDATA_ANY(space);
}

static Datum
bytea_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	const uint8 *end = bytes + length - 2;

	get_escaped(bytes, end, begin_varlena(space, plain_length(bytes, end)));
	return PointerGetDatum(space);
}

static uint8 *
bytea_pattern(const struct smart_image *image, int strategy, Datum pattern, uint8 *out, uint8 *limit, bool *exact,
			  bool *recheck)
{
	struct smart_prefix prefix;
	uint8 *end;

	smart_pattern_prefix(strategy, PG_DETOAST_DATUM_PACKED(pattern), InvalidOid, &prefix);
	*recheck = !prefix.whole && !prefix.open;
	end = smart_put_escaped(out, limit, prefix.bytes, prefix.length);
	if (end != NULL && prefix.whole)
		end = smart_put_bytes(end, limit, "\0\0", 2);
	*exact = prefix.whole && end != NULL;
	pfree(prefix.bytes);
	return end == NULL ? limit : end;
}

/*
 * The bytes compare before the number of bits, and unused bits are zero.  So that number only matters between strings
 * of as many bytes.
 */
static uint8 *
bits_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	struct varlena *bits = PG_DETOAST_DATUM_PACKED(value);
	const char *data = VARDATA_ANY(bits);
	uint8 tail[3] = {0, 0, 0};
	int32 count;
	uint8 *end;

	memcpy(&count, data, sizeof(count));
	if (count > 0)
		tail[2] = (count - 1) % BITS_PER_BYTE + 1;
	end = smart_put_escaped(out, limit, (const uint8 *) data + sizeof(count), VARSIZE_ANY_EXHDR(bits) - sizeof(count));
	if (end != NULL)
		end = smart_put_bytes(end, limit, tail, sizeof(tail));
	if (unlikely(PointerGetDatum(bits) != value))
		pfree(bits);
	return end;
}

static const uint8 *
bits_end(const struct smart_image *image, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	const uint8 *end = smart_escaped_end(image, bytes, limit, flip);

	return end == NULL || end == limit ? NULL : end + 1;
}

static Datum
bits_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	const uint8 *end = bytes + length - 3;
	int plain = plain_length(bytes, end);
	int32 count = plain == 0 ? 0 : (plain - 1) * BITS_PER_BYTE + end[2];
	char *data = begin_varlena(space, sizeof(count) + plain);

	memcpy(data, &count, sizeof(count));
	get_escaped(bytes, end, data + sizeof(count));
	return PointerGetDatum(space);
}

static uint8 *
uuid_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	memcpy(out, DatumGetUUIDP(value)->data, UUID_LEN);
	return out + UUID_LEN;
}

static Datum
uuid_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	memcpy(space, bytes, UUID_LEN);
	return PointerGetDatum(space);
}

Datum
smart_image_bytea(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.encode = bytea_encode,
											.end = smart_escaped_end,
											.decode = bytea_decode,
											.pattern = bytea_pattern};

	return smart_image_set(fcinfo, &form);
}

Datum
smart_image_bits(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.decode_extra = 1, /* the number of bits is longer than the end */
											.encode = bits_encode,
											.end = bits_end,
											.decode = bits_decode};

	return smart_image_set(fcinfo, &form);
}

Datum
smart_image_uuid(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.width = UUID_LEN, .encode = uuid_encode, .decode = uuid_decode};

	return smart_image_set(fcinfo, &form);
}

/*
 * image_bytes.c - images of bytea and uuid
 *
 * A uuid is its bytes.  In a bytea, 00 becomes 00 FF, and 00 00 ends it: so a value sorts before its extensions.
 */
#include "postgres.h"

#include "utils/uuid.h"

#include "am/image.h"

SMART_IMAGE_FUNCTION(smart_image_bytea);
SMART_IMAGE_FUNCTION(smart_image_uuid);

/* Writes what fits up to limit with 00 escaped: the new end, or NULL if something was left out */
static uint8 *
put_escaped(uint8 *out, uint8 *limit, const uint8 *bytes, Size length)
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
	uint8 *end = put_escaped(out, limit, (uint8 *) VARDATA_ANY(bytea), VARSIZE_ANY_EXHDR(bytea));

	if (end != NULL)
		end = smart_put_bytes(end, limit, "\0\0", 2);
	if (unlikely(PointerGetDatum(bytea) != value))
		pfree(bytea);
	return end;
}

static const uint8 *
bytea_end(const struct smart_image *image, const uint8 *bytes, const uint8 *limit, uint8 flip)
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

static Datum
bytea_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	const uint8 *end = bytes + length - 2;
	Size zeros = 0;
	char *out;

	/* Each 00 before the end stands for itself and has a byte behind it that goes */
	for (const uint8 *p = bytes; (p = memchr(p, 0, end - p)) != NULL; p += 2)
		zeros++;
	length = length - 2 - zeros;
	if (length + VARHDRSZ_SHORT <= VARATT_SHORT_MAX)
		SET_VARSIZE_SHORT(space, length + VARHDRSZ_SHORT);
	else
		SET_VARSIZE(space, length + VARHDRSZ);
	out = VARDATA_ANY(space);
	while (bytes < end)
	{
		*out++ = (char) *bytes;
		bytes += *bytes == 0 ? 2 : 1;
	}
	return PointerGetDatum(space);
}

static uint8 *
bytea_pattern(const struct smart_image *image, int strategy, Datum pattern, uint8 *out, uint8 *limit, bool *exact,
			  bool *recheck)
{
	struct smart_prefix prefix;
	uint8 *end;

	smart_pattern_prefix(strategy, PG_DETOAST_DATUM_PACKED(pattern), &prefix);
	*recheck = !prefix.whole && !prefix.open;
	end = put_escaped(out, limit, prefix.bytes, prefix.length);
	if (end != NULL && prefix.whole)
		end = smart_put_bytes(end, limit, "\0\0", 2);
	*exact = prefix.whole && end != NULL;
	pfree(prefix.bytes);
	return end == NULL ? limit : end;
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
											.end = bytea_end,
											.decode = bytea_decode,
											.pattern = bytea_pattern};

	return smart_image_set(fcinfo, &form);
}

Datum
smart_image_uuid(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.width = UUID_LEN, .encode = uuid_encode, .decode = uuid_decode};

	return smart_image_set(fcinfo, &form);
}

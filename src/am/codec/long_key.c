/*
 * long_key.c
 *	  Keys of columns that are longer than most: how they are stored in an entry, and come back.
 *
 * The value of a squeezed key may be longer than an IndexTuple can be.  As those of nbtree, the tuples of index-only scans
 * have it compressed, always by pglz: so whether it fits can be told when the entry is made.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/toast_compression.h"
#include "access/toast_internals.h"
#include "catalog/pg_type.h"

#include "am/codec/long_key.h"
#include "am/codec/normalizer.h"
#include "base/assert.h"

#define FIRST_ROOM (16 * 1024)

/* The normalized key, palloc'ed; or its first bytes, as many as can be squeezed. */
static uint8 *
make_normalized(const struct smart_normalizer *normalizer, Datum value, size_t *length, bool *whole)
{
	size_t room = FIRST_ROOM;

	for (;;)
	{
		uint8 *key = palloc(room);
		uint8 *end = normalizer->encode(normalizer, value, key, key + room);

		*whole = end != NULL;
		*length = *whole ? (size_t) (end - key) : room;
		if (*whole || room == SMART_SQUEEZE_MAX)
			return key;
		pfree(key);
		room = SMART_SQUEEZE_MAX;
	}
}

bool
smart_put_long_key(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit, uint8 **end)
{
	size_t length;
	bool whole;
	uint8 *key = make_normalized(normalizer, value, &length, &whole);
	struct smart_squeezer *squeezer = palloc(smart_squeezer_bytes());

	smart_assert(normalizer->squeezable && limit - out > SMART_SQUEEZE_PLAIN);
	/* Every entry's key differs from one that is cut within the bytes that are left, so it lies on the right side. */
	*end = smart_squeeze(squeezer, key, length, out, limit);
	smart_assert(*end == NULL || (*end > out && *end <= limit));
	pfree(squeezer);
	pfree(key);
	if (*end != NULL)
		return whole;
	*end = limit;
	return false;
}

const uint8 *
smart_key_end(const struct smart_normalizer *normalizer, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	const uint8 *end;

	smart_assert(normalizer->width == 0);
	if (!normalizer->squeezable || limit - bytes <= SMART_SQUEEZE_PLAIN)
		return normalizer->end(normalizer, bytes, limit, flip);
	end = normalizer->end(normalizer, bytes, bytes + SMART_SQUEEZE_PLAIN, flip);
	return end != NULL ? end : smart_squeezed_end(bytes, limit, flip);
}

/* Compresses a value, which may be value itself afterwards. */
static struct varlena *
pack(const struct smart_column *column, struct varlena *value)
{
	Pointer packed;

	if (column->storage != TYPSTORAGE_EXTENDED && column->storage != TYPSTORAGE_MAIN)
		return value;
	packed = DatumGetPointer(toast_compress_datum(PointerGetDatum(value), TOAST_PGLZ_COMPRESSION));
	return packed == NULL ? value : (struct varlena *) packed;
}

struct varlena *
smart_get_long_value(const struct smart_column *column, const uint8 *bytes, int length, const uint8 *residue)
{
	const struct smart_normalizer *normalizer = &column->normalizer;
	uint8 squeezed[SMART_KEY_MAX];
	size_t key_length;
	struct smart_squeezer *squeezer;
	uint8 *key;
	char *space;
	struct varlena *value;
	struct varlena *packed;

	smart_assert(smart_key_is_squeezed(normalizer, length) && length <= SMART_KEY_MAX && column->attlen == -1);
	for (int i = 0; i < length; i++)
		squeezed[i] = bytes[i] ^ column->flip;
	key_length = smart_unsqueezed_length(squeezed, (size_t) length);
	key = palloc(key_length);
	squeezer = palloc(smart_squeezer_bytes());
	smart_unsqueeze(squeezer, squeezed, (size_t) length, key);
	pfree(squeezer);
	space = palloc(key_length + (size_t) normalizer->decode_extra + VARHDRSZ);
	value = (struct varlena *) DatumGetPointer(normalizer->decode(normalizer, key, (int) key_length, residue, space));
	pfree(key);
	packed = pack(column, value);
	if (packed != value)
		pfree(space);
	return packed;
}

Size
smart_long_value_size(const struct smart_column *column, Datum value)
{
	struct varlena *plain = PG_DETOAST_DATUM(value);
	struct varlena *packed = pack(column, plain);
	Size size = VARSIZE(packed);

	if (packed != plain)
		pfree(packed);
	smart_free_copy(plain, value);
	return size;
}

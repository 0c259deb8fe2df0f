/*
 * encode.c
 *	  Rows to entries (the format is described in encode.h).
 *
 * An entry is written in one go into room for the longest one, and each writer is told where that ends: whether a row
 * fits is known only when its values have been normalized, detoasted and compressed.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/heaptoast.h"
#include "access/toast_internals.h"
#include "access/tupmacs.h"
#include "catalog/pg_type.h"
#include "utils/lsyscache.h"

#include "am/codec/encode.h"
#include "am/codec/long_key.h"
#include "am/codec/normalizer.h"
#include "base/assert.h"

/* Writes one key column: its end, or NULL if it is not before limit */
static inline uint8 *
encode_column(const struct smart_column *column, Datum value, bool isnull, uint8 *out, uint8 *limit)
{
	int width = column->normalizer.width;
	uint8 *key = out + 1;
	uint8 *end;

	if (unlikely(limit - out < 1 + width))
		return NULL;
	if (unlikely(isnull))
	{
		*out = column->null_byte;
		memset(key, 0, width);
		return key + width;
	}
	*out = SMART_NOT_NULL;
	end = column->normalizer.encode(&column->normalizer, value, key, limit);
	if (smart_key_is_long(&column->normalizer, key, end, limit) &&
		!smart_put_long_key(&column->normalizer, value, key, limit, &end))
		return NULL;
	smart_assert(end == NULL || (end > key && end <= limit));
	smart_assert(end == NULL || width == 0 || end == key + width);
	if (unlikely(column->flip) && end != NULL)
	{
		for (uint8 *p = key; p < end; p++)
			*p ^= 0xFF;
	}
	return end;
}

static inline uint8 *
encode_columns(const struct smart_codec *codec, int count, const Datum *values, const bool *isnull, uint8 *out,
			   uint8 *limit)
{
	for (int i = 0; i < count && out != NULL; i++)
		out = encode_column(&codec->columns[i], values[i], isnull[i], out, limit);
	return out;
}

static int
detail_row(ItemPointer tid)
{
	return errdetail("The row is at (%u,%u) of its table.", ItemPointerGetBlockNumberNoCheck(tid),
					 ItemPointerGetOffsetNumberNoCheck(tid));
}

static pg_noinline void
key_too_long(const struct smart_codec *codec, ItemPointer tid)
{
	ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			errmsg("key of index \"%s\" would be longer than %d bytes", get_rel_name(codec->index), SMART_KEY_MAX),
			tid == NULL ? 0 : detail_row(tid),
			errhint("Index a shorter expression of the long columns, such as md5(column) or left(column, 100)."));
}

/* Included columns cannot be expressions. */
static pg_noinline void
entry_too_long(const struct smart_codec *codec, ItemPointer tid)
{
	ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			errmsg("entry of index \"%s\" would be longer than %d bytes", get_rel_name(codec->index), codec->entry_max),
			detail_row(tid),
			errhint(
				"Leave long columns out of INCLUDE. Values are compressed as far as their column's storage allows."));
}

/*
 * Writes a varlena with its header, never out of line, packed as its column's storage allows: its end, or NULL.  What is
 * compressed and how is as in index_form_tuple().
 */
static uint8 *
encode_varlena(const struct smart_column *column, Datum value, uint8 *out, uint8 *limit)
{
	char storage = column->storage;
	bool compressible = storage == TYPSTORAGE_EXTENDED || storage == TYPSTORAGE_MAIN;
	struct varlena *given = (struct varlena *) DatumGetPointer(value);
	struct varlena *plain = VARATT_IS_EXTERNAL(given) ? detoast_external_attr(given) : given;
	struct varlena *kept = plain;
	uint8 *end;

	if (compressible && !VARATT_IS_EXTENDED(plain) && VARSIZE(plain) > TOAST_INDEX_TARGET)
	{
		Pointer compressed = DatumGetPointer(toast_compress_datum(PointerGetDatum(plain), column->compression));

		if (compressed != NULL)
			kept = (struct varlena *) compressed;
	}
	if (storage != TYPSTORAGE_PLAIN && VARATT_CAN_MAKE_SHORT(kept))
	{
		Size length = VARSIZE(kept) - VARHDRSZ;

		if (limit - out < (ssize_t) (length + VARHDRSZ_SHORT))
			return NULL;
		SET_VARSIZE_SHORT(out, length + VARHDRSZ_SHORT);
		memcpy(out + VARHDRSZ_SHORT, VARDATA(kept), length);
		end = out + length + VARHDRSZ_SHORT;
	}
	else
		end = smart_put_bytes(out, limit, kept, VARSIZE_ANY(kept));

	if (kept != plain)
		pfree(kept);
	if (plain != given)
		pfree(plain);
	return end;
}

/* Writes an included column: its end, or NULL */
static uint8 *
encode_included(const struct smart_column *column, Datum value, bool isnull, uint8 *out, uint8 *limit)
{
	int width = Max(column->attlen, 0);
	Datum stored;

	if (limit - out < 1 + width)
		return NULL;
	*out++ = isnull ? 0 : 1;
	if (column->attlen < 0)
		return isnull ? out : encode_varlena(column, value, out, limit);
	if (isnull)
		memset(out, 0, width);
	else if (column->byval)
	{
		store_att_byval(&stored, value, width);
		memcpy(out, &stored, width);
	}
	else
		memcpy(out, DatumGetPointer(value), width);
	return out + width;
}

static uint8 *
encode_payload(const struct smart_codec *codec, const Datum *values, const bool *isnull, uint8 *out, uint8 *limit)
{
	uint8 *start = out;

	smart_assert(codec->payload_width != 0);
	if (limit - out < codec->residue_width + 2)
		return NULL;
	for (int i = 0; i < codec->nkeys; i++)
	{
		const struct smart_normalizer *normalizer = &codec->columns[i].normalizer;

		if (normalizer->residue_width == 0)
			continue;
		if (isnull[i])
			memset(out, 0, normalizer->residue_width);
		else
			normalizer->residue(normalizer, values[i], out);
		out += normalizer->residue_width;
	}
	for (int i = codec->nkeys; i < codec->ncolumns && out != NULL; i++)
		out = encode_included(&codec->columns[i], values[i], isnull[i], out, limit);

	smart_assert(out == NULL || codec->payload_width < 0 || out - start == codec->payload_width);
	if (codec->payload_width >= 0 || out == NULL)
		return out;
	return limit - out < 2 ? NULL : smart_put_be16(out, (uint16) (out - start));
}

int
smart_codec_encode_key(const struct smart_codec *codec, const Datum *values, const bool *isnull, ItemPointer tid,
					   uint8 *out)
{
	uint8 *end = encode_columns(codec, codec->nkeys, values, isnull, out, out + SMART_COLUMNS_MAX);

	if (unlikely(end == NULL))
		key_too_long(codec, tid);
	end = smart_entry_put_tid(codec, end, tid);
	smart_assert(end - out <= SMART_KEY_MAX);
	return end - out;
}

/* By how much the columns of an IndexTuple may be longer than those of its entry because keys are squeezed there */
static int
unsqueezed_growth(const struct smart_codec *codec, const Datum *values, const bool *isnull, const uint8 *out,
				  int key_length)
{
	int growth = 0;

	for (int i = 0; i < codec->nkeys; i++)
	{
		const struct smart_column *column = &codec->columns[i];
		int start = smart_codec_columns_end(codec, out, key_length, i) + 1;
		int length;

		if (!column->returnable || isnull[i] || !column->normalizer.squeezable)
			continue;
		length = smart_codec_columns_end(codec, out, key_length, i + 1) - start;
		if (smart_key_is_squeezed(&column->normalizer, length))
			growth += Max((int) smart_long_value_size(column, values[i]) - length, 0);
	}
	return growth;
}

int
smart_codec_encode(const struct smart_codec *codec, const Datum *values, const bool *isnull, ItemPointer tid,
				   uint8 *out, int *key_length)
{
	uint8 *end = out + smart_codec_encode_key(codec, values, isnull, tid, out);

	*key_length = end - out;
	if (codec->payload_width != 0)
	{
		end = encode_payload(codec, values, isnull, end, out + codec->entry_max);
		if (unlikely(end == NULL))
			entry_too_long(codec, tid);
	}
	if (unlikely(*key_length > SMART_SQUEEZE_PLAIN) &&
		end - out + unsqueezed_growth(codec, values, isnull, out, *key_length) > codec->entry_max)
		(codec->ncolumns > codec->nkeys ? entry_too_long : key_too_long)(codec, tid);
	smart_assert(end - out <= SMART_ENTRY_MAX);
	smart_assert(codec->fixed_length == 0 || end - out == codec->fixed_length);
	smart_assert(smart_codec_key_length(codec, out, end - out) == *key_length);
	return end - out;
}

int
smart_codec_encode_columns(const struct smart_codec *codec, int count, const Datum *values, const bool *isnull,
						   uint8 *out)
{
	uint8 *end;

	smart_assert(count > 0 && count <= codec->nkeys);
	end = encode_columns(codec, count, values, isnull, out, out + SMART_COLUMNS_MAX);
	if (end == NULL)
		key_too_long(codec, NULL);
	smart_assert(end > out && end - out <= SMART_COLUMNS_MAX);
	return end - out;
}

int
smart_codec_find_columns_end(const struct smart_codec *codec, const uint8 *entry, int length, int count, int *column)
{
	const uint8 *p = entry;
	const uint8 *limit = entry + length;

	smart_assert(count >= 0 && count <= codec->nkeys);
	for (*column = 0; *column < count; (*column)++)
	{
		const struct smart_column *this = &codec->columns[*column];
		bool isnull;

		if (p >= limit)
			return -1;
		isnull = *p++ != SMART_NOT_NULL;
		if (this->normalizer.width > 0)
			p += this->normalizer.width;
		else if (!isnull)
			p = smart_key_end(&this->normalizer, p, limit, this->flip);
		if (p == NULL || p > limit)
			return -1;
	}
	return p - entry;
}

int
smart_codec_columns_end(const struct smart_codec *codec, const uint8 *entry, int length, int count)
{
	int column;
	int end = smart_codec_find_columns_end(codec, entry, length, count, &column);

	if (end < 0)
		ereport(ERROR, errcode(ERRCODE_DATA_CORRUPTED),
				errmsg("an entry of index \"%s\" ends within column %d", get_rel_name(codec->index), column + 1));
	return end;
}

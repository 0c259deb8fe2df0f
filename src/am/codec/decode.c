/*
 * decode.c
 *	  Entries back to rows, for index-only scans.
 *
 * One walk over the entry serves both forms of the result: it builds the data part of an IndexTuple and notes where
 * each column lies in it.  Indexes whose columns all have a fixed length take a shorter way.
 */
#include "postgres.h"

#include "access/tupmacs.h"

#include "am/codec/encode.h"
#include "am/codec/long_key.h"
#include "am/compat.h"
#include "base/assert.h"

/* The result in the making */
struct writer
{
	char *data; /* where the next column goes, before alignment */
	char *limit;
	bool has_varlenas;
	bool nulls_fit; /* a NULL can be noted */
	bits8 *bits;    /* the tuple's bitmap, or NULL */
	Datum *values;  /* per column, or NULL */
	bool *isnull;
};

/* Notes a column; returns false if it is NULL and there is no place to say so */
static inline bool
note(struct writer *writer, int number, bool isnull, Datum value)
{
	smart_assert(number >= 0 && number < INDEX_MAX_KEYS);
	if (isnull && !writer->nulls_fit)
		return false;
	if (!isnull && writer->bits != NULL)
		writer->bits[number >> 3] |= 1 << (number & 7);
	if (writer->values != NULL)
	{
		writer->values[number] = value;
		writer->isnull[number] = isnull;
	}
	return true;
}

static inline char *
align_and_clear(char *data, char align)
{
	char *aligned = (char *) att_align_nominal((uintptr_t) data, align);

	while (data < aligned)
		*data++ = 0;
	return aligned;
}

/* The value of a descending column, whose normalized key is complemented */
static pg_noinline Datum
decode_flipped(const struct smart_normalizer *normalizer, const uint8 *bytes, int length, const uint8 *residue,
			   char *space)
{
	uint8 plain[SMART_KEY_MAX];

	smart_assert(length <= SMART_KEY_MAX);
	for (int i = 0; i < length; i++)
		plain[i] = bytes[i] ^ 0xFF;
	return normalizer->decode(normalizer, plain, length, residue, space);
}

static inline Datum
decode_key(const struct smart_column *column, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	if (unlikely(column->flip))
		return decode_flipped(&column->normalizer, bytes, length, residue, space);
	return column->normalizer.decode(&column->normalizer, bytes, length, residue, space);
}

/* Puts the value of a squeezed key behind the data */
static pg_noinline Datum
put_long_key(struct writer *writer, const struct smart_column *column, const uint8 *bytes, int length,
			 const uint8 *residue)
{
	struct varlena *value = smart_get_long_value(column, bytes, length, residue);
	Size size = VARSIZE(value);
	Datum put = PointerGetDatum(writer->data);

	if (size > (Size) (writer->limit - writer->data))
		elog(ERROR, "a value of %zu bytes does not fit into a tuple of an index", size);
	memcpy(writer->data, value, size);
	writer->data += size;
	writer->has_varlenas = true;
	pfree(value);
	return put;
}

/* Puts the value of a key column behind the data; a short varlena may well lie behind padding */
static inline Datum
put_key(struct writer *writer, const struct smart_column *column, const uint8 *bytes, int length, const uint8 *residue)
{
	Datum value;

	smart_assert(length >= 0 && length < SMART_KEY_MAX);
	writer->data = align_and_clear(writer->data, column->align);
	if (smart_key_is_squeezed(&column->normalizer, length))
		return put_long_key(writer, column, bytes, length, residue);
	value = decode_key(column, bytes, length, residue, writer->data);
	if (column->attlen < 0)
	{
		writer->data += VARSIZE_ANY(writer->data);
		writer->has_varlenas = true;
		return value;
	}
	if (column->byval)
		store_att_byval(writer->data, value, column->attlen);
	writer->data += column->attlen;
	return value;
}

/* Puts the bytes of an included column behind the data; returns where they end in the entry */
static const uint8 *
put_included(struct writer *writer, const struct smart_column *column, const uint8 *bytes, Datum *value)
{
	Size size = column->attlen;
	bool is_short = column->attlen < 0 && VARATT_IS_1B(bytes);

	if (column->attlen < 0)
	{
		varattrib_4b header;

		/* The header may lie at any address */
		memcpy(&header, bytes, is_short ? 1 : VARHDRSZ);
		size = is_short ? VARSIZE_SHORT(bytes) : VARSIZE(&header);
		writer->has_varlenas = true;
	}
	smart_assert(size > 0 && size <= SMART_ENTRY_MAX);
	if (!is_short)
		writer->data = align_and_clear(writer->data, column->align);
	memcpy(writer->data, bytes, size);
	*value = fetch_att(writer->data, column->byval, column->attlen);
	writer->data += size;
	return bytes + size;
}

/* Puts all columns of an entry; returns false at the first NULL if there is no place to say so */
static bool
walk(const struct smart_codec *codec, const uint8 *entry, int length, struct writer *writer)
{
	int key_length = smart_codec_key_length(codec, entry, length);
	const uint8 *limit = entry + smart_entry_columns_length(codec, entry, key_length);
	const uint8 *residue = entry + key_length;
	const uint8 *p = entry;

	smart_assert(key_length > 0 && key_length <= Min(length, SMART_KEY_MAX) && limit > entry);
	for (int i = 0; i < codec->nkeys; i++)
	{
		const struct smart_column *column = &codec->columns[i];
		bool isnull = *p++ != SMART_NOT_NULL;
		const uint8 *key = p;
		Datum value = (Datum) 0;

		if (i == codec->nkeys - 1)
			p = limit;
		else if (isnull || column->normalizer.width > 0)
			p += column->normalizer.width;
		else
			p = smart_key_end(&column->normalizer, p, limit, column->flip);
		smart_assert(p != NULL && p <= limit);

		isnull = isnull || !column->returnable;
		if (!isnull)
			value = put_key(writer, column, key, p - key, residue);
		if (!note(writer, i, isnull, value))
			return false;
		residue += column->normalizer.residue_width;
	}

	/* The included columns lie behind the residues. */
	for (int i = codec->nkeys; i < codec->ncolumns; i++)
	{
		const struct smart_column *column = &codec->columns[i];
		bool isnull = *residue++ == 0;
		Datum value = (Datum) 0;

		if (isnull)
			residue += Max(column->attlen, 0);
		else
			residue = put_included(writer, column, residue, &value);
		smart_assert(residue <= entry + length);
		if (!note(writer, i, isnull || !column->returnable, value))
			return false;
	}
	return true;
}

void
smart_codec_decode(const struct smart_codec *codec, const uint8 *entry, int length, Datum *values, bool *isnull,
				   char *space)
{
	struct writer writer = {.data = space,
							.limit = space + codec->space,
							.nulls_fit = true,
							.values = values,
							.isnull = isnull};

	smart_assert(space == (char *) MAXALIGN(space));
	(void) walk(codec, entry, length, &writer);
	smart_assert((Size) (writer.data - space) <= codec->space);
}

/* All columns have their fixed places.  Returns false if one of them is NULL. */
static inline bool
form_flat(const struct smart_codec *codec, const uint8 *entry, char *tuple)
{
	const uint8 *residue = entry + codec->fixed_key_length;
	const uint8 *p = entry;

	for (int i = 0; i < codec->nkeys; i++)
	{
		const struct smart_column *column = &codec->columns[i];
		char *place = tuple + column->tuple_offset;
		Datum value;

		if (unlikely(*p++ != SMART_NOT_NULL))
			return false;
		value = decode_key(column, p, column->normalizer.width, residue, place);
		if (column->byval)
			store_att_byval(place, value, column->attlen);
		p += column->normalizer.width;
		residue += column->normalizer.residue_width;
	}
	for (int i = codec->nkeys; i < codec->ncolumns; i++)
	{
		if (unlikely(*residue++ == 0))
			return false;
		memcpy(tuple + codec->columns[i].tuple_offset, residue, codec->columns[i].attlen);
		residue += codec->columns[i].attlen;
	}
	return true;
}

IndexTuple
smart_codec_form_tuple(const struct smart_codec *codec, const uint8 *entry, int length, char *space)
{
	IndexTuple tuple = (IndexTuple) space;
	struct writer writer = {.data = space + MAXALIGN(sizeof(IndexTupleData)), .limit = space + codec->space};

	smart_assert(space == (char *) MAXALIGN(space) && length > 0 && length <= SMART_ENTRY_MAX);
	smart_entry_tid(codec, entry + smart_codec_key_length(codec, entry, length), &tuple->t_tid);
	if (codec->flat && codec->fixed_key_length > 0 && form_flat(codec, entry, space))
	{
		tuple->t_info = codec->tuple_size;
		return tuple;
	}

	/* Two tries: most rows have no NULL, and that changes where the data begins. */
	tuple->t_info = 0;
	if (!walk(codec, entry, length, &writer))
	{
		tuple->t_info = INDEX_NULL_MASK;
		writer = (struct writer){.data = space + IndexInfoFindDataOffset(INDEX_NULL_MASK),
								 .limit = space + codec->space,
								 .nulls_fit = true};
		writer.bits = (bits8 *) (space + sizeof(IndexTupleData));
		memset(writer.bits, 0, sizeof(IndexAttributeBitMapData));
		(void) walk(codec, entry, length, &writer);
	}
	smart_assert(MAXALIGN(writer.data - space) <= INDEX_SIZE_MASK);
	if (writer.has_varlenas)
		tuple->t_info |= INDEX_VAR_MASK;
	tuple->t_info |= MAXALIGN(writer.data - space);
	return tuple;
}

/*
 * record.c
 *	  Normalized keys of rows: of composite types, and of the row types of tables.
 *
 * Rows compare column by column, each as its type is compared by default, a NULL being above all values.  Columns that
 * were dropped do not count:
 *
 *	width key				each column up to the last one that is not NULL: of fixed width, or
 *	00 key 00 00			of any other width, each 00 in the key being 00 FF, or
 *	FE						a NULL
 *	FF						the others are NULL
 *	hash					four bytes that tell the types of the columns before FF
 *
 * ALTER TYPE may add attributes to a type whose values are stored, and drop them.  The rows that are there have NULLs
 * in a new column, and so keep their normalized keys.  What is dropped stays in the normalized keys of old rows and is
 * missing in those of new ones; so it is part of the version, and the index is built again.  The type is not locked
 * while an index is open: users of a codec ask first whether it is still current.
 *
 * If attributes are added in a transaction that is rolled back, its rows are dead, but their entries stay until VACUUM
 * comes, with columns that the type has not, or has of another type.  So the end of a normalized key is found without
 * the type, and one whose hash is another is not given back.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "common/hashfn.h"
#include "utils/builtins.h"
#include "utils/typcache.h"

#include "am/codec/normalizer.h"
#include "base/assert.h"

#define MARK_WRAPPED 0x00
#define WIDTH_MOST   0xFD /* normalized keys that are wider are wrapped */
#define MARK_NULL    0xFE
#define MARK_REST    0xFF

#define HASH_SIZE 4

/* The columns that the type had when the normalizer was made; its part is the first one's, the next of that the second's */
struct row
{
	Oid type;
	int32 count;
	struct row_column
	{
		Oid type;
		Oid collation;
		int32 number; /* among the type's attributes, from 0 on */
		uint32 hash;  /* of the types up to this one */
	} columns[FLEXIBLE_ARRAY_MEMBER];
};

/* What stands for the types of the first count columns */
static uint32
hash_of(const struct row *row, int count)
{
	return count == 0 ? 0 : row->columns[count - 1].hash;
}

static bool
is_wrapped(const struct smart_normalizer *part)
{
	return part->width == 0 || part->width > WIDTH_MOST;
}

static pg_noinline void
report_other_columns(const struct row *row, Oid type)
{
	ereport(ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
			errmsg("values of type %s cannot be compared with values of type %s", format_type_be(row->type),
				   format_type_be(type)),
			errdetail("Their columns are not of the same number and types."));
}

/* ---- to the normalized key ---- */

/*
 * Moves the columns that were not dropped to the front of values and nulls, which have room for all of them.  Returns
 * how many there are up to the last one that is not NULL.  A row of another type needs columns of the same types.
 */
static int
take_apart(const struct row *row, HeapTupleHeader tuple, TupleDesc descriptor, Datum *values, bool *nulls)
{
	HeapTupleData whole = {.t_len = HeapTupleHeaderGetDatumLength(tuple), .t_data = tuple};
	int present = 0;
	int used = 0;

	heap_deform_tuple(&whole, descriptor, values, nulls);
	for (int i = 0; i < descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);

		if (attribute->attisdropped)
			continue;
		if (present < row->count && attribute->atttypid != row->columns[present].type)
			report_other_columns(row, descriptor->tdtypeid);
		values[present] = values[i];
		nulls[present] = nulls[i];
		present++;
		if (!nulls[i])
			used = present;
	}
	smart_assert(used <= present && present <= descriptor->natts);
	if (descriptor->tdtypeid != row->type && present != row->count)
		report_other_columns(row, descriptor->tdtypeid);
	if (used > row->count)
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("type %s was altered while an index of such values was in use", format_type_be(row->type)),
				errhint("Try the statement again."));
	return used;
}

/* Writes the normalized key of a part so that its end can be found without the type */
static uint8 *
put_wrapped(const struct smart_normalizer *part, Datum value, uint8 *out, uint8 *limit)
{
	Size room = limit - out;
	uint8 *plain = palloc(room + 1);
	uint8 *end = smart_put_normalized(part, value, plain, plain + room);

	smart_assert(end == NULL || (Size) (end - plain) <= room);
	out = smart_put_escaped(out, limit, plain, end == NULL ? room : (Size) (end - plain));
	out = end == NULL ? NULL : smart_put_bytes(out, limit, SMART_ESCAPED_END, 2);
	pfree(plain);
	return out;
}

static uint8 *
put_columns(const struct smart_normalizer *normalizer, int count, const Datum *values, const bool *nulls, uint8 *out,
			uint8 *limit)
{
	const struct smart_normalizer *part = normalizer->part;

	smart_assert(out <= limit && count <= ((const struct row *) normalizer->details)->count);
	for (int i = 0; i < count && out != NULL; i++, part = part->next)
	{
		bool wrapped = is_wrapped(part);

		out = smart_put_byte(out, limit, nulls[i] ? MARK_NULL : wrapped ? MARK_WRAPPED : (uint8) part->width);
		if (out != NULL && !nulls[i])
			out =
				wrapped ? put_wrapped(part, values[i], out, limit) : smart_put_normalized(part, values[i], out, limit);
	}
	out = smart_put_byte(out, limit, MARK_REST);
	return smart_put_word32(out, limit, hash_of(normalizer->details, count));
}

static uint8 *
record_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	HeapTupleHeader tuple = DatumGetHeapTupleHeader(value);
	TupleDesc descriptor = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(tuple), HeapTupleHeaderGetTypMod(tuple));
	Datum *values = palloc(descriptor->natts * (sizeof(Datum) + sizeof(bool)));
	bool *nulls = (bool *) (values + descriptor->natts);
	int count = take_apart(normalizer->details, tuple, descriptor, values, nulls);

	out = put_columns(normalizer, count, values, nulls, out, limit);
	pfree(values);
	ReleaseTupleDesc(descriptor);
	smart_free_copy(tuple, value);
	return out;
}

/* ---- and back ---- */

/* The end of a column whose mark is not the last one, or NULL */
static const uint8 *
column_end(const uint8 *p, const uint8 *limit, uint8 flip)
{
	uint8 mark = *p++ ^ flip;

	if (mark == MARK_WRAPPED)
		return smart_escaped_end(NULL, p, limit, flip);
	if (mark == MARK_NULL)
		return p;
	return smart_skip(p, limit, mark);
}

static const uint8 *
record_end(const struct smart_normalizer *normalizer, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	const uint8 *p = bytes;

	while (p != NULL && p < limit && (*p ^ flip) != MARK_REST)
		p = column_end(p, limit, flip);
	return smart_skip(p, limit, 1 + HASH_SIZE);
}

/* The value of a column, built in space if it is not passed by value */
static Datum
get_column(const struct smart_normalizer *part, const uint8 *p, const uint8 *end, char *space)
{
	const uint8 *key = p + 1;
	char *plain;
	int length;
	Datum value;

	if (!is_wrapped(part))
		return part->decode(part, key, part->width, NULL, space);
	plain = palloc(end - key);
	length = smart_get_escaped(key, end - 2, plain);
	value = part->decode(part, (const uint8 *) plain, length, NULL, space);
	pfree(plain);
	return value;
}

/*
 * Reads the columns of a normalized key; one that was dropped since then stays NULL, and so do all if the columns are
 * not those of the type.
 */
static void
get_columns(const struct smart_normalizer *normalizer, const uint8 *p, const uint8 *limit, TupleDesc descriptor,
			Datum *values, bool *nulls, char *space)
{
	const struct row *row = normalizer->details;
	const struct smart_normalizer *part = normalizer->part;
	const uint8 *rest = p;
	int count = 0;

	for (; *rest != MARK_REST; rest = column_end(rest, limit, 0))
		count++;
	if (count > row->count || smart_load_be32(rest + 1) != hash_of(row, count))
		return;
	for (int i = 0; i < count; i++, part = part->next)
	{
		int number = row->columns[i].number;
		Form_pg_attribute attribute = TupleDescAttr(descriptor, number);
		const uint8 *end = column_end(p, limit, 0);

		smart_assert(end != NULL && end <= rest && number < descriptor->natts);
		if (*p != MARK_NULL && !attribute->attisdropped)
		{
			values[number] = get_column(part, p, end, space);
			nulls[number] = false;
			space += MAXALIGN(Max(end - p + part->decode_extra + VARHDRSZ, attribute->attlen));
		}
		p = end;
	}
}

static Datum
record_decode(const struct smart_normalizer *normalizer, const uint8 *bytes, int length, const uint8 *residue,
			  char *space)
{
	const struct row *row = normalizer->details;
	TupleDesc descriptor = lookup_rowtype_tupdesc(row->type, -1);
	Datum *values = palloc(descriptor->natts * (sizeof(Datum) + sizeof(bool)));
	bool *nulls = (bool *) (values + descriptor->natts);
	char *content = palloc(length + normalizer->decode_extra);
	HeapTuple tuple;

	memset(nulls, true, descriptor->natts * sizeof(bool));
	get_columns(normalizer, bytes, bytes + length, descriptor, values, nulls, content);
	tuple = heap_form_tuple(descriptor, values, nulls);
	smart_assert(tuple->t_len <= (uint32) (length + normalizer->decode_extra));
	memcpy(space, tuple->t_data, tuple->t_len);
	heap_freetuple(tuple);
	pfree(content);
	pfree(values);
	ReleaseTupleDesc(descriptor);
	return PointerGetDatum(space);
}

/* ---- making ---- */

/* Has the type the columns that it had? */
static bool
record_current(const struct smart_normalizer *normalizer)
{
	const struct row *row = normalizer->details;
	TupleDesc descriptor = lookup_rowtype_tupdesc(row->type, -1);
	int present = 0;
	bool same = true;

	for (int i = 0; i < descriptor->natts && same; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);

		if (attribute->attisdropped)
			continue;
		same = present < row->count && row->columns[present].number == i &&
			   row->columns[present].type == attribute->atttypid &&
			   row->columns[present].collation == attribute->attcollation;
		present++;
	}
	ReleaseTupleDesc(descriptor);
	smart_assert(!same || present <= row->count);
	return same && present == row->count;
}

static void
finish_record(struct smart_normalizer *normalizer)
{
	TupleDesc descriptor = lookup_rowtype_tupdesc(normalizer->value_type, -1);
	Size size = offsetof(struct row, columns) + descriptor->natts * sizeof(struct row_column);
	struct row *row = palloc0(size);
	uint32 hash = 0;

	smart_assert(normalizer->part == NULL);
	row->type = descriptor->tdtypeid;
	for (int i = 0; i < descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);

		if (attribute->attisdropped)
			continue;
		hash = hash_combine(hash_combine(hash, attribute->atttypid), attribute->attcollation);
		row->columns[row->count++] = (struct row_column){.type = attribute->atttypid,
														 .collation = attribute->attcollation,
														 .number = i,
														 .hash = hash};
	}
	normalizer->details = smart_normalizer_keep(row, size);
	pfree(row);

	/* The last column comes first, since each part goes before those that are there already. */
	normalizer->decode_extra = MAXALIGN(SizeofHeapTupleHeader + BITMAPLEN(descriptor->natts));
	for (int i = descriptor->natts - 1; i >= 0; i--)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);
		uint32 version = normalizer->version;
		const struct smart_normalizer *part;

		if (attribute->attisdropped)
		{
			normalizer->version = hash_combine(version, (uint32) attribute->attnum);
			continue;
		}
		smart_normalizer_add_part(normalizer, attribute->atttypid, attribute->attcollation,
								  lookup_type_cache(attribute->atttypid, TYPECACHE_CMP_PROC)->cmp_proc);
		part = normalizer->part;
		normalizer->version = part->version == 0 ? version : hash_combine(version, part->version);
		/* As in the tuple of an index, but without what the normalized key has */
		normalizer->decode_extra +=
			MAXIMUM_ALIGNOF + VARHDRSZ + part->decode_extra + Max(attribute->attlen - part->width, 0);
	}
	ReleaseTupleDesc(descriptor);
	smart_assert((normalizer->part == NULL) == (((const struct row *) normalizer->details)->count == 0));
	normalizer->decode = normalizer->forgets ? NULL : record_decode;
}

SMART_NORMALIZER(record, finish_record, .encode = record_encode, .end = record_end, .current = record_current);

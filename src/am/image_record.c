/*
 * image_record.c - images of rows: of composite types, and of the row types of tables
 *
 * Rows compare column by column, each as its type is compared by default, a NULL being above all values.  Columns that
 * were dropped do not count:
 *
 *	width image				each column up to the last one that is not NULL: of fixed width, or
 *	00 image 00 00			of any other width, each 00 in the image being 00 FF, or
 *	FE						a NULL
 *	FF						the others are NULL
 *	hash					four bytes that tell the types of the columns before FF
 *
 * ALTER TYPE may add attributes to a type whose values are stored, and drop them.  The rows that are there have NULLs in
 * a new column, and so keep their images.  What is dropped stays in the images of old rows and is missing in those of
 * new ones; so it is part of the version, and the index is built again.  The type is not locked while an index is open:
 * users of a codec ask first whether it is still current.
 *
 * If attributes are added in a transaction that is rolled back, its rows are dead, but their entries stay until VACUUM
 * comes, with columns that the type has not, or has of another type.  So the end of an image is found without the type,
 * and one whose hash is another is not given back.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "common/hashfn.h"
#include "utils/builtins.h"
#include "utils/typcache.h"

#include "am/image.h"

#define MARK_WRAPPED 0x00
#define WIDTH_MOST   0xFD /* images that are wider are wrapped */
#define MARK_NULL    0xFE
#define MARK_REST    0xFF

#define HASH_SIZE 4

SMART_IMAGE_FUNCTION(smart_image_record);

/* The columns that were not dropped when the image was made; image->part is the first one's, its next the second's */
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
is_wrapped(const struct smart_image *part)
{
	return part->width == 0 || part->width > WIDTH_MOST;
}

static pg_noinline void
report_altered(const struct row *row)
{
	ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("type %s was altered while an index of such values was in use", format_type_be(row->type)),
			errhint("Try the statement again."));
}

static pg_noinline void
report_other_columns(const struct row *row, Oid type)
{
	ereport(ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
			errmsg("values of type %s cannot be compared with values of type %s", format_type_be(row->type),
				   format_type_be(type)),
			errdetail("Their columns are not of the same number and types."));
}

/* ---- to the image ---- */

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
	if (descriptor->tdtypeid != row->type && present != row->count)
		report_other_columns(row, descriptor->tdtypeid);
	if (used > row->count)
		report_altered(row);
	return used;
}

/* Writes the image of a part so that its end can be found without the type */
static uint8 *
put_wrapped(const struct smart_image *part, Datum value, uint8 *out, uint8 *limit)
{
	uint8 *plain = palloc(limit - out + 1);
	uint8 *plain_end = smart_put_image(part, value, plain, plain + (limit - out));

	if (plain_end != NULL)
	{
		out = smart_put_escaped(out, limit, plain, plain_end - plain);
		if (out != NULL)
			out = smart_put_bytes(out, limit, "\0\0", 2);
	}
	else
	{
		(void) smart_put_escaped(out, limit, plain, limit - out);
		out = NULL;
	}
	pfree(plain);
	return out;
}

static uint8 *
put_column(const struct smart_image *part, Datum value, bool isnull, uint8 *out, uint8 *limit)
{
	if (isnull)
		return smart_put_byte(out, limit, MARK_NULL);
	out = smart_put_byte(out, limit, is_wrapped(part) ? MARK_WRAPPED : (uint8) part->width);
	if (out == NULL)
		return NULL;
	return is_wrapped(part) ? put_wrapped(part, value, out, limit) : smart_put_image(part, value, out, limit);
}

static uint8 *
put_columns(const struct smart_image *image, int count, const Datum *values, const bool *nulls, uint8 *out,
			uint8 *limit)
{
	const struct smart_image *part = image->part;
	uint8 hash[HASH_SIZE];

	for (int i = 0; i < count && out != NULL; i++, part = part->next)
		out = put_column(part, values[i], nulls[i], out, limit);
	if (out != NULL)
		out = smart_put_byte(out, limit, MARK_REST);
	smart_put_be32(hash, hash_of(image->details, count));
	return out == NULL ? NULL : smart_put_bytes(out, limit, hash, sizeof(hash));
}

static uint8 *
record_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	HeapTupleHeader tuple = DatumGetHeapTupleHeader(value);
	TupleDesc descriptor = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(tuple), HeapTupleHeaderGetTypMod(tuple));
	Datum *values = palloc(descriptor->natts * (sizeof(Datum) + sizeof(bool)));
	bool *nulls = (bool *) (values + descriptor->natts);
	int count = take_apart(image->details, tuple, descriptor, values, nulls);

	out = put_columns(image, count, values, nulls, out, limit);
	pfree(values);
	ReleaseTupleDesc(descriptor);
	if (PointerGetDatum(tuple) != value)
		pfree(tuple);
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
	return mark <= limit - p ? p + mark : NULL;
}

static const uint8 *
record_end(const struct smart_image *image, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	const uint8 *p = bytes;

	while (p != NULL && p < limit && (*p ^ flip) != MARK_REST)
		p = column_end(p, limit, flip);
	return p == NULL || limit - p < 1 + HASH_SIZE ? NULL : p + 1 + HASH_SIZE;
}

/* How many columns there are in the image if they are those of the type, else 0 */
static int
count_columns(const struct row *row, const uint8 *p, const uint8 *limit)
{
	int count = 0;

	for (; *p != MARK_REST; p = column_end(p, limit, 0))
		count++;
	return count <= row->count && smart_get_be32(p + 1) == hash_of(row, count) ? count : 0;
}

/* The value of a column, built in space if it is not passed by value */
static Datum
get_column(const struct smart_image *part, const uint8 *p, const uint8 *end, char *space)
{
	const uint8 *image = p + 1;
	uint8 *plain;
	int length = 0;
	Datum value;

	if (!is_wrapped(part))
		return part->decode(part, image, part->width, NULL, space);
	plain = palloc(end - image);
	for (; image < end - 2; image += *image == 0 ? 2 : 1)
		plain[length++] = *image;
	value = part->decode(part, plain, length, NULL, space);
	pfree(plain);
	return value;
}

/* Reads the columns of an image; one that was dropped since then stays NULL */
static void
get_columns(const struct smart_image *image, const uint8 *p, const uint8 *limit, TupleDesc descriptor, Datum *values,
			bool *nulls, char *space)
{
	const struct row *row = image->details;
	const struct smart_image *part = image->part;
	int count = count_columns(row, p, limit);

	for (int i = 0; i < count; i++, part = part->next)
	{
		int number = row->columns[i].number;
		Form_pg_attribute attribute = TupleDescAttr(descriptor, number);
		const uint8 *end = column_end(p, limit, 0);

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
record_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	const struct row *row = image->details;
	TupleDesc descriptor = lookup_rowtype_tupdesc(row->type, -1);
	Datum *values = palloc(descriptor->natts * (sizeof(Datum) + sizeof(bool)));
	bool *nulls = (bool *) (values + descriptor->natts);
	char *content = palloc(length + image->decode_extra);
	HeapTuple tuple;

	memset(nulls, true, descriptor->natts * sizeof(bool));
	get_columns(image, bytes, bytes + length, descriptor, values, nulls, content);
	tuple = heap_form_tuple(descriptor, values, nulls);
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
record_current(const struct smart_image *image)
{
	const struct row *row = image->details;
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
	return same && present == row->count;
}

static const struct row *
make_row(TupleDesc descriptor)
{
	Size size = offsetof(struct row, columns) + descriptor->natts * sizeof(struct row_column);
	struct row *row = palloc0(size);
	const struct row *kept;
	uint32 hash = 0;

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
	kept = smart_image_keep(row, size);
	pfree(row);
	return kept;
}

/* Adds a column before those that image->part has already, or a dropped one */
static void
add_column(struct smart_image *image, Form_pg_attribute attribute)
{
	TypeCacheEntry *type;

	if (attribute->attisdropped)
	{
		image->version = hash_combine(image->version, (uint32) attribute->attnum);
		return;
	}
	type = lookup_type_cache(attribute->atttypid, TYPECACHE_CMP_PROC);
	image->part = smart_image_of_part(image, attribute->atttypid, attribute->attcollation, type->cmp_proc, image->part);
	image->unordered = image->unordered || image->part->unordered;
	image->forgets = image->forgets || image->part->forgets || image->part->residue_width > 0;
	if (image->part->version != 0)
		image->version = hash_combine(image->version, image->part->version);
	/* As in the tuple of an index, but without what the image has */
	image->decode_extra +=
		MAXIMUM_ALIGNOF + VARHDRSZ + image->part->decode_extra + Max(attribute->attlen - image->part->width, 0);
}

Datum
smart_image_record(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.encode = record_encode, .end = record_end, .current = record_current};
	struct smart_image *image = (struct smart_image *) DatumGetPointer(smart_image_set(fcinfo, &form));
	TupleDesc descriptor = lookup_rowtype_tupdesc(image->value_type, -1);

	image->details = make_row(descriptor);
	image->decode_extra = MAXALIGN(SizeofHeapTupleHeader + BITMAPLEN(descriptor->natts));
	for (int i = descriptor->natts - 1; i >= 0; i--)
		add_column(image, TupleDescAttr(descriptor, i));
	ReleaseTupleDesc(descriptor);
	if (!image->forgets)
		image->decode = record_decode;
	return PointerGetDatum(image);
}

/*
 * codec.c - makes the codec of an index from its catalog entries
 */
#include "postgres.h"

#include "access/genam.h"
#include "catalog/pg_index.h"
#include "fmgr.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "am/encode.h"
#include "am/image.h"
#include "base/assert.h"

/* An IndexTuple's header, and room for its bitmap of NULLs */
#define TUPLE_HEAD_MAX MAXALIGN(sizeof(IndexTupleData) + sizeof(IndexAttributeBitMapData))
#define TUPLE_MAX      INDEX_SIZE_MASK

/* By how much all columns of an IndexTuple together may be longer than in the entry */
#define GROWTH_MAX (TUPLE_MAX - TUPLE_HEAD_MAX - 6000)

/* Asks the operator class for the image of a key column */
static void
make_image(Relation index, int column, struct smart_image *image)
{
	Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(index), column);
	Oid function = index_getprocid(index, column + 1, SMART_BYTES_PROC);

	memset(image, 0, sizeof(*image));
	image->index_name = RelationGetRelationName(index);
	image->method = index->rd_rel->relam;
	image->type = index->rd_opcintype[column];
	image->value_type = getBaseType(attribute->atttypid);
	image->collation = index->rd_indcollation[column];
	image->typmod = attribute->atttypmod;
	if (OidIsValid(function))
		smart_image_by_function(image, function);
	else
		FunctionCall1(index_getprocinfo(index, column + 1, SMART_IMAGE_PROC), PointerGetDatum(image));
	smart_image_check(image);
	image->index_name = NULL;
}

/* What an IndexTuple needs at most for the column beyond its bytes in the entry: alignment, header, padding */
static int
column_growth(const struct smart_column *column)
{
	int growth = 8 + column->image.decode_extra;

	if (column->attlen > 0)
		return growth + Max(column->attlen - column->image.width, 0);
	return growth + VARHDRSZ;
}

static void
make_column(Relation index, int number, struct smart_column *column)
{
	Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(index), number);

	memset(column, 0, sizeof(*column));
	column->byval = attribute->attbyval;
	column->align = attribute->attalign;
	column->storage = attribute->attstorage;
	column->attlen = attribute->attlen;
	column->returnable = true;
	if (column->attlen < -1 || column->attlen == 0)
		elog(ERROR, "column %d of index \"%s\" has a type of unsupported length %d", number + 1,
			 RelationGetRelationName(index), column->attlen);

	if (number < IndexRelationGetNumberOfKeyAttributes(index))
	{
		int16 option = index->rd_indoption[number];

		make_image(index, number, &column->image);
		column->null_byte = option & INDOPTION_NULLS_FIRST ? 0x00 : 0x02;
		column->flip = option & INDOPTION_DESC ? 0xFF : 0;
		column->returnable = !column->image.forgets;
	}
	else
		column->image.width = Max(column->attlen, 0);
}

/* The lengths of entries and their parts */
static void
sum_lengths(struct smart_codec *codec)
{
	int key_width = 0;
	bool key_fixed = true;
	int growth = 0;

	for (int i = 0; i < codec->ncolumns; i++)
	{
		struct smart_column *column = &codec->columns[i];

		if (i < codec->nkeys)
		{
			key_width += 1 + column->image.width;
			key_fixed = key_fixed && column->image.width > 0;
			codec->residue_width += column->image.residue_width;
			codec->ordered = codec->ordered && !column->image.unordered;
			codec->alterable = codec->alterable || smart_image_alterable(&column->image);
		}
		else if (column->attlen < 0)
			codec->payload_width = -1;
		else if (codec->payload_width >= 0)
			codec->payload_width += 1 + column->attlen;

		/* A column that would leave too little room for the others is not returned */
		if (growth + column_growth(column) > (int) GROWTH_MAX)
			column->returnable = false;
		if (column->returnable)
			growth += column_growth(column);
		codec->returnable = codec->returnable && column->returnable;
	}
	if (codec->payload_width >= 0)
		codec->payload_width += codec->residue_width;
	if (key_fixed && codec->payload_width >= 0)
	{
		codec->fixed_key_length = key_width + SMART_TID_PLAIN;
		codec->fixed_length = codec->fixed_key_length + codec->payload_width;
	}
	codec->compact_tids = codec->fixed_length == 0;
	codec->entry_max = Min(SMART_ENTRY_MAX, (int) (TUPLE_MAX - TUPLE_HEAD_MAX) - growth);
}

/* Where the columns of an IndexTuple without NULLs lie, up to and including the first of variable length */
static void
lay_out_tuple(struct smart_codec *codec)
{
	int32 offset = MAXALIGN(sizeof(IndexTupleData));

	codec->flat = codec->returnable;
	for (int i = 0; i < codec->ncolumns; i++)
	{
		struct smart_column *column = &codec->columns[i];

		column->tuple_offset = -1;
		codec->flat = codec->flat && column->attlen > 0;
		if (!codec->flat)
			continue;
		offset = att_align_nominal(offset, column->align);
		column->tuple_offset = offset;
		offset += column->attlen;
	}
	codec->tuple_size = codec->flat ? (int32) MAXALIGN(offset) : 0;
}

bool
smart_codec_current(const struct smart_codec *codec)
{
	struct smart_codec *copy;
	bool current = true;

	if (!codec->alterable)
		return true;
	copy = palloc(codec->size);
	memcpy(copy, codec, codec->size);
	for (int i = 0; i < copy->nkeys && current; i++)
		current = smart_image_current(&copy->columns[i].image);
	pfree(copy);
	return current;
}

struct smart_codec *
smart_codec_make(Relation index, MemoryContext context)
{
	int ncolumns = IndexRelationGetNumberOfAttributes(index);
	Size size = offsetof(struct smart_codec, columns) + ncolumns * sizeof(struct smart_column);
	struct smart_codec *codec = MemoryContextAllocZero(context, size);

	codec->size = size;
	codec->index = RelationGetRelid(index);
	codec->nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	codec->ncolumns = ncolumns;
	codec->ordered = true;
	codec->returnable = true;
	codec->space = MAXALIGN(TUPLE_MAX + 1);
	for (int i = 0; i < ncolumns; i++)
		make_column(index, i, &codec->columns[i]);
	sum_lengths(codec);
	lay_out_tuple(codec);

	smart_assert(codec->fixed_length == 0 || codec->payload_width >= 0);
	smart_assert(codec->entry_max >= SMART_KEY_MAX && codec->entry_max <= SMART_ENTRY_MAX);
	return codec;
}

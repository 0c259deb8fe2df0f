/*
 * codec.c
 *	  Makes the codec of an index from its catalog entries.
 *
 * All that encoding and decoding have to know of an index is found out once, when it is opened: a row then costs no
 * look into the catalogs.  It is also decided here which columns an index-only scan can return, since an IndexTuple,
 * with its alignment and headers, may be longer than the entry but not longer than its size field can tell.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opfamily.h"
#include "fmgr.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "am/codec/encode.h"
#include "am/codec/normalizer.h"
#include "base/assert.h"

/* An IndexTuple's header, and room for its bitmap of NULLs */
#define TUPLE_HEAD_MAX MAXALIGN(sizeof(IndexTupleData) + sizeof(IndexAttributeBitMapData))
#define TUPLE_MAX      INDEX_SIZE_MASK

/* By how much all columns of an IndexTuple together may be longer than in the entry */
#define GROWTH_MAX (TUPLE_MAX - TUPLE_HEAD_MAX - 6000)

/* What an IndexTuple needs at most for the column beyond its bytes in the entry: alignment, header, padding */
static int
column_growth(const struct smart_column *column)
{
	int growth = 8 + column->normalizer.decode_extra;

	if (column->attlen > 0)
		return growth + Max(column->attlen - column->normalizer.width, 0);
	return growth + VARHDRSZ;
}

/* The access method.  What the relcache says may be meant for others at the moment (index/as_btree.c). */
static Oid
method_of(Relation index)
{
	Oid family = index->rd_opfamily[0];
	HeapTuple row = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(family));
	Oid method;

	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for operator family %u", family);
	method = ((Form_pg_opfamily) GETSTRUCT(row))->opfmethod;
	ReleaseSysCache(row);
	return method;
}

static void
make_column(Relation index, int number, struct smart_column *column)
{
	Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(index), number);

	memset(column, 0, sizeof(*column));
	column->byval = attribute->attbyval;
	column->align = attribute->attalign;
	column->storage = attribute->attstorage;
	column->compression = attribute->attcompression;
	column->attlen = attribute->attlen;
	column->returnable = true;
	if (column->attlen < -1 || column->attlen == 0)
		elog(ERROR, "column %d of index \"%s\" has a type of unsupported length %d", number + 1,
			 RelationGetRelationName(index), column->attlen);

	if (number < IndexRelationGetNumberOfKeyAttributes(index))
	{
		struct smart_normalizer *normalizer = &column->normalizer;
		Oid bytes = index_getprocid(index, number + 1, SMART_BYTES_PROC);
		int16 option = index->rd_indoption[number];

		normalizer->index_name = RelationGetRelationName(index);
		normalizer->method = method_of(index);
		normalizer->type = index->rd_opcintype[number];
		normalizer->value_type = getBaseType(attribute->atttypid);
		normalizer->collation = index->rd_indcollation[number];
		normalizer->typmod = attribute->atttypmod;
		smart_normalizer_make(normalizer, bytes,
							  OidIsValid(bytes) ? InvalidOid
												: index_getprocinfo(index, number + 1, SMART_NORMALIZER_PROC)->fn_oid);
		column->null_byte = option & INDOPTION_NULLS_FIRST ? 0x00 : 0x02;
		column->flip = option & INDOPTION_DESC ? 0xFF : 0;
		column->returnable = !normalizer->forgets;
		smart_assert(normalizer->encode != NULL && normalizer->index_name == NULL);
		smart_assert(normalizer->width >= 0 && normalizer->width <= SMART_NORMALIZED_WIDTH_MAX);
	}
	else
		column->normalizer.width = Max(column->attlen, 0);
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
			key_width += 1 + column->normalizer.width;
			key_fixed = key_fixed && column->normalizer.width > 0;
			codec->residue_width += column->normalizer.residue_width;
			codec->ordered = codec->ordered && !column->normalizer.unordered;
			codec->alterable = codec->alterable || smart_normalizer_alterable(&column->normalizer);
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
	smart_assert(growth <= (int) GROWTH_MAX);
	codec->compact_tids = codec->fixed_length == 0;
	codec->entry_max = Min(SMART_ENTRY_MAX - 1, (int) (TUPLE_MAX - TUPLE_HEAD_MAX) - growth);
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
	smart_assert(codec->tuple_size <= (int32) TUPLE_MAX);
}

void
smart_codec_check_refusal(const struct smart_codec *codec)
{
	for (int i = 0; i < codec->nkeys; i++)
	{
		const char *refusal = codec->columns[i].normalizer.refusal;

		if (refusal != NULL)
			ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					errmsg("index \"%s\" cannot be built with the operator class of its column %d",
						   get_rel_name(codec->index), i + 1),
					errdetail_internal("%s", refusal), errhint("Use the default operator class of the column's type."));
	}
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
		current = smart_normalizer_current(&copy->columns[i].normalizer);
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

	smart_assert(codec->nkeys > 0 && codec->nkeys <= codec->ncolumns && codec->ncolumns <= INDEX_MAX_KEYS);
	smart_assert(codec->fixed_length == 0 || codec->payload_width >= 0);
	smart_assert(codec->entry_max >= SMART_KEY_MAX && codec->entry_max < SMART_ENTRY_MAX);
	return codec;
}

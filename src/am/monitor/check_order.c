/*
 * check_order.c
 *	  Are an index's entries in the order of the values that they were made of?
 *
 * A tree, or a run, is in the order of its bytes, which is looked at elsewhere.  Here each entry's values are compared with those
 * of the one before it, by the comparison that the operator class names: in the first column in which the two differ,
 * since that is what has put them in this order.
 */
#include "postgres.h"

#include "access/genam.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/itemptr.h"
#include "utils/rel.h"

#include "am/codec/encode.h"
#include "am/index/meta.h"
#include "am/index/relation.h"
#include "am/monitor/check_entries.h"
#include "am/monitor/check_order.h"
#include "base/assert.h"

/* An entry and the values that it was made of */
struct decoded
{
	int length;
	uint8 entry[SMART_ENTRY_MAX];
	char *space; /* of the values */
	Datum values[INDEX_MAX_KEYS];
	bool isnull[INDEX_MAX_KEYS];
};

struct order_check
{
	const struct smart_codec *codec;
	Relation index;
	struct decoded *now;
	struct decoded *before;
	FmgrInfo compare[INDEX_MAX_KEYS];
};

/* Is a column's order decided outside of the server, and can its values be looked at? */
static bool
is_checked(const struct smart_column *column)
{
	return column->normalizer.version != 0 && !column->normalizer.unordered && column->returnable;
}

static bool
has_checked(const struct smart_codec *codec)
{
	for (int i = 0; i < codec->nkeys; i++)
	{
		if (is_checked(&codec->columns[i]))
			return true;
	}
	return false;
}

/* The first key column in which the two entries differ, or the number of key columns */
static int
first_difference(const struct order_check *check)
{
	const struct decoded *now = check->now;
	const struct decoded *before = check->before;

	smart_assert(now->length > 0 && before->length > 0);
	for (int i = 0; i < check->codec->nkeys; i++)
	{
		int end = smart_codec_columns_end(check->codec, now->entry, now->length, i + 1);

		if (smart_codec_columns_end(check->codec, before->entry, before->length, i + 1) != end ||
			memcmp(now->entry, before->entry, end) != 0)
			return i;
	}
	return check->codec->nkeys;
}

/* Compares the values of the entry that has just been decoded with those of the one before it */
static void
compare_neighbours(struct order_check *check)
{
	int number = first_difference(check);
	const struct smart_column *column = &check->codec->columns[number];
	ItemPointerData tid;
	int sign;

	if (number == check->codec->nkeys || !is_checked(column) || check->now->isnull[number] ||
		check->before->isnull[number])
		return;
	sign = DatumGetInt32(FunctionCall2Coll(&check->compare[number], check->index->rd_indcollation[number],
										   check->before->values[number], check->now->values[number]));
	if (column->flip != 0 ? sign > 0 : sign < 0)
		return;
	smart_entry_tid(check->codec,
					check->now->entry + smart_codec_key_length(check->codec, check->now->entry, check->now->length),
					&tid);
	ereport(ERROR, errcode(ERRCODE_INDEX_CORRUPTED),
			errmsg("index \"%s\" is not in the order of its values", RelationGetRelationName(check->index)),
			errdetail("The value of column %d of row (%u,%u) compares with that of the entry before it otherwise than "
					  "the two entries do.",
					  number + 1, ItemPointerGetBlockNumberNoCheck(&tid), ItemPointerGetOffsetNumberNoCheck(&tid)),
			smart_hint_reindex(check->index));
}

static void
check_batch(void *argument, const struct smart_batch *batch)
{
	struct order_check *check = argument;

	for (uint32 i = 0; i < batch->count; i++)
	{
		struct decoded *spare = check->before;

		smart_assert(check->now != check->before);
		check->before = check->now;
		check->now = spare;
		spare->length = smart_batch_entry(batch, i, spare->entry);
		smart_codec_decode(check->codec, spare->entry, spare->length, spare->values, spare->isnull, spare->space);
		if (check->before->length > 0)
			compare_neighbours(check);
	}
}

static struct decoded *
make_decoded(const struct smart_codec *codec)
{
	struct decoded *decoded = palloc0(sizeof(*decoded));

	decoded->space = palloc(codec->space);
	return decoded;
}

void
smart_check_order(struct smart_relation *self, Relation index)
{
	struct order_check *check;

	smart_assert(self->tree != NULL || self->view != NULL);
	if (!has_checked(self->codec))
		return;
	check = palloc0(sizeof(*check));
	check->codec = self->codec;
	check->index = index;
	check->now = make_decoded(self->codec);
	check->before = make_decoded(self->codec);
	for (int i = 0; i < self->codec->nkeys; i++)
		fmgr_info_copy(&check->compare[i], index_getprocinfo(index, i + 1, SMART_COMPARE_PROC), CurrentMemoryContext);

	smart_check_each(self, index, check_batch, check);
	pfree(check->now->space);
	pfree(check->before->space);
	pfree(check->now);
	pfree(check->before);
	pfree(check);
}

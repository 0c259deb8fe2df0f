/*
 * duplicates.c
 *	  The uniqueness of what a build loads, and the errors about duplicates.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "executor/executor.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/snapmgr.h"

#include "am/build/duplicates.h"
#include "am/compat.h"
#include "base/assert.h"
#include "base/bytes.h"

struct smart_duplicates
{
	Relation heap;
	Relation index;
	const struct smart_codec *codec;
	bool nulls_equal;
	MemoryContext context;

	/* Dead rows: sorted when the first entry is checked. */
	ItemPointerData *dead;
	Size ndead;
	Size dead_room;
	bool dead_sorted;

	/* The columns of the last live entry. */
	int length;
	uint8 columns[SMART_COLUMNS_MAX];
};

struct smart_duplicates *
smart_duplicates_begin(Relation heap, Relation index, const struct smart_codec *codec, bool nulls_equal)
{
	struct smart_duplicates *duplicates = palloc0(sizeof(*duplicates));

	duplicates->heap = heap;
	duplicates->index = index;
	duplicates->codec = codec;
	duplicates->nulls_equal = nulls_equal;
	duplicates->context = CurrentMemoryContext;
	duplicates->length = -1;
	return duplicates;
}

/* Makes room for so many more dead rows. */
static void
reserve(struct smart_duplicates *duplicates, Size more)
{
	Size need = duplicates->ndead + more;

	if (need <= duplicates->dead_room)
		return;
	duplicates->dead_room = Max(Max(duplicates->dead_room * 2, need), 1024);
	if (duplicates->dead == NULL)
		duplicates->dead = MemoryContextAllocHuge(duplicates->context, duplicates->dead_room * sizeof(ItemPointerData));
	else
		duplicates->dead = repalloc_huge(duplicates->dead, duplicates->dead_room * sizeof(ItemPointerData));
	smart_assert(duplicates->dead_room >= need);
}

void
smart_duplicates_add_dead(struct smart_duplicates *duplicates, ItemPointer tid)
{
	smart_assert(!duplicates->dead_sorted);
	reserve(duplicates, 1);
	duplicates->dead[duplicates->ndead++] = *tid;
}

void
smart_duplicates_hand_over(struct smart_duplicates *duplicates, BufFile *notes)
{
	smart_assert(!duplicates->dead_sorted && duplicates->ndead <= duplicates->dead_room);
	BufFileWrite(notes, &duplicates->ndead, sizeof(duplicates->ndead));
	if (duplicates->ndead > 0)
		BufFileWrite(notes, duplicates->dead, duplicates->ndead * sizeof(ItemPointerData));
}

void
smart_duplicates_take_over(struct smart_duplicates *duplicates, BufFile *notes)
{
	Size more;

	smart_assert(!duplicates->dead_sorted);
	smart_read_exactly(notes, &more, sizeof(more));
	reserve(duplicates, more);
	if (more > 0)
		smart_read_exactly(notes, duplicates->dead + duplicates->ndead, more * sizeof(ItemPointerData));
	duplicates->ndead += more;
	smart_assert(duplicates->ndead <= duplicates->dead_room);
}

static int
compare_tids(const void *a, const void *b)
{
	return ItemPointerCompare((ItemPointer) a, (ItemPointer) b);
}

static bool
has_null(const struct smart_codec *codec, const uint8 *entry, int length)
{
	for (int i = 0; i < codec->nkeys; i++)
	{
		int start = i == 0 ? 0 : smart_codec_columns_end(codec, entry, length, i);

		if (entry[start] != SMART_NOT_NULL)
			return true;
	}
	return false;
}

/* The key of a row as the table has it, for columns that entries do not give back.  False: it has another one by now. */
static bool
fetch_key(struct smart_duplicates *duplicates, ItemPointer tid, const uint8 *columns, int length, Datum *values,
		  bool *isnull)
{
	EState *estate = CreateExecutorState();
	TupleTableSlot *slot = table_slot_create(duplicates->heap, NULL);
	IndexFetchTableData *fetch = table_index_fetch_begin(duplicates->heap);
	ItemPointerData row = *tid;
	uint8 found[SMART_COLUMNS_MAX];
	bool again = false;

	if (!table_index_fetch_tuple(fetch, &row, SnapshotSelf, slot, &again, NULL))
		return false;
	GetPerTupleExprContext(estate)->ecxt_scantuple = slot;
	FormIndexDatum(BuildIndexInfo(duplicates->index), slot, estate, values, isnull);
	return smart_codec_encode_columns(duplicates->codec, duplicates->codec->nkeys, values, isnull, found) == length &&
		   memcmp(found, columns, (Size) length) == 0;
}

/* Raises the error about duplicate entries; the end of the transaction frees what is allocated for it. */
static _Noreturn void
report(struct smart_duplicates *duplicates, const uint8 *entry, int length, int columns_length, ItemPointer tid)
{
	const struct smart_codec *codec = duplicates->codec;
	Datum values[INDEX_MAX_KEYS];
	bool isnull[INDEX_MAX_KEYS];
	bool known = true;
	char *key = NULL;

	for (int i = 0; i < codec->nkeys; i++)
		known &= codec->columns[i].returnable;
	if (known)
		smart_codec_decode(codec, entry, length, values, isnull, palloc(codec->space));
	else
		known = fetch_key(duplicates, tid, entry, columns_length, values, isnull);
	if (known)
		key = BuildIndexValueDescription(duplicates->index, values, isnull);
	ereport(ERROR, errcode(ERRCODE_UNIQUE_VIOLATION),
			errmsg("could not create unique index \"%s\"", RelationGetRelationName(duplicates->index)),
			key ? errdetail("Key %s is duplicated.", key) : errdetail("Duplicate keys exist."),
			errtableconstraint(duplicates->heap, RelationGetRelationName(duplicates->index)));
}

void
smart_duplicates_check(struct smart_duplicates *duplicates, const uint8 *entry, int length)
{
	int key_length = smart_codec_key_length(duplicates->codec, entry, length);
	int columns_length = smart_entry_columns_length(duplicates->codec, entry, key_length);
	ItemPointerData tid;

	smart_assert(columns_length > 0 && columns_length <= SMART_COLUMNS_MAX);
	smart_entry_tid(duplicates->codec, entry + key_length, &tid);
	if (duplicates->ndead > 0)
	{
		if (!duplicates->dead_sorted)
			qsort(duplicates->dead, duplicates->ndead, sizeof(ItemPointerData), compare_tids);
		duplicates->dead_sorted = true;
		if (bsearch(&tid, duplicates->dead, duplicates->ndead, sizeof(ItemPointerData), compare_tids) != NULL)
			return;
	}
	if (columns_length == duplicates->length && memcmp(entry, duplicates->columns, (Size) columns_length) == 0 &&
		(duplicates->nulls_equal || !has_null(duplicates->codec, entry, length)))
		report(duplicates, entry, length, columns_length, &tid);
	/* Equal keys are neighbours. */
	smart_assert(duplicates->length < 0 || smart_compare_bytes(duplicates->columns, (Size) duplicates->length, entry,
															   (Size) columns_length) <= 0);
	memcpy(duplicates->columns, entry, (Size) columns_length);
	duplicates->length = columns_length;
}

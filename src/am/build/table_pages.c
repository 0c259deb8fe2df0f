/*
 * table_pages.c
 *	  Reading a table for the build of an index, a page at a time.
 *
 * The server's own scan for that locks the page once for each row, since it may have to wait for a transaction in the middle of
 * one.  In nearly all pages no row has to be waited for.  Such a page is locked once, and all of its rows are judged; then
 * they are evaluated without the lock, as a page that is pinned keeps its rows where they are.  The others are left to the
 * server's scan.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/procarray.h"
#include "utils/rel.h"

#include "am/build/table_pages.h"
#include "am/compat.h"
#include "base/assert.h"

#define CHUNKS    512 /* at least, if there are blocks enough: no process is left with much when the others have done */
#define CHUNK_MAX 64  /* blocks that a process takes at once */
#define LEFT      16  /* pages, at most, that are left to the server's scan together: they are still in the buffers */

/* A row of a page that has an entry. */
struct row
{
	OffsetNumber offset;
	OffsetNumber root; /* of its HOT chain: what the entry names */
	bool alive;
};

struct reading
{
	const struct smart_table_pages *pages;
	BlockNumber blocks; /* of the table */
	BlockNumber chunk;  /* of them in a chunk */
	BlockNumber at;     /* the next one of the chunk, */
	BlockNumber end;    /* which ends here */
	TransactionId oldest;
	double rows;

	/* Pages that have been left, from this block on. */
	BlockNumber left;
	BlockNumber nleft;

	/* Evaluation */
	EState *estate;
	ExprContext *context;
	TupleTableSlot *slot;
	ExprState *predicate;

	/* The page at hand. */
	int nrows;
	int counted; /* of the table's rows */
	struct row row[MaxHeapTuplesPerPage];
};

/* ---- judging ---- */

enum verdict
{
	ROW_LIVE,
	ROW_KEPT, /* dead, but some snapshot may see it */
	ROW_DEAD,
	ROW_UNCLEAR /* a transaction is at it */
};

static enum verdict
judge(const struct reading *reading, HeapTuple tuple, Buffer buffer)
{
	switch (HeapTupleSatisfiesVacuum(tuple, reading->oldest, buffer))
	{
		case HEAPTUPLE_LIVE:
			return ROW_LIVE;
		case HEAPTUPLE_DEAD:
			return ROW_DEAD;
		case HEAPTUPLE_RECENTLY_DEAD:
			return ROW_KEPT;
		case HEAPTUPLE_INSERT_IN_PROGRESS:
			return TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data)) ? ROW_LIVE : ROW_UNCLEAR;
		default:
			return ROW_UNCLEAR;
	}
}

static void
point_at(HeapTuple tuple, const struct reading *reading, Page page, BlockNumber block, OffsetNumber offset)
{
	ItemId item = PageGetItemId(page, offset);

	smart_assert(ItemIdIsNormal(item));
	tuple->t_data = (HeapTupleHeader) PageGetItem(page, item);
	tuple->t_len = ItemIdGetLength(item);
	tuple->t_tableOid = RelationGetRelid(reading->pages->heap);
	ItemPointerSet(&tuple->t_self, block, offset);
}

/* The row of an entry; the roots of the page's chains are looked up with the first one that needs it. */
static bool
add_row(struct reading *reading, Page page, const HeapTupleData *tuple, bool alive, OffsetNumber *roots)
{
	OffsetNumber offset = ItemPointerGetOffsetNumber(&tuple->t_self);
	OffsetNumber root = offset;

	if (HeapTupleIsHeapOnly(tuple))
	{
		if (roots[0] == InvalidOffsetNumber)
		{
			heap_get_root_tuples(page, roots + 1);
			roots[0] = FirstOffsetNumber;
		}
		root = roots[offset];
		if (!OffsetNumberIsValid(root))
			return false;
	}
	reading->row[reading->nrows++] = (struct row){.offset = offset, .root = root, .alive = alive};
	return true;
}

/* Puts down the rows of a page that have entries; the page is locked.  False: it has one that is not clear. */
static bool
judge_page(struct reading *reading, Page page, BlockNumber block, Buffer buffer)
{
	OffsetNumber last = PageGetMaxOffsetNumber(page);
	OffsetNumber roots[1 + MaxHeapTuplesPerPage]; /* the first one: are they there? */
	bool all_visible = PageIsAllVisible(page);
	bool broken = false;

	roots[0] = InvalidOffsetNumber;
	reading->nrows = reading->counted = 0;
	for (OffsetNumber offset = FirstOffsetNumber; offset <= last; offset++)
	{
		HeapTupleData tuple;
		enum verdict verdict;

		if (!ItemIdIsNormal(PageGetItemId(page, offset)))
			continue;
		point_at(&tuple, reading, page, block, offset);
		verdict = all_visible ? ROW_LIVE : judge(reading, &tuple, buffer);
		if (verdict == ROW_DEAD)
			continue;
		if (verdict == ROW_UNCLEAR)
			return false;
		reading->counted += verdict == ROW_LIVE;
		/* The index gets no entry for a version whose successors may have another key: who sees it must not use the index. */
		if (verdict == ROW_KEPT && HeapTupleIsHotUpdated(&tuple))
			broken = true;
		else if (!add_row(reading, page, &tuple, verdict == ROW_LIVE, roots))
			return false;
	}
	smart_assert(reading->counted <= reading->nrows);
	reading->pages->info->ii_BrokenHotChain |= broken;
	return true;
}

/* ---- pages ---- */

/* Of a page that is pinned. */
static void
evaluate_rows(struct reading *reading, Page page, BlockNumber block, Buffer buffer)
{
	const struct smart_table_pages *pages = reading->pages;
	Datum values[INDEX_MAX_KEYS];
	bool isnull[INDEX_MAX_KEYS];

	for (int i = 0; i < reading->nrows; i++)
	{
		const struct row *row = &reading->row[i];
		HeapTupleData tuple;
		ItemPointerData tid;

		point_at(&tuple, reading, page, block, row->offset);
		pgstat_count_heap_getnext(pages->heap);
		MemoryContextReset(reading->context->ecxt_per_tuple_memory);
		ExecStoreBufferHeapTuple(&tuple, reading->slot, buffer);
		if (reading->predicate != NULL && !ExecQual(reading->predicate, reading->context))
			continue;
		FormIndexDatum(pages->info, reading->slot, reading->estate, values, isnull);
		ItemPointerSet(&tid, block, row->root);
		pages->add(pages->index, &tid, values, isnull, row->alive, pages->state);
	}
	ExecClearTuple(reading->slot);
}

/* The server's scan reads the pages that were left. */
static void
read_left(struct reading *reading)
{
	const struct smart_table_pages *pages = reading->pages;
	List *expressions = pages->info->ii_ExpressionsState;

	if (reading->nleft == 0)
		return;
	smart_assert(reading->nleft <= LEFT && reading->left + reading->nleft <= reading->blocks);
	/* That has an executor of its own, and they are of this one. */
	pages->info->ii_ExpressionsState = NIL;
	reading->rows += table_index_build_range_scan(pages->heap, pages->index, pages->info, false, pages->all_versions,
												  false, reading->left, reading->nleft, pages->add, pages->state, NULL);
	pages->info->ii_ExpressionsState = expressions;
	reading->nleft = 0;
}

static void
leave_page(struct reading *reading, BlockNumber block)
{
	smart_assert(block < reading->blocks);
	if (reading->nleft == LEFT || reading->left + reading->nleft != block)
		read_left(reading); /* none, if none has been left */
	if (reading->nleft++ == 0)
		reading->left = block;
	smart_assert(reading->nleft <= LEFT && reading->left + reading->nleft == block + 1);
}

static void
read_page(struct reading *reading, Buffer buffer)
{
	BlockNumber block = BufferGetBlockNumber(buffer);
	Page page = BufferGetPage(buffer);
	bool clear;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	clear = judge_page(reading, page, block, buffer);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	if (clear)
	{
		/* In the table's order, in which the entries may be, too. */
		read_left(reading);
		reading->rows += reading->counted;
		evaluate_rows(reading, page, block, buffer);
	}
	else
		leave_page(reading, block);
	ReleaseBuffer(buffer);
}

/* smart_block_reader's next: takes a chunk when the last one has come to its end. */
static BlockNumber
next_block(void *argument)
{
	struct reading *reading = argument;

	if (reading->at == reading->end)
	{
		uint64 at = (uint64) pg_atomic_fetch_add_u32(reading->pages->chunks, 1) * reading->chunk;

		if (at >= reading->blocks)
			return InvalidBlockNumber;
		reading->at = (BlockNumber) at;
		reading->end = reading->at + Min(reading->chunk, reading->blocks - reading->at);
	}
	smart_assert(reading->at < reading->end && reading->end <= reading->blocks);
	return reading->at++;
}

/* ---- the whole ---- */

static void
begin(struct reading *reading, const struct smart_table_pages *pages)
{
	*reading = (struct reading){
		.pages = pages,
		.blocks = RelationGetNumberOfBlocks(pages->heap),
		.oldest = GetOldestNonRemovableTransactionId(pages->heap),
		.estate = CreateExecutorState(),
		.slot = table_slot_create(pages->heap, NULL),
	};
	reading->chunk = Max(Min(reading->blocks / CHUNKS, CHUNK_MAX), 1);
	reading->context = GetPerTupleExprContext(reading->estate);
	reading->context->ecxt_scantuple = reading->slot;
	reading->predicate = ExecPrepareQual(pages->info->ii_Predicate, reading->estate);
	pgstat_count_heap_scan(pages->heap);
	if (pages->progress)
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL, reading->blocks);
}

static void
end(struct reading *reading)
{
	IndexInfo *info = reading->pages->info;

	smart_assert(reading->nleft == 0);
	ExecDropSingleTupleTableSlot(reading->slot);
	FreeExecutorState(reading->estate);
	info->ii_ExpressionsState = NIL;
	if (reading->pages->progress)
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, reading->blocks);
}

bool
smart_table_has_pages(Relation heap, const IndexInfo *info)
{
	return !info->ii_Concurrent && heap->rd_tableam == GetHeapamTableAmRoutine();
}

double
smart_table_pages_read(const struct smart_table_pages *pages)
{
	struct reading *reading = palloc(sizeof(*reading));
	struct smart_block_reader *reader;
	Buffer buffer;
	double rows;

	smart_assert(smart_table_has_pages(pages->heap, pages->info));
	begin(reading, pages);
	reader = smart_block_reader_begin(pages->heap, reading->blocks, next_block, reading);
	while ((buffer = smart_block_reader_next(reader)) != InvalidBuffer)
	{
		CHECK_FOR_INTERRUPTS();
		if (pages->progress)
			pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, BufferGetBlockNumber(buffer));
		read_page(reading, buffer);
	}
	smart_block_reader_end(reader);
	read_left(reading);
	end(reading);
	rows = reading->rows;
	pfree(reading);
	return rows;
}

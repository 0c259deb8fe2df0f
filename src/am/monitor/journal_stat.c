/*
 * journal_stat.c
 *	  smart_index_pages(): what the pages of an index's file hold.
 *
 * It looks at each page once, in the order of the file, and the metapage before that: what others change meanwhile may
 * be counted or not.
 */
#include "postgres.h"

#include "access/relation.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "am/index/meta.h"
#include "am/index/relation.h"
#include "am/journal/free.h"
#include "am/journal/page.h"
#include "am/journal/run_walk.h"
#include "am/monitor/stat_row.h"
#include "am/server/key_filter.h"
#include "base/assert.h"

PG_FUNCTION_INFO_V1(smart_index_pages);

struct counts
{
	uint64 run;       /* pages of the current run */
	uint64 kept;      /* of them: those that runs before have written */
	uint64 run_bytes; /* of content on them */
	uint64 fences;    /* fence pages of the current run */
	uint64 chain;     /* pages of the chain */
	uint64 adds;
	uint64 removals;
	uint64 previous; /* of what was superseded, and may still be read */
	uint64 writing;  /* of a run that is being written */
	uint64 free;
};

/* Counts the operations on a page of the chain from this place on. */
static void
count_operations(Page page, uint32 place, struct counts *counts)
{
	struct smart_unpacker unpacker;
	enum smart_operation operation;

	while (smart_batch_open(page, place, &unpacker, &operation, &place))
		*(operation == SMART_OPERATION_ADD ? &counts->adds : &counts->removals) += smart_unpacker_count(&unpacker);
}

static void
count_run_page(Page page, const struct smart_meta *meta, struct counts *counts)
{
	counts->run++;
	counts->kept += smart_page_head(page)->number != meta->run;
	smart_assert(counts->kept <= counts->run);
	counts->run_bytes += SMART_PAGE_ROOM - (((PageHeader) page)->pd_upper - ((PageHeader) page)->pd_lower);
}

/* map: of the run, or NULL: its pages tell it themselves. */
static bool
is_of_current_run(Page page, const struct smart_meta *meta, const struct smart_run_map *map, BlockNumber block)
{
	return map == NULL
			   ? smart_page_is(page, SMART_PAGE_RUN, meta->journal, meta->run)
			   : smart_run_map_has(map, block) && smart_page_is_of_runs(page, meta->journal, meta->run_kept, meta->run);
}

static void
count_page(Page page, const struct smart_meta *meta, const struct smart_run_map *map, BlockNumber block,
		   struct counts *counts)
{
	const struct smart_page_head *head = smart_page_head(page);

	if (smart_page_is_free(page, meta))
		counts->free++;
	else if (is_of_current_run(page, meta, map, block))
		count_run_page(page, meta, counts);
	else if (smart_page_is(page, SMART_PAGE_FENCE, meta->journal, meta->run))
		counts->fences++;
	else if (smart_page_is_of_run(page, meta->journal, head->number) && head->number > meta->run)
		counts->writing++;
	else if (smart_page_is(page, SMART_PAGE_LOG, meta->journal, head->number) && head->number >= meta->cut.serial)
	{
		counts->chain++;
		count_operations(page, head->number == meta->cut.serial ? meta->cut.offset : (uint32) SMART_PAGE_BEGIN, counts);
	}
	else
		counts->previous++;
}

/* The metapage, and which pages its run has, if pages do not tell it: there are others of runs before, or the journal is stale. */
static const struct smart_run_map *
read_meta(Relation index, struct smart_meta *meta)
{
	const struct smart_run_map *map = NULL;

	do
	{
		CHECK_FOR_INTERRUPTS();
		smart_meta_read(index, meta);
		if (meta->run_kept == meta->run || !smart_meta_is_loadable(meta))
			break;
		/* NULL: there is another run by now. */
		map = smart_run_map_make(index, meta);
	} while (map == NULL);
	return map;
}

static void
count_pages(Relation index, const struct smart_meta *meta, const struct smart_run_map *map, struct counts *counts)
{
	BufferAccessStrategy ring = GetAccessStrategy(BAS_BULKREAD);
	BlockNumber blocks = RelationGetNumberOfBlocks(index);
	PGAlignedBlock copy;

	smart_assert(meta->journal != 0);
	for (BlockNumber block = SMART_META_BLOCK + 1; block < blocks; block++)
	{
		Buffer buffer = ReadBufferExtended(index, MAIN_FORKNUM, block, RBM_NORMAL, ring);

		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		memcpy(copy.data, BufferGetPage(buffer), BLCKSZ);
		UnlockReleaseBuffer(buffer);
		count_page(copy.data, meta, map, block, counts);
		CHECK_FOR_INTERRUPTS();
	}
	FreeAccessStrategy(ring);
}

/*
 * smart_index_pages(index regclass)
 *
 * A row: journal ('none', 'whole', 'stale'), run, run_pages, run_kept, run_entries, run_fences, run_fill, compacted, chain_pages,
 * adds, removals, previous_pages, unfinished_pages, free_pages, filter_bytes.  Errors: those of smart_index_open() and
 * smart_meta_read(); INDEX_CORRUPTED.
 */
PGDLLEXPORT Datum
smart_index_pages(PG_FUNCTION_ARGS)
{
	static const char *const states[] =
		{[SMART_JOURNAL_NONE] = "none", [SMART_JOURNAL_WHOLE] = "whole", [SMART_JOURNAL_STALE] = "stale"};
	Relation index = smart_index_open(PG_GETARG_OID(0));
	struct counts counts = {0};
	struct smart_meta meta;
	struct smart_row row;
	const struct smart_run_map *map = read_meta(index, &meta);
	struct smart_run_name name;

	if (meta.journal != 0)
		count_pages(index, &meta, map, &counts);
	name = smart_meta_run_name(&smart_relation_locator(index), &meta);
	relation_close(index, AccessShareLock);
	smart_assert(meta.journal_state <= SMART_JOURNAL_STALE);
	smart_row_begin(&row, fcinfo);
	smart_row_text(&row, states[meta.journal_state]);
	smart_row_count(&row, meta.run);
	smart_row_count(&row, counts.run);
	smart_row_count(&row, counts.kept);
	smart_row_count(&row, meta.run_entries);
	smart_row_count(&row, counts.fences);
	/* Without pages there is nothing to be full. */
	smart_row_value(&row, Float8GetDatum((double) counts.run_bytes / (double) (Max(counts.run, 1) * SMART_PAGE_ROOM)),
					counts.run > 0);
	smart_row_time(&row, meta.run_made);
	smart_row_count(&row, counts.chain);
	smart_row_count(&row, counts.adds);
	smart_row_count(&row, counts.removals);
	smart_row_count(&row, counts.previous);
	smart_row_count(&row, counts.writing);
	smart_row_count(&row, counts.free);
	smart_row_count(&row, smart_key_filter_bytes(&name));
	return smart_row_return(&row);
}

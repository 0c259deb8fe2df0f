/*
 * collector.c
 *	  From the table to the tree: rows become entries for the sorter, and these,
 *	  in order, a tree, or a run, or both.
 */
#include "postgres.h"

#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "am/build/collector.h"
#include "am/build/duplicates.h"
#include "am/build/table_pages.h"
#include "am/sort/sorter.h"
#include "am/codec/encode.h"
#include "am/index/options.h"
#include "am/index/relation.h"
#include "am/journal/run.h"
#include "am/journal/run_filter.h"
#include "am/server/environment.h"
#include "am/server/progress.h"
#include "base/assert.h"

#define ROWS_PER_PAGE 300  /* at least as many as fit on a page of a heap */
#define REPORT_EVERY  4096 /* entries between two reports of progress */

void
smart_collector_begin(struct smart_collector *self, Relation heap, Relation index, const IndexInfo *info, int processes)
{
	Size memory = (Size) maintenance_work_mem * 1024 / (Size) processes;
	Size width;
	Size expected;

	smart_assert(processes > 0);
	memset(self, 0, offsetof(struct smart_collector, entry));
	self->heap = heap;
	self->index = index;
	self->codec = smart_codec_make(index, CurrentMemoryContext);
	smart_codec_check_refusal(self->codec);
	width = self->codec->fixed_length > 0 ? (Size) self->codec->fixed_length + 32 : (Size) BLCKSZ / 64;
	expected = (Size) RelationGetNumberOfBlocks(heap) / (Size) processes * ROWS_PER_PAGE * width;
	smart_environment_init();
	self->sorter = smart_sorter_begin(self->codec->fixed_length, memory, expected, &smart_environment);
	if (info->ii_Unique)
		self->duplicates = smart_duplicates_begin(heap, index, self->codec, info->ii_NullsNotDistinct);
}

/* Called for every row that has an entry. */
static void
add_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *state)
{
	struct smart_collector *self = state;
	int key_length;
	int length = smart_codec_encode(self->codec, values, isnull, tid, self->entry, &key_length);

	smart_assert(length >= key_length && length <= SMART_ENTRY_MAX);
	smart_sorter_add(self->sorter, self->entry, length);
	if (!alive && self->duplicates != NULL)
		smart_duplicates_add_dead(self->duplicates, tid);
	self->entries++;
	if (self->look_around != NULL && (int64) self->entries % REPORT_EVERY == 0)
		self->look_around(self);
}

void
smart_collector_read(struct smart_collector *self, IndexInfo *info, TableScanDesc scan, bool progress)
{
	pg_atomic_uint32 all;

	pg_atomic_init_u32(&all, 0);
	if (scan == NULL && smart_table_has_pages(self->heap, info))
	{
		const struct smart_table_pages pages = {.heap = self->heap,
												.index = self->index,
												.info = info,
												.chunks = self->chunks != NULL ? self->chunks : &all,
												.all_versions = self->all_versions,
												.progress = progress,
												.add = add_row,
												.state = self};

		self->rows = smart_table_pages_read(&pages);
	}
	else
		self->rows = table_index_build_range_scan(self->heap, self->index, info, true, self->all_versions, progress, 0,
												  InvalidBlockNumber, add_row, self, scan);
}

/* ---- into a tree ---- */

/* Adds an entry to the tree, which is given up if there is no room for it any more, and if it may be: *load is NULL then. */
static void
load_entry(struct smart_collector *self, struct smart_load **load, const uint8 *entry, int length)
{
	smart_status status = smart_load_add(*load, entry, (size_t) length);

	smart_assert(!self->left);
	if (self->may_leave && (status == SMART_NO_SPACE || status == SMART_DISK_FULL))
	{
		smart_load_abandon(*load);
		*load = NULL;
		self->left = true;
	}
	else
		smart_check_status(status, self->index);
	smart_assert((*load == NULL) == self->left);
}

static void
load_entries(struct smart_collector *self, struct smart_load **load)
{
	const uint8 *entry;
	int length;
	int length_before = 0;
	int64 done = 0;

	while ((entry = smart_sorter_next(self->sorter, &length)) != NULL)
	{
		/* Two members of a HOT chain may have been read while a transaction was at them: the same key twice. */
		if (self->all_versions)
		{
			int key_length = smart_codec_key_length(self->codec, entry, length);

			smart_assert(key_length > 0 && key_length <= SMART_KEY_MAX);
			if (length_before >= key_length && memcmp(self->entry, entry, (size_t) key_length) == 0)
				continue;
			memcpy(self->entry, entry, (size_t) length);
			length_before = length;
		}
		if (self->duplicates != NULL)
			smart_duplicates_check(self->duplicates, entry, length);
		if (*load != NULL)
			load_entry(self, load, entry, length);
		if (self->run != NULL)
			smart_run_add(self->run, entry, length);
		smart_run_filter_add(self->filter, entry, length);
		if (++done % REPORT_EVERY == 0)
		{
			pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, done);
			if (self->look_around != NULL)
				self->look_around(self);
			CHECK_FOR_INTERRUPTS();
		}
	}
	smart_assert(self->all_versions ? done <= (int64) self->entries : done == (int64) self->entries);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, done);
	self->entries = (double) done;
}

void
smart_collector_load(struct smart_collector *self, struct smart_tree *tree)
{
	/* In memory of its own, as an error's handler looks at it. */
	struct smart_load **loading = palloc0(sizeof(*loading));

	smart_assert(tree != NULL || self->run != NULL);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, SMART_PHASE_LOAD);
	if (tree == NULL)
	{
		load_entries(self, loading);
		return;
	}
	PG_TRY();
	{
		struct smart_load *opened;
		smart_status status;

		smart_check_status(smart_load_begin(tree, (unsigned int) smart_options_fillfactor(self->index), &opened),
						   self->index);
		*loading = opened;
		load_entries(self, loading);
		opened = *loading;
		*loading = NULL; /* finish frees it whatever comes out */
		status = opened == NULL ? SMART_OK : smart_load_finish(opened);
		self->left |= self->may_leave && (status == SMART_NO_SPACE || status == SMART_DISK_FULL);
		smart_assert(!self->left || self->may_leave);
		if (!self->left)
			smart_check_status(status, self->index);
	}
	PG_CATCH();
	{
		if (*loading != NULL)
			smart_load_abandon(*loading);
		PG_RE_THROW();
	}
	PG_END_TRY();
}

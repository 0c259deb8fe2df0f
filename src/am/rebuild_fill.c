/*
 * rebuild_fill.c
 *	  How a rebuild gets its entries: from the table, in order, and from the tree
 *	  that took in what was inserted meanwhile.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "am/duplicates.h"
#include "am/rebuild_fill.h"
#include "am/rebuild_table.h"
#include "am/report.h"
#include "am/server.h"
#include "am/sorter.h"

#define REPORT_EVERY 4096 /* entries between two looks at the world outside */

/* Subphases in pg_stat_progress_create_index, as in a build. */
#define PHASE_SCAN 2
#define PHASE_SORT 3
#define PHASE_LOAD 4

void
smart_filling_report_spoiled(const struct smart_filling *self)
{
	ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("a row could not be inserted into index \"%s\" while it was rebuilt",
						   RelationGetRelationName(self->index)),
					errdetail("The memory node has lost it, is full, or cannot be reached.")));
}

void
smart_filling_look_around(const struct smart_filling *self)
{
	CHECK_FOR_INTERRUPTS();
	if (smart_rebuild_is_spoiled(MyDatabaseId, RelationGetRelid(self->index), false))
		smart_filling_report_spoiled(self);
	if (LockHasWaitersRelation(self->heap, ShareUpdateExclusiveLock))
		ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE),
						errmsg("the rebuild of index \"%s\" gives way to a lock that somebody waits for",
							   RelationGetRelationName(self->index))));
}

/* ---- from the table ---- */

/* Called for every row that has an entry. */
static void
add_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *state)
{
	struct smart_filling *self = state;
	int key_length;
	int length;

	length = smart_codec_encode(self->codec, values, isnull, tid, self->entry, &key_length);
	smart_sorter_add(self->sorter, self->entry, length);
	if (!alive && self->duplicates != NULL)
		smart_duplicates_add_dead(self->duplicates, tid);
	if (++self->entries % REPORT_EVERY == 0)
		smart_filling_look_around(self);
}

void
smart_filling_collect(struct smart_filling *self)
{
	IndexInfo *info = BuildIndexInfo(self->index);
	Size memory = (Size) maintenance_work_mem * 1024;
	Size expected = (Size) RelationGetNumberOfBlocks(self->heap) * BLCKSZ;

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_SCAN);
	if (info->ii_Unique)
		self->duplicates = smart_duplicates_begin(self->heap, self->index, self->codec, info->ii_NullsNotDistinct);
	self->sorter = smart_sorter_begin(self->codec->fixed_length, memory, expected, smart_backend_client()->env);

	/* Uniqueness is not core's affair here: it would wait for transactions. */
	info->ii_Unique = false;
	info->ii_ExclusionOps = NULL;
	info->ii_ExclusionProcs = NULL;
	info->ii_ExclusionStrats = NULL;
	PushActiveSnapshot(GetTransactionSnapshot());
	(void) table_index_build_range_scan(self->heap, self->index, info, true, true, true, 0, InvalidBlockNumber, add_row,
										self, NULL);
	PopActiveSnapshot();
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, self->entries);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_SORT);
	smart_sorter_perform(self->sorter);
}

/* Is it the entry before it?  Two members of a HOT chain may have been read while a transaction was at them. */
static bool
is_same(const struct smart_filling *self, const uint8 *entry, int key_length, int length_before)
{
	return length_before >= key_length && memcmp(self->entry, entry, (size_t) key_length) == 0;
}

static void
load_entries(struct smart_filling *self, struct smart_load *load)
{
	const uint8 *entry;
	int length_before = 0;
	int length;

	self->entries = 0;
	while ((entry = smart_sorter_next(self->sorter, &length)) != NULL)
	{
		if (is_same(self, entry, smart_codec_key_length(self->codec, entry, length), length_before))
			continue;
		memcpy(self->entry, entry, (size_t) length);
		length_before = length;
		if (self->duplicates != NULL)
			smart_duplicates_check(self->duplicates, entry, length);
		smart_check_status(smart_load_add(load, entry, (size_t) length), self->index);
		if (++self->entries % REPORT_EVERY == 0)
		{
			pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, self->entries);
			smart_filling_look_around(self);
		}
	}
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, self->entries);
}

void
smart_filling_load(struct smart_filling *self, struct smart_tree *tree)
{
	struct smart_load *volatile loading = NULL;

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_LOAD);
	PG_TRY();
	{
		struct smart_load *opened;

		smart_check_status(smart_load_begin(tree, (unsigned int) smart_options_fillfactor(self->index), &opened),
						   self->index);
		loading = opened;
		load_entries(self, opened);
		loading = NULL; /* finish frees it whatever comes out */
		smart_check_status(smart_load_finish(opened), self->index);
	}
	PG_CATCH();
	{
		if (loading != NULL)
			smart_load_abandon(loading);
		PG_RE_THROW();
	}
	PG_END_TRY();
	smart_sorter_end(self->sorter);
}

/* ---- from another tree ---- */

static void
copy_batch(struct smart_filling *self, const struct smart_batch *batch, struct smart_tree *to)
{
	memcpy(self->entry, batch->prefix, batch->prefix_length);
	for (uint32 i = 0; i < batch->count; i++)
	{
		const struct smart_item *item = &batch->items[i];
		int length = (int) (batch->prefix_length + item->length);
		bool added;

		smart_assert((size_t) length <= sizeof(self->entry));
		memcpy(self->entry + batch->prefix_length, batch->bytes + item->offset, item->length);
		smart_check_status(smart_tree_insert(to, self->entry,
											 (size_t) smart_codec_key_length(self->codec, self->entry, length),
											 (size_t) length, &added),
						   self->index);
	}
}

void
smart_filling_copy(struct smart_filling *self, struct smart_tree *from, struct smart_tree *to)
{
	struct smart_scan *scan;

	smart_check_status(smart_scan_open(from, &scan), self->index);
	PG_TRY();
	{
		struct smart_batch batch;
		smart_status status;

		smart_check_status(smart_scan_seek(scan, NULL, 0, NULL, 0, false), self->index);
		while ((status = smart_scan_next(scan, &batch)) == SMART_OK)
		{
			smart_filling_look_around(self);
			copy_batch(self, &batch, to);
		}
		if (status != SMART_DONE)
			smart_report_status(status, self->index);
	}
	PG_FINALLY();
	{
		smart_scan_close(scan);
	}
	PG_END_TRY();
}

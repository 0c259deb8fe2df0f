/*
 * rebuild_fill.c
 *	  How a rebuild gets its entries: from the table, in order, and from the tree
 *	  that took in what was inserted meanwhile.
 */
#include "postgres.h"

#include "catalog/index.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "am/rebuild_fill.h"
#include "am/rebuild_table.h"
#include "am/report.h"
#include "am/server.h"

void
smart_filling_report_spoiled(const struct smart_collector *rows)
{
	ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("a row could not be inserted into index \"%s\" while it was rebuilt",
						   RelationGetRelationName(rows->index)),
					errdetail("The memory node has lost it, is full, or cannot be reached.")));
}

void
smart_filling_look_around(const struct smart_collector *rows)
{
	CHECK_FOR_INTERRUPTS();
	if (smart_rebuild_is_spoiled(MyDatabaseId, RelationGetRelid(rows->index), false))
		smart_filling_report_spoiled(rows);
	if (LockHasWaitersRelation(rows->heap, ShareUpdateExclusiveLock))
		ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE),
						errmsg("the rebuild of index \"%s\" gives way to a lock that somebody waits for",
							   RelationGetRelationName(rows->index))));
}

/* ---- from the table ---- */

void
smart_filling_begin(struct smart_collector *rows, Relation heap, Relation index)
{
	smart_collector_begin(rows, heap, index, BuildIndexInfo(index), 1);
	rows->all_versions = true;
	rows->look_around = smart_filling_look_around;
}

void
smart_filling_collect(struct smart_collector *rows)
{
	IndexInfo *info = BuildIndexInfo(rows->index);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, SMART_PHASE_SCAN);
	/* Uniqueness is not core's affair here: it would wait for transactions. */
	info->ii_Unique = false;
	info->ii_ExclusionOps = NULL;
	info->ii_ExclusionProcs = NULL;
	info->ii_ExclusionStrats = NULL;
	PushActiveSnapshot(GetTransactionSnapshot());
	smart_collector_read(rows, info, NULL, true);
	PopActiveSnapshot();
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, (int64) rows->entries);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, SMART_PHASE_SORT);
	smart_sorter_perform(rows->sorter);
}

void
smart_filling_load(struct smart_collector *rows, struct smart_tree *tree)
{
	smart_collector_load(rows, tree);
	smart_sorter_end(rows->sorter);
}

/* ---- from another tree ---- */

static void
copy_batch(struct smart_collector *rows, const struct smart_batch *batch, struct smart_tree *to)
{
	memcpy(rows->entry, batch->prefix, batch->prefix_length);
	for (uint32 i = 0; i < batch->count; i++)
	{
		const struct smart_item *item = &batch->items[i];
		int length = (int) (batch->prefix_length + item->length);
		bool added;

		smart_assert((size_t) length <= sizeof(rows->entry));
		memcpy(rows->entry + batch->prefix_length, batch->bytes + item->offset, item->length);
		smart_check_status(smart_tree_insert(to, rows->entry,
											 (size_t) smart_codec_key_length(rows->codec, rows->entry, length),
											 (size_t) length, &added),
						   rows->index);
	}
}

void
smart_filling_copy(struct smart_collector *rows, struct smart_tree *from, struct smart_tree *to)
{
	struct smart_scan *scan;

	smart_check_status(smart_scan_open(from, &scan), rows->index);
	PG_TRY();
	{
		struct smart_batch batch;
		smart_status status;

		smart_check_status(smart_scan_seek(scan, NULL, 0, NULL, 0, false), rows->index);
		while ((status = smart_scan_next(scan, &batch)) == SMART_OK)
		{
			smart_filling_look_around(rows);
			copy_batch(rows, &batch, to);
		}
		if (status != SMART_DONE)
			smart_report_status(status, rows->index);
	}
	PG_FINALLY();
	{
		smart_scan_close(scan);
	}
	PG_END_TRY();
}

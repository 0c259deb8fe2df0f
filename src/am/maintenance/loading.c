/*
 * loading.c
 *	  Loading an index in the background, as others see it, and as it sees others.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "am/index/relation.h"
#include "am/maintenance/loading.h"
#include "am/maintenance/worker.h"
#include "base/assert.h"

#define WAIT_MS 50 /* between two looks at whether writers still run */

/* ---- as others see it ---- */

void
smart_tell_begin(Relation heap, Relation index)
{
	const int parameter[] = {PROGRESS_CREATEIDX_COMMAND, PROGRESS_CREATEIDX_INDEX_OID,
							 PROGRESS_CREATEIDX_ACCESS_METHOD_OID, PROGRESS_CREATEIDX_PHASE};
	const int64 value[] = {PROGRESS_CREATEIDX_COMMAND_REINDEX_CONCURRENTLY, RelationGetRelid(index),
						   index->rd_rel->relam, PROGRESS_CREATEIDX_PHASE_BUILD};

	smart_assert(index->rd_index->indrelid == RelationGetRelid(heap));
	pgstat_progress_start_command(PROGRESS_COMMAND_CREATE_INDEX, RelationGetRelid(heap));
	pgstat_progress_update_multi_param(lengthof(parameter), parameter, value);
}

bool
smart_load_and_tell(Relation heap, Relation index, smart_load_fn load, const struct smart_look *look)
{
	TimestampTz start = GetCurrentTimestamp();
	uint64 entries;
	enum smart_loaded loaded;

	smart_tell_begin(heap, index);
	loaded = load(index, look, &entries);
	if (loaded == SMART_LOADED)
		ereport(LOG, errmsg("smart index \"%s\" has been loaded", RelationGetRelationName(index)),
				errdetail("From its journal, with " UINT64_FORMAT " entries; this took %ld ms.", entries,
						  TimestampDifferenceMilliseconds(start, GetCurrentTimestamp())));
	/* Who finds it over finds the message, too. */
	pgstat_progress_end_command();
	return loaded != SMART_LOADED_NOT;
}

/* ---- as it sees others ---- */

/* Not in the lock manager's queue: there a writer that now wants a stronger lock would be a deadlock's victim. */
void
smart_wait_for_writers(Relation heap, long patience_ms, const struct smart_look *look)
{
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), patience_ms);
	VirtualTransactionId *writers;
	LOCKTAG tag;

	smart_assert(patience_ms > 0);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_PHASE, PROGRESS_CREATEIDX_PHASE_WAIT_1);
	SET_LOCKTAG_RELATION(tag, MyDatabaseId, RelationGetRelid(heap));
	for (writers = GetLockConflicts(&tag, ShareLock, NULL); VirtualTransactionIdIsValid(*writers); writers++)
	{
		while (!VirtualXactLock(*writers, false))
		{
			look->around(look->argument);
			if (GetCurrentTimestamp() >= end)
				ereport(ERROR, errcode(ERRCODE_LOCK_NOT_AVAILABLE),
						errmsg("a transaction has written to table \"%s\" and goes on", RelationGetRelationName(heap)));
			smart_worker_rest(WAIT_MS);
		}
	}
	pgstat_progress_update_param(PROGRESS_CREATEIDX_PHASE, PROGRESS_CREATEIDX_PHASE_BUILD);
}

/* ---- from another tree ---- */

void
smart_add_batch(Relation index, const struct smart_codec *codec, struct smart_tree *tree,
				const struct smart_batch *batch, uint8 entry[SMART_ENTRY_MAX])
{
	for (uint32 i = 0; i < batch->count; i++)
	{
		int length = smart_batch_entry(batch, i, entry);
		int key_length = smart_codec_key_length(codec, entry, length);
		bool added;

		smart_check_status(smart_tree_insert(tree, entry, (size_t) key_length, (size_t) length, &added), index);
	}
}

/*
 * vacuum.c
 *	  ambulkdelete and amvacuumcleanup.
 *
 * Two orders matter.  WAL first: what makes a row removable is in WAL, and a
 * removal in the region survives a crash at once, so that WAL must be flushed
 * before the first removal; else the row could come back without its entry.
 * And VACUUM gives TIDs to new rows once we return, so we return only when
 * nobody looks any more at a TID that we removed.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "storage/condition_variable.h"
#include "lib/stringinfo.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "am/am.h"
#include "am/report.h"
#include "am/server.h"
#include "am/worker.h"

#define WAIT_MS      20 /* between two looks at the holders, at most */
#define LOG_AFTER_MS 1000

/* The state of one bulk delete, for the tree's callbacks. */
struct bulk_delete
{
	struct smart_relation *relation;
	IndexBulkDeleteCallback dead;
	void *argument;
	MemoryContext context;
	ErrorData *error; /* what a callback raised; NULL: nothing */
};

/* The tree must not be left by a longjmp, so an error waits here until the tree has returned. */
static void
keep_error(struct bulk_delete *bulk)
{
	MemoryContextSwitchTo(bulk->context);
	bulk->error = CopyErrorData();
	FlushErrorState();
}

/*
 * Asks core whether a row is dead.  (CREATE INDEX CONCURRENTLY collects the TIDs
 * that we show it in a sort, which may fail.)
 */
static bool
is_dead(void *argument, const uint8_t *entry, size_t length)
{
	struct bulk_delete *bulk = argument;
	const struct smart_codec *codec = bulk->relation->codec;
	volatile bool dead = false;
	ItemPointerData tid;

	if (bulk->error != NULL)
		return false;
	smart_entry_tid(codec, entry + smart_codec_key_length(codec, entry, (int) length), &tid);
	PG_TRY();
	{
		dead = bulk->dead(&tid, bulk->argument);
	}
	PG_CATCH();
	{
		keep_error(bulk);
	}
	PG_END_TRY();
	return dead;
}

/*
 * Between two leaves nothing is held: the cost delay may sleep, and interrupts
 * are served, also those that end nothing (a barrier that all backends have to
 * pass must not wait for the end of the walk).  One that ends it waits as above.
 */
static bool
pause_point(void *argument)
{
	struct bulk_delete *bulk = argument;

	if (VacuumCostActive)
		VacuumCostBalance += VacuumCostPageHit;
	PG_TRY();
	{
		smart_vacuum_delay_point();
	}
	PG_CATCH();
	{
		keep_error(bulk);
	}
	PG_END_TRY();
	return bulk->error == NULL;
}

/*
 * Opens an index that may be unusable.  Then VACUUM of the table must go on all
 * the same, or its wraparound would not be prevented: a warning, and NULL.
 * Only errors that are raised with nothing in hand are taken that way.
 */
static struct smart_relation *
open_usable(Relation index)
{
	MemoryContext context = CurrentMemoryContext;
	struct smart_relation *volatile relation = NULL;

	PG_TRY();
	{
		relation = smart_relation_open(index);
	}
	PG_CATCH();
	{
		ErrorData *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		if (error->sqlerrcode != ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE &&
			error->sqlerrcode != ERRCODE_INDEX_CORRUPTED && error->sqlerrcode != ERRCODE_FEATURE_NOT_SUPPORTED)
			PG_RE_THROW();
		FlushErrorState();
		ereport(WARNING, (errcode(error->sqlerrcode),
						  errmsg("skipping index \"%s\": %s", RelationGetRelationName(index), error->message),
						  error->hint ? errhint("%s", error->hint) : 0));
		FreeErrorData(error);
	}
	PG_END_TRY();
	return relation;
}

/*
 * The end of what has been put into WAL.  The insert position is one behind the
 * header of the next page when the last record ended with its page; nobody can
 * flush up to there.
 */
static XLogRecPtr
wal_end(void)
{
	XLogRecPtr position = GetXLogInsertRecPtr();

	if (XLogSegmentOffset(position, wal_segment_size) == SizeOfXLogLongPHD)
		position -= SizeOfXLogLongPHD;
	else if (position % XLOG_BLCKSZ == SizeOfXLogShortPHD)
		position -= SizeOfXLogShortPHD;
	return position;
}

/* Says in the log for whom VACUUM waits. */
static void
log_holders(const struct smart_client *client, Relation index, uint64 tree, uint64 number)
{
	StringInfoData pids;
	unsigned int holder = 0;

	initStringInfo(&pids);
	while ((holder = smart_interlock_holder(client->compute->interlock, tree, number, holder)) != SMART_CLIENT_NONE)
	{
		appendStringInfo(&pids, pids.len > 0 ? ", %d" : "%d", smart_client_pid(holder));
		holder++;
	}
	if (pids.len > 0)
		ereport(LOG, (errmsg("bulk deletion in index \"%s\" waits for scans that may still look at removed entries",
							 RelationGetRelationName(index)),
					  errdetail("Processes that hold it up: %s.", pids.data)));
	pfree(pids.data);
}

/* Waits until nobody looks any more at a TID that was read before now. */
static void
wait_for_scans(Relation index, uint64 tree)
{
	struct smart_client *client = smart_backend_client();
	struct smart_interlock_shared *interlock = client->compute->interlock;
	uint64 number = smart_interlock_advance(interlock);
	TimestampTz start = 0;
	bool logged = false;

	if (smart_interlock_holder(interlock, tree, number, 0) == SMART_CLIENT_NONE)
		return;
	start = GetCurrentTimestamp();
	smart_interlock_begin_wait(interlock);
	PG_TRY();
	{
		ConditionVariablePrepareToSleep(smart_interlock_wait());
		while (smart_interlock_holder(interlock, tree, number, 0) != SMART_CLIENT_NONE)
		{
			ConditionVariableTimedSleep(smart_interlock_wait(), WAIT_MS, PG_WAIT_EXTENSION);
			if (!logged && TimestampDifferenceExceeds(start, GetCurrentTimestamp(), LOG_AFTER_MS))
			{
				log_holders(client, index, tree, number);
				logged = true;
			}
		}
	}
	PG_FINALLY();
	{
		ConditionVariableCancelSleep();
		smart_interlock_end_wait(interlock);
	}
	PG_END_TRY();
}

/* Walks the tree; counts what it saw and removed. */
static void
remove_dead(struct bulk_delete *bulk, Relation index, uint64 *visited, uint64 *removed)
{
	struct smart_client *client = smart_backend_client();
	uint64_t seen = 0;
	uint64_t gone = 0;
	smart_status status;

	client->space.removing = true;
	status = smart_tree_bulk_delete(bulk->relation->tree, is_dead, pause_point, bulk, &seen, &gone);
	client->space.removing = false;
	if (bulk->error != NULL)
		ReThrowError(bulk->error);
	smart_check_status(status, index);
	*visited = seen;
	*removed = gone;
}

IndexBulkDeleteResult *
smart_am_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats, IndexBulkDeleteCallback callback,
					 void *callback_state)
{
	struct bulk_delete bulk = {.dead = callback, .argument = callback_state, .context = CurrentMemoryContext};
	uint64 visited = 0;
	uint64 removed = 0;

	bulk.relation = open_usable(info->index);
	if (bulk.relation == NULL)
		return stats;
	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	if (bulk.relation->tree != NULL)
	{
		if (RelationNeedsWAL(info->index))
			XLogFlush(wal_end());
		remove_dead(&bulk, info->index, &visited, &removed);
		smart_worker_wake();

		/* Also when nothing was found: a VACUUM that was cancelled while it waited may have removed the entries. */
		wait_for_scans(info->index, bulk.relation->meta.tree);
	}
	stats->num_pages = smart_relation_pages(bulk.relation);
	stats->estimated_count = false;
	stats->num_index_tuples = (double) (visited - removed);
	stats->tuples_removed += (double) removed;
	return stats;
}

IndexBulkDeleteResult *
smart_am_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	struct smart_relation *relation;

	if (info->analyze_only || stats != NULL)
		return stats;
	relation = open_usable(info->index);
	if (relation == NULL)
		return NULL;

	/* Nothing was removed, so nothing was counted: one entry per row, but for partial indexes. */
	stats = palloc0(sizeof(IndexBulkDeleteResult));
	stats->num_pages = smart_relation_pages(relation);
	stats->num_index_tuples = Max(info->num_heap_tuples, 0);
	stats->estimated_count = info->estimated_count || RelationGetIndexPredicate(info->index) != NIL;
	return stats;
}

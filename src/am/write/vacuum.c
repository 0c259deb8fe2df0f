/*
 * vacuum.c
 *	  ambulkdelete and amvacuumcleanup.
 *
 * Two orders matter.  WAL first: what makes a row removable is in WAL, and a removal in the region survives
 * a crash at once, so WAL must be flushed before the first removal; else the row could come back without its
 * entry.  And VACUUM gives TIDs to new rows once ambulkdelete returns, so it returns only when no scan looks
 * any more at a TID that it removed.
 */
#include "postgres.h"

#include "access/genam.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "am/codec/encode.h"
#include "am/compat.h"
#include "am/index/backend.h"
#include "am/index/meta.h"
#include "am/index/pin.h"
#include "am/index/relation.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "am/server/validity.h"
#include "am/server/wishes.h"
#include "am/write/vacuum.h"
#include "base/assert.h"

#define AGAIN_MS 500 /* between two attempts to reach a memory node */

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
	smart_assert(bulk->error == NULL);
	MemoryContextSwitchTo(bulk->context);
	bulk->error = CopyErrorData();
	FlushErrorState();
}

/*
 * Asks core whether a row is dead.  (CREATE INDEX CONCURRENTLY collects the TIDs that it is shown in a sort, which may
 * fail.)
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
 * Called between two leaves, where no lock is held: the cost delay may sleep, and interrupts are served, also those that
 * end nothing (a barrier that all backends have to pass must not wait for the end of the walk).  An error waits as above.
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

/* Waits until no scan looks any more at a TID that was read before now. */
static void
wait_for_scans(Relation index, uint64 tree)
{
	smart_pin_wait(index, tree, "bulk deletion in", "scans that may still look at removed entries");
}

/* ---- indexes that cannot be used ---- */

/*
 * VACUUM of the table goes on without the index, or its wraparound would not be prevented.  Then TIDs that the tree still
 * has are given to other rows, so no backend may look at the tree any more: VACUUM says so in the metapage, before a
 * record of its own, and to all backends.
 */
static void
give_up_tree(Relation index)
{
	smart_relation_mark_stale(index);
	smart_validity_announce(index);
	smart_validity_notice(index);
	if (smart_server_available() && smart_relation_tree(index) != 0)
		wait_for_scans(index, smart_relation_tree(index));
}

/*
 * Opens an index that may be unusable: a warning, and NULL; *lost: its metapage
 * can be read.  Only errors that are raised while nothing is locked are taken that way.
 */
static struct smart_relation *
open_usable(Relation index, bool *lost)
{
	MemoryContext context = CurrentMemoryContext;
	struct smart_relation *volatile relation = NULL;
	volatile bool readable = false;

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
		readable = error->sqlerrcode == ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
		ereport(WARNING, errcode(error->sqlerrcode),
				errmsg("skipping index \"%s\": %s", RelationGetRelationName(index), error->message),
				error->hint ? errhint("%s", error->hint) : 0);
		FreeErrorData(error);
	}
	PG_END_TRY();
	*lost = readable;
	return relation;
}

/* ---- bulk delete ---- */

/* Walks the tree; counts what it saw and removed. */
static smart_status
walk(struct bulk_delete *bulk, uint64 *visited, uint64 *removed)
{
	struct smart_client *client = smart_backend_client();
	uint64_t seen = 0;
	uint64_t gone = 0;
	smart_status status;

	smart_assert(bulk->error == NULL && !client->space.removing);
	client->space.removing = true;
	status = smart_tree_bulk_delete(bulk->relation->tree, is_dead, pause_point, bulk, &seen, &gone);
	client->space.removing = false;
	if (bulk->error != NULL)
		ReThrowError(bulk->error);
	smart_assert(status != SMART_OK || gone <= seen);
	*visited = seen;
	*removed = gone;
	return status;
}

/*
 * Removes the dead entries, also after a memory node has been away for as long
 * as a statement waits for one.  False: it cannot be done.
 */
static bool
remove_dead(struct bulk_delete *bulk, Relation index, uint64 *visited, uint64 *removed)
{
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), smart_settings.fabric_timeout_ms);
	smart_status status = walk(bulk, visited, removed);

	while (status == SMART_UNREACHABLE && smart_server.remote && GetCurrentTimestamp() < end &&
		   smart_relation_loss(index) == NULL)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, AGAIN_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		status = walk(bulk, visited, removed);
	}
	/* Is it the tree, or the way to it, that failed? */
	if (status == SMART_UNREACHABLE || status == SMART_STALE || status == SMART_CORRUPT ||
		(status == SMART_TIMEOUT && smart_server.remote))
	{
		CHECK_FOR_INTERRUPTS();
		ereport(WARNING, errcode(status == SMART_CORRUPT ? ERRCODE_INDEX_CORRUPTED : ERRCODE_CONNECTION_FAILURE),
				errmsg("skipping index \"%s\": %s", RelationGetRelationName(index), smart_status_text(status)),
				errdetail("What was removed from the table stays in the index, which must not be used any more "
						  "and has to be rebuilt."),
				smart_hint_reindex(index));
		return false;
	}
	smart_check_status(status, index);
	return true;
}

IndexBulkDeleteResult *
smart_am_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats, IndexBulkDeleteCallback callback,
					 void *callback_state)
{
	struct bulk_delete bulk = {.dead = callback, .argument = callback_state, .context = CurrentMemoryContext};
	uint64 visited = 0;
	uint64 removed = 0;
	bool lost;

	bulk.relation = open_usable(info->index, &lost);
	if (lost)
		give_up_tree(info->index);
	if (bulk.relation == NULL)
		return stats;
	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	if (bulk.relation->tree != NULL)
	{
		if (RelationNeedsWAL(info->index))
			smart_wal_flush();
		if (!remove_dead(&bulk, info->index, &visited, &removed))
		{
			give_up_tree(info->index);
			return NULL;
		}
		smart_launcher_wake();

		/* Also when nothing was found: a VACUUM that was cancelled while it waited may have removed the entries. */
		wait_for_scans(info->index, bulk.relation->meta.tree);
	}
	smart_assert(bulk.error == NULL && removed <= visited);
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
	bool lost;

	if (info->analyze_only || stats != NULL)
		return stats;
	relation = open_usable(info->index, &lost);
	if (relation == NULL)
		return NULL;

	/* Nothing was removed, so nothing was counted: one entry per row, but for partial indexes. */
	stats = palloc0(sizeof(IndexBulkDeleteResult));
	stats->num_pages = smart_relation_pages(relation);
	stats->num_index_tuples = Max(info->num_heap_tuples, 0);
	stats->estimated_count = info->estimated_count || RelationGetIndexPredicate(info->index) != NIL;
	return stats;
}

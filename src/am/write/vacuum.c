/*
 * vacuum.c
 *	  ambulkdelete and amvacuumcleanup.
 *
 * Two orders matter.  WAL first: what makes a row removable is in WAL, and a removal in the region survives
 * a crash at once, so WAL must be flushed before the first removal; else the row could come back without its
 * entry.  And VACUUM gives TIDs to new rows once ambulkdelete returns, so it returns only when no scan looks
 * any more at a TID that it removed.
 *
 * Where there is a journal, the entries go from there first (removal.h), or soon afterwards (swept.h).
 */
#include "postgres.h"

#include "access/genam.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "postmaster/autovacuum.h"
#include "storage/latch.h"
#include "storage/proc.h"
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
#include "am/index/trees.h"
#include "am/journal/await.h"
#include "am/journal/due.h"
#include "am/journal/lock.h"
#include "am/journal/promote.h"
#include "am/server/dead_rows.h"
#include "am/server/errands.h"
#include "am/server/launcher_requests.h"
#include "am/server/leaving_table.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "am/server/tree_changes.h"
#include "am/server/validity.h"
#include "am/write/dead_tids.h"
#include "am/write/paged_delete.h"
#include "am/write/removal.h"
#include "am/write/swept.h"
#include "am/write/vacuum.h"
#include "base/assert.h"

#define AGAIN_MS     500 /* between two attempts to reach a memory node */
#define LEAVING_MAX  256 /* trees that were replaced and have not been freed */
#define FAILURES_MAX 3   /* of trees that are loaded anew, before VACUUM goes on without the index */

/* The state of one bulk delete, for the tree's callbacks. */
struct bulk_delete
{
	struct smart_relation *relation;
	struct smart_removal *removal; /* with a journal: the walk collects here, and removes nothing itself; else NULL */
	struct smart_swept *swept;     /* with a journal: the walk removes, and this journals it; else NULL */
	IndexBulkDeleteCallback callback;
	void *argument;
	struct smart_dead_tids *dead; /* what callback says, if that is known; else NULL */
	MemoryContext context;
	bool given_up;    /* the tree could not be changed, and has to be loaded again */
	int failures;     /* trees that could not be walked to the end */
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
 * smart_dead_fn: asks the server whether a row is dead.  (CREATE INDEX CONCURRENTLY collects the TIDs that it is shown in
 * a sort, which may fail.)
 */
static bool
is_dead(void *argument, const uint8_t *bytes, size_t length)
{
	struct bulk_delete *bulk = argument;
	const struct smart_codec *codec = bulk->relation->codec;
	volatile bool dead = false;
	ItemPointerData tid;

	if (bulk->error != NULL)
		return false;
	smart_entry_tid(codec, bytes + smart_codec_key_length(codec, bytes, (int) length), &tid);
	PG_TRY();
	{
		dead = bulk->callback(&tid, bulk->argument);
	}
	PG_CATCH();
	{
		keep_error(bulk);
	}
	PG_END_TRY();
	return dead;
}

/* The same where the dead rows are known. */
static bool
is_of_dead_row(void *argument, const uint8_t *bytes, size_t length)
{
	const struct bulk_delete *bulk = argument;

	return smart_removal_is_dead(bulk->relation->codec, bulk->dead, bytes, length);
}

/* smart_found_fn */
static void
collect(void *argument, const uint8_t *entry, size_t length)
{
	struct bulk_delete *bulk = argument;

	smart_assert(bulk->removal != NULL && bulk->swept == NULL);
	smart_removal_add(bulk->removal, entry, smart_codec_key_length(bulk->relation->codec, entry, (int) length));
}

/* The same for a sweep, which has removed it. */
static void
collect_removed(void *argument, const uint8_t *entry, size_t length)
{
	struct bulk_delete *bulk = argument;

	smart_assert(bulk->swept != NULL && bulk->removal == NULL);
	smart_swept_add(bulk->swept, entry, smart_codec_key_length(bulk->relation->codec, entry, (int) length));
}

/*
 * Called between two leaves, where no lock is held: the cost delay may sleep, and interrupts are served, also those that
 * end nothing (a barrier that all backends have to pass must not wait for the end of the walk).  An error waits as above.
 */
static bool
pause_point(void *argument)
{
	struct bulk_delete *bulk = argument;

	if (bulk->error != NULL)
		return false;
	if (VacuumCostActive)
		VacuumCostBalance += VacuumCostPageHit;
	PG_TRY();
	{
		if (bulk->removal != NULL && (smart_removal_is_full(bulk->removal) || bulk->removal->out_of_memory))
			bulk->given_up = !smart_removal_perform(bulk->removal);
		if (bulk->swept != NULL)
			smart_swept_pause(bulk->swept);
		if (bulk->swept == NULL || !bulk->swept->open)
			smart_vacuum_delay_point();
		if (bulk->swept != NULL)
			smart_swept_open(bulk->swept);
	}
	PG_CATCH();
	{
		keep_error(bulk);
	}
	PG_END_TRY();
	return bulk->error == NULL && !bulk->given_up;
}

/*
 * Waits until no scan looks any more at a TID that was read before now, be it from a tree (0: none) that the index had before,
 * or from the pages of its journal.
 */
static void
wait_for_scans(Relation index, uint64 tree)
{
	struct smart_meta meta;
	const char *what = "bulk deletion in";
	const char *whom = "scans that may still look at removed entries";
	uint64 *leaving = palloc(LEAVING_MAX * sizeof(*leaving));
	int count = smart_leaving_trees_of(smart_relation_database(index), RelationGetRelid(index), leaving, LEAVING_MAX);

	if (tree != 0)
		smart_pin_wait(index, tree, what, whom);
	smart_meta_read(index, &meta);
	if (meta.journal != 0)
		smart_pin_wait(index, meta.journal, what, whom);
	for (int i = 0; i < count; i++)
	{
		/* A view's TIDs are read under a pin of the journal. */
		if (leaving[i] != tree && !smart_tree_is_delta(leaving[i]))
			smart_pin_wait(index, leaving[i], what, whom);
	}
	pfree(leaving);
}

/* ---- indexes that cannot be used ---- */

/*
 * VACUUM of the table goes on without the index, or its wraparound would not be prevented.  Then TIDs that the tree and
 * the journal still have are given to other rows, so no backend may look at them any more: VACUUM says so in the
 * metapage, before a record of its own, and to all backends.  False: a tree that can be used is there in the meantime.
 */
static bool
give_up_tree(Relation index)
{
	if (!smart_relation_mark_stale(index))
		return false;
	smart_validity_announce(index);
	smart_validity_notice(index);
	if (smart_server_available())
		wait_for_scans(index, smart_relation_tree(index));
	return true;
}

/*
 * An index that is to be loaded is waited for, as VACUUM cannot tell without it which entries it removes.  Autovacuum
 * ends instead, and comes again, unless it has to prevent wraparound.
 */
static void
wait_for_loading(Relation index)
{
	if (smart_is_autovacuum_worker() && (MyProc->statusFlags & PROC_VACUUM_FOR_WRAPAROUND) == 0)
		smart_journal_await(index);
	else
		(void) smart_journal_wait(index);
}

/*
 * Opens an index that may be unusable: a warning, and NULL; *lost: its metapage can be read.  Without a warning if its pages can
 * answer by now.  Only errors that are raised while nothing is locked are taken that way.
 */
static struct smart_relation *
open_usable(Relation index, bool *lost)
{
	MemoryContext context = CurrentMemoryContext;
	struct smart_relation *volatile relation = NULL;
	volatile bool readable = false;

	PG_TRY();
	{
		relation = smart_relation_try_open(index);
		readable = relation == NULL && smart_relation_can_answer(index);
		if (relation == NULL && !readable)
			relation = smart_relation_open(index);
	}
	PG_CATCH();
	{
		ErrorData *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		if (error->sqlerrcode != ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE &&
			error->sqlerrcode != ERRCODE_CONNECTION_FAILURE && error->sqlerrcode != ERRCODE_INDEX_CORRUPTED &&
			error->sqlerrcode != ERRCODE_FEATURE_NOT_SUPPORTED)
			PG_RE_THROW();
		FlushErrorState();
		readable = error->sqlerrcode == ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE ||
				   error->sqlerrcode == ERRCODE_CONNECTION_FAILURE;
		ereport(WARNING, errcode(error->sqlerrcode),
				errmsg("skipping index \"%s\": %s", RelationGetRelationName(index), error->message),
				error->hint ? errhint("%s", error->hint) : 0);
		FreeErrorData(error);
	}
	PG_END_TRY();
	*lost = readable;
	return relation;
}

/* The pages that the index would fill; relation: the open one, or NULL: it answers from pages. */
static BlockNumber
count_pages(Relation index, const struct smart_relation *relation)
{
	return relation == NULL ? RelationGetNumberOfBlocks(index) : smart_relation_pages(relation);
}

/* ---- bulk delete ---- */

/* Walks the tree; counts what it saw and removed. */
static smart_status
walk(struct bulk_delete *bulk, uint64 *visited, uint64 *removed)
{
	struct smart_client *client = smart_backend_client();
	const struct smart_victims victims = {
		.dead = bulk->dead == NULL ? is_dead : is_of_dead_row,
		.tail = smart_removal_tail(bulk->relation->codec),
		.found = bulk->swept != NULL     ? collect_removed
				 : bulk->removal != NULL ? collect
										 : NULL,
		.at_once = bulk->swept != NULL,
		.argument = bulk,
	};
	uint64_t seen = 0;
	uint64_t gone = 0;
	uint64 before = 0; /* removed by an earlier walk, which came to no end: they are not met again */
	smart_status status;

	smart_assert(bulk->error == NULL && !client->space.removing);
	if (bulk->removal != NULL)
	{
		before = bulk->removal->removed;
		bulk->removal->count = 0;
	}
	if (bulk->swept != NULL)
		smart_swept_open(bulk->swept);
	client->space.removing = true;
	status = smart_tree_bulk_delete(bulk->relation->tree, &victims, pause_point, &seen, &gone);
	client->space.removing = false;
	if (bulk->swept != NULL)
		smart_swept_close(bulk->swept);
	if (bulk->error != NULL)
		ReThrowError(bulk->error);
	if (bulk->removal != NULL)
	{
		if (status == SMART_OK && !smart_removal_perform(bulk->removal))
			bulk->given_up = true;
		gone = bulk->removal->removed;
	}
	if (bulk->given_up)
		return SMART_STALE;
	smart_assert(status != SMART_OK || gone <= before + seen);
	*visited = before + seen;
	*removed = gone;
	return status;
}

/* Removes the dead entries, also after a memory node has been away for as long as a statement waits for one. */
static smart_status
remove_dead(struct bulk_delete *bulk, Relation index, uint64 *visited, uint64 *removed)
{
	smart_assert(bulk->swept == NULL || bulk->removal == NULL);
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), smart_settings.fabric_timeout_ms);
	smart_status status = walk(bulk, visited, removed);

	while (status == SMART_UNREACHABLE && smart_server.remote && GetCurrentTimestamp() < end &&
		   smart_relation_loss(index) == SMART_LOSS_NONE)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, AGAIN_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		status = walk(bulk, visited, removed);
	}
	return status;
}

/*
 * Does it with the tree that the index has now.  False: it cannot be done; *again: but when the index has been loaded.
 */
static bool
bulk_delete(struct bulk_delete *bulk, Relation index, uint64 *visited, uint64 *removed, bool *again)
{
	bool logged = bulk->relation->meta.journal_state != SMART_JOURNAL_NONE;
	bool sweeps = logged && bulk->dead != NULL && smart_swept_fits(bulk->relation);
	struct smart_removal removal;
	struct smart_swept swept;
	smart_status status;

	smart_assert(bulk->relation->tree != NULL && bulk->swept == NULL && bulk->removal == NULL);
	*again = false;
	if (logged)
	{
		smart_journal_lock(index, SMART_LOCK_REMOVE);
		/*
		 * Another remover may have given the tree up, and a loader put one in its place, while this process waited.  Or somebody
		 * is about to announce that it lacks something.
		 */
		*again = bulk->relation->changes != smart_changes() || !smart_removal_may_begin(bulk->relation);
		if (*again)
		{
			smart_journal_unlock(index, SMART_LOCK_REMOVE);
			return false;
		}
		if (sweeps)
			smart_swept_begin(&swept, bulk->relation, index);
		else
		{
			smart_removal_begin(&removal, bulk->relation, index);
			removal.dead = bulk->dead;
		}
		bulk->swept = sweeps ? &swept : NULL;
		bulk->removal = sweeps ? NULL : &removal;
	}
	if (RelationNeedsWAL(index))
		smart_wal_flush();
	status = remove_dead(bulk, index, visited, removed);
	if (logged)
	{
		if (sweeps)
			smart_swept_end(&swept);
		else
			smart_removal_end(&removal);
		smart_journal_unlock(index, SMART_LOCK_REMOVE);
	}
	bulk->removal = NULL;
	bulk->swept = NULL;
	/* Is it the tree, or the way to it, that failed? */
	if (status == SMART_UNREACHABLE || status == SMART_STALE || status == SMART_CORRUPT ||
		(status == SMART_TIMEOUT && smart_server.remote))
	{
		CHECK_FOR_INTERRUPTS();
		/* The journal is right, so that another tree can be had, where the removals are possible. */
		if (smart_meta_is_loadable(&bulk->relation->meta) && !bulk->given_up)
			smart_removal_give_up(bulk->relation, index);
		*again = ++bulk->failures < FAILURES_MAX && smart_relation_is_loadable(index);
		if (!*again)
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

/* Does it with the pages of an index that has lost its tree; false: they do not answer. */
static bool
delete_on_pages(const struct bulk_delete *bulk, Relation index, uint64 *visited, uint64 *removed)
{
	struct smart_paged_delete paged = {.callback = bulk->callback, .argument = bulk->argument, .dead = bulk->dead};

	/* A memory node that does not answer may do so in a moment. */
	if (!smart_relation_can_answer(index) || smart_relation_loss(index) == SMART_LOSS_NONE || smart_promote(index) ||
		!smart_paged_delete(index, &paged))
		return false;
	/* Its tree may have been lost a moment ago. */
	wait_for_scans(index, smart_relation_tree(index));
	*visited = paged.visited;
	*removed = paged.removed;
	return true;
}

/* Removes the dead entries, or says that the index cannot be used any more: NULL. */
static IndexBulkDeleteResult *
bulk_delete_index(IndexVacuumInfo *info, IndexBulkDeleteResult *stats, IndexBulkDeleteCallback callback,
				  void *callback_state)
{
	struct bulk_delete bulk = {.callback = callback, .argument = callback_state, .context = CurrentMemoryContext};
	uint64 visited = 0;
	uint64 removed = 0;
	bool again;
	bool lost;

	bulk.dead = smart_dead_tids_of(info, callback, callback_state);
	do
	{
		again = false;
		bulk.given_up = false;
		bulk.relation = NULL;
		if (delete_on_pages(&bulk, info->index, &visited, &removed))
			break;
		/* Where it is to have no tree, there was no room: there is some by now, or an error. */
		again = smart_relation_can_answer(info->index) && smart_relation_is_to_answer(info->index);
		if (again)
		{
			smart_journal_await(info->index);
			continue;
		}
		wait_for_loading(info->index);
		bulk.relation = open_usable(info->index, &lost);
		/* It may have given its tree up a moment ago. */
		if (lost)
			again = (smart_relation_can_answer(info->index) && ++bulk.failures < FAILURES_MAX) ||
					!give_up_tree(info->index);
		if (bulk.relation == NULL && !again)
			return stats;
		if (bulk.relation == NULL || bulk.relation->tree == NULL)
			continue;
		if (bulk_delete(&bulk, info->index, &visited, &removed, &again))
		{
			smart_launcher_wake();

			/* Also when nothing was found: a VACUUM that was cancelled while it waited may have removed the entries. */
			wait_for_scans(info->index, bulk.relation->meta.tree);
		}
		else if (!again)
		{
			(void) give_up_tree(info->index);
			return NULL;
		}
	} while (again);
	smart_assert(bulk.error == NULL && removed <= visited);
	if (bulk.dead != NULL)
		smart_dead_tids_free(bulk.dead);
	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	stats->num_pages = count_pages(info->index, bulk.relation);
	stats->estimated_count = false;
	stats->num_index_tuples = (double) (visited - removed);
	stats->tuples_removed += (double) removed;
	return stats;
}

IndexBulkDeleteResult *
smart_am_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats, IndexBulkDeleteCallback callback,
					 void *callback_state)
{
	Relation index = info->index;

	if (smart_dead_tids_learn(callback))
		return stats;
	stats = bulk_delete_index(info, stats, callback, callback_state);
	/* Rows that scans have found dead may have given their places away soon. */
	smart_dead_rows_forget(&smart_relation_locator(index));
	return stats;
}

/* ---- the end of VACUUM ---- */

/*
 * Has a worker compact the journal if that is due: VACUUM does not wait for it, and what is locked is locked for a shorter
 * time.  Where most of the run has gone, too, which the journal's own counts may not tell yet.  Or it has removals applied to the
 * delta.
 */
static void
request_compaction(Relation index, const IndexBulkDeleteResult *stats)
{
	struct smart_meta meta;

	smart_meta_read(index, &meta);
	if (smart_compaction_is_due(index, &meta) || (stats->tuples_removed > 0 && smart_relation_can_answer(index)) ||
		(!stats->estimated_count && smart_meta_run_is_sparse(&meta, stats->num_index_tuples)))
		smart_errand_request(SMART_ERRAND_COMPACT, smart_relation_database(index), RelationGetRelid(index));
}

IndexBulkDeleteResult *
smart_am_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	struct smart_relation *relation;
	bool lost;

	if (info->analyze_only)
		return stats;
	if (stats == NULL)
	{
		bool paged = smart_relation_can_answer(info->index);

		relation = paged ? NULL : open_usable(info->index, &lost);
		if (relation == NULL && !paged)
			return NULL;

		/* Nothing was removed, so nothing was counted: one entry per row, but for partial indexes. */
		stats = palloc0(sizeof(IndexBulkDeleteResult));
		stats->num_pages = count_pages(info->index, relation);
		stats->num_index_tuples = Max(info->num_heap_tuples, 0);
		stats->estimated_count = info->estimated_count || RelationGetIndexPredicate(info->index) != NIL;
	}
	request_compaction(info->index, stats);
	return stats;
}

/*
 * rebuild.c
 *	  A lost index is rebuilt from its table, while the table is read and written.
 *
 * There are two new trees.  At first all inserts are told to go into a small one, the side tree.  When
 * the transactions that did not hear of it have ended, the table is read and the base is loaded, in
 * order, as CREATE INDEX does it.  A row is in what the rebuild reads, or its inserter puts its entry into
 * the side tree, or both.  Then inserts are told to go into the base, and when the last insert into the
 * side tree has ended, its entries are copied; a tree is a set, so nothing is in it twice.  In the end the
 * metapage names the base, in one step.
 *
 * Rows that a transaction may still see are read whether their transactions have ended or not; members of
 * a HOT chain have the same key, so that the chain's entry is enough for all of them.  Hence the index is
 * complete for older snapshots too.
 *
 * The lock on the table, the one of VACUUM, keeps out VACUUM, REINDEX and changes of the table, but no
 * reader and no writer.  A session that wants such a lock is more important: the rebuild gives way, and
 * begins again later.
 *
 * A unique index takes no inserts as long as it is lost, so that its table cannot get duplicates
 * meanwhile; that it has none is checked all the same.
 *
 * Trees that are not needed any more in the end, or after an error, are freed by rebuild_worker.c.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/guc.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "am/build/collector.h"
#include "am/compat.h"
#include "am/index/backend.h"
#include "am/index/meta.h"
#include "am/index/pin.h"
#include "am/index/relation.h"
#include "am/index/trees.h"
#include "am/journal/lock.h"
#include "am/journal/staging.h"
#include "am/maintenance/loading.h"
#include "am/maintenance/opened.h"
#include "am/maintenance/rebuild.h"
#include "am/server/progress.h"
#include "am/server/rebuild_table.h"
#include "am/server/tree_changes.h"
#include "am/server/validity.h"
#include "am/sort/sorter.h"
#include "base/assert.h"

#define PATIENCE_S 30 /* until other indexes have their turn; twice as long each time */
#define DOUBLE_MAX 7  /* times */

struct rebuild
{
	struct smart_collector rows;
	struct smart_tree *side;
	struct smart_tree *base;
	uint64 side_id;
	uint64 base_id;
};

/* ---- what may end it ---- */

/*
 * Serves interrupts.  LOCK_NOT_AVAILABLE: another session waits for a lock of the table that conflicts with the
 * rebuild's; OBJECT_NOT_IN_PREREQUISITE_STATE: another session has left out an entry.
 */
static void
look_around(const struct smart_collector *rows)
{
	CHECK_FOR_INTERRUPTS();
	smart_validity_require(rows->index, false, "rebuilt");
	if (LockHasWaitersRelation(rows->heap, ShareUpdateExclusiveLock))
		ereport(ERROR, errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				errmsg("the rebuild of index \"%s\" gives way to a lock that another session waits for",
					   RelationGetRelationName(rows->index)));
}

/* smart_look. */
static void
look_at_rows(void *argument)
{
	look_around(argument);
}

/* Waits for all transactions that may insert without knowing where to. */
static void
wait_for_writers(struct rebuild *rebuild)
{
	const struct smart_look look = {.around = look_at_rows, .argument = &rebuild->rows};
	struct smart_rebuild known;
	uint32 waits = smart_rebuild_find(MyDatabaseId, RelationGetRelid(rebuild->rows.index), &known) ? known.waits : 0;

	/* Other indexes may be had at once. */
	smart_wait_for_writers(rebuild->rows.heap, (PATIENCE_S * 1000L) << Min(waits, DOUBLE_MAX), &look);
}

/* ---- entries ---- */

/* From the table, all rows that any session may see, in order into the base, which no other session sees.  UNIQUE_VIOLATION. */
static void
fill_base(struct rebuild *rebuild)
{
	struct smart_collector *rows = &rebuild->rows;
	IndexInfo *info = BuildIndexInfo(rows->index);

	smart_assert(rebuild->side_id != rebuild->base_id);
	/* Until the base is loaded, what is inserted goes to the side. */
	smart_assert(smart_rebuild_tree(MyDatabaseId, RelationGetRelid(rows->index)) == rebuild->side_id);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_PHASE, PROGRESS_CREATEIDX_PHASE_BUILD);
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
	smart_collector_load(rows, rebuild->base);
	smart_sorter_end(rows->sorter);
}

/* From the side tree, which gets no new ones, into the base, which may have them already. */
static void
copy_side(struct rebuild *rebuild)
{
	struct smart_collector *rows = &rebuild->rows;
	struct smart_scan *scan;

	smart_assert(smart_rebuild_tree(MyDatabaseId, RelationGetRelid(rows->index)) == rebuild->base_id);
	smart_check_status(smart_scan_open(rebuild->side, &scan), rows->index);
	PG_TRY();
	{
		struct smart_batch batch;
		smart_status status;

		smart_check_status(smart_scan_seek(scan, NULL, 0, NULL, 0, false), rows->index);
		while ((status = smart_scan_next(scan, &batch)) == SMART_OK)
		{
			look_around(rows);
			smart_add_batch(rows->index, rows->codec, rebuild->base, &batch, rows->entry);
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

/* ---- from one tree to the next ---- */

/* Makes both trees, or none; inserts go into the side tree from now on. */
static void
begin(struct rebuild *rebuild)
{
	Relation index = rebuild->rows.index;
	uint64 older = smart_relation_tree(index); /* to be freed one day if it is here */
	struct smart_tree_info info;

	if (older != 0 && !smart_space_tree_info(&smart_backend_client()->space, older, &info))
		older = 0;
	rebuild->side_id = smart_am_tree_create(index, rebuild->rows.codec, &rebuild->side);
	PG_TRY();
	{
		rebuild->base_id = smart_am_tree_create(index, rebuild->rows.codec, &rebuild->base);
	}
	PG_CATCH();
	{
		smart_am_tree_drop(rebuild->side_id);
		PG_RE_THROW();
	}
	PG_END_TRY();
	smart_assert(rebuild->side_id != 0 && rebuild->base_id != 0);
	smart_assert(rebuild->side_id != rebuild->base_id && rebuild->base_id != older && rebuild->side_id != older);
	if (!smart_rebuild_begin(MyDatabaseId, RelationGetRelid(index), rebuild->side_id, rebuild->base_id, older))
	{
		smart_am_tree_drop(rebuild->side_id);
		smart_am_tree_drop(rebuild->base_id);
		ereport(ERROR, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED), errmsg("too many indexes are being rebuilt"));
	}
	smart_validity_announce(index);
}

/* ---- the whole ---- */

static void
run(struct rebuild *rebuild, enum smart_loss loss)
{
	struct smart_collector *rows = &rebuild->rows;
	const char *name = RelationGetRelationName(rows->index);
	TimestampTz start = GetCurrentTimestamp();
	struct smart_tail tail = {0};

	smart_assert(loss != SMART_LOSS_NONE);
	ereport(LOG, errmsg("rebuilding smart index \"%s\"", name), errdetail_internal("%s", smart_loss_text(loss)));
	smart_tell_begin(rows->heap, rows->index);
	smart_collector_begin(rows, rows->heap, rows->index, BuildIndexInfo(rows->index), 1);
	rows->all_versions = true;
	rows->look_around = look_around;
	begin(rebuild);
	wait_for_writers(rebuild);
	fill_base(rebuild);
	/* Inserts go into the base from now on; those at the side end. */
	smart_rebuild_use_base(MyDatabaseId, RelationGetRelid(rows->index));
	smart_changes_announce();
	/* An add of who was rolled back before the table was read is not to come into the chain later: VACUUM would not find it. */
	smart_staging_write_out(rows->index, &tail, false);
	smart_pin_wait(rows->index, rebuild->side_id, "the rebuild of", "inserts that began earlier");
	copy_side(rebuild);

	/* The index is what the base has, if all inserts went there; nothing may come between the metapage and the table. */
	smart_validity_require(rows->index, true, "rebuilt");
	smart_assert(smart_rebuild_tree(MyDatabaseId, RelationGetRelid(rows->index)) == rebuild->base_id);
	HOLD_INTERRUPTS();
	(void) smart_meta_replace_tree(rows->index, rows->codec, rebuild->base_id, false);
	/* A session that does not find the base in the table any more has to find that it looked at the metapage too early. */
	smart_validity_announce(rows->index);
	smart_rebuild_end(MyDatabaseId, RelationGetRelid(rows->index));
	RESUME_INTERRUPTS();
	ereport(LOG, errmsg("smart index \"%s\" has been rebuilt", name),
			errdetail("It was loaded with " INT64_FORMAT " entries; this took %ld ms.", (int64) rows->entries,
					  TimestampDifferenceMilliseconds(start, GetCurrentTimestamp())));
	pgstat_progress_end_command();
}

/*
 * What the table holds is less than what the journal does, which has entries of rows that are dead: nothing is loaded from it
 * any more, until it is written anew.
 */
static void
give_up_journal(Relation index)
{
	struct smart_meta meta;

	smart_meta_read(index, &meta);
	if (meta.journal_state != SMART_JOURNAL_WHOLE)
		return;
	smart_journal_lock(index, SMART_LOCK_REMOVE);
	(void) smart_relation_mark_stale(index);
	smart_changes_announce();
	smart_journal_unlock(index, SMART_LOCK_REMOVE);
}

bool
smart_rebuild_index(Oid index)
{
	struct rebuild *rebuild = palloc0(sizeof(struct rebuild));
	struct smart_collector *rows = &rebuild->rows;
	struct smart_opened opened;
	enum smart_loss loss;
	Oid user;
	int security;
	int guc_level;

	smart_assert(OidIsValid(index));
	if (!smart_open_conditionally(index, ShareUpdateExclusiveLock, RowExclusiveLock, &opened))
		return false;
	rows->heap = opened.heap;
	rows->index = opened.index;
	loss = smart_relation_loss(rows->index);
	if (loss != SMART_LOSS_NONE)
	{
		/* The functions of an expression index run as the table's owner, and are trusted by it. */
		GetUserIdAndSecContext(&user, &security);
		SetUserIdAndSecContext(rows->heap->rd_rel->relowner, security | SECURITY_RESTRICTED_OPERATION);
		guc_level = NewGUCNestLevel();
		smart_restrict_search_path();
		give_up_journal(rows->index);
		run(rebuild, loss);
		AtEOXact_GUC(false, guc_level);
		SetUserIdAndSecContext(user, security);
	}
	smart_opened_close(&opened);
	return loss != SMART_LOSS_NONE;
}

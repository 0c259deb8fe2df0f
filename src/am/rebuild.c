/*
 * rebuild.c
 *	  A lost index is rebuilt from its table, while the table is read and written.
 *
 * There are two new trees.  At first all inserts are told to go into a small one
 * at the side.  When those who did not hear of it have ended their transactions,
 * the table is read and the base is loaded, in order, as CREATE INDEX does it.  A
 * row is in what we read, or its inserter puts its entry into the side tree, or
 * both.  Then inserts are told to go into the base, and when the last one at the side has
 * ended, what is there is copied; a tree is a set, so nothing is in it twice.  In the end the
 * metapage names the base, in one step.
 *
 * Rows that somebody may still see are read whether their transactions have
 * ended or not; members of a HOT chain have the same key, so that the chain's
 * entry is enough for all of them.  Hence the index is as good as ever, for older
 * snapshots too.
 *
 * The lock on the table, the one of VACUUM, keeps out VACUUM, REINDEX and changes
 * of the table, but no reader and no writer.  Whoever wants such a lock
 * is more important: we give way, and begin again later.
 *
 * A unique index takes no inserts as long as it is lost, so that its table cannot
 * get duplicates meanwhile; that it has none is checked all the same.
 *
 * What is not needed any more in the end, or after an error, rebuild_leave.c frees.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/guc.h"
#include "utils/rel.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "am/acceptance.h"
#include "am/hold.h"
#include "am/meta.h"
#include "am/rebuild.h"
#include "am/rebuild_fill.h"
#include "am/rebuild_table.h"
#include "am/server.h"

#define WAIT_MS    50 /* between two looks at who still runs */
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

/* When to stop waiting for writers: other indexes may be had at once. */
static TimestampTz
end_of_patience(const struct rebuild *rebuild)
{
	struct smart_rebuild known;
	uint32 waits = smart_rebuild_find(MyDatabaseId, RelationGetRelid(rebuild->rows.index), &known) ? known.waits : 0;

	return TimestampTzPlusMilliseconds(GetCurrentTimestamp(), (PATIENCE_S * 1000L) << Min(waits, DOUBLE_MAX));
}

/*
 * Waits for all who may insert without knowing where to.  It does not wait in the
 * queue of the lock manager: there a writer that now wants a stronger lock
 * would be chosen as a deadlock's victim.
 */
static void
wait_for_writers(const struct rebuild *rebuild)
{
	LOCKTAG tag;
	VirtualTransactionId *writers;
	TimestampTz end = end_of_patience(rebuild);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_PHASE, PROGRESS_CREATEIDX_PHASE_WAIT_1);
	SET_LOCKTAG_RELATION(tag, MyDatabaseId, RelationGetRelid(rebuild->rows.heap));
	for (writers = GetLockConflicts(&tag, ShareLock, NULL); VirtualTransactionIdIsValid(*writers); writers++)
	{
		while (!VirtualXactLock(*writers, false))
		{
			smart_filling_look_around(&rebuild->rows);
			if (GetCurrentTimestamp() >= end)
				ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE),
								errmsg("a transaction has written to table \"%s\" and goes on",
									   RelationGetRelationName(rebuild->rows.heap))));
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, WAIT_MS, PG_WAIT_EXTENSION);
			ResetLatch(MyLatch);
		}
	}
}

/* ---- from one tree to the next ---- */

/* The tree that the metapage names, if it is here and so has to be freed one day; else 0. */
static uint64
older_tree(Relation index)
{
	struct smart_tree_info info;
	uint64 tree = smart_relation_tree(index);

	return tree != 0 && smart_space_tree_info(&smart_backend_client()->space, tree, &info) ? tree : 0;
}

/* Both trees, or none. */
static void
make_trees(struct rebuild *rebuild)
{
	Relation index = rebuild->rows.index;

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
}

/* Inserts go into the side tree from now on. */
static void
begin(struct rebuild *rebuild)
{
	Relation index = rebuild->rows.index;
	uint64 older = older_tree(index);

	make_trees(rebuild);
	if (!smart_rebuild_begin(MyDatabaseId, RelationGetRelid(index), rebuild->side_id, rebuild->base_id, older))
	{
		smart_am_tree_drop(rebuild->side_id);
		smart_am_tree_drop(rebuild->base_id);
		ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED), errmsg("too many indexes are being rebuilt")));
	}
	smart_acceptance_announce(index);
}

/* Inserts go into the base from now on, and those at the side have ended. */
static void
use_base(struct rebuild *rebuild)
{
	Relation index = rebuild->rows.index;

	smart_rebuild_use_base(MyDatabaseId, RelationGetRelid(index));
	smart_changes_announce();
	smart_hold_wait(index, rebuild->side_id, "the rebuild of", "inserts that began earlier");
}

/* The index is what the base has, if all inserts went there; nothing may come between the metapage and the table. */
static void
finish(struct rebuild *rebuild)
{
	Relation index = rebuild->rows.index;

	if (smart_rebuild_is_spoiled(MyDatabaseId, RelationGetRelid(index), true))
		smart_filling_report_spoiled(&rebuild->rows);
	HOLD_INTERRUPTS();
	smart_meta_replace_tree(index, rebuild->rows.codec, rebuild->base_id);
	smart_rebuild_end(MyDatabaseId, RelationGetRelid(index));
	smart_acceptance_announce(index);
	RESUME_INTERRUPTS();
}

/* ---- the whole ---- */

static void
begin_progress(const struct rebuild *rebuild)
{
	const int parameter[] = {PROGRESS_CREATEIDX_COMMAND, PROGRESS_CREATEIDX_INDEX_OID,
							 PROGRESS_CREATEIDX_ACCESS_METHOD_OID};
	const int64 value[] = {PROGRESS_CREATEIDX_COMMAND_REINDEX_CONCURRENTLY, RelationGetRelid(rebuild->rows.index),
						   rebuild->rows.index->rd_rel->relam};

	pgstat_progress_start_command(PROGRESS_COMMAND_CREATE_INDEX, RelationGetRelid(rebuild->rows.heap));
	pgstat_progress_update_multi_param(lengthof(parameter), parameter, value);
}

static void
run(struct rebuild *rebuild, const char *loss)
{
	struct smart_collector *rows = &rebuild->rows;
	const char *name = RelationGetRelationName(rows->index);
	TimestampTz start = GetCurrentTimestamp();

	ereport(LOG, (errmsg("rebuilding smart index \"%s\"", name), errdetail("%s.", loss)));
	begin_progress(rebuild);
	smart_filling_begin(rows, rows->heap, rows->index);
	begin(rebuild);
	wait_for_writers(rebuild);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_PHASE, PROGRESS_CREATEIDX_PHASE_BUILD);
	smart_filling_collect(rows);
	smart_filling_load(rows, rebuild->base);
	use_base(rebuild);
	smart_filling_copy(rows, rebuild->side, rebuild->base);
	finish(rebuild);
	pgstat_progress_end_command();
	ereport(LOG, (errmsg("smart index \"%s\" has been rebuilt", name),
				  errdetail("It was loaded with " INT64_FORMAT " entries; this took %ld ms.", (int64) rows->entries,
							TimestampDifferenceMilliseconds(start, GetCurrentTimestamp()))));
}

/* Opens table and index with their locks; false: they have gone.  LOCK_NOT_AVAILABLE: somebody has the table. */
static bool
open_relations(struct smart_collector *rows, Oid index)
{
	Oid heap = IndexGetRelation(index, true);

	if (!OidIsValid(heap))
		return false;
	if (!ConditionalLockRelationOid(heap, ShareUpdateExclusiveLock))
		ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE), errmsg("the table of index %u is locked", index)));
	rows->heap = try_table_open(heap, NoLock);
	if (rows->heap == NULL || IndexGetRelation(index, true) != heap)
		return false;
	rows->index = index_open(index, RowExclusiveLock);
	return true;
}

bool
smart_rebuild_index(Oid index)
{
	struct rebuild *rebuild = palloc0(sizeof(struct rebuild));
	const char *loss;
	Oid user;
	int security;
	int guc_level;

	if (!open_relations(&rebuild->rows, index))
		return false;
	loss = smart_relation_loss(rebuild->rows.index);
	if (loss != NULL)
	{
		/* The functions of an expression index run as the table's owner, who trusts them. */
		GetUserIdAndSecContext(&user, &security);
		SetUserIdAndSecContext(rebuild->rows.heap->rd_rel->relowner, security | SECURITY_RESTRICTED_OPERATION);
		guc_level = NewGUCNestLevel();
		smart_restrict_search_path();
		run(rebuild, loss);
		AtEOXact_GUC(false, guc_level);
		SetUserIdAndSecContext(user, security);
	}
	index_close(rebuild->rows.index, NoLock);
	table_close(rebuild->rows.heap, NoLock);
	return loss != NULL;
}

void
smart_rebuild_abandon(Oid index, const char *error, int delay_ms)
{
	smart_rebuild_end_failed(MyDatabaseId, index, error, delay_ms);
	smart_changes_announce();
}

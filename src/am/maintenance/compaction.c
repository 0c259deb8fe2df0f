/*
 * compaction.c
 *	  The launcher's job for journals whose chain has become long, and the background worker that compacts those of one
 *	  database.
 *
 * There is one worker at a time, which leaves when its database has no wishes any more: as long as it is connected, the
 * database cannot be dropped.  It takes an inserter's locks, and gives them up when another session waits for one that
 * they keep out; then it tries again later.
 */
#include "postgres.h"

#include <signal.h>

#include "access/genam.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "am/index/meta.h"
#include "am/index/relation.h"
#include "am/journal/compact.h"
#include "am/maintenance/compaction.h"
#include "am/maintenance/launcher.h"
#include "am/server/compactions.h"
#include "am/server/waiters.h"
#include "base/assert.h"

#define LOOK_MS        500   /* between two looks at the wishes ... */
#define IDLE_MS        60000 /* ... when there are none; a wish wakes the launcher */
#define GAVE_WAY_MS    1000
#define AFTER_ERROR_MS 30000
#define NOT_AGAIN      (-1)

/* ---- the launcher's job ---- */

long
smart_compaction_tend(void)
{
	static BackgroundWorkerHandle *child = NULL; /* NULL: it has ended */
	bool waiting;
	Oid database;

	if (smart_child_runs(&child))
		return LOOK_MS;
	database = smart_compaction_call(&waiting);
	/* Where max_worker_processes leaves no place, the wish is forgotten after a while, and comes again. */
	if (OidIsValid(database))
		(void) smart_child_start("smart compaction", "smart_compaction_worker_main", database, &child);
	return waiting ? LOOK_MS : IDLE_MS;
}

/* ---- the worker ---- */

static Oid compacting = InvalidOid; /* the index that this process is at */

struct opened
{
	Relation table;
	Relation index;
};

static bool
gives_way(void *argument)
{
	const struct opened *opened = argument;

	/* What the catalogs were last read with is a snapshot, which would keep VACUUM from removing and freezing rows. */
	InvalidateCatalogSnapshot();
	return smart_lock_is_awaited(opened->table, RowExclusiveLock) ||
		   smart_lock_is_awaited(opened->index, RowExclusiveLock);
}

/* How many entries the index has, as its journal tells: after a compaction, what the run has. */
static double
count_entries(Relation index)
{
	struct smart_meta meta;

	smart_meta_read(index, &meta);
	return Max(0, (double) meta.run_entries + (double) meta.adds - (double) meta.removals);
}

/* Compacts the journal of an index, within a transaction; returns when to do it again. */
static int
compact(Oid index)
{
	Oid table = IndexGetRelation(index, true);
	struct opened opened;
	enum smart_compacted compacted;
	int again_ms = NOT_AGAIN;

	if (!OidIsValid(table))
		return NOT_AGAIN;
	if (!ConditionalLockRelationOid(table, RowExclusiveLock))
		return GAVE_WAY_MS;
	opened.table = try_table_open(table, NoLock);
	if (opened.table == NULL || IndexGetRelation(index, true) != table)
		return NOT_AGAIN;
	opened.index = index_open(index, RowExclusiveLock);
	if (smart_is_our_index(opened.index) && opened.index->rd_index->indisready)
	{
		/* What is wished for meanwhile is this wish: the chain may have become long again. */
		do
			compacted = smart_journal_compact(opened.index, count_entries(opened.index), gives_way, &opened);
		while (compacted == SMART_COMPACTED);
		if (compacted == SMART_COMPACT_LATER)
			again_ms = GAVE_WAY_MS;
	}
	index_close(opened.index, RowExclusiveLock);
	table_close(opened.table, RowExclusiveLock);
	return again_ms;
}

/* What was being compacted is not, whatever ends this process. */
static void
worker_exit(int code, Datum argument)
{
	if (OidIsValid(compacting))
		smart_compaction_end(MyDatabaseId, compacting, GAVE_WAY_MS);
	compacting = InvalidOid;
}

/* What could not be read of a journal is replaced by a run from the tree: at once. */
static int
condemn(Oid index)
{
	Relation relation = try_relation_open(index, RowExclusiveLock);
	struct smart_meta meta;
	Buffer buffer;

	if (relation == NULL)
		return NOT_AGAIN;
	buffer = smart_meta_lock(relation, &meta);
	smart_meta_lose_journal(&meta);
	(void) smart_meta_change(relation, buffer, &meta);
	relation_close(relation, RowExclusiveLock);
	return 0;
}

/* Does this in a transaction; returns when to do it again, and sets the code of its error, which goes into the log, or 0. */
static int
attempt(int (*action)(Oid index), Oid index, int *code)
{
	MemoryContext context = CurrentMemoryContext;
	volatile int again_ms = AFTER_ERROR_MS;

	smart_assert(OidIsValid(compacting) && !IsTransactionState());
	*code = 0;
	PG_TRY();
	{
		StartTransactionCommand();
		again_ms = action(index);
		CommitTransactionCommand();
	}
	PG_CATCH();
	{
		HOLD_INTERRUPTS();
		again_ms = AFTER_ERROR_MS;
		*code = geterrcode();
		EmitErrorReport();
		FlushErrorState();
		AbortCurrentTransaction();
		RESUME_INTERRUPTS();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	return again_ms;
}

static void
try_index(Oid index)
{
	int again_ms;
	int code;

	compacting = index;
	again_ms = attempt(compact, index, &code);
	if (code == ERRCODE_INDEX_CORRUPTED || code == ERRCODE_DATA_CORRUPTED)
		again_ms = attempt(condemn, index, &code);
	compacting = InvalidOid;
	smart_compaction_end(MyDatabaseId, index, again_ms);
}

void
smart_compaction_worker_main(Datum argument)
{
	Oid index;

	pqsignal(SIGTERM, die);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(argument), InvalidOid, 0);
	before_shmem_exit(worker_exit, 0);
	while (OidIsValid(index = smart_compaction_begin(MyDatabaseId)))
	{
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		try_index(index);
	}
	proc_exit(0);
}

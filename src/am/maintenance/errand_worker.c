/*
 * errand_worker.c
 *	  Background workers that do what was requested for journals (errands.h), each in one database.
 *
 * For each kind there is one worker at a time, which leaves when its database has no requests any more: as long as it is
 * connected, the database cannot be dropped.  It takes an inserter's locks, and gives them up when another session waits
 * for one that they keep out; then it tries again later.
 */
#include "postgres.h"

#include <signal.h>

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "am/index/relation.h"
#include "am/maintenance/errand_worker.h"
#include "am/maintenance/launcher.h"
#include "am/server/waiters.h"
#include "base/assert.h"

#define IDLE_MS        60000 /* of the launcher, when there are no requests; one wakes it */
#define AFTER_ERROR_MS 30000
#define TURN_MS        1000 /* until other databases may have the worker's place */

/* ---- the launcher's job ---- */

long
smart_errand_tend(enum smart_errand_kind kind, const char *name, const char *function, long look_ms)
{
	static BackgroundWorkerHandle *children[SMART_ERRAND_KINDS]; /* NULL: it has ended */
	bool waiting;
	Oid database;

	if (smart_child_runs(&children[kind]))
		return look_ms;
	database = smart_errand_call(kind, &waiting);
	/* Where max_worker_processes leaves no place, the request is forgotten after a while, and comes again. */
	if (OidIsValid(database))
		(void) smart_child_start(name, function, database, &children[kind]);
	return waiting ? look_ms : IDLE_MS;
}

/* ---- one index ---- */

static const struct smart_errand_work *work = NULL;
static Oid current = InvalidOid; /* the index that this process is at */

bool
smart_errand_gives_way(void *argument)
{
	const struct smart_errand_index *opened = argument;

	/* What the catalogs were last read with is a snapshot, which would keep VACUUM from removing and freezing rows. */
	InvalidateCatalogSnapshot();
	return smart_lock_is_awaited(opened->table, RowExclusiveLock) ||
		   smart_lock_is_awaited(opened->index, RowExclusiveLock);
}

/* Does it to an index, within a transaction; returns when to do it again. */
static int
perform(Oid index)
{
	Oid table = IndexGetRelation(index, true);
	struct smart_errand_index opened;
	int again_ms = SMART_ERRAND_NOT_AGAIN;

	if (!OidIsValid(table))
		return SMART_ERRAND_NOT_AGAIN;
	if (!ConditionalLockRelationOid(table, RowExclusiveLock))
		return SMART_ERRAND_GAVE_WAY_MS;
	opened.table = try_table_open(table, NoLock);
	if (opened.table == NULL || IndexGetRelation(index, true) != table)
		return SMART_ERRAND_NOT_AGAIN;
	opened.index = index_open(index, RowExclusiveLock);
	if (smart_is_our_index(opened.index) && opened.index->rd_index->indisready)
		again_ms = work->perform(&opened);
	index_close(opened.index, RowExclusiveLock);
	table_close(opened.table, RowExclusiveLock);
	return again_ms;
}

/* What was being done is not, whatever ends this process. */
static void
worker_exit(int code, Datum argument)
{
	if (OidIsValid(current))
		smart_errand_end(work->kind, MyDatabaseId, current, SMART_ERRAND_GAVE_WAY_MS);
	current = InvalidOid;
}

/* Does this in a transaction; returns when to do it again, and sets the code of its error, which goes into the log, or 0. */
static int
attempt(int (*action)(Oid index), Oid index, int *code)
{
	MemoryContext context = CurrentMemoryContext;
	volatile int again_ms = AFTER_ERROR_MS;

	smart_assert(OidIsValid(current) && !IsTransactionState());
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

	current = index;
	again_ms = attempt(perform, index, &code);
	if (code == ERRCODE_INDEX_CORRUPTED || code == ERRCODE_DATA_CORRUPTED)
		again_ms = attempt(work->condemn, index, &code);
	/* A memory node that was away may be back soon. */
	else if (code == ERRCODE_CONNECTION_FAILURE)
		again_ms = SMART_ERRAND_GAVE_WAY_MS;
	current = InvalidOid;
	smart_errand_end(work->kind, MyDatabaseId, index, again_ms);
}

/* ---- the worker ---- */

static void
serve_interrupts(void)
{
	CHECK_FOR_INTERRUPTS();
	if (!ConfigReloadPending)
		return;
	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
}

void
smart_errand_worker_run(Oid database, const struct smart_errand_work *mine)
{
	TimestampTz begin = GetCurrentTimestamp();

	work = mine;
	pqsignal(SIGTERM, die);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, 0);
	before_shmem_exit(worker_exit, 0);
	for (;;)
	{
		long rest_ms;
		bool others;
		Oid index;

		serve_interrupts();
		index = smart_errand_begin(work->kind, MyDatabaseId, &rest_ms, &others);
		if (OidIsValid(index))
			try_index(index);
		else if (rest_ms < 0 || rest_ms > work->stays_ms ||
				 (others && TimestampDifferenceExceeds(begin, GetCurrentTimestamp(), TURN_MS)))
			break;
		else
		{
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, rest_ms + 1, PG_WAIT_EXTENSION);
			ResetLatch(MyLatch);
		}
	}
	proc_exit(0);
}

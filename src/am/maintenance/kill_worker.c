/*
 * kill_worker.c
 *	  The launcher's job for dead entries that scans have met, and the background worker that removes those of one
 *	  database.
 *
 * One worker runs at a time.  It takes what waits about once a second, or at once when it is much, and leaves the database
 * when nothing has come for some seconds, since DROP DATABASE waits for it, or when another database is next.
 */
#include "postgres.h"

#include <signal.h>

#include "access/relation.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "am/index/relation.h"
#include "am/journal/chain.h"
#include "am/maintenance/kill_worker.h"
#include "am/maintenance/launcher.h"
#include "am/maintenance/orphans_names.h"
#include "am/server/kill_queue.h"
#include "am/write/dead_entries.h"
#include "base/assert.h"

/* The launcher's job */
#define IDLE_MS    60000 /* when nothing waits; what comes wakes the launcher */
#define BETWEEN_MS 1000  /* between two workers */
#define FULL_MS    5000  /* when max_worker_processes leaves no place */

/* A worker */
#define ROUND_MS    1000 /* between two looks at the queue */
#define IDLE_ROUNDS 2    /* without anything, before it leaves */
#define LISTS_MAX   32   /* taken in one round */

/* ---- the launcher's job ---- */

/* Can the database be connected to?  *known: false if pg_database is locked, and the launcher waits for no lock. */
static bool
is_open(Oid database, bool *known)
{
	bool open = false;

	StartTransactionCommand();
	*known = ConditionalLockRelationOid(DatabaseRelationId, AccessShareLock);
	if (*known)
		open = list_member_oid(smart_names_databases(NULL, SMART_DATABASES_OPEN), database);
	CommitTransactionCommand();
	return open;
}

long
smart_kill_tend(void)
{
	static BackgroundWorkerHandle *running = NULL;
	static TimestampTz next_start = 0;
	static Oid last = InvalidOid;
	TimestampTz now = GetCurrentTimestamp();
	bool started = true;
	bool known;
	Oid database;

	if (!smart_kill_queue_next(last, &database))
		return IDLE_MS;
	if (now < next_start || smart_child_runs(&running))
		return Max(TimestampDifferenceMilliseconds(now, next_start), BETWEEN_MS);
	smart_assert(OidIsValid(database) && running == NULL);
	if (is_open(database, &known))
	{
		started = smart_child_start("smart dead entry remover", "smart_kill_worker_main", database, &running);
		last = database;
	}
	else if (known)
		smart_kill_queue_forget(database);
	next_start = TimestampTzPlusMilliseconds(now, started ? BETWEEN_MS : FULL_MS);
	return BETWEEN_MS;
}

/* ---- the worker ---- */

/* Locks a relation as an inserter does, if that needs no wait. */
static Relation
try_open(Oid oid)
{
	return ConditionalLockRelationOid(oid, RowExclusiveLock) ? try_relation_open(oid, NoLock) : NULL;
}

/*
 * As VACUUM does: rows that die while this transaction runs are not kept for its snapshot, which it looks at none with.
 * Else versions would gather in a hot row for as long as a removal takes, with memory nodes some round trips.
 */
static void
keep_no_rows(void)
{
	LWLockAcquire(ProcArrayLock, LW_EXCLUSIVE);
	MyProc->statusFlags |= PROC_IN_VACUUM;
	ProcGlobal->statusFlags[MyProc->pgxactoff] = MyProc->statusFlags;
	LWLockRelease(ProcArrayLock);
}

/* In a transaction of its own.  Who holds a lock that keeps inserters out is not waited for, nor is the index's drop. */
static void
remove_list(const struct smart_kill_list *list)
{
	const struct smart_entries keys = {.bytes = list->bytes, .start = list->start, .count = list->count};
	Relation heap = NULL;
	Relation index = NULL;
	uint32 removed = 0;
	Oid table;

	smart_assert(list->count > 0);
	StartTransactionCommand();
	keep_no_rows();
	PushActiveSnapshot(GetTransactionSnapshot());
	table = IndexGetRelation(list->index, true);
	if (OidIsValid(table))
		heap = try_open(table);
	if (heap != NULL)
		index = try_open(list->index);
	/* The OID may be another relation's by now. */
	if (index != NULL && index->rd_index != NULL && index->rd_index->indrelid == table)
		removed = smart_dead_entries_remove(heap, index, &keys);
	if (index != NULL)
		relation_close(index, NoLock);
	if (heap != NULL)
		relation_close(heap, NoLock);
	PopActiveSnapshot();
	CommitTransactionCommand();
	ereport(DEBUG1, errmsg_internal("smart removed %u of %u entries of index %u that were said to be dead", removed,
									list->count, list->index));
}

/* Removes what waits; false: nothing did. */
static bool
remove_all(struct smart_kill_list *list)
{
	int lists = 0;

	while (lists < LISTS_MAX && smart_kill_queue_take(MyDatabaseId, list))
	{
		lists++;
		remove_list(list);
		CHECK_FOR_INTERRUPTS();
	}
	return lists > 0;
}

void
smart_kill_worker_main(Datum argument)
{
	struct smart_kill_list *list;
	Oid next = InvalidOid;

	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(argument), InvalidOid, 0);
	pgstat_report_activity(STATE_RUNNING, "removing entries of dead rows");
	list = MemoryContextAlloc(TopMemoryContext, sizeof(*list));
	smart_kill_queue_attend();
	for (int idle = 0; idle < IDLE_ROUNDS;)
	{
		idle = remove_all(list) ? 0 : idle + 1;
		if (smart_kill_queue_next(MyDatabaseId, &next) && next != MyDatabaseId)
			break;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ROUND_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	proc_exit(0);
}

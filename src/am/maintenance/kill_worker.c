/*
 * kill_worker.c
 *	  The launcher's job for dead entries that scans have met, and the background worker that removes those of one
 *	  database.
 *
 * One worker runs at a time.  It takes what waits about once a second, or at once when it is much or a session asks for it, and leaves the database
 * when nothing has come for some seconds, since DROP DATABASE waits for it, or when another database is next.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "am/journal/chain.h"
#include "am/maintenance/kill_worker.h"
#include "am/maintenance/opened.h"
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

long
smart_kill_tend(struct smart_job *job)
{
	static TimestampTz next_start = 0;
	static Oid last = InvalidOid;
	TimestampTz now = GetCurrentTimestamp();
	bool started = true;
	List *open;
	Oid database;

	if (!smart_kill_queue_next(last, &database))
		return IDLE_MS;
	if (now < next_start || smart_child_runs(&job->child))
		return Max(TimestampDifferenceMilliseconds(now, next_start), BETWEEN_MS);
	smart_assert(OidIsValid(database) && job->child == NULL);
	if (!smart_names_try_databases(SMART_DATABASES_OPEN, &open))
		return BETWEEN_MS;
	if (list_member_oid(open, database))
	{
		started = smart_child_start(job, database, &job->child);
		last = database;
	}
	else
		smart_kill_queue_forget(database);
	next_start = TimestampTzPlusMilliseconds(now, started ? BETWEEN_MS : FULL_MS);
	return BETWEEN_MS;
}

/* ---- the worker ---- */

/*
 * As VACUUM does: rows that die while this transaction runs are not kept for its snapshot, which it looks at none with.
 * Else versions would gather in a hot row for as long as a removal takes, with memory nodes some round trips.
 */
static void
keep_no_rows(void)
{
	smart_assert(IsTransactionState());
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
	struct smart_opened opened;
	uint32 removed = 0;

	smart_assert(list->count > 0);
	smart_assert(OidIsValid(list->index) && !IsTransactionState());
	StartTransactionCommand();
	keep_no_rows();
	PushActiveSnapshot(GetTransactionSnapshot());
	if (smart_try_open(list->index, RowExclusiveLock, RowExclusiveLock, &opened) == SMART_OPENED)
	{
		removed = smart_dead_entries_remove(opened.heap, opened.index, &keys);
		smart_opened_close(&opened);
	}
	smart_assert(removed <= list->count);
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
smart_kill_serve(const struct smart_job *job)
{
	struct smart_kill_list *list;
	Oid next = InvalidOid;

	smart_assert(OidIsValid(MyDatabaseId));
	pgstat_report_activity(STATE_RUNNING, "removing entries of dead rows");
	list = MemoryContextAlloc(TopMemoryContext, sizeof(*list));
	smart_kill_queue_attend();
	for (int idle = 0; idle < IDLE_ROUNDS;)
	{
		idle = remove_all(list) ? 0 : idle + 1;
		if (smart_kill_queue_next(MyDatabaseId, &next) && next != MyDatabaseId)
			break;
		smart_worker_rest(ROUND_MS);
	}
}

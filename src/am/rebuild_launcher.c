/*
 * rebuild_launcher.c
 *	  The background worker that starts others where indexes are to be rebuilt.
 *
 * After each start of the server, or its promotion, all databases are looked
 * through, and when smart.auto_rebuild is turned on; else those are that somebody has
 * put down in the table.  Template databases are left alone until somebody uses their indexes:
 * as long as a worker is connected, no database can be made from them.
 */
#include "postgres.h"

#include <signal.h>

#include "access/genam.h"
#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "am/acceptance.h"
#include "am/rebuild_table.h"
#include "am/rebuild_worker.h"
#include "am/server.h"
#include "am/settings.h"

#define LAUNCHER_NAME "smart rebuild launcher"
#define WORKER_NAME   "smart rebuild"
#define RESTART_S     5     /* after an error */
#define REST_MS       500   /* between two looks at the table, … */
#define IDLE_MS       30000 /* … when nothing is to be done; who wants something wakes the launcher */
#define AGAIN_MS      500   /* between two workers for one database */
#define DUE_ONCE      64

/* A worker that was started; it may have ended. */
struct started
{
	Oid database;
	TimestampTz when;
	BackgroundWorkerHandle *handle; /* NULL: the place is free */
};

struct launcher
{
	List *unseen; /* databases that have not been looked through */
	struct started started[SMART_REBUILD_WORKERS_MAX];
};

void
smart_rebuild_register(void)
{
	BackgroundWorker worker = {
		.bgw_name = LAUNCHER_NAME,
		.bgw_type = LAUNCHER_NAME,
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = RESTART_S,
		.bgw_library_name = "smart",
		.bgw_function_name = "smart_rebuild_launcher_main",
	};

	RegisterBackgroundWorker(&worker);
}

/* ---- databases ---- */

/* All databases that can be looked through at once, in the launcher's own memory. */
static List *
list_databases(void)
{
	List *databases = NIL;
	Relation catalog;
	TableScanDesc scan;
	HeapTuple tuple;

	StartTransactionCommand();
	(void) GetTransactionSnapshot();
	catalog = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(catalog, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database database = (Form_pg_database) GETSTRUCT(tuple);
		MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

		if (database->datallowconn && !database->datistemplate)
			databases = lappend_oid(databases, database->oid);
		MemoryContextSwitchTo(old);
	}
	table_endscan(scan);
	table_close(catalog, AccessShareLock);
	CommitTransactionCommand();
	return databases;
}

/* Is the database there, to be connected to? */
static bool
can_connect(Oid oid)
{
	HeapTuple tuple;
	bool can;

	StartTransactionCommand();
	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(oid));
	can = HeapTupleIsValid(tuple) && ((Form_pg_database) GETSTRUCT(tuple))->datallowconn;
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	CommitTransactionCommand();
	return can;
}

/* ---- workers ---- */

/* Counts those that run; *recent: one of this database runs, or has been started a moment ago. */
static int
count_running(struct launcher *launcher, Oid database, bool *recent)
{
	int running = 0;

	*recent = false;
	for (int i = 0; i < SMART_REBUILD_WORKERS_MAX; i++)
	{
		struct started *started = &launcher->started[i];
		pid_t pid;
		bool runs;

		if (started->handle == NULL)
			continue;
		runs = GetBackgroundWorkerPid(started->handle, &pid) != BGWH_STOPPED;
		running += runs;
		if (started->database == database &&
			(runs || !TimestampDifferenceExceeds(started->when, GetCurrentTimestamp(), AGAIN_MS)))
			*recent = true;
		else if (!runs)
		{
			pfree(started->handle);
			started->handle = NULL;
		}
	}
	return running;
}

/* False: not now. */
static bool
start_worker(struct launcher *launcher, Oid database)
{
	BackgroundWorker worker = {
		.bgw_name = WORKER_NAME,
		.bgw_type = WORKER_NAME,
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_library_name = "smart",
		.bgw_function_name = "smart_rebuild_worker_main",
		.bgw_main_arg = ObjectIdGetDatum(database),
		.bgw_notify_pid = MyProcPid,
	};
	struct started *place = NULL;
	bool recent;

	if (count_running(launcher, database, &recent) >= smart_settings.rebuild_workers || recent)
		return false;
	for (int i = 0; i < SMART_REBUILD_WORKERS_MAX && place == NULL; i++)
	{
		if (launcher->started[i].handle == NULL)
			place = &launcher->started[i];
	}
	/* Where max_worker_processes leaves none for us, there may be one later. */
	if (place == NULL || !RegisterDynamicBackgroundWorker(&worker, &place->handle))
		return false;
	place->database = database;
	place->when = GetCurrentTimestamp();
	return true;
}

static void
start_unseen(struct launcher *launcher)
{
	while (launcher->unseen != NIL)
	{
		Oid database = linitial_oid(launcher->unseen);

		if (can_connect(database) && !start_worker(launcher, database))
			return;
		launcher->unseen = list_delete_first(launcher->unseen);
	}
}

static void
start_due(struct launcher *launcher)
{
	Oid due[DUE_ONCE];
	int count = smart_rebuild_due(due, DUE_ONCE);

	for (int i = 0; i < count; i++)
	{
		if (can_connect(due[i]))
			(void) start_worker(launcher, due[i]);
		else
			smart_rebuild_forget_database(due[i]);
	}
}

static void
read_settings(struct launcher *launcher)
{
	bool before = smart_settings.auto_rebuild;

	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
	if (before || !smart_settings.auto_rebuild)
		return;
	list_free(launcher->unseen);
	launcher->unseen = list_databases();
}

static void
launcher_exit(int code, Datum argument)
{
	smart_rebuild_set_launcher(false);
}

void
smart_rebuild_launcher_main(Datum argument)
{
	struct launcher *launcher = MemoryContextAllocZero(TopMemoryContext, sizeof(*launcher));
	ListCell *cell;

	/* Without a region there is nothing to do until the next start. */
	if (!smart_server_available())
		proc_exit(0);
	pqsignal(SIGTERM, die);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	before_shmem_exit(launcher_exit, 0);
	smart_rebuild_set_launcher(true);
	MemoryContextSwitchTo(TopMemoryContext);
	launcher->unseen = list_databases();
	/* Sessions that were connected to a standby have planned without any index of ours. */
	foreach (cell, launcher->unseen)
		smart_acceptance_announce_database(lfirst_oid(cell));
	for (;;)
	{
		long rest_ms;

		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
			read_settings(launcher);
		MemoryContextSwitchTo(TopMemoryContext);
		start_unseen(launcher);
		start_due(launcher);
		rest_ms = launcher->unseen == NIL && smart_rebuild_is_idle() ? IDLE_MS : REST_MS;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, rest_ms, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
}

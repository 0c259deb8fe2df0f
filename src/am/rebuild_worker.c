/*
 * rebuild_worker.c
 *	  The background worker that rebuilds the lost indexes of one database, and
 *	  frees the trees that these do not need any more.
 *
 * Unique indexes come first: their tables take no inserts.  An index that fails
 * is tried again, later and later, and so is one whose table is being written to by a long
 * transaction; the others do not wait for them.
 */
#include "postgres.h"

#include <signal.h>

#include "access/relation.h"
#include "access/xact.h"
#include "catalog/pg_language.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "am/acceptance.h"
#include "am/open.h"
#include "am/rebuild.h"
#include "am/rebuild_table.h"
#include "am/rebuild_worker.h"
#include "am/settings.h"

#define REST_MS        200    /* between two rounds, while trees have users */
#define GAVE_WAY_MS    500    /* to others, at first; twice as long each time */
#define DOUBLE_MAX     6      /* times */
#define AGAIN_FIRST_MS 5000   /* after an error; twice as long each time */
#define AGAIN_LAST_MS  300000 /* but not longer */
#define WAITING_MAX    256

/* All indexes of the database that could be rebuilt; the access method may have any name. */
#define CANDIDATES                                                                                                \
	"SELECT i.indexrelid FROM pg_catalog.pg_class c"                                                              \
	" JOIN pg_catalog.pg_am a ON a.oid OPERATOR(pg_catalog.=) c.relam"                                            \
	" JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) a.amhandler"                                      \
	" JOIN pg_catalog.pg_index i ON i.indexrelid OPERATOR(pg_catalog.=) c.oid"                                    \
	" WHERE p.prosrc OPERATOR(pg_catalog.=) 'smart_handler'"                                                      \
	" AND p.prolang OPERATOR(pg_catalog.=) " CppAsString2(                                                        \
		ClanguageId) "::pg_catalog.oid"                                                                           \
					 " AND c.relkind OPERATOR(pg_catalog.=) 'i' AND c.relpersistence OPERATOR(pg_catalog.<>) 't'" \
					 " AND i.indislive AND i.indisready"                                                          \
					 " ORDER BY i.indisunique DESC, i.indrelid, i.indexrelid"

static Oid rebuilding = InvalidOid; /* the index that this process is at */

/* The index that was being rebuilt is not, whatever ends this process. */
static void
worker_exit(int code, Datum argument)
{
	if (OidIsValid(rebuilding))
		smart_rebuild_abandon(rebuilding, NULL, GAVE_WAY_MS);
	rebuilding = InvalidOid;
}

/* ---- which indexes ---- */

/* In the context of the caller. */
static List *
list_candidates(void)
{
	MemoryContext context = CurrentMemoryContext;
	List *indexes = NIL;

	StartTransactionCommand();
	SPI_connect();
	PushActiveSnapshot(GetTransactionSnapshot());
	if (SPI_execute(CANDIDATES, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not list the smart indexes of database %u", MyDatabaseId);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		bool isnull;
		Oid index = DatumGetObjectId(SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull));
		MemoryContext old = MemoryContextSwitchTo(context);

		indexes = lappend_oid(indexes, index);
		MemoryContextSwitchTo(old);
	}
	PopActiveSnapshot();
	SPI_finish();
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	return indexes;
}

/* What waits in the table although its index is none of these has been dropped. */
static void
forget_others(const List *indexes)
{
	Oid *waiting = palloc(WAITING_MAX * sizeof(Oid));
	int count = smart_rebuild_waiting(MyDatabaseId, waiting, WAITING_MAX);

	for (int i = 0; i < count; i++)
	{
		/* Somebody may have asked for another look meanwhile. */
		if (OidIsValid(waiting[i]) && !list_member_oid(indexes, waiting[i]))
			smart_rebuild_forget(MyDatabaseId, waiting[i]);
	}
	pfree(waiting);
}

/* Is it to wait after an attempt that failed? */
static bool
is_postponed(Oid index)
{
	struct smart_rebuild rebuild;

	return smart_rebuild_find(MyDatabaseId, index, &rebuild) && rebuild.state == SMART_REBUILD_WAITING &&
		   rebuild.due > GetCurrentTimestamp();
}

/* ---- one index ---- */

/* How long to wait after one more failure, or after giving way once more. */
static int
delay_ms(const struct smart_rebuild *rebuild, bool failed)
{
	if (!failed)
		return GAVE_WAY_MS << Min(rebuild->waits, DOUBLE_MAX);
	return Min(AGAIN_FIRST_MS << Min(rebuild->failures, DOUBLE_MAX), AGAIN_LAST_MS);
}

/* After an error of the attempt: the transaction goes, the error into the log and into the table. */
static void
give_up(MemoryContext context)
{
	struct smart_rebuild rebuild;
	Oid index = rebuilding;
	ErrorData *error;
	bool failed;

	HOLD_INTERRUPTS();
	MemoryContextSwitchTo(context);
	error = CopyErrorData();
	rebuilding = InvalidOid;
	failed = error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE;
	if (!smart_rebuild_find(MyDatabaseId, index, &rebuild))
		memset(&rebuild, 0, sizeof(rebuild));
	smart_rebuild_abandon(index, failed ? error->message : NULL, delay_ms(&rebuild, failed));
	if (failed)
		EmitErrorReport();
	FlushErrorState();
	if (!failed && rebuild.state == SMART_REBUILD_RUNNING)
		ereport(LOG, (errmsg("the rebuild of smart index %u stops for a while: %s", index, error->message)));
	FreeErrorData(error);
	AbortCurrentTransaction();
	MemoryContextSwitchTo(context);
	RESUME_INTERRUPTS();
}

/* Is it lost?  Without the locks that a rebuild takes. */
static bool
is_lost(Oid oid)
{
	Relation index;
	bool lost;

	StartTransactionCommand();
	index = smart_index_try_open(oid);
	lost = index != NULL && smart_relation_loss(index) != NULL;
	if (index != NULL)
		relation_close(index, AccessShareLock);
	CommitTransactionCommand();
	return lost;
}

/* Rebuilds it, if it is lost. */
static void
try_index(Oid index)
{
	MemoryContext context = CurrentMemoryContext;

	rebuilding = index;
	PG_TRY();
	{
		bool lost = is_lost(index);

		if (lost)
		{
			StartTransactionCommand();
			lost = smart_rebuild_index(index);
			rebuilding = InvalidOid;
			CommitTransactionCommand();
		}
		if (!lost)
			smart_rebuild_forget(MyDatabaseId, index);
		rebuilding = InvalidOid;
	}
	PG_CATCH();
	{
		give_up(context);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
}

/* ---- the worker ---- */

static void
look_through(void)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "smart rebuild", ALLOCSET_DEFAULT_SIZES);
	List *indexes;
	ListCell *cell;

	MemoryContextSwitchTo(context);
	smart_rebuild_forget(MyDatabaseId, InvalidOid);
	indexes = list_candidates();
	forget_others(indexes);
	foreach (cell, indexes)
	{
		Oid index = lfirst_oid(cell);

		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		if (!smart_settings.auto_rebuild)
		{
			smart_rebuild_forget(MyDatabaseId, InvalidOid);
			forget_others(NIL);
			break;
		}
		if (!is_postponed(index))
			try_index(index);
	}
	MemoryContextSwitchTo(TopMemoryContext);
	MemoryContextDelete(context);
}

void
smart_rebuild_worker_main(Datum argument)
{
	pqsignal(SIGTERM, die);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(argument), InvalidOid, 0);
	before_shmem_exit(worker_exit, 0);
	look_through();
	while (smart_rebuild_free_left())
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, REST_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		look_through();
	}
	proc_exit(0);
}

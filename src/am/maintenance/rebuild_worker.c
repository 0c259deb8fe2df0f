/*
 * rebuild_worker.c
 *	  The launcher's job for lost indexes, and the background worker that rebuilds those of
 *	  one database and frees the trees that they do not need any more.
 *
 * After each start of the server, or its promotion, and when smart.auto_rebuild is turned on, the launcher
 * starts a worker in each database; else in those that sessions have put down in the table.  It leaves
 * template databases alone until a session uses their indexes: as long as a worker is connected, no database
 * can be made from them.
 *
 * A worker takes unique indexes first: their tables take no inserts.  An index that fails is tried again,
 * later and later, and so is one whose table a long transaction has written to; the others do not wait for them.
 */
#include "postgres.h"

#include <signal.h>

#include "access/relation.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "catalog/pg_language.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "am/index/relation.h"
#include "am/index/trees.h"
#include "am/maintenance/launcher.h"
#include "am/maintenance/orphans_names.h"
#include "am/maintenance/rebuild.h"
#include "am/server/rebuild_table.h"
#include "am/server/settings.h"
#include "am/server/validity.h"
#include "base/assert.h"

/* The launcher's job */
#define LOOK_MS    500   /* between two looks at the table ... */
#define IDLE_MS    30000 /* ... when nothing is to be done; what changes that wakes the launcher */
#define BETWEEN_MS 500   /* between two workers for one database */
#define DUE_ONCE   64

/* A worker */
#define REST_MS        200    /* between two rounds, while trees have users */
#define GAVE_WAY_MS    500    /* to others, at first; twice as long each time */
#define DOUBLE_MAX     6      /* times */
#define AGAIN_FIRST_MS 5000   /* after an error; twice as long each time */
#define AGAIN_LAST_MS  300000 /* but not longer */
#define LEAVING_ONCE   64

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

/* ---- the launcher's job ---- */

/* A worker that was started last from this place. */
struct started
{
	Oid database;
	TimestampTz when;
	BackgroundWorkerHandle *child; /* NULL: it has ended */
};

static struct started workers[SMART_REBUILD_WORKERS_MAX];
static List *unseen = NIL; /* databases that have not been looked through */

/* In TopMemoryContext; false: pg_database is locked, and the launcher waits for no lock. */
static bool
list_databases(enum smart_databases which, List **databases)
{
	bool found;

	StartTransactionCommand();
	found = ConditionalLockRelationOid(DatabaseRelationId, AccessShareLock);
	if (found)
	{
		List *list = smart_names_databases(NULL, which);
		MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

		*databases = list_copy(list);
		MemoryContextSwitchTo(old);
	}
	CommitTransactionCommand();
	return found;
}

/* False: not now, since a worker for it runs or has been started a moment ago, or enough of them run. */
static bool
start_worker(Oid database)
{
	TimestampTz now = GetCurrentTimestamp();
	struct started *place = NULL;
	int running = 0;

	smart_assert(OidIsValid(database));
	for (int i = 0; i < SMART_REBUILD_WORKERS_MAX; i++)
	{
		struct started *worker = &workers[i];
		bool runs = smart_child_runs(&worker->child);

		if (worker->database == database && (runs || !TimestampDifferenceExceeds(worker->when, now, BETWEEN_MS)))
			return false;
		running += runs;
		if (!runs && (place == NULL || worker->when < place->when))
			place = worker;
	}
	if (running >= smart_settings.rebuild_workers || place == NULL)
		return false;
	/* Where max_worker_processes leaves no place, there may be one later. */
	if (!smart_child_start("smart rebuild", "smart_rebuild_worker_main", database, &place->child))
		return false;
	smart_assert(place->child != NULL && running < SMART_REBUILD_WORKERS_MAX);
	place->database = database;
	place->when = now;
	return true;
}

long
smart_rebuild_tend(void)
{
	static bool begun = false;
	static bool was_on = false; /* smart.auto_rebuild */
	Oid due[DUE_ONCE];
	int count = smart_rebuild_due(due, DUE_ONCE);
	List *databases;
	ListCell *cell;

	if (!begun || (smart_settings.auto_rebuild && !was_on))
	{
		/* All databases are to be looked through. */
		if (!list_databases(SMART_DATABASES_USED, &databases))
			return LOOK_MS;
		/* Sessions that were connected to a standby have planned without any smart index. */
		foreach (cell, begun ? NIL : databases)
			smart_validity_announce_database(lfirst_oid(cell));
		list_free(unseen);
		unseen = databases;
		begun = true;
	}
	was_on = smart_settings.auto_rebuild;
	if ((unseen != NIL || count > 0) && list_databases(SMART_DATABASES_OPEN, &databases))
	{
		/* Start what can be started, in databases that can be connected to. */
		while (unseen != NIL)
		{
			Oid database = linitial_oid(unseen);

			if (list_member_oid(databases, database) && !start_worker(database))
				break;
			unseen = list_delete_first(unseen);
		}
		for (int i = 0; i < count; i++)
		{
			if (list_member_oid(databases, due[i]))
				(void) start_worker(due[i]);
			else
				smart_rebuild_forget_database(due[i]);
		}
		list_free(databases);
	}
	return unseen == NIL && smart_rebuild_is_idle() ? IDLE_MS : LOOK_MS;
}

/* ---- which indexes ---- */

static Oid rebuilding = InvalidOid; /* the index that this process is at */

/* The index that was being rebuilt is not, whatever ends this process. */
static void
worker_exit(int code, Datum argument)
{
	if (OidIsValid(rebuilding))
		smart_rebuild_end_failed(MyDatabaseId, rebuilding, NULL, GAVE_WAY_MS);
	rebuilding = InvalidOid;
}

/* The indexes to look at, in the context of the caller. */
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

/* ---- one index ---- */

/* After an error of the attempt: the transaction goes, the error into the log and into the table. */
static void
give_up(MemoryContext context)
{
	struct smart_rebuild rebuild;
	Oid index = rebuilding;
	ErrorData *error;
	bool failed;
	int delay_ms;

	HOLD_INTERRUPTS();
	MemoryContextSwitchTo(context);
	error = CopyErrorData();
	rebuilding = InvalidOid;
	failed = error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE;
	if (!smart_rebuild_find(MyDatabaseId, index, &rebuild))
		memset(&rebuild, 0, sizeof(rebuild));
	delay_ms = failed ? Min(AGAIN_FIRST_MS << Min(rebuild.failures, DOUBLE_MAX), AGAIN_LAST_MS)
					  : GAVE_WAY_MS << Min(rebuild.waits, DOUBLE_MAX);
	smart_rebuild_end_failed(MyDatabaseId, index, failed ? error->message : NULL, delay_ms);
	if (failed)
		EmitErrorReport();
	FlushErrorState();
	if (!failed && rebuild.state == SMART_REBUILD_RUNNING)
		ereport(LOG, errmsg("the rebuild of smart index %u stops for a while: %s", index, error->message));
	FreeErrorData(error);
	AbortCurrentTransaction();
	MemoryContextSwitchTo(context);
	RESUME_INTERRUPTS();
}

/* Rebuilds it, if it is lost. */
static void
try_index(Oid index)
{
	MemoryContext context = CurrentMemoryContext;

	smart_assert(!OidIsValid(rebuilding) && !IsTransactionState());
	rebuilding = index;
	PG_TRY();
	{
		Relation relation;
		bool lost;

		/* A look without the locks that a rebuild takes. */
		StartTransactionCommand();
		relation = smart_index_try_open(index);
		lost = relation != NULL && smart_relation_loss(relation) != NULL;
		if (relation != NULL)
			relation_close(relation, AccessShareLock);
		CommitTransactionCommand();
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

/* ---- trees that leave ---- */

/*
 * A session that has the index of such a tree open may still be using it, however long the tree has been out of use for
 * all others.  So the worker frees the tree when all transactions have ended that had a lock of the index when it first
 * saw the tree in the table; later ones do not get to it.
 */
struct leaving
{
	uint64 tree;
	VirtualTransactionId *users;
	int next_user; /* those before it have gone */
	struct leaving *next;
};

static struct leaving *leaving_trees = NULL;

/* Frees those trees whose users have all gone; returns whether there are others.  Outside of transactions. */
static bool
free_left(void)
{
	struct smart_leaving_tree trees[LEAVING_ONCE];
	struct leaving **link = &leaving_trees;
	MemoryContext old;
	int count;

	smart_assert(!IsTransactionState());
	StartTransactionCommand();

	/* Find out which transactions may still use the trees that have left since the last call. */
	count = smart_leaving_trees(MyDatabaseId, trees, LEAVING_ONCE);
	old = MemoryContextSwitchTo(TopMemoryContext);
	for (int i = 0; i < count; i++)
	{
		struct leaving *leaving = leaving_trees;
		LOCKTAG tag;

		while (leaving != NULL && leaving->tree != trees[i].tree)
			leaving = leaving->next;
		if (leaving != NULL)
			continue;
		leaving = palloc0(sizeof(*leaving));
		SET_LOCKTAG_RELATION(tag, MyDatabaseId, trees[i].index);
		leaving->tree = trees[i].tree;
		leaving->users = GetLockConflicts(&tag, AccessExclusiveLock, NULL);
		leaving->next = leaving_trees;
		leaving_trees = leaving;
	}
	MemoryContextSwitchTo(old);

	while (*link != NULL)
	{
		struct leaving *leaving = *link;
		const VirtualTransactionId *user = &leaving->users[leaving->next_user];

		while (VirtualTransactionIdIsValid(*user) && VirtualXactLock(*user, false))
			user++;
		leaving->next_user = (int) (user - leaving->users);
		if (VirtualTransactionIdIsValid(*user))
		{
			link = &leaving->next;
			continue;
		}
		smart_assert(leaving->tree != 0);
		smart_am_tree_drop(leaving->tree);
		smart_leaving_done(leaving->tree);
		*link = leaving->next;
		pfree(leaving->users);
		pfree(leaving);
	}
	CommitTransactionCommand();
	return leaving_trees != NULL;
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
	smart_rebuild_forget_others(MyDatabaseId, indexes);
	foreach (cell, indexes)
	{
		Oid index = lfirst_oid(cell);
		struct smart_rebuild rebuild;

		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		if (!smart_settings.auto_rebuild)
		{
			smart_rebuild_forget(MyDatabaseId, InvalidOid);
			smart_rebuild_forget_others(MyDatabaseId, NIL);
			break;
		}
		/* After an attempt that failed it waits. */
		if (!smart_rebuild_find(MyDatabaseId, index, &rebuild) || rebuild.state != SMART_REBUILD_WAITING ||
			rebuild.due <= GetCurrentTimestamp())
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
	while (free_left())
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, REST_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		look_through();
	}
	proc_exit(0);
}

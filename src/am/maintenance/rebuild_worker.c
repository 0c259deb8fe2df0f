/*
 * rebuild_worker.c
 *	  The launcher's job for lost indexes, and the background workers that load or rebuild those of one database
 *	  and free the trees that they do not need any more.
 *
 * After each start of the server, or its promotion, and when smart.auto_rebuild is turned on, or smart.write_back is changed, the
 * launcher starts a worker in each database; else in those that sessions have put down in the table.  It leaves
 * template databases alone until a session uses their indexes: as long as a worker is connected, no database
 * can be made from them.
 *
 * Several may work in one database.  A worker puts down all indexes that it finds lost, and then claims one after the
 * other; as long as one is left that no worker is at, the launcher starts more.  Those that must have a tree come first
 * (precedence.h), then unique indexes, since their tables take no inserts, and larger ones before smaller ones.  An
 * index that fails is tried again, later and later, and so is one whose table a long transaction has written to; the
 * others do not wait for them.
 *
 * smart.auto_rebuild is about rebuilds, which read the table.  What can be loaded is loaded in any case.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_language.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "am/index/relation.h"
#include "am/index/trees.h"
#include "am/journal/delta.h"
#include "am/journal/follow.h"
#include "am/maintenance/follow_worker.h"
#include "am/maintenance/leaving.h"
#include "am/maintenance/move.h"
#include "am/maintenance/orphans_names.h"
#include "am/maintenance/precedence.h"
#include "am/maintenance/rebuild.h"
#include "am/maintenance/restore.h"
#include "am/server/errands.h"
#include "am/server/launcher_requests.h"
#include "am/server/leaving_table.h"
#include "am/server/rebuild_table.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "am/server/validity.h"
#include "base/assert.h"

/* The launcher's job */
#define LOOK_MS     500   /* between two looks at the table ... */
#define IDLE_MS     30000 /* ... when nothing is to be done; what changes that wakes the launcher */
#define BETWEEN_MS  500   /* between two workers for one database */
#define ROUND_MS    2000  /* on a standby, between two looks at all databases */
#define WORKERS_MAX 16

/* A worker */
#define REST_MS        200    /* between two rounds, while trees have users */
#define GAVE_WAY_MS    500    /* to others, at first; twice as long each time */
#define DOUBLE_MAX     6      /* times */
#define AGAIN_FIRST_MS 5000   /* after an error; twice as long each time */
#define AGAIN_LAST_MS  300000 /* but not longer */

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
					 " ORDER BY coalesce(pg_catalog.lower(c.reloptions::pg_catalog.text) OPERATOR(pg_catalog.~~)" \
					 " '%resident=always%', false) DESC, i.indisunique DESC, c.relpages DESC, i.indexrelid"

/* ---- the launcher's job ---- */

/* A worker that was started last from this place. */
struct started
{
	Oid database;
	TimestampTz when;
	BackgroundWorkerHandle *child; /* NULL: it has ended */
};

static struct started workers[WORKERS_MAX];
static List *unseen = NIL; /* databases that have not been looked through */

/*
 * False: not now, since a worker for it has been started a moment ago, or, if only one is needed, runs, or enough of them
 * run.
 */
static bool
start_worker(const struct smart_job *job, Oid database, bool more)
{
	TimestampTz now = GetCurrentTimestamp();
	struct started *place = NULL;
	int running = 0;

	smart_assert(OidIsValid(database));
	for (int i = 0; i < WORKERS_MAX; i++)
	{
		struct started *worker = &workers[i];
		bool runs = smart_child_runs(&worker->child);

		if (worker->database == database && (runs ? !more : !TimestampDifferenceExceeds(worker->when, now, BETWEEN_MS)))
			return false;
		running += runs;
		if (!runs && (place == NULL || worker->when < place->when))
			place = worker;
	}
	if (running >= Max(max_parallel_maintenance_workers, 1) || place == NULL)
		return false;
	/* Where max_worker_processes leaves no place, there may be one later. */
	if (!smart_child_start(job, database, &place->child))
		return false;
	smart_assert(place->child != NULL && running < WORKERS_MAX);
	place->database = database;
	place->when = now;
	return true;
}

/*
 * Has all databases looked through where that is due: at first, and when the settings or the server's role have changed; on a
 * standby again and again.  False: not now, as pg_database is locked.
 */
static bool
begin_round(bool standby)
{
	static bool begun = false;
	static bool was_standby = false;
	static TimestampTz next_round = 0;
	static bool was_on = false;   /* smart.auto_rebuild */
	static bool was_back = false; /* smart.write_back, and smart.carry_above: */
	static int was_above = -1;
	bool changed = !begun || (smart_settings.auto_rebuild && !was_on) || smart_settings.write_back != was_back ||
				   smart_settings.carry_above_mb != was_above;
	List *databases;
	ListCell *cell;
	MemoryContext old;

	was_standby |= standby;
	/* Once more when it is no standby any more. */
	if (changed || standby != was_standby || (standby && unseen == NIL && GetCurrentTimestamp() >= next_round))
	{
		if (!smart_names_try_databases(SMART_DATABASES_USED, &databases))
			return false;
		/* Sessions that were connected to a standby have planned without any smart index. */
		foreach (cell, begun && standby == was_standby ? NIL : databases)
			smart_validity_announce_database(lfirst_oid(cell));
		list_free(unseen);
		old = MemoryContextSwitchTo(TopMemoryContext);
		unseen = list_copy(databases);
		MemoryContextSwitchTo(old);
		begun = true;
		was_standby = standby;
		next_round = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ROUND_MS);
	}
	was_on = smart_settings.auto_rebuild;
	was_back = smart_settings.write_back;
	was_above = smart_settings.carry_above_mb;
	smart_assert(begun);
	return true;
}

/* Starts what can be started for databases that have not been looked through.  Those that are open can be connected to. */
static void
start_unseen(const struct smart_job *job, const List *open, bool standby)
{
	while (unseen != NIL)
	{
		Oid database = linitial_oid(unseen);

		/* On a standby a worker goes on until others may have their turn. */
		if (list_member_oid(open, database) && !start_worker(job, database, false) && !standby)
			break;
		unseen = list_delete_first(unseen);
	}
}

/* The same for those that sessions have put down; more: there may be work for several workers. */
static void
start_due(const struct smart_job *job, const List *open, const List *due, bool more)
{
	ListCell *cell;

	foreach (cell, due)
	{
		if (list_member_oid(open, lfirst_oid(cell)))
			(void) start_worker(job, lfirst_oid(cell), more);
		else
			smart_rebuild_forget_database(lfirst_oid(cell));
	}
}

long
smart_rebuild_tend(struct smart_job *job)
{
	bool standby = RecoveryInProgress();
	/* What is in the region is not known before startup recovery, nor is there a place for a tree; but deltas leave. */
	bool pending = smart_server_available() && smart_server_recovers();
	const List *due = pending ? NIL : smart_rebuild_due();
	const List *left = smart_leaving_due();
	List *open;

	/* pg_upgrade drops databases, in which no worker may be, and exchanges files. */
	if (IsBinaryUpgrade)
		return IDLE_MS;
	if (!pending && !begin_round(standby))
		return LOOK_MS;
	if ((unseen != NIL || due != NIL || left != NIL) && smart_names_try_databases(SMART_DATABASES_OPEN, &open))
	{
		start_unseen(job, open, standby);
		start_due(job, open, due, true);
		start_due(job, open, left, false);
	}
	return unseen == NIL && smart_rebuild_is_idle() && !standby && !pending ? IDLE_MS : LOOK_MS;
}

/* ---- which indexes ---- */

static Oid claimed = InvalidOid; /* the index that this process is at */

/* The index that was being rebuilt is not, whatever ends this process. */
static void
worker_exit(int code, Datum argument)
{
	if (OidIsValid(claimed))
	{
		smart_rebuild_end_failed(MyDatabaseId, claimed, NULL, GAVE_WAY_MS);
		smart_rebuild_disclaim(MyDatabaseId, claimed);
	}
	claimed = InvalidOid;
	smart_leaving_release();
}

/* The indexes to look at go into this list, in its context. */
struct listing
{
	MemoryContext context;
	List *indexes;
};

static void
list_candidates(void *argument)
{
	struct listing *listing = argument;

	SPI_connect();
	PushActiveSnapshot(GetTransactionSnapshot());
	if (SPI_execute(CANDIDATES, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not list the smart indexes of database %u", MyDatabaseId);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		bool isnull;
		Oid index = DatumGetObjectId(SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull));
		MemoryContext old = MemoryContextSwitchTo(listing->context);

		listing->indexes = lappend_oid(listing->indexes, index);
		MemoryContextSwitchTo(old);
	}
	PopActiveSnapshot();
	SPI_finish();
}

/* On a standby the snapshot may be in the way of recovery. */
static void
listing_failed(const ErrorData *error)
{
	if (!smart_follow_is_in_the_way(error->sqlerrcode))
		PG_RE_THROW();
}

/* ---- one index ---- */

/* What can be done for an index, as far as a look without the locks of a loading or rebuild tells. */
enum need
{
	NEED_NOTHING,
	NEED_LOADING,
	NEED_FOLLOWER, /* pages answer, but there is to be a tree on memory nodes */
	NEED_REBUILD,
	NEED_CONDEMNING, /* its journal is damaged, and it is rebuilt then */
	NEED_MOVE,
	NEED_PAGES /* it has a tree, and is to have none */
};

static enum need needs;

/* What the view smart_index_state says of an error. */
static const char *
describe(const ErrorData *error)
{
	int length = error->detail == NULL ? 0 : (int) strlen(error->detail);

	/* A column has no full stop. */
	if (length > 0 && error->detail[length - 1] == '.')
		length--;
	return length == 0 ? error->message : psprintf("%s: %.*s", error->message, length, error->detail);
}

/* After an error of the attempt: it goes into the log and into the table. */
static void
give_up(const ErrorData *error)
{
	int code = error->sqlerrcode;
	bool failed = code != ERRCODE_LOCK_NOT_AVAILABLE && !smart_follow_is_in_the_way(code);
	struct smart_rebuild rebuild;
	int delay_ms;

	if (!smart_rebuild_find(MyDatabaseId, claimed, &rebuild))
		memset(&rebuild, 0, sizeof(rebuild));
	delay_ms = failed ? Min(AGAIN_FIRST_MS << Min(rebuild.failures, DOUBLE_MAX), AGAIN_LAST_MS)
					  : GAVE_WAY_MS << Min(rebuild.waits, DOUBLE_MAX);
	/* A memory node that was away may be back soon. */
	if (code == ERRCODE_CONNECTION_FAILURE)
		delay_ms = GAVE_WAY_MS << Min(rebuild.failures, DOUBLE_MAX);
	smart_assert(OidIsValid(claimed) && delay_ms > 0);
	smart_rebuild_end_failed(MyDatabaseId, claimed, failed ? describe(error) : NULL, delay_ms);
	if (failed)
		EmitErrorReport();
	else if (rebuild.state == SMART_REBUILD_RUNNING && rebuild.runner == MyProcPid)
		ereport(LOG, needs == NEED_MOVE
						 ? errmsg("the move of smart index %u stops for a while: %s", claimed, error->message)
						 : errmsg("the rebuild of smart index %u stops for a while: %s", claimed, error->message));
}

static void
act(void *argument)
{
	void (**action)(Oid index) = argument;

	smart_assert(OidIsValid(claimed) && IsTransactionState());
	(*action)(claimed);
}

/* Does this in a transaction, with the index that this process has claimed; the code of its error, or 0. */
static int
attempt(void (*action)(Oid index))
{
	smart_assert(OidIsValid(claimed));
	return smart_worker_attempt(act, &action, give_up);
}

/*
 * Of an index that writes back: there may be something to be carried, since before the server's start.  Or it has become small, and
 * is read from its pages alone.
 */
static void
look_at_follower(Relation index)
{
	struct smart_meta meta;

	if (!smart_relation_writes_back(index))
		return;
	smart_meta_read(index, &meta);
	/* Its journal may be made only now. */
	if (meta.journal == 0)
		return;
	if (smart_relation_is_carried(index, &meta))
		smart_errand_request(SMART_ERRAND_CARRY, MyDatabaseId, RelationGetRelid(index));
	else
		smart_follow_leave(index, &meta, 0);
}

static void
look_at(Oid index)
{
	struct smart_rebuild known = {0};
	Relation relation;

	smart_assert(index == claimed);
	/* The other indexes do not wait for whatever is being done to this one. */
	if (!ConditionalLockRelationOid(index, AccessShareLock))
		ereport(ERROR, errcode(ERRCODE_LOCK_NOT_AVAILABLE), errmsg("index %u is locked", index));
	relation = smart_index_try_open(index);
	needs = NEED_NOTHING;
	if (relation == NULL)
		return;
	(void) smart_rebuild_find(MyDatabaseId, index, &known);
	if (smart_relation_loss(relation) != SMART_LOSS_NONE && smart_relation_is_loadable(relation))
		needs = known.damaged                                 ? NEED_CONDEMNING
				: smart_relation_wants_follower(relation)     ? NEED_FOLLOWER
				: smart_relation_is_to_answer(relation)       ? NEED_NOTHING
				: smart_relation_is_about_to_return(relation) ? NEED_NOTHING
															  : NEED_LOADING;
	else if (smart_relation_loss(relation) != SMART_LOSS_NONE)
		needs = NEED_REBUILD;
	else if (smart_relation_tree(relation) != 0 && smart_relation_is_to_answer(relation))
		needs = NEED_PAGES;
	else if (smart_move_is_due(relation))
		needs = NEED_MOVE;
	look_at_follower(relation);
	/* A memory node was away for a moment, in which pages have answered. */
	if (smart_relation_could_answer(relation) && !smart_relation_can_answer(relation))
		smart_delta_leave(relation, true);
	relation_close(relation, AccessShareLock);
}

static void
restore(Oid index)
{
	smart_assert(index == claimed && needs != NEED_NOTHING && needs <= NEED_CONDEMNING);
	if (!smart_restore_index(index, smart_settings.auto_rebuild))
		smart_rebuild_forget(MyDatabaseId, index);
}

static void
move(Oid index)
{
	smart_assert(index == claimed && needs == NEED_MOVE);
	smart_rebuild_say_move(MyDatabaseId, index);
	if (!smart_move_index(index))
		smart_rebuild_forget(MyDatabaseId, index);
}

static void
leave_memory(Oid index)
{
	smart_assert(index == claimed && needs == NEED_PAGES);
	smart_restore_leave_memory(index);
	smart_rebuild_forget(MyDatabaseId, index);
}

static void
load_follower(Oid index)
{
	smart_assert(index == claimed && needs == NEED_FOLLOWER);
	smart_restore_follower(index);
	smart_rebuild_forget(MyDatabaseId, index);
}

static void
stay_without(Oid index)
{
	smart_assert(index == claimed && needs == NEED_LOADING);
	if (smart_restore_without(index))
		smart_rebuild_forget(MyDatabaseId, index);
}

/* Those that gave up their trees for it have done so for the next attempt. */
static void
make_room(Oid index)
{
	if (smart_precedence_make_room(index))
		smart_rebuild_put_off(MyDatabaseId, index, GAVE_WAY_MS);
}

/* Looks at the claimed index; returns whether there is something to be done now. */
static bool
is_to_be_restored(void)
{
	if (attempt(look_at) != 0)
		return false;
	if (needs == NEED_NOTHING)
		smart_rebuild_forget(MyDatabaseId, claimed);
	else if (needs == NEED_REBUILD && !smart_settings.auto_rebuild)
		smart_rebuild_leave_alone(MyDatabaseId, claimed);
	else
		return true;
	return false;
}

static void (*const actions[])(Oid index) = {
	[NEED_LOADING] = restore, [NEED_REBUILD] = restore,    [NEED_CONDEMNING] = restore,
	[NEED_MOVE] = move,       [NEED_PAGES] = leave_memory, [NEED_FOLLOWER] = load_follower,
};

/* Restores the claimed index, which is lost, or moves its tree. */
static void
restore_claimed(void)
{
	int code;

	smart_assert(needs != NEED_NOTHING && (size_t) needs < lengthof(actions));
	if (needs == NEED_CONDEMNING && attempt(smart_restore_condemn) != 0)
		return;
	code = attempt(actions[needs]);
	/* There is no room for the tree: the index goes on without one, if it may, or another one does. */
	if (needs == NEED_LOADING && code == ERRCODE_OUT_OF_MEMORY && attempt(stay_without) == 0)
		(void) attempt(make_room);
	/* A page of the journal cannot be read, or says what cannot be: the table is what is left. */
	if ((needs == NEED_LOADING || needs == NEED_FOLLOWER) &&
		(code == ERRCODE_INDEX_CORRUPTED || code == ERRCODE_DATA_CORRUPTED) && attempt(smart_restore_condemn) == 0)
		(void) attempt(restore);
}

/* On a standby: brings the index up to date, or loads it. */
static void
follow(Oid index)
{
	smart_follow_index(index);
	smart_rebuild_forget(MyDatabaseId, index);
}

/* Claims an index, unless another worker is at it, and looks; perform: and does what it needs.  Does it, or did it? */
static bool
try_index(Oid index, bool perform)
{
	bool lost;

	smart_assert(!OidIsValid(claimed) && !IsTransactionState());
	if (!smart_rebuild_claim(MyDatabaseId, index))
		return false;
	claimed = index;
	if (RecoveryInProgress())
	{
		if (attempt(follow) == ERRCODE_OUT_OF_MEMORY)
			(void) attempt(make_room);
		lost = false;
	}
	else
	{
		lost = is_to_be_restored();
		if (lost && perform)
			restore_claimed();
	}
	smart_rebuild_disclaim(MyDatabaseId, index);
	claimed = InvalidOid;
	return lost;
}

/* ---- the worker ---- */

/* After an attempt that failed an index waits; one that is left alone, until smart.auto_rebuild is on. */
static bool
is_due(Oid index)
{
	struct smart_rebuild rebuild;

	return !smart_rebuild_find(MyDatabaseId, index, &rebuild) || rebuild.state != SMART_REBUILD_WAITING ||
		   rebuild.due <= GetCurrentTimestamp() || (rebuild.due == DT_NOEND && smart_settings.auto_rebuild);
}

/* Serves interrupts, and tries those of these indexes that are due; returns those that were lost, in the caller's context. */
static List *
try_indexes(const List *indexes, bool perform)
{
	List *lost = NIL;
	ListCell *cell;

	foreach (cell, indexes)
	{
		smart_worker_serve_interrupts();
		if (is_due(lfirst_oid(cell)) && try_index(lfirst_oid(cell), perform))
			lost = lappend_oid(lost, lfirst_oid(cell));
	}
	return lost;
}

static void
try_all(List *indexes)
{
	smart_assert(!OidIsValid(claimed));
	smart_rebuild_forget(MyDatabaseId, InvalidOid);
	smart_follow_count(list_length(indexes));
	smart_rebuild_forget_others(MyDatabaseId, indexes);
	/* What is lost is put down first, and there may be work for several. */
	if (!RecoveryInProgress())
	{
		indexes = try_indexes(indexes, false);
		if (list_length(indexes) > 1)
			smart_launcher_wake();
	}
	(void) try_indexes(indexes, true);
}

/* False: it is to be done again. */
static bool
look_through(void)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "smart rebuild", ALLOCSET_DEFAULT_SIZES);
	struct listing listing = {.context = context};
	bool listed;

	MemoryContextSwitchTo(context);
	listed = smart_worker_attempt(list_candidates, &listing, listing_failed) == 0;
	if (listed)
		try_all(listing.indexes);
	MemoryContextSwitchTo(TopMemoryContext);
	MemoryContextDelete(context);
	return listed;
}

void
smart_rebuild_serve(const struct smart_job *job)
{
	smart_assert(OidIsValid(MyDatabaseId));
	before_shmem_exit(worker_exit, 0);
	for (;;)
	{
		bool follows = smart_follow_begin();
		bool looked = smart_server_recovers() || (follows && !smart_follow_is_due()) || look_through();

		if (!looked)
			smart_follow_again();
		if (!smart_leaving_free() && looked && !follows)
			break;
		smart_worker_rest(REST_MS);
	}
}

/*
 * sweep_worker.c
 *	  Sweeps without being asked: the background worker starts them, and a process
 *	  of its own does each.
 *
 * The process for InvalidOid is connected to no database.  It frees the trees of
 * dropped databases and wishes for sweeps of all others that have trees.
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/spin.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "am/compat.h"
#include "am/shared.h"
#include "am/sweep.h"
#include "am/sweep_names.h"
#include "am/sweep_worker.h"

#define INTERVAL_DEFAULT_S 600
#define BETWEEN_MS         1000  /* between the starts of two sweeps: most of what comes in bursts is over */
#define FULL_MS            10000 /* until the next attempt, when the server had no place for one more process */
#define IDLE_MS            60000 /* when there is nothing to wait for but the latch */
#define PREPARED_MS        1000  /* between two looks at prepared transactions */

/* The prepared transactions of this database. */
#define PREPARED                                               \
	"SELECT p.transaction FROM pg_catalog.pg_prepared_xacts p" \
	" WHERE p.database OPERATOR(pg_catalog.=) pg_catalog.current_database()"

static int interval_s;

void
smart_sweep_init(void)
{
	DefineCustomIntVariable("smart.sweep_interval",
							"Longest time between two looks for what dropped indexes have left.",
							"Usually it is looked for right after the end of a transaction that drops or rebuilds an "
							"index. 0: only smart_sweep() does.",
							&interval_s, INTERVAL_DEFAULT_S, 0, INT_MAX / 1000, PGC_SIGHUP, GUC_UNIT_S, NULL, NULL,
							NULL);
	smart_sweep_notes_init();
}

/* ---- in the background worker ---- */

static BackgroundWorkerHandle *running = NULL;
static TimestampTz next_start = 0; /* not before that */
static TimestampTz next_round = 0; /* when all databases are due */
static bool round_was_last = false;
static bool some_prepared = false; /* that have not ended */

static bool
is_running(void)
{
	pid_t pid;

	if (running == NULL)
		return false;
	if (GetBackgroundWorkerPid(running, &pid) != BGWH_STOPPED)
		return true;
	pfree(running);
	running = NULL;
	return false;
}

/* What is to be swept next; false: nothing.  By turns, if both a database and the round of all are wished for. */
static bool
take_wish(TimestampTz now, Oid *database)
{
	struct smart_sweep_wishes *wishes = &smart_server.shared->sweep;
	bool round;
	bool found;

	SpinLockAcquire(&wishes->lock);
	round = wishes->all || now >= next_round;
	found = round || wishes->count > 0;
	if (wishes->count > 0 && (round_was_last || !round))
		*database = wishes->database[--wishes->count];
	else if (round)
	{
		wishes->all = false;
		*database = InvalidOid;
	}
	SpinLockRelease(&wishes->lock);
	return found;
}

static bool
start_sweep(Oid database)
{
	BackgroundWorker worker = {
		.bgw_name = "smart sweeper",
		.bgw_type = "smart sweeper",
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_library_name = "smart",
		.bgw_function_name = "smart_sweeper_main",
		.bgw_main_arg = ObjectIdGetDatum(database),
		.bgw_notify_pid = MyProcPid,
	};

	return RegisterDynamicBackgroundWorker(&worker, &running);
}

void
smart_sweeper_tend(void)
{
	TimestampTz now = GetCurrentTimestamp();
	Oid database;

	if (interval_s == 0 || !smart_server.shared->made)
		return;
	some_prepared = smart_sweep_look_at_prepared();
	if (now < next_start || is_running() || !take_wish(now, &database))
		return;
	next_start = TimestampTzPlusMilliseconds(now, BETWEEN_MS);
	round_was_last = !OidIsValid(database);
	if (start_sweep(database))
	{
		if (!OidIsValid(database))
			next_round = TimestampTzPlusMilliseconds(now, (int64) interval_s * 1000);
		return;
	}
	next_start = TimestampTzPlusMilliseconds(now, FULL_MS);
	if (OidIsValid(database))
		smart_sweep_wish(database);
	else
		next_round = next_start;
}

long
smart_sweeper_rest_ms(void)
{
	struct smart_sweep_wishes *wishes = &smart_server.shared->sweep;
	TimestampTz due = next_round;
	long rest_ms;

	if (interval_s == 0 || !smart_server.shared->made)
		return IDLE_MS;
	SpinLockAcquire(&wishes->lock);
	if (wishes->all || wishes->count > 0)
		due = next_start;
	SpinLockRelease(&wishes->lock);
	rest_ms = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), Max(due, next_start));
	/* The latch is set when the process that runs ends, but not reliably. */
	rest_ms = running != NULL ? Max(rest_ms, BETWEEN_MS) : Min(rest_ms, IDLE_MS);
	return some_prepared ? Min(rest_ms, PREPARED_MS) : rest_ms;
}

/* ---- in the process that sweeps ---- */

/* Wishes for sweeps of the databases that have trees which their own processes have to look at. */
static void
wish_for_databases(const struct smart_survey *survey)
{
	List *databases = NIL;
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	List *valid = smart_names_databases(snapshot, true);

	UnregisterSnapshot(snapshot);
	for (uint64 i = 0; i < survey->count; i++)
	{
		Oid database = survey->tree[i].info.owner.database;

		if (survey->tree[i].fate == SMART_TREE_ELSEWHERE && list_member_oid(valid, database))
			databases = list_append_unique_oid(databases, database);
	}
	for (int i = 0; i < list_length(databases); i++)
		smart_sweep_wish(list_nth_oid(databases, i));
}

/* Before the survey: one that ends in between is seen by it, or by the worker. */
static void
watch_prepared(void)
{
	SPI_connect();
	if (SPI_execute(PREPARED, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not list the prepared transactions of database %u", MyDatabaseId);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		bool isnull;
		Datum xid = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull);

		smart_sweep_watch(DatumGetTransactionId(xid), MyDatabaseId);
	}
	SPI_finish();
}

void
smart_sweeper_main(Datum argument)
{
	Oid database = DatumGetObjectId(argument);
	struct smart_survey survey;
	struct smart_swept swept = {0};

	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	if (OidIsValid(database))
		BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, BGWORKER_BYPASS_ALLOWCONN);
	else
		BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	pgstat_report_activity(STATE_RUNNING, "looking for trees that no index uses");
	if (OidIsValid(database))
		watch_prepared();
	smart_survey(&survey, false);
	smart_sweep_surveyed(&survey, &swept);
	if (!OidIsValid(database))
		wish_for_databases(&survey);
	smart_survey_report(&survey, LOG);
	if (swept.trees > 0)
		ereport(DEBUG1,
				(errmsg_internal("smart freed " UINT64_FORMAT " trees, " UINT64_FORMAT " bytes, that no index uses",
								 swept.trees, swept.bytes)));
	PopActiveSnapshot();
	CommitTransactionCommand();
}

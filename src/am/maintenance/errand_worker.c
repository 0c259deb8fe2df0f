/*
 * errand_worker.c
 *	  Background workers that do what was requested for journals (errands.h), each in one database.
 *
 * For each kind there is one worker at a time, which leaves when its database has no requests any more: as long as it is
 * connected, the database cannot be dropped.  It takes an inserter's locks, and gives them up when another session waits
 * for one that they keep out, or for the transaction that has them; then it tries again later.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "am/maintenance/errand_worker.h"
#include "am/maintenance/journal_errands.h"
#include "am/maintenance/orphans_names.h"
#include "base/assert.h"

#define IDLE_MS        60000 /* of the launcher, when there are no requests; one wakes it */
#define AFTER_ERROR_MS 30000
#define TURN_MS        1000 /* until other databases may have the worker's place */
#define LOOK_MS        20   /* whether what waits is to come sooner */

/* ---- the launcher's job ---- */

long
smart_errand_tend(struct smart_job *job)
{
	bool waiting;
	Oid database;

	smart_assert(job->errand != NULL && job->errand->look_ms > 0);
	if (smart_child_runs(&job->child))
		return job->errand->look_ms;
	database = smart_errand_call(job->errand->kind, &waiting);
	if (OidIsValid(database) && !smart_names_has_database(SMART_DATABASES_OPEN, database))
		smart_errand_call_off(job->errand->kind, database, SMART_ERRAND_NOT_AGAIN);
	else if (OidIsValid(database) && !smart_child_start(job, database, &job->child))
		smart_errand_call_off(job->errand->kind, database, SMART_ERRAND_GAVE_WAY_MS);
	return waiting ? job->errand->look_ms : IDLE_MS;
}

/* ---- one index ---- */

static const struct smart_errand_work *work = NULL;
static Oid current = InvalidOid; /* the index that this process is at */
static int again_ms;             /* when to do that again */

static void
perform(void *argument)
{
	struct smart_opened opened;

	smart_assert(OidIsValid(current));
	switch (smart_try_open(current, RowExclusiveLock, RowExclusiveLock, &opened))
	{
		case SMART_OPENED:
			again_ms = opened.index->rd_index->indisready ? work->perform(&opened) : SMART_ERRAND_NOT_AGAIN;
			smart_opened_close(&opened);
			break;
		case SMART_OPENING_GONE:
			again_ms = SMART_ERRAND_NOT_AGAIN;
			break;
		case SMART_OPENING_LOCKED:
			again_ms = SMART_ERRAND_GAVE_WAY_MS;
			break;
	}
}

static void
condemn(void *argument)
{
	smart_assert(OidIsValid(current));
	again_ms = work->condemn(current);
}

/* Whatever has failed goes into the log.  A memory node that was away may be back soon. */
static void
failed(const ErrorData *error)
{
	EmitErrorReport();
	again_ms = error->sqlerrcode == ERRCODE_CONNECTION_FAILURE ? SMART_ERRAND_GAVE_WAY_MS : AFTER_ERROR_MS;
}

static void
try_index(Oid index)
{
	int code;

	smart_assert(!OidIsValid(current) && OidIsValid(index));
	current = index;
	code = smart_worker_attempt(perform, NULL, failed);
	if (code == ERRCODE_INDEX_CORRUPTED || code == ERRCODE_DATA_CORRUPTED)
		(void) smart_worker_attempt(condemn, NULL, failed);
	current = InvalidOid;
	smart_assert(again_ms >= SMART_ERRAND_NOT_AGAIN);
	smart_errand_end(work->kind, MyDatabaseId, index, again_ms);
}

/* ---- the worker ---- */

/* What was being done is not, whatever ends this process. */
static void
worker_exit(int code, Datum argument)
{
	if (OidIsValid(current))
		smart_errand_end(work->kind, MyDatabaseId, current, SMART_ERRAND_GAVE_WAY_MS);
	current = InvalidOid;
}

void
smart_errand_serve(const struct smart_job *job)
{
	TimestampTz begin = GetCurrentTimestamp();

	smart_assert(job->errand != NULL && OidIsValid(MyDatabaseId));
	work = job->errand;
	before_shmem_exit(worker_exit, 0);
	for (;;)
	{
		long rest_ms;
		bool others;
		Oid index;

		smart_worker_serve_interrupts();
		index = smart_errand_begin(work->kind, MyDatabaseId, &rest_ms, &others);
		if (OidIsValid(index))
			try_index(index);
		else if (rest_ms < 0 || rest_ms > work->stays_ms ||
				 (others && TimestampDifferenceExceeds(begin, GetCurrentTimestamp(), TURN_MS)))
			break;
		else
			smart_worker_rest(Min(rest_ms + 1, LOOK_MS));
	}
}

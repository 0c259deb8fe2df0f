/*
 * worker.c
 *	  Background workers: how the launcher's jobs start them, and what all of them do alike.
 */
#include "postgres.h"

#include <signal.h>

#include "access/xact.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/pmsignal.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#include "am/maintenance/worker.h"
#include "base/assert.h"

/* ---- in the launcher ---- */

/*
 * Can a process be connected to the database at this moment?  While it is being dropped, or moved, its lock is held: a worker
 * would wait for that lock, and end with FATAL if the database has gone.
 */
static bool
is_free(Oid database)
{
	MemoryContext old = CurrentMemoryContext;
	LOCKTAG tag;
	bool locked;

	smart_assert(OidIsValid(database) && !IsTransactionState());
	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, database, 0);
	StartTransactionCommand();
	locked = LockAcquire(&tag, RowExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL;
	CommitTransactionCommand();
	MemoryContextSwitchTo(old);
	return locked;
}

bool
smart_child_start(const struct smart_job *job, Oid database, BackgroundWorkerHandle **child)
{
	MemoryContext old = CurrentMemoryContext;
	BackgroundWorker worker = {
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_ConsistentState,
		.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_library_name = "smart",
		.bgw_function_name = "smart_worker_main",
		.bgw_main_arg = ObjectIdGetDatum(database),
		.bgw_notify_pid = MyProcPid,
	};

	smart_assert(*child == NULL && job->worker != NULL);
	strlcpy(worker.bgw_name, job->worker, sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, job->worker, sizeof(worker.bgw_type));
	MemoryContextSwitchTo(TopMemoryContext);
	if ((OidIsValid(database) && !is_free(database)) || !RegisterDynamicBackgroundWorker(&worker, child))
		*child = NULL;
	MemoryContextSwitchTo(old);
	return *child != NULL;
}

bool
smart_child_runs(BackgroundWorkerHandle **child)
{
	pid_t pid;

	if (*child == NULL)
		return false;
	if (GetBackgroundWorkerPid(*child, &pid) != BGWH_STOPPED)
		return true;
	pfree(*child);
	*child = NULL;
	return false;
}

/* ---- in a worker ---- */

void
smart_worker_run(const struct smart_job *jobs, int count, Oid database)
{
	const struct smart_job *job = jobs;

	/* It knows its job by its name. */
	while (job < jobs + count && (job->worker == NULL || strcmp(job->worker, MyBgworkerEntry->bgw_type) != 0))
		job++;
	smart_assert(job < jobs + count && (OidIsValid(database) || job->connects_anywhere));
	pqsignal(SIGTERM, die);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(database, InvalidOid,
											  job->connects_anywhere ? BGWORKER_BYPASS_ALLOWCONN : 0);
	job->work(job);
}

void
smart_worker_serve_interrupts(void)
{
	CHECK_FOR_INTERRUPTS();
	/* A worker that is never idle does not wait on its latch, which would tell it. */
	if (unlikely(!PostmasterIsAlive()))
		proc_exit(1);
	/* Within a transaction the settings stay as they are. */
	if (!ConfigReloadPending || IsTransactionState())
		return;
	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
}

void
smart_worker_rest(long rest_ms)
{
	smart_assert(rest_ms > 0);
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, rest_ms, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	smart_worker_serve_interrupts();
}

int
smart_worker_attempt(void (*action)(void *argument), void *argument, void (*failed)(const ErrorData *error))
{
	MemoryContext context = CurrentMemoryContext;
	volatile int code = 0;

	smart_assert(!IsTransactionState());
	PG_TRY();
	{
		StartTransactionCommand();
		action(argument);
		CommitTransactionCommand();
	}
	PG_CATCH();
	{
		ErrorData *error;

		HOLD_INTERRUPTS();
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		code = error->sqlerrcode;
		failed(error);
		FreeErrorData(error);
		FlushErrorState();
		AbortCurrentTransaction();
		RESUME_INTERRUPTS();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	smart_assert(!IsTransactionState());
	return code;
}

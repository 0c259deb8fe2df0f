/*
 * launcher.c
 *	  One process that does small jobs in turn, and starts other processes for long ones.
 *
 * An error ends one round of one job, which gets its next turn some seconds later; the other jobs
 * do not notice.  So a job must leave its state such that it can go on, or drop it (struct smart_job).
 *
 * No job may keep the others waiting.  Nor may it keep DROP DATABASE waiting, which needs a reply of
 * each process that is connected to the server; the launcher gives it between two jobs.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "am/compat.h"
#include "am/maintenance/launcher.h"
#include "am/maintenance/worker.h"
#include "base/assert.h"

#define AGAIN_MS 5000 /* after an error */

/* ---- jobs ---- */

/* One turn of a job, unless it has failed a moment ago; context is for this turn only. */
static void
tend(struct smart_job *job, MemoryContext context)
{
	long rest_ms;

	smart_assert(job->tend != NULL && !IsTransactionState());
	if (job->failed && GetCurrentTimestamp() < job->due)
		return;
	MemoryContextSwitchTo(context);
	job->failed = true; /* until the turn has come to its end */
	PG_TRY();
	{
		rest_ms = job->tend(job);
		job->due = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), rest_ms);
		job->failed = false;
	}
	PG_CATCH();
	{
		/* Put the process in order, as the end of a transaction would. */
		HOLD_INTERRUPTS();
		job->due = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), AGAIN_MS);
		EmitErrorReport();
		AbortCurrentTransaction();
		LWLockReleaseAll();
		ConditionVariableCancelSleep();
		pgstat_report_wait_end();
		FlushErrorState();
		if (job->drop != NULL)
			job->drop();
		RESUME_INTERRUPTS();
	}
	PG_END_TRY();
	smart_assert(!IsTransactionState() && InterruptHoldoffCount == 0);
	MemoryContextSwitchTo(TopMemoryContext);
	MemoryContextReset(context);
}

void
smart_launcher_run(struct smart_job *jobs, int count)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "smart launcher", ALLOCSET_DEFAULT_SIZES);

	smart_assert(count > 0);
	for (;;)
	{
		WaitEventSet *set;
		TimestampTz due;
		WaitEvent event;

		for (int i = 0; i < count; i++)
		{
			/* Status 1: a launcher that was terminated is started again, unless the server stops. */
			if (ProcDiePending)
				proc_exit(1);
			smart_worker_serve_interrupts();
			tend(&jobs[i], context);
		}
		if (ProcDiePending)
			continue;

		/* Sleep until a job is due, the latch is set, or a socket can be read. */
		set = smart_make_wait_set(SMART_LAUNCHER_SOCKETS + 2);
		due = jobs[0].due;
		AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
		AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
		for (int i = 0; i < count; i++)
		{
			due = Min(due, jobs[i].due);
			if (jobs[i].listen != NULL && !jobs[i].failed)
				jobs[i].listen(set);
		}
		(void) WaitEventSetWait(set, TimestampDifferenceMilliseconds(GetCurrentTimestamp(), due), &event, 1,
								PG_WAIT_EXTENSION);
		FreeWaitEventSet(set);
		ResetLatch(MyLatch);
	}
}

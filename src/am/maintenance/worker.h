/*
 * worker.h
 *	  Background workers: how the launcher's jobs start them, and what all of them do alike.
 */
#ifndef SMART_AM_WORKER_H
#define SMART_AM_WORKER_H

#include "am/maintenance/launcher.h"

/* ---- in the launcher ---- */

/*
 * Starts a worker of the job for a database, which is not restarted and wakes this process when it ends.  False, and *child is
 * NULL: max_worker_processes leaves no place now, or the database is locked, as DROP DATABASE does.
 */
extern bool smart_child_start(const struct smart_job *job, Oid database, BackgroundWorkerHandle **child);

/* Does it run?  If it has ended, *child becomes NULL, as if it had never been started. */
extern bool smart_child_runs(BackgroundWorkerHandle **child);

/* ---- in a worker ---- */

/* What each worker's main function runs: connects to the database, and does the work of the one of these jobs that started it. */
extern void smart_worker_run(const struct smart_job *jobs, int count, Oid database);

/*
 * Serves interrupts, and exits if the postmaster has died; outside of transactions it reads the configuration again if that is
 * asked for.
 */
extern void smart_worker_serve_interrupts(void);

/* Waits so long, or until the latch is set, and serves interrupts. */
extern void smart_worker_rest(long rest_ms);

/*
 * Does this in a transaction of its own; returns the code of its error, or 0.  failed: what is done with the error before the
 * transaction is aborted; it may report it (EmitErrorReport), or throw it again (PG_RE_THROW).
 */
extern int smart_worker_attempt(void (*action)(void *argument), void *argument, void (*failed)(const ErrorData *error));

#endif /* SMART_AM_WORKER_H */

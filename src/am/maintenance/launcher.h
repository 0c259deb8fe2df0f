/*
 * launcher.h
 *   One process that does small jobs in turn, and starts other processes for long ones.
 */
#ifndef SMART_AM_LAUNCHER_H
#define SMART_AM_LAUNCHER_H

#include "datatype/timestamp.h"
#include "postmaster/bgworker.h"
#include "storage/latch.h"

#define SMART_LAUNCHER_SOCKETS 256 /* that the jobs may listen to, at most */

/* One of the launcher's jobs. */
struct smart_job
{
	/*
	 * Does what is due, and returns in how many milliseconds it has to be called again at the latest.  It is called
	 * earlier when the process's latch is set, and when a socket can be read.  It runs outside of transactions, in a
	 * memory context that is reset afterwards.  After an error it is not called for some seconds.
	 */
	long (*tend)(void);

	/* After an error, drops what may be half done.  NULL: nothing. */
	void (*drop)(void);

	/* Adds the sockets whose data the job waits for.  NULL: none. */
	void (*listen)(WaitEventSet *set);

	TimestampTz due; /* private to launcher.c */
	bool failed;     /* likewise: not before due, whatever happens */
};

/* Does the jobs in turn, until the process is told to stop.  The process is connected to the server, but to no database. */
extern void smart_launcher_run(struct smart_job *jobs, int count) __attribute__((noreturn));

/*
 * Starts a background worker that is not restarted and wakes this process when it ends; function: its main
 * function, which gets the argument.  False, and *child is NULL: max_worker_processes leaves no place now.
 */
extern bool smart_child_start(const char *name, const char *function, Oid argument, BackgroundWorkerHandle **child);

/* Does it run?  If it has ended, *child becomes NULL, as if it had never been started. */
extern bool smart_child_runs(BackgroundWorkerHandle **child);

#endif /* SMART_AM_LAUNCHER_H */

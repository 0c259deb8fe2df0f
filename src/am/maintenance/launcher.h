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

struct smart_errand_work;

/* One of the launcher's jobs, and what the workers do that it starts (worker.h). */
struct smart_job
{
	/*
	 * Does what is due, and returns in how many milliseconds it has to be called again at the latest.  It is called
	 * earlier when the process's latch is set, and when a socket can be read.  It runs outside of transactions, in a
	 * memory context that is reset afterwards.  After an error it is not called for some seconds.
	 */
	long (*tend)(struct smart_job *job);

	/* After an error, drops what may be half done.  NULL: nothing. */
	void (*drop)(void);

	/* Adds the sockets whose data the job waits for.  NULL: none. */
	void (*listen)(WaitEventSet *set);

	const char *worker; /* its workers' name in pg_stat_activity; NULL: it has none */
	void (*work)(
		const struct smart_job *job); /* what they do, in their database, outside of transactions; then they end */
	bool connects_anywhere;           /* also to databases that allow no connections, or to none */
	const struct smart_errand_work *errand; /* of errand_worker.h */

	BackgroundWorkerHandle *child; /* the job's own: the worker that it has started, if it has one at a time */
	TimestampTz due;               /* private to launcher.c */
	bool failed;                   /* likewise: not before due, whatever happens */
};

/* Does the jobs in turn, until the process is told to stop.  The process is connected to the server, but to no database. */
extern void smart_launcher_run(struct smart_job *jobs, int count) __attribute__((noreturn));

#endif /* SMART_AM_LAUNCHER_H */

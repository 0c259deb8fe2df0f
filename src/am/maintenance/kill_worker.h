/*
 * kill_worker.h
 *	  The launcher's job for dead entries that scans have met, and the background worker that removes those of one
 *	  database.
 */
#ifndef SMART_AM_KILL_WORKER_H
#define SMART_AM_KILL_WORKER_H

/* The launcher's job (struct smart_job). */
extern long smart_kill_tend(void);

/* What the worker runs; argument: the database. */
extern PGDLLEXPORT void smart_kill_worker_main(Datum argument);

#endif /* SMART_AM_KILL_WORKER_H */

/*
 * kill_worker.h
 *	  The launcher's job for dead entries that scans have met, and the background worker that removes those of one
 *	  database.
 */
#ifndef SMART_AM_KILL_WORKER_H
#define SMART_AM_KILL_WORKER_H

#include "am/maintenance/worker.h"

/* The launcher's job, and what its worker does. */
extern long smart_kill_tend(struct smart_job *job);
extern void smart_kill_serve(const struct smart_job *job);

#endif /* SMART_AM_KILL_WORKER_H */

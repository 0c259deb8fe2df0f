/*
 * errand_worker.h
 *	  Background workers that do what was requested for journals (errands.h), each in one database.
 */
#ifndef SMART_AM_ERRAND_WORKER_H
#define SMART_AM_ERRAND_WORKER_H

#include "am/maintenance/worker.h"

/* The launcher's job, for requests of the kind of job->errand (journal_errands.h), and what its worker does. */
extern long smart_errand_tend(struct smart_job *job);
extern void smart_errand_serve(const struct smart_job *job);

#endif /* SMART_AM_ERRAND_WORKER_H */

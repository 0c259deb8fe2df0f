/*
 * worker.h
 *	  The background worker: it looks after the memory nodes, if there are any, and has
 *	  what dropped indexes have left freed.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_WORKER_H
#define SMART_AM_WORKER_H

#include "postgres.h"

#define SMART_WORKER_NAME "smart worker"

/* Asks for the worker, while the library is being preloaded. */
extern void smart_worker_register(void);

/* There may be something for it to do: memory to be given back, a sweep.  Nothing if there is no worker. */
extern void smart_worker_wake(void);

/* What the worker runs. */
extern PGDLLEXPORT void smart_worker_main(Datum argument);

#endif /* SMART_AM_WORKER_H */

/*
 * worker.h
 *	  The background worker that looks after the memory nodes.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_WORKER_H
#define SMART_AM_WORKER_H

#include "postgres.h"

#define SMART_WORKER_NAME "smart memory nodes"

/* Asks for the worker, while the library is being preloaded. */
extern void smart_worker_register(void);

/* There may be duties: memory that a memory node can have back.  Nothing if there is no worker. */
extern void smart_worker_wake(void);

/* What the worker runs. */
extern PGDLLEXPORT void smart_worker_main(Datum argument);

#endif /* SMART_AM_WORKER_H */

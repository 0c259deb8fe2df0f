/*
 * rebuild_worker.h
 *	  The background workers that rebuild lost indexes: a launcher, and one worker
 *	  for each database that has some.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_REBUILD_WORKER_H
#define SMART_AM_REBUILD_WORKER_H

#include "postgres.h"

/* Asks for the launcher, while the library is being preloaded. */
extern void smart_rebuild_register(void);

/* What they run; the worker's argument is the OID of its database. */
extern PGDLLEXPORT void smart_rebuild_launcher_main(Datum argument);
extern PGDLLEXPORT void smart_rebuild_worker_main(Datum argument);

#endif /* SMART_AM_REBUILD_WORKER_H */

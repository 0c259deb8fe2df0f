/*
 * deltas.h
 *	  The launcher's job for indexes whose pages answer without a delta, and the worker that makes it.
 */
#ifndef SMART_AM_DELTAS_H
#define SMART_AM_DELTAS_H

/* A job of the launcher (launcher.h): starts workers where a delta is to be made. */
extern long smart_deltas_tend(void);

/* What they run; the argument is the OID of the database. */
extern PGDLLEXPORT void smart_deltas_worker_main(Datum argument);

#endif /* SMART_AM_DELTAS_H */

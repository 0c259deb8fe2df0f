/*
 * carrying.h
 *	  The launcher's job for indexes that write back, and the worker that carries what they are given to memory nodes.
 */
#ifndef SMART_AM_CARRYING_H
#define SMART_AM_CARRYING_H

/* A job of the launcher (launcher.h): starts workers where something is to be carried. */
extern long smart_carrying_tend(void);

/* What they run; the argument is the OID of the database. */
extern PGDLLEXPORT void smart_carrying_worker_main(Datum argument);

#endif /* SMART_AM_CARRYING_H */

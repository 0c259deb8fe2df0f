/*
 * maintenance.h
 *	  The server's launcher: it looks after the region and its memory nodes, has lost
 *	  indexes rebuilt and orphans collected.
 */
#ifndef SMART_AM_MAINTENANCE_H
#define SMART_AM_MAINTENANCE_H

/* Asks for the launcher, and sets what maintenance needs of others.  Once, from _PG_init; nothing later than preloading. */
extern void smart_maintenance_init(void);

/* What the launcher runs. */
extern PGDLLEXPORT void smart_launcher_main(Datum argument);

/* What each worker runs that the launcher starts; the argument is the OID of its database, or InvalidOid. */
extern PGDLLEXPORT void smart_worker_main(Datum argument);

#endif /* SMART_AM_MAINTENANCE_H */

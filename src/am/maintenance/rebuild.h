/*
 * rebuild.h
 *	  Rebuilding a lost index in place.
 */
#ifndef SMART_AM_REBUILD_H
#define SMART_AM_REBUILD_H

/*
 * Rebuilds an index if it is lost, within the current transaction, which has done nothing else.  Returns
 * whether it was; false, too, if the index has gone.  LOCK_NOT_AVAILABLE: another session has locked its
 * table, or waits for a lock.  After any error smart_rebuild_end_failed() is to be called before the
 * transaction is aborted.
 */
extern bool smart_rebuild_index(Oid index);

/* A job of the launcher (launcher.h): starts workers where indexes are to be rebuilt. */
extern long smart_rebuild_tend(void);

/* What they run (rebuild_worker.c); the argument is the OID of the database. */
extern PGDLLEXPORT void smart_rebuild_worker_main(Datum argument);

#endif /* SMART_AM_REBUILD_H */

/*
 * compaction.h
 *	  The launcher's job for journals whose chain has become long, and the worker that compacts them.
 */
#ifndef SMART_AM_COMPACTION_H
#define SMART_AM_COMPACTION_H

/* A job of the launcher (launcher.h): starts workers where journals are to be compacted. */
extern long smart_compaction_tend(void);

/* What they run; the argument is the OID of the database. */
extern PGDLLEXPORT void smart_compaction_worker_main(Datum argument);

#endif /* SMART_AM_COMPACTION_H */

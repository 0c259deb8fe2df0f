/*
 * errand_worker.h
 *	  Background workers that do what was requested for journals (errands.h), each in one database.
 */
#ifndef SMART_AM_ERRAND_WORKER_H
#define SMART_AM_ERRAND_WORKER_H

#include "utils/relcache.h"

#include "am/server/errands.h"

#define SMART_ERRAND_NOT_AGAIN   (-1)
#define SMART_ERRAND_GAVE_WAY_MS 1000

/* An index and its table, with an inserter's locks. */
struct smart_errand_index
{
	Relation table;
	Relation index;
};

struct smart_errand_work
{
	enum smart_errand_kind kind;
	long stays_ms;                                     /* how long it waits for a request to be due; else it leaves */
	int (*perform)(struct smart_errand_index *opened); /* in a transaction; returns when to do it again, as both do */
	int (*condemn)(Oid index);                         /* the same, where the index or its journal is damaged */
};

/*
 * A job of the launcher (launcher.h): starts a worker of this name, with this main function, if one is requested.  look_ms: between
 * two looks at the requests, while there are any.
 */
extern long smart_errand_tend(enum smart_errand_kind kind, const char *name, const char *function, long look_ms);

/* Does someone wait for a lock that is held on either?  A snapshot of the catalogs is let go. */
extern bool smart_errand_gives_way(void *opened);

/* The main function of such a worker. */
extern void smart_errand_worker_run(Oid database, const struct smart_errand_work *work) __attribute__((noreturn));

#endif /* SMART_AM_ERRAND_WORKER_H */

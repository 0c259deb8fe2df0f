/*
 * journal_errands.h
 *	  What is done to the journal of an index that was requested (errands.h), by the worker of errand_worker.h.
 */
#ifndef SMART_AM_JOURNAL_ERRANDS_H
#define SMART_AM_JOURNAL_ERRANDS_H

#include "am/maintenance/opened.h"
#include "am/server/errands.h"

/* When an errand is to be done again, in milliseconds. */
#define SMART_ERRAND_NOT_AGAIN   (-1)
#define SMART_ERRAND_GAVE_WAY_MS 1000

struct smart_errand_work
{
	enum smart_errand_kind kind;
	long look_ms;  /* between two looks of the launcher at the requests, while there are any */
	long stays_ms; /* how long the worker waits for a request to be due; else it leaves */
	int (*perform)(struct smart_opened *opened); /* in a transaction; returns when to do it again, as both do */
	int (*condemn)(Oid index);                   /* the same, where the index or its journal is damaged */
};

/* One of each kind. */
extern const struct smart_errand_work smart_errand_works[SMART_ERRAND_KINDS];

#endif /* SMART_AM_JOURNAL_ERRANDS_H */

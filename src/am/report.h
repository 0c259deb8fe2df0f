/*
 * report.h
 *	  A status becomes an error.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_REPORT_H
#define SMART_AM_REPORT_H

#include "base/assert.h"
#include "base/status.h"
#include "utils/relcache.h"

/*
 * Raises the error that belongs to status, which is not SMART_OK; index may be
 * NULL.  An interrupt that is pending is served, so that a cancelled query says so.
 */
extern void smart_report_status(smart_status status, Relation index) __attribute__((noreturn));

/* Nothing on SMART_OK. */
static inline void
smart_check_status(smart_status status, Relation index)
{
	if (smart_unlikely(status != SMART_OK))
		smart_report_status(status, index);
}

#endif /* SMART_AM_REPORT_H */

/*
 * report.h
 *	  A status becomes an error.
 */
#ifndef SMART_AM_REPORT_H
#define SMART_AM_REPORT_H

#include "utils/relcache.h"

#include "base/assert.h"
#include "base/status.h"

/* Does status, of an operation on a tree, say that a memory node did not answer, or not as it should? */
extern bool smart_status_is_of_node(smart_status status);

/*
 * Raises the error that belongs to status, which is not SMART_OK, and does nothing else; index, which the error is
 * about, may be NULL.  An interrupt that is pending is served, so that a cancelled query says so.  Users of an open
 * index call smart_report_status() instead (relation.h).
 */
extern void smart_raise_status(smart_status status, Relation index) __attribute__((noreturn));

/* Nothing on SMART_OK. */
static inline void
smart_raise_if_failed(smart_status status, Relation index)
{
	if (smart_unlikely(status != SMART_OK))
		smart_raise_status(status, index);
}

#endif /* SMART_AM_REPORT_H */

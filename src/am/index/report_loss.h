/*
 * report_loss.h
 *	  The errors of an index that is lost, or whose memory nodes do not answer.
 */
#ifndef SMART_AM_REPORT_LOSS_H
#define SMART_AM_REPORT_LOSS_H

#include "utils/rel.h"

#include "am/index/loss.h"
#include "base/assert.h"
#include "base/status.h"

/* Raises the error that an index is lost, and registers it for a rebuild. */
extern void smart_report_loss(Relation index, enum smart_loss loss) __attribute__((noreturn));

/*
 * Raises the error that belongs to status, which is not SMART_OK, of an operation on an open index (NULL: of none).
 * Where it says that a memory node did not answer, the index may have been lost with it: then that is the error, and
 * the index is registered for a rebuild.  An interrupt that is pending is served.
 */
extern void smart_report_status(smart_status status, Relation index) __attribute__((noreturn));

/* Nothing on SMART_OK. */
static inline void
smart_check_status(smart_status status, Relation index)
{
	if (smart_unlikely(status != SMART_OK))
		smart_report_status(status, index);
}

#endif /* SMART_AM_REPORT_LOSS_H */

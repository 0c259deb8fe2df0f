/*
 * check_run.h
 *	  Is all that an index's run holds found there?
 */
#ifndef SMART_AM_MONITOR_CHECK_RUN_H
#define SMART_AM_MONITOR_CHECK_RUN_H

#include "am/index/meta.h"

/*
 * Errors: INDEX_CORRUPTED.  Whoever calls it keeps others from letting go the run's pages meanwhile: he has the lock of
 * removers (journal/lock.h).
 */
extern void smart_check_run(Relation index, const struct smart_codec *codec, const struct smart_meta *meta);

#endif /* SMART_AM_MONITOR_CHECK_RUN_H */

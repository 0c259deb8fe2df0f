/*
 * await.h
 *	  Waiting for an index that is being loaded.
 */
#ifndef SMART_AM_JOURNAL_AWAIT_H
#define SMART_AM_JOURNAL_AWAIT_H

#include "utils/relcache.h"

/*
 * Waits until the index is loaded, for smart.wait_timeout at most.  Loads it itself if this process holds a lock that keeps others
 * from doing so.  Returns at once if it is not lost, or cannot be loaded.  An index without a tree (resident) is not
 * loaded: for that it waits, as long, until its delta may have room.  OBJECT_NOT_IN_PREREQUISITE_STATE or OUT_OF_MEMORY: the time
 * is over; errors of loading.
 */
extern void smart_journal_await(Relation index);

/* The same, but returns false when the time is over. */
extern bool smart_journal_wait(Relation index);

#endif /* SMART_AM_JOURNAL_AWAIT_H */

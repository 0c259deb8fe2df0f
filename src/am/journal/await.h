/*
 * await.h
 *	  Waiting for an index that is being loaded.
 */
#ifndef SMART_AM_JOURNAL_AWAIT_H
#define SMART_AM_JOURNAL_AWAIT_H

#include "utils/relcache.h"

/*
 * Returns when the index is not lost, or not to be loaded; until then it waits for the loading, within
 * smart.load_timeout, and loads it itself if this process holds a lock that keeps others from doing so.
 * OBJECT_NOT_IN_PREREQUISITE_STATE: the time is over; errors of loading.  One whose pages are to answer (resident = never) is
 * not loaded: it returns, within the same time, when there may be room for its delta; else OUT_OF_MEMORY.
 */
extern void smart_journal_await(Relation index);

/* The same, but false when the time is over. */
extern bool smart_journal_wait(Relation index);

#endif /* SMART_AM_JOURNAL_AWAIT_H */

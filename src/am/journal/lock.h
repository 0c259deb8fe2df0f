/*
 * lock.h
 *	  The locks of a journal: heavyweight ones, which can be waited for and cancelled, are shown in pg_locks (as
 *	  userlock, with the file's tablespace and number in classid and objid) and end with their transaction.
 *
 * A process that takes several takes them in this order.
 */
#ifndef SMART_AM_JOURNAL_LOCK_H
#define SMART_AM_JOURNAL_LOCK_H

#include "utils/relcache.h"

enum smart_journal_lock
{
	SMART_LOCK_COMPACT = 1, /* one process writes a run */
	SMART_LOCK_REMOVE,      /* one process removes entries; or a tree is loaded; or compaction cuts the chain */
	SMART_LOCK_DELTA,       /* one process makes a delta (delta.h) */
	SMART_LOCK_CHAIN        /* one process reads a chain for want of a delta (chain_range.h) */
};

extern void smart_journal_lock(Relation index, enum smart_journal_lock lock);
extern bool smart_journal_try_lock(Relation index, enum smart_journal_lock lock);
extern void smart_journal_unlock(Relation index, enum smart_journal_lock lock);

#endif /* SMART_AM_JOURNAL_LOCK_H */

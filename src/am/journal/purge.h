/*
 * purge.h
 *	  Removes spent tombstones from a delta (spent.h), by who carries the chain to the follower.
 */
#ifndef SMART_AM_JOURNAL_PURGE_H
#define SMART_AM_JOURNAL_PURGE_H

#include "am/index/relation.h"

/*
 * Goes on with the delta over the run of this metapage, as far as this follower has come.  Returns whether scans pass by spent
 * tombstones, so that there will be more to do in a moment.  The caller has an inserter's lock of the index.  Errors of the
 * tree.
 */
extern bool smart_purge(Relation index, const struct smart_meta *meta, uint64 follower);

#endif /* SMART_AM_JOURNAL_PURGE_H */

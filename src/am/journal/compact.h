/*
 * compact.h
 *	  Compaction: a new run is written, and the chain begins anew.
 */
#ifndef SMART_AM_JOURNAL_COMPACT_H
#define SMART_AM_JOURNAL_COMPACT_H

#include "utils/relcache.h"

#include "am/server/waiters.h"

enum smart_compacted
{
	SMART_COMPACTED_NOT, /* there is no need to; or the index is lost */
	SMART_COMPACTED,     /* there is a new run, and the journal is whole */
	SMART_COMPACT_LATER  /* another process is at it; it was in the way of others; or the tree was replaced */
};

/*
 * Compacts the journal of an index if its chain is long or it is stale, or if the run has more than twice as many
 * entries as the tree, which has about so many (below 0: that is not known).  If there is no need to, lets go the pages
 * that nobody needs any more.  Others may read and change the index meanwhile.
 *
 * The caller holds an inserter's locks of table and index, or stronger ones.  way is asked now and then: are its locks in
 * anyone's way?  Errors, after which all is as before: of reading the tree; DISK_FULL.
 */
extern enum smart_compacted smart_journal_compact(Relation index, double entries, const struct smart_way *way);

#endif /* SMART_AM_JOURNAL_COMPACT_H */

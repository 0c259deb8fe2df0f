/*
 * promote.h
 *	  After a promotion: an index takes over the tree that the server has loaded as a standby.
 */
#ifndef SMART_AM_JOURNAL_PROMOTE_H
#define SMART_AM_JOURNAL_PROMOTE_H

#include "utils/relcache.h"

/*
 * Names in the metapage of a lost index the tree that this server has for it from the time when it was a standby, if
 * there is one.  Returns whether the index is not lost any more.  Nothing in recovery, and in parallel queries.  It waits
 * for others who load or remove, interruptibly.  Errors as smart_journal_load().
 */
extern bool smart_promote(Relation index);

#endif /* SMART_AM_JOURNAL_PROMOTE_H */

/*
 * standby.h
 *	  Opening an index to read it, on a standby as well.
 */
#ifndef SMART_AM_JOURNAL_STANDBY_H
#define SMART_AM_JOURNAL_STANDBY_H

#include "am/index/relation.h"

/*
 * As smart_relation_open(), for a reader, to be called after his snapshot was taken.  In recovery the tree has all that
 * such a snapshot sees then.  After a promotion the index is given its tree.  wait, or in recovery: one that has to be loaded is
 * given a view, if it can answer (journal/view.h), or waited for within smart.wait_timeout.  More errors: those of
 * journal/follow.h, view.h and await.h.
 */
extern struct smart_relation *smart_journal_open(Relation index, bool wait);

#endif /* SMART_AM_JOURNAL_STANDBY_H */

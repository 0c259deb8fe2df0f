/*
 * standby.h
 *	  Opening an index to read it, on a standby as well.
 */
#ifndef SMART_AM_JOURNAL_STANDBY_H
#define SMART_AM_JOURNAL_STANDBY_H

#include "am/index/relation.h"

/*
 * As smart_relation_open(), for a reader, to be called after his snapshot was taken.  In recovery the tree has all that
 * such a snapshot sees then; if it has yet to be loaded, this waits within smart.load_timeout.  After a promotion the
 * index is given its tree.  wait: one that has to be loaded on another server is given a view, if it can answer
 * (journal/view.h), or waited for.  More errors: those of journal/follow.h, view.h and await.h.
 */
extern struct smart_relation *smart_journal_open(Relation index, bool wait);

#endif /* SMART_AM_JOURNAL_STANDBY_H */

/*
 * load.h
 *	  Loading: a lost index gets its tree back from its journal, while its table is read and written.
 */
#ifndef SMART_AM_JOURNAL_LOAD_H
#define SMART_AM_JOURNAL_LOAD_H

#include "utils/relcache.h"

#include "am/journal/fill.h"

/*
 * Loads the tree of an index, if it is lost and can be loaded; *entries: that were loaded, if it was (SMART_LOADED).  The
 * caller holds an inserter's locks of table and index.  It waits for others who load or remove, interruptibly, and after
 * an error the index is as lost as before.  INDEX_CORRUPTED: the journal is damaged; OBJECT_NOT_IN_PREREQUISITE_STATE: a
 * row could not be inserted meanwhile, or runs came faster than one could be read; errors of the tree.
 */
extern enum smart_loaded smart_journal_load(Relation index, const struct smart_look *look, uint64 *entries);

#endif /* SMART_AM_JOURNAL_LOAD_H */

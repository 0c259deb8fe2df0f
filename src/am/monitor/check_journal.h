/*
 * check_journal.h
 *	  Does an index's tree have all that its journal tells of?
 */
#ifndef SMART_AM_CHECK_JOURNAL_H
#define SMART_AM_CHECK_JOURNAL_H

#include "utils/relcache.h"

struct smart_relation;

/*
 * Checks that each entry which a loading would bring back is in the tree of this open index.  Nothing if its journal is
 * stale, or there is none.  It keeps removers and loaders waiting.  Errors: INDEX_CORRUPTED; those of reading pages and
 * the tree.
 */
extern void smart_check_journal(struct smart_relation *self, Relation index);

/*
 * The same for one whose journal answers: is its run whole?  Returns how many entries it has and the chain adds.  Errors as
 * above.
 */
extern uint64 smart_check_pages(struct smart_relation *self, Relation index);

#endif /* SMART_AM_CHECK_JOURNAL_H */

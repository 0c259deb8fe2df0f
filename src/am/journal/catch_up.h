/*
 * catch_up.h
 *	  A tree that was left behind catches up with its journal, and is the index's again.
 */
#ifndef SMART_AM_JOURNAL_CATCH_UP_H
#define SMART_AM_JOURNAL_CATCH_UP_H

#include "utils/relcache.h"

/*
 * Brings the tree of a lost index up to date, if that was left behind and its memory nodes are back, and puts it into use.
 * False: it has no such tree, or the tree is of no use any more, and is not found again.  The caller has the lock of removers,
 * alone, and an inserter's locks of table and index.  Errors of reading the journal and of the tree.
 */
extern bool smart_catch_up(Relation index);

#endif /* SMART_AM_JOURNAL_CATCH_UP_H */

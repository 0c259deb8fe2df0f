/*
 * leave.h
 *	  An index gives up its tree: from then on the pages of its journal answer (view.h).
 */
#ifndef SMART_AM_JOURNAL_LEAVE_H
#define SMART_AM_JOURNAL_LEAVE_H

#include "utils/relcache.h"

/*
 * Gives up this tree of an index, if its pages can answer.  The tree's memory is freed when the transactions that may use it have
 * ended.  The caller holds an inserter's lock of the index.  why: for the log.  Returns false if the index keeps the tree, true if it
 * does not have it any more.
 */
extern bool smart_leave_memory(Relation index, uint64 tree, const char *why);

#endif /* SMART_AM_JOURNAL_LEAVE_H */

/*
 * leave.h
 *	  An index gives up its tree, or leaves it behind: from then on the pages of its journal answer (view.h).
 */
#ifndef SMART_AM_JOURNAL_LEAVE_H
#define SMART_AM_JOURNAL_LEAVE_H

#include "utils/relcache.h"

#include "am/index/meta.h"

/*
 * A memory node that has a part of this tree does not answer: the index goes on without it, and the tree is left behind, to catch
 * up when the node is back, or given up (src/README, J14).  For an index with a journal, before anything is journaled
 * that the tree lacks.  tail: of the chain, as far as it is known.  The caller holds an inserter's lock of the index.
 */
extern void smart_leave_behind(Relation index, struct smart_tail *tail, uint64 tree);

/*
 * Gives up this tree of an index, if its pages can answer.  The tree's memory is freed when the transactions that may use it have
 * ended.  The caller holds an inserter's lock of the index.  why: for the log.  Returns false if the index keeps the tree, true if it
 * does not have it any more.
 */
extern bool smart_leave_memory(Relation index, uint64 tree, const char *why);

#endif /* SMART_AM_JOURNAL_LEAVE_H */

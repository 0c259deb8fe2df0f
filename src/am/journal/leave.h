/*
 * leave.h
 *	  An index gives up its tree: from then on the pages of its journal answer (view.h).
 */
#ifndef SMART_AM_JOURNAL_LEAVE_H
#define SMART_AM_JOURNAL_LEAVE_H

#include "utils/relcache.h"

/*
 * Gives up this tree of an index, if pages can answer in its place.  The tree's memory is free when the transactions have ended
 * that may use it.  The caller has an inserter's lock of the index.  False: it keeps its tree; true, too, if it has had another
 * one.  why: for the log.
 */
extern bool smart_leave_memory(Relation index, uint64 tree, const char *why);

#endif /* SMART_AM_JOURNAL_LEAVE_H */

/*
 * dead_entries.h
 *	  Entries of dead rows that sessions have met, removed from an index with a journal.
 */
#ifndef SMART_AM_DEAD_ENTRIES_H
#define SMART_AM_DEAD_ENTRIES_H

#include "utils/relcache.h"

struct smart_entries;

/*
 * Removes those of the keys whose entries lead to dead rows; returns how many.  The caller has an inserter's locks of
 * table and index, and a snapshot.  None, if the index is not a valid one with a journal, is lost, or another process
 * removes entries.  Errors of the table's pages and of WAL.
 */
extern uint32 smart_dead_entries_remove(Relation heap, Relation index, const struct smart_entries *keys);

#endif /* SMART_AM_DEAD_ENTRIES_H */

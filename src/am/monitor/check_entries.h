/*
 * check_entries.h
 *	  The entries of an index that is checked, whether its tree or the pages of its journal answer.
 */
#ifndef SMART_AM_MONITOR_CHECK_ENTRIES_H
#define SMART_AM_MONITOR_CHECK_ENTRIES_H

#include "am/index/relation.h"

/* Opens it; waits for no loading.  Errors: the index is lost, and its pages are not to answer; those of view.h. */
extern struct smart_relation *smart_check_open(Relation index);

/* Calls take with all entries, in order, by batches. */
extern void smart_check_each(struct smart_relation *self, Relation index,
							 void (*take)(void *argument, const struct smart_batch *batch), void *argument);

/* Is an entry with this key there by now?  OBJECT_NOT_IN_PREREQUISITE_STATE: the index has been opened too long ago to tell. */
extern bool smart_check_is_there(struct smart_relation *self, Relation index, const uint8 *key, int key_length);

/*
 * Reports that pages were given to another run while they were read, as OBJECT_NOT_IN_PREREQUISITE_STATE.  Replay does that on a
 * standby.  On a primary it cannot happen to a caller that holds the lock of removers.
 */
extern __attribute__((noreturn)) void smart_check_report_used_anew(Relation index);

#endif /* SMART_AM_MONITOR_CHECK_ENTRIES_H */

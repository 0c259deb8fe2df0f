/*
 * passed.h
 *	  How many entries of runs scans have passed by, as the delta says that they were removed (journal/delta.h).
 *
 * All processes share it.  It is a hint: a place of the table that another delta wants is that one's from then on.
 */
#ifndef SMART_AM_PASSED_H
#define SMART_AM_PASSED_H

/* Counts so many more entries for a delta, by its tree; returns what was passed in all. */
extern uint64 smart_passed_add(uint64 delta, uint64 entries);

/* What was passed in all. */
extern uint64 smart_passed(uint64 delta);

#endif /* SMART_AM_PASSED_H */

/*
 * passed.h
 *	  How many removed entries scans have passed by: those that a run has, and that its delta hides (journal/delta.h).
 *
 * All processes share it.  It is a hint: a place of the table that another delta wants is that one's from then on.
 */
#ifndef SMART_AM_PASSED_H
#define SMART_AM_PASSED_H

/* Counts entries for a delta, by the id of its tree; returns how many there have been since its run was written. */
extern uint64 smart_passed_add(uint64 delta, uint64 entries);

/* How many there have been; 0 if the delta has no place in the table. */
extern uint64 smart_passed(uint64 delta);

#endif /* SMART_AM_PASSED_H */

/*
 * spent.h
 *	  The spent tombstones of a delta: of entries that have come and gone since its run was written (src/README, J15).
 *
 * They hide what a follower may have (carry.h), and nothing else.  They are of two turns.  All processes share what is known of
 * them.  A delta for which there is no place keeps them.
 */
#ifndef SMART_AM_JOURNAL_SPENT_H
#define SMART_AM_JOURNAL_SPENT_H

#include "am/index/meta.h"

/* A delta has been made, or has had no place until now.  Returns whether it has one. */
extern bool smart_spent_begin(uint64 delta);

/* The turn of now, 0 or 1.  The caller has the delta's lock. */
extern int smart_spent_turn(uint64 delta);

/*
 * Scans have passed by so many spent tombstones.  Returns how often they have done so since a turn began.  *pays, once: from now on it
 * pays to remove them.
 */
extern uint64 smart_spent_pass(uint64 delta, uint64 entries, bool *pays);

/* The same without passing any. */
extern uint64 smart_spent_passed(uint64 delta);

/* May the delta, which the caller has pinned, be read together with a follower that has come to this place? */
extern bool smart_spent_allows(uint64 delta, const struct smart_chain_place *follower);

/*
 * A turn begins, if that pays, and ends when the follower has come to where it began; with what the caller knows under the delta's
 * lock: where it is, and where the follower is.  He is the only one who does so.
 */
extern void
smart_spent_turn_on(uint64 delta, const struct smart_chain_place *place, const struct smart_chain_place *follower);

/* Do the spent tombstones of the turn before hide nothing any more?  Not as long as somebody may have read the follower before. */
extern bool smart_spent_is_over(uint64 delta);

/* Do scans pass by some, so that the caller is to come again soon?  Not if somebody keeps him from going on. */
extern bool smart_spent_are_in_the_way(uint64 delta);

/* They have been removed, and these other entries are left. */
extern void smart_spent_removed(uint64 delta, uint64 others);

#endif /* SMART_AM_JOURNAL_SPENT_H */

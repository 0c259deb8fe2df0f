/*
 * follow.h
 *	  The trees of a standby: loaded from journals, and brought up to date with what replay has changed in them.
 *
 * A standby changes no page, and so names its trees in no metapage.  A tree's notes tell of which journal it is and up
 * to which place of the chain it has everything (trees.h).
 */
#ifndef SMART_AM_JOURNAL_FOLLOW_H
#define SMART_AM_JOURNAL_FOLLOW_H

#include "am/index/meta.h"
#include "am/index/relation.h"
#include "am/journal/apply.h"
#include "am/journal/fill.h"
#include "am/server/waiters.h"

/*
 * Loads the tree of an index in recovery, or the follower of one that writes back (carry.h), if it has none yet that may be
 * used and can be loaded; *entries: that were loaded.  The caller has locked table and index.  INDEX_CORRUPTED: the journal
 * is damaged; errors of the tree.
 */
extern enum smart_loaded smart_follow_load(Relation index, const struct smart_look *look, uint64 *entries);

/*
 * Brings the tree of an index that was opened in recovery up to what has been replayed when this is called, or later.
 * It waits for others who do so, interruptibly.  False: the tree is not to be used any more, or recovery has ended;
 * self has to be opened anew.  Errors as above.
 */
extern bool smart_follow_catch_up(Relation index, const struct smart_relation *self);

/*
 * A moment at which a standby's tree had all that was replayed of a journal; tree is 0: there is none.  As long as nothing more of it
 * has been replayed, no TID that was read from the tree since then has been given to another row (src/README, J9).
 */
struct smart_follow_moment
{
	uint64 tree;
	uint64 journal;
	uint64 losses;
	struct smart_chain_place place;
};

/* Brings the tree up to date as above, for reads that follow.  Not one that cannot be, nor behind the end of recovery. */
extern void
smart_follow_take_moment(Relation index, const struct smart_relation *self, struct smart_follow_moment *moment);

/* Is that moment's journal still all that has been replayed? */
extern bool smart_follow_is_moment(Relation index, const struct smart_follow_moment *moment);

/* ---- for promote.c, carry.c and delta.c ---- */

/* One process at a time applies a chain to a tree. */
extern void smart_follow_lock(uint64 tree);
extern void smart_follow_unlock(uint64 tree);

/* The same for who needs what stands before this place.  False: another process has applied it, and the lock is not taken. */
extern bool smart_follow_lock_before(uint64 tree, const struct smart_chain_place *end);

/*
 * With that lock: applies to the tree of an open index what the chain has that it lacks.  False: it cannot go on, and is given up;
 * so it is after an error that is its own.  way: is asked from time to time whether others wait for this process; then the rest is
 * left for later.  NULL: it never is.
 */
extern bool smart_follow_apply(Relation index, const struct smart_relation *self, enum smart_target target,
							   const struct smart_way *way);

/* The place up to which a tree has everything; false: it is not to be used any more.  Two words: see follow.c. */
extern bool smart_follow_place(uint64 tree, struct smart_chain_place *place);
extern void smart_follow_note_place(uint64 tree, const struct smart_chain_place *place);

/*
 * Does the chain of this metapage end at this place?  *end: where it does, if that is on the same page; else a place that no tree comes
 * to.
 */
extern bool smart_follow_is_at_end(Relation index, const struct smart_meta *meta, const struct smart_chain_place *place,
								   struct smart_chain_place *end);

/* Lets all trees of a journal leave but one (0: all), which others may still read. */
extern void smart_follow_leave(Relation index, const struct smart_meta *meta, uint64 keep);

/* A tree is not to be used any more, from the next opening of its index on. */
extern void smart_follow_give_up(Relation index, uint64 tree);

#endif /* SMART_AM_JOURNAL_FOLLOW_H */

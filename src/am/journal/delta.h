/*
 * delta.h
 *	  The delta of an index that answers from the pages of its journal: what the chain has behind the cut, in a tree.
 *
 * It lies in the memory that trees lie in, and all processes share it.  No metapage names it: it is found by its journal
 * and its run (trees.h).  Whoever reads brings it up to date with the chain first, as a standby's tree (follow.h).
 */
#ifndef SMART_AM_JOURNAL_DELTA_H
#define SMART_AM_JOURNAL_DELTA_H

#include "am/index/pin.h"
#include "am/index/relation.h"

/*
 * Opens the delta of the journal that this metapage tells of; it is made if there is none.  As an open index, whose tree it
 * is, and whose entries apply.h tells of.  It does not go away before the pin ends, but with that it may.  NULL: there is no room
 * for it, or the journal has gone on.  It has to be brought up to date.  The caller has locked the index.  INDEX_CORRUPTED: the
 * journal is damaged; errors of the tree.
 */
extern struct smart_relation *smart_delta_open(Relation index, const struct smart_codec *codec,
											   const struct smart_meta *meta, struct smart_pin_ticket *pin);

/*
 * Brings it up to where the chain ends when this is called, or later.  It waits for others who do so, interruptibly.  False:
 * the journal has gone on, or is not whole any more, and so it is not to be used.  Errors as above.
 */
extern bool smart_delta_catch_up(Relation index, const struct smart_codec *codec, const struct smart_relation *delta);

/* Has somebody made the delta of the run that this metapage tells of? */
extern bool smart_delta_is_there(Relation index, const struct smart_meta *meta);

/* Deltas of an index's journal leave, which others may still read: those of runs before, and, if it has a tree, all. */
extern void smart_delta_leave(Relation index, bool all);

#endif /* SMART_AM_JOURNAL_DELTA_H */

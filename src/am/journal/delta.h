/*
 * delta.h
 *	  The delta of an index that answers from the pages of its journal: what the chain has behind the cut, in a tree.
 *
 * It lies in the memory that trees lie in, and all processes share it.  No metapage names it: it is found by its journal
 * and its run (trees.h).  Whoever reads brings it up to date with the chain first, as a standby's tree (follow.h).
 *
 * One that is lean (trees.h) has nothing of entries that have come and gone since its run was written (src/README, J13).  Another
 * one has tombstones of them for a while (spent.h).
 */
#ifndef SMART_AM_JOURNAL_DELTA_H
#define SMART_AM_JOURNAL_DELTA_H

#include "am/index/pin.h"
#include "am/index/relation.h"
#include "am/journal/sorted_chain.h"

/*
 * Opens the delta over the run that this metapage names, and makes it if there is none.  The result is a relation whose tree is the
 * delta; delta_entry.h describes its entries.  It stays until the pin ends.  It may be behind the chain: see smart_delta_catch_up().
 * Returns NULL if it has no room, or if runs have been switched.  The caller has locked the index.  INDEX_CORRUPTED: the journal is
 * damaged; errors of the tree.
 */
extern struct smart_relation *smart_delta_open(Relation index, const struct smart_codec *codec,
											   const struct smart_meta *meta, struct smart_pin_ticket *pin);

/* The same if it is there; NULL: it is not. */
extern struct smart_relation *smart_delta_find(Relation index, const struct smart_codec *codec,
											   const struct smart_meta *meta, struct smart_pin_ticket *pin);

/*
 * Applies the chain, up to its present end at least.  Waits, interruptibly, for others who do so.  Returns false if the delta must
 * not be used any more: runs have been switched, or the journal is not whole.  meta: as the caller has read
 * the metapage, and as it is now.  Errors: as above.
 */
extern bool smart_delta_catch_up(Relation index, const struct smart_codec *codec, const struct smart_relation *delta,
								 struct smart_meta *meta);

/*
 * Makes the delta of an index whose pages answer, unless it is there, and brings it up to date.  Errors: as above, and those of
 * look, which is called meanwhile.
 */
extern void smart_delta_prepare(Relation index, const struct smart_look *look);

/* Pins a delta again that was opened before; false: it leaves, and may have gone. */
extern bool smart_delta_pin(const struct smart_relation *delta, struct smart_pin_ticket *pin);

/* Has the delta all that the chain of this metapage has? */
extern bool smart_delta_is_current(Relation index, const struct smart_relation *delta, const struct smart_meta *meta);

/* Is there a delta over the run that this metapage names? */
extern bool smart_delta_is_there(Relation index, const struct smart_meta *meta);

/* Lets go an index's deltas over former runs; all: all of them, since it has a tree.  Others may still be reading them. */
extern void smart_delta_leave(Relation index, bool all);

#endif /* SMART_AM_JOURNAL_DELTA_H */

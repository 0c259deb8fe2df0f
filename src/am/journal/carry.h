/*
 * carry.h
 *	  The follower of an index that writes back: a tree on memory nodes, to which a worker carries what the journal has.
 *
 * Who writes does not wait for it, and who reads does not need it: the delta has all that it may lack (src/README, J15).
 */
#ifndef SMART_AM_JOURNAL_CARRY_H
#define SMART_AM_JOURNAL_CARRY_H

#include "am/index/relation.h"
#include "am/server/waiters.h"

/* The follower of an index; 0: it has none, or startup recovery is pending. */
extern uint64 smart_carry_tree(Relation index);

/*
 * Opens the follower that reads may be answered from together with the delta over the run of this metapage, in
 * CurrentMemoryContext; NULL: there is none, or a memory node is away.  usable: may it still be?
 */
extern struct smart_relation *
smart_carry_open(Relation index, const struct smart_codec *codec, const struct smart_meta *meta);
extern bool smart_carry_is_usable(const struct smart_relation *follower, const struct smart_meta *meta);

/* May it be read without a delta, since it has all that the chain has now? */
extern bool smart_carry_has_all(Relation index, const struct smart_relation *follower);

enum smart_carried
{
	SMART_CARRIED_SOME,  /* the follower has all that the chain had a moment ago */
	SMART_CARRIED_HURRY, /* the same, and it is to have more soon, since scans pass by many spent tombstones (spent.h) */
	SMART_CARRIED_ALL,   /* it had that before */
	SMART_CARRIED_NONE,  /* it is not to have one, or has lost it at this moment */
	SMART_CARRIED_LATER  /* others wait, a memory node is away, or it has yet to be loaded or recovered */
};

/*
 * Carries to the follower what the chain has that it lacks, or a part of it where others wait for this process, as way tells (NULL:
 * they never do).  In one process at a time, with an inserter's lock of the index; it waits for others who do so, interruptibly.
 * INDEX_CORRUPTED: the journal is damaged; errors of the tree.
 */
extern enum smart_carried smart_carry(Relation index, const struct smart_way *way);

/* The same, with what is staged.  Has the follower all that had been written when this was called?  It may have none. */
extern bool smart_carry_all(Relation index);

#endif /* SMART_AM_JOURNAL_CARRY_H */

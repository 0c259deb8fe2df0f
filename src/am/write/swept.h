/*
 * swept.h
 *	  VACUUM's removals from a tree that is swept: tree and journal in one walk.
 *
 * Other removals collect keys, journal them, and then look up each leaf again (removal.h).  A sweep removes a dead entry
 * when it finds it.  The removals go to the journal behind it, page by page.
 *
 * The tree's note of a removal makes this safe.  It stands until the journal has all removals, durably.  A server that
 * finds the note after a crash loads the tree anew from the journal.  So the lost entries are back, and VACUUM can find
 * them again.
 *
 * The note should stand for a short time only.  A VACUUM that sleeps under way (vacuum_cost_delay) collects first.
 */
#ifndef SMART_AM_SWEPT_H
#define SMART_AM_SWEPT_H

#include "utils/relcache.h"

#include "am/journal/batches.h"
#include "am/journal/free.h"

struct smart_relation;

struct smart_swept
{
	struct smart_relation *relation;
	Relation index;
	bool open;          /* the note stands */
	bool out_of_memory; /* something was removed and could not be packed */
	uint32 count;       /* entries that were removed since then */
	Size most;          /* bytes that the removals from one leaf take, with hardly an exception */
	Size room;          /* that there is for the batch that is begun, and these: in the tail, or in reserved pages */
	struct smart_reserve reserve;
	struct smart_batches batches;
};

/* Can the removals from an index go this way?  The caller has the lock of removers (lock.h) until smart_swept_end(). */
extern bool smart_swept_fits(const struct smart_relation *relation);
extern void smart_swept_begin(struct smart_swept *swept, struct smart_relation *relation, Relation index);

/* Before leaves are looked at: puts the note down, unless it stands.  Errors: as smart_removal_perform(). */
extern void smart_swept_open(struct smart_swept *swept);

/* smart_found_fn's: the key of an entry that was removed. */
extern void smart_swept_add(struct smart_swept *swept, const uint8 *key, int length);

/*
 * Between two leaves.  When they fill a page, removals go to the journal; and if somebody wants an interrupt served, or there is much to be
 * flushed, all of it does, and the note is taken away.  Errors: those of WAL; the tree is given up then, if it lacks
 * something.
 */
extern void smart_swept_pause(struct smart_swept *swept);

/* Takes the note away, if it stands, when the rest is in the journal.  Errors: as above. */
extern void smart_swept_close(struct smart_swept *swept);

/* Frees memory; the note does not stand. */
extern void smart_swept_end(struct smart_swept *swept);

#endif /* SMART_AM_SWEPT_H */

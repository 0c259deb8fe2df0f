/*
 * sight.h
 *	  Which rows an index-only scan sees on a standby.
 *
 * On a standby nothing keeps replay waiting for a scan.  Between a read of the index and the executor's look at the visibility
 * map it may free a TID, and mark the TID's page as all-visible.  So the scan looks first, and returns rows that its snapshot sees:
 * whatever the executor finds afterwards makes no difference.
 */
#ifndef SMART_AM_SIGHT_H
#define SMART_AM_SIGHT_H

#include "access/relscan.h"
#include "executor/tuptable.h"
#include "storage/buf.h"

struct smart_position;

#define SMART_SIGHT_AHEAD 64 /* entries that are looked at together */

struct smart_sight
{
	uint32 batch; /* of which batch are these; 0: of none */
	int low;      /* the first of them */
	int count;
	bool all_visible[SMART_SIGHT_AHEAD];
	Buffer map;           /* a page of the visibility map */
	TupleTableSlot *slot; /* NULL until it is needed */
};

extern void smart_sight_init(struct smart_sight *sight);

/* Gives up what it has in shared buffers. */
extern void smart_sight_end(struct smart_sight *sight);

/* Was the position's entry looked at? */
extern bool smart_sight_has(const struct smart_sight *sight, const struct smart_position *position);

/* How many entries are to be looked at now: the position's, and others that follow it in this direction. */
extern int smart_sight_ahead(const struct smart_sight *sight, const struct smart_position *position, bool backward);

/* Looks at count TIDs, which the batch's entries from low on have, in the visibility map. */
extern void smart_sight_look(struct smart_sight *sight, struct smart_position *position, int low,
							 const ItemPointerData *tids, int count);

/* Does the scan's snapshot see the row of the position's entry, at which it has looked? */
extern bool
smart_sight_sees(struct smart_sight *sight, const struct smart_position *position, const ItemPointerData *tid);

#endif /* SMART_AM_SIGHT_H */

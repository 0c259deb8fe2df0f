/*
 * position_parts.h
 *	  Shared by the files about a scan's position; not for others.
 */
#ifndef SMART_AM_POSITION_PARTS_H
#define SMART_AM_POSITION_PARTS_H

#include "am/position.h"

/* ---- position_batch.c ---- */

/* The key of entry i of the batch, at key; returns its length. */
extern uint32 smart_position_key(struct smart_position *position, int i, uint8 *key);

/*
 * Before a leaf is read for a scan that looks at the heap or the visibility map
 * later without a snapshot that keeps removed rows away.  A hold serves batch
 * after batch until a VACUUM waits for it.
 */
extern void smart_position_begin_hold(struct smart_position *position);
extern void smart_position_end_hold(struct smart_position *position);

/* Seeks the current range, unless what it has is known. */
extern void smart_position_seek_range(struct smart_position *position, bool backward);

/*
 * Seeks what lies behind (or, backward, before) a key within the current
 * range.  No key begins with another one, so all strings that begin with this
 * one are its own entry.  False: nothing can lie there.  Changes the key.
 */
extern bool smart_position_seek_beyond(struct smart_position *position, uint8 *key, uint32 length, bool backward);

/*
 * Leaps over entries that the conditions on later columns rule out, if those of the last leaf are
 * all of one group: then more of them may follow, leaf after leaf.  Where groups are smaller, to
 * read on costs less.  False: the range has no more.
 */
extern bool smart_position_leap(struct smart_position *position, bool backward);

/*
 * Reads the next batch of this range or of the next one that has any.  *sought:
 * the present range may have more.  False: there is none.
 */
extern bool smart_position_read(struct smart_position *position, bool backward, bool *sought);

/* ---- position_shared.c ---- */

/* Goes to the first batch that it takes, or to the next one.  False: the scan is at its end. */
extern bool smart_position_enter_shared(struct smart_position *position, bool backward);
extern bool smart_position_next_shared(struct smart_position *position, bool backward);

/* ---- position.c ---- */

/* Is before the first or behind the last entry of a new batch; there: there is one.  False: the scan is at its end. */
extern bool smart_position_come(struct smart_position *position, bool backward, bool there);

#endif /* SMART_AM_POSITION_PARTS_H */

/*
 * position_shared.c
 *	  The way of one process through a scan that several share (shared_scan.c).
 */
#include "postgres.h"

#include "am/position_parts.h"
#include "am/predicate.h"
#include "base/assert.h"

/* Goes to where the processes are that share the scan.  False: there is nothing. */
static bool
join(struct smart_position *self, struct smart_shared_place *place, bool backward, bool *sought)
{
	*sought = true;
	if (!place->started)
		smart_predicate_lock(self->scan->indexRelation, self->scan->xs_snapshot, self->ranges);
	if (self->relation->tree == NULL || (!place->started && !smart_ranges_first(self->ranges, backward)))
		return false;
	smart_foresight_begin(&self->foresight, self->ranges);
	smart_position_begin_hold(self);
	if (!place->started)
	{
		smart_position_seek_range(self, backward);
		return true;
	}
	smart_ranges_go(self->ranges, place->points);
	*sought = smart_position_seek_beyond(self, place->key, place->length, backward);
	return true;
}

/* Takes the next batches in its turn.  No hold is exchanged before they are used up. */
static void
take_batches(struct smart_position *self, bool backward)
{
	struct smart_pieces *pieces = &self->pieces;
	struct smart_shared_place place;
	bool sought;
	bool more;

	smart_pieces_clear(pieces);
	if (!smart_shared_scan_take(self->scan, &place))
		return;
	more = join(self, &place, backward, &sought);
	while (more && pieces->count < pieces->wanted)
	{
		if (pieces->count > 0 && self->ranges->filtered)
			sought = smart_position_leap(self, backward);
		more = smart_position_read(self, backward, &sought);
		if (more)
			smart_pieces_add(pieces, &self->batch);
	}
	if (more)
	{
		place.started = true;
		memcpy(place.points, self->ranges->current, sizeof(place.points));
		place.length = smart_position_key(self, backward ? 0 : (int) self->batch.count - 1, place.key);
		smart_shared_scan_give(self->scan, &place);
	}
	else
		smart_shared_scan_finish(self->scan);
	pieces->wanted = Min(2 * pieces->wanted, SMART_PIECES_MAX);
}

bool
smart_position_next_shared(struct smart_position *self, bool backward)
{
	if (self->pieces.next == self->pieces.count)
		take_batches(self, backward);
	self->prefix_there = false;
	return smart_position_come(self, backward, smart_pieces_next(&self->pieces, &self->batch));
}

bool
smart_position_enter_shared(struct smart_position *self, bool backward)
{
	smart_count_search(self->scan);
	self->backward = backward;
	self->whereabouts = SMART_IN_BATCH;
	return smart_position_next_shared(self, backward);
}

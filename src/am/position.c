/*
 * position.c
 *	  Where an index scan is, and how it moves.
 *
 * A scan goes through the byte ranges of its conditions; within a range it
 * reads a batch of entries at a time, which lies in its own memory, and moves
 * to and fro in it.  Where it leaves the batch against the direction in which
 * the range was read, it seeks again from the batch's edge: entries are unique,
 * so an entry's key is a position.
 *
 * In a parallel scan it takes some batches in its turn instead, which all processes
 * together take in order (shared_scan.c).  Such a scan never turns round.
 */
#include "postgres.h"

#include "am/position_parts.h"
#include "am/predicate.h"
#include "base/assert.h"

void
smart_position_init(struct smart_position *self, IndexScanDesc scan, struct smart_relation *relation,
					struct smart_ranges *ranges)
{
	memset(self, 0, offsetof(struct smart_position, mark_points));
	self->scan = scan;
	self->relation = relation;
	self->ranges = ranges;
	smart_foresight_init(&self->foresight, CurrentMemoryContext);
	smart_pieces_init(&self->pieces);
}

/* Saves the mark before the batch that it points into goes away. */
static void
keep_mark(struct smart_position *self)
{
	if (self->mark != SMART_MARK_IN_BATCH)
		return;
	self->mark_length = smart_position_key(self, self->mark_index, self->mark_key);
	memcpy(self->mark_points, self->ranges->current, self->ranges->nprefix * sizeof(uint32));
	self->mark = SMART_MARK_AT_KEY;
}

/* Goes to the mark; *sought: something may lie behind it in its range. */
static pg_noinline void
begin_at_mark(struct smart_position *self, bool backward, bool *sought)
{
	uint8 key[SMART_KEY_MAX + 1];

	smart_position_begin_hold(self);
	memcpy(key, self->mark_key, self->mark_length);
	*sought = smart_position_seek_beyond(self, key, self->mark_length, backward);
}

/* Goes to the first range's beginning or to the mark; next_batch() reads there.  False: there is nothing. */
static bool
begin(struct smart_position *self, bool backward, bool *sought)
{
	if (unlikely(self->whereabouts == SMART_AT_MARK))
		begin_at_mark(self, backward, sought);
	else
	{
		smart_count_search(self->scan);
		smart_predicate_lock(self->scan->indexRelation, self->scan->xs_snapshot, self->ranges);
		if (self->relation->tree == NULL || !smart_ranges_first(self->ranges, backward))
			return false;
		smart_foresight_begin(&self->foresight, self->ranges);
		smart_position_begin_hold(self);
		smart_position_seek_range(self, backward);
		*sought = true;
	}
	self->whereabouts = SMART_IN_BATCH;
	return true;
}

/* Turns round at the edge of the batch. */
static bool
turn(struct smart_position *self, bool backward)
{
	uint8 key[SMART_KEY_MAX + 1];
	uint32 length = smart_position_key(self, backward ? 0 : (int) self->batch.count - 1, key);

	return smart_position_seek_beyond(self, key, length, backward);
}

bool
smart_position_come(struct smart_position *self, bool backward, bool there)
{
	if (there)
	{
		self->batches++;
		self->index = backward ? (int) self->batch.count : -1;
		return true;
	}
	self->whereabouts = SMART_AT_START;
	smart_position_end_hold(self);
	return false;
}

static bool
next_batch(struct smart_position *self, bool backward, bool sought)
{
	return smart_position_come(self, backward, smart_position_read(self, backward, &sought));
}

/* Goes to the first batch. */
static bool
enter(struct smart_position *self, bool backward)
{
	bool sought;

	if (self->scan->parallel_scan != NULL)
		return smart_position_enter_shared(self, backward);
	return begin(self, backward, &sought) && next_batch(self, backward, sought);
}

/* Leaves the batch and goes to the next one. */
static bool
leave_batch(struct smart_position *self, bool backward)
{
	bool sought = true;

	if (self->scan->parallel_scan != NULL)
	{
		smart_assert(backward == self->backward);
		return smart_position_next_shared(self, backward);
	}
	keep_mark(self);
	smart_position_begin_hold(self);
	if (backward != self->backward)
		sought = turn(self, backward);
	else if (self->ranges->filtered)
		sought = smart_position_leap(self, backward);
	return next_batch(self, backward, sought);
}

static bool
matches(struct smart_position *self)
{
	int length;

	if (!self->ranges->filtered)
		return true;
	length = smart_position_entry(self, self->index);
	return smart_ranges_match(self->ranges, self->entry, length);
}

bool
smart_position_search(struct smart_position *self, bool backward)
{
	int step = backward ? -1 : 1;

	if (unlikely(self->whereabouts != SMART_IN_BATCH) && !enter(self, backward))
		return false;
	for (;;)
	{
		int next = self->index + step;

		if (next >= 0 && (uint32) next < self->batch.count)
		{
			self->index = next;
			if (matches(self))
				return true;
		}
		else if (!leave_batch(self, backward))
			return false;
	}
}

void
smart_position_reset(struct smart_position *self)
{
	smart_position_end_hold(self);
	self->whereabouts = SMART_AT_START;
	self->mark = SMART_MARK_AT_START;
	self->batch.count = 0;
	smart_pieces_clear(&self->pieces);
	self->pieces.wanted = 1;
}

void
smart_position_set_mark(struct smart_position *self)
{
	if (self->whereabouts == SMART_IN_BATCH)
	{
		self->mark = SMART_MARK_IN_BATCH;
		self->mark_index = self->index;
	}
	else if (self->whereabouts == SMART_AT_START)
		self->mark = SMART_MARK_AT_START;
}

void
smart_position_restore(struct smart_position *self)
{
	if (self->mark == SMART_MARK_IN_BATCH)
	{
		smart_assert(self->whereabouts == SMART_IN_BATCH && (uint32) self->mark_index < self->batch.count);
		self->index = self->mark_index;
		return;
	}
	smart_position_end_hold(self);
	self->batch.count = 0;
	self->whereabouts = SMART_AT_START;
	if (self->mark == SMART_MARK_AT_KEY)
	{
		smart_ranges_go(self->ranges, self->mark_points);
		self->whereabouts = SMART_AT_MARK;
	}
}

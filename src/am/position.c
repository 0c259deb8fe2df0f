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

#include "miscadmin.h"
#include "pgstat.h"
#include "utils/snapmgr.h"

#include "am/position.h"
#include "am/predicate.h"
#include "am/report.h"
#include "base/assert.h"
#include "base/bytes.h"

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

static struct smart_scan *
tree_scan(struct smart_position *self)
{
	if (self->tree_scan == NULL)
		self->tree_scan = smart_relation_scan(self->relation);
	return self->tree_scan;
}

int
smart_position_entry(struct smart_position *self, int i)
{
	const struct smart_batch *batch = &self->batch;
	const struct smart_item *item = &batch->items[i];

	smart_assert(i >= 0 && (uint32) i < batch->count);
	smart_assert(batch->prefix_length + item->length <= sizeof(self->entry));
	if (!self->prefix_there)
	{
		memcpy(self->entry, batch->prefix, batch->prefix_length);
		self->prefix_there = true;
	}
	memcpy(self->entry + batch->prefix_length, batch->bytes + item->offset, item->length);
	return (int) (batch->prefix_length + item->length);
}

/* The key of entry i of the batch, at key; returns its length. */
static uint32
copy_key(struct smart_position *self, int i, uint8 *key)
{
	int length = smart_position_entry(self, i);
	int key_length = smart_codec_key_length(self->relation->codec, self->entry, length);

	memcpy(key, self->entry, key_length);
	return (uint32) key_length;
}

/* ---- holds ---- */

static void
end_hold(struct smart_position *self)
{
	if (self->holding)
		smart_hold_leave(&self->hold);
	self->holding = false;
}

/*
 * Before a leaf is read for a scan that looks at the heap or the visibility map
 * later without a snapshot that keeps removed rows away.  A hold serves batch
 * after batch until a VACUUM waits for it.
 */
static void
begin_hold(struct smart_position *self)
{
	if (!self->scan->xs_want_itup && IsMVCCSnapshot(self->scan->xs_snapshot))
		return;
	if (self->holding && !smart_hold_wanted())
		return;
	end_hold(self);
	self->hold = smart_hold_enter(self->relation->meta.tree);
	self->holding = true;
	/* Behind the hold, for which who gives up a tree waits after he has said so. */
	smart_relation_check_whole(self->relation, self->scan->indexRelation);
	smart_scan_forget(tree_scan(self));
	smart_foresight_lose(&self->foresight);
}

/* ---- positions ---- */

/* Saves the mark before the batch that it points into goes away. */
static void
keep_mark(struct smart_position *self)
{
	if (self->mark != SMART_MARK_IN_BATCH)
		return;
	self->mark_length = copy_key(self, self->mark_index, self->mark_key);
	memcpy(self->mark_points, self->ranges->current, self->ranges->nprefix * sizeof(uint32));
	self->mark = SMART_MARK_AT_KEY;
}

static void
seek_range(struct smart_position *self, bool backward)
{
	smart_check_status(smart_foresight_seek(&self->foresight, tree_scan(self), self->ranges, backward),
					   self->scan->indexRelation);
	self->backward = backward;
}

/*
 * Seeks what lies behind (or, backward, before) a key within the current
 * range.  No key begins with another one, so all strings that begin with this
 * one are its own entry.  False: nothing can lie there.  Changes the key.
 */
static bool
seek_beyond(struct smart_position *self, uint8 *key, uint32 length, bool backward)
{
	const struct smart_ranges *ranges = self->ranges;
	smart_status status;

	self->backward = backward;
	smart_foresight_lose(&self->foresight);
	if (backward)
	{
		if (smart_compare_bytes(ranges->from, ranges->from_length, key, length) >= 0)
			return false;
		status = smart_scan_seek(tree_scan(self), ranges->from, ranges->from_length, key, length, true);
	}
	else
	{
		length = (uint32) smart_successor(key, length);
		if (ranges->to_length > 0 && smart_compare_bytes(key, length, ranges->to, ranges->to_length) >= 0)
			return false;
		status = smart_scan_seek(tree_scan(self), key, length, ranges->to, ranges->to_length, false);
	}
	smart_check_status(status, NULL);
	return true;
}

/* Goes to the mark; *sought: something may lie behind it in its range. */
static pg_noinline void
begin_at_mark(struct smart_position *self, bool backward, bool *sought)
{
	uint8 key[SMART_KEY_MAX + 1];

	begin_hold(self);
	memcpy(key, self->mark_key, self->mark_length);
	*sought = seek_beyond(self, key, self->mark_length, backward);
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
		begin_hold(self);
		seek_range(self, backward);
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
	uint32 length = copy_key(self, backward ? 0 : (int) self->batch.count - 1, key);

	return seek_beyond(self, key, length, backward);
}

/*
 * Reads the next batch of this range or of the next one that has any.  *sought:
 * the present range may have more.  False: there is none.
 */
static bool
read_batch(struct smart_position *self, bool backward, bool *sought)
{
	smart_status status;

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		status = *sought ? smart_scan_next(tree_scan(self), &self->batch) : SMART_DONE;
		if (status == SMART_OK)
		{
			smart_assert(self->batch.count > 0);
			return true;
		}
		if (status != SMART_DONE)
			smart_report_status(status, self->scan->indexRelation);
		self->batch.count = 0;
		if (!smart_ranges_next(self->ranges, backward))
			return false;
		begin_hold(self);
		seek_range(self, backward);
		*sought = true;
	}
}

/* Is before the first or behind the last entry of a new batch; there: there is one.  False: the scan is at its end. */
static bool
come_to_batch(struct smart_position *self, bool backward, bool there)
{
	if (there)
	{
		self->batches++;
		self->prefix_there = false;
		self->index = backward ? (int) self->batch.count : -1;
		return true;
	}
	self->whereabouts = SMART_AT_START;
	end_hold(self);
	return false;
}

static bool
next_batch(struct smart_position *self, bool backward, bool sought)
{
	return come_to_batch(self, backward, read_batch(self, backward, &sought));
}

/* ---- shared scans ---- */

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
	begin_hold(self);
	if (!place->started)
	{
		seek_range(self, backward);
		return true;
	}
	smart_ranges_go(self->ranges, place->points);
	*sought = seek_beyond(self, place->key, place->length, backward);
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
		more = read_batch(self, backward, &sought);
		if (more)
			smart_pieces_add(pieces, &self->batch);
	}
	if (more)
	{
		place.started = true;
		memcpy(place.points, self->ranges->current, sizeof(place.points));
		self->prefix_there = false;
		place.length = copy_key(self, backward ? 0 : (int) self->batch.count - 1, place.key);
		smart_shared_scan_give(self->scan, &place);
	}
	else
		smart_shared_scan_finish(self->scan);
	pieces->wanted = Min(2 * pieces->wanted, SMART_PIECES_MAX);
}

static bool
next_shared_batch(struct smart_position *self, bool backward)
{
	if (self->pieces.next == self->pieces.count)
		take_batches(self, backward);
	return come_to_batch(self, backward, smart_pieces_next(&self->pieces, &self->batch));
}

static bool
enter_shared(struct smart_position *self, bool backward)
{
	smart_count_search(self->scan);
	self->backward = backward;
	self->whereabouts = SMART_IN_BATCH;
	return next_shared_batch(self, backward);
}

/* ---- the way ---- */

/* Goes to the first batch. */
static bool
enter(struct smart_position *self, bool backward)
{
	bool sought;

	if (self->scan->parallel_scan != NULL)
		return enter_shared(self, backward);
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
		return next_shared_batch(self, backward);
	}
	keep_mark(self);
	begin_hold(self);
	if (backward != self->backward)
		sought = turn(self, backward);
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
	end_hold(self);
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
	end_hold(self);
	self->batch.count = 0;
	self->whereabouts = SMART_AT_START;
	if (self->mark == SMART_MARK_AT_KEY)
	{
		smart_ranges_go(self->ranges, self->mark_points);
		self->whereabouts = SMART_AT_MARK;
	}
}

/*
 * position.c
 *	  Where an index scan is, and how it moves.
 *
 * A scan goes through the byte ranges of its conditions; within a range it reads a batch of entries at a
 * time, which lies in its own memory, and moves to and fro in it.  Where it leaves the batch against the
 * direction in which the range was read, it seeks again from the batch's edge: entries are unique, so an
 * entry's key is a position.
 *
 * The processes of a parallel scan take batches in turn, in the order of the index: each reads several in
 * its turn, and keeps copies of them (shared_scan.c).  Such a scan never turns round.
 *
 * What it reads, and under which pin, position_source.c knows.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/snapmgr.h"

#include "am/codec/encode.h"
#include "am/compat.h"
#include "am/index/relation.h"
#include "am/journal/view.h"
#include "am/nodes/locate.h"
#include "am/scan/position_source.h"
#include "am/scan/predicate.h"
#include "am/scan/ranges.h"
#include "am/server/report.h"
#include "base/assert.h"
#include "base/bytes.h"

/* What is true of a position in a batch, for assertions. */
#define IS_IN_BATCH(self)                                                                                          \
	((self)->whereabouts == SMART_IN_BATCH && (self)->index >= -1 && (self)->index <= (int) (self)->batch.count && \
	 (smart_position_is_pinned(self) || !smart_position_needs_pin(self)))

void
smart_position_init(struct smart_position *self, IndexScanDesc scan, struct smart_relation *relation,
					struct smart_ranges *ranges)
{
	memset(self, 0, offsetof(struct smart_position, mark_points));
	self->scan = scan;
	self->relation = relation;
	self->ranges = ranges;
	smart_prefetch_init(&self->prefetch, CurrentMemoryContext);
	self->pieces.parent = CurrentMemoryContext;
	self->pieces.wanted = 1;
	smart_assert(self->whereabouts == SMART_AT_START && self->mark == SMART_MARK_AT_START);
}

/* ---- the tree, or the view ---- */

static inline bool
is_empty(const struct smart_position *self)
{
	return self->relation->tree == NULL && smart_position_view(self) == NULL;
}

/* Seeks a range in the direction of the scan. */
static void
seek(struct smart_position *self, const uint8 *from, uint32 from_length, const uint8 *to, uint32 to_length)
{
	if (unlikely(smart_position_view(self) != NULL))
	{
		smart_view_seek(smart_position_view(self), from, from_length, to, to_length, self->backward);
		/* A process of a parallel scan seeks again for each of its turns, and much is read. */
		if (self->scan->parallel_scan != NULL)
			smart_view_wants_delta(smart_position_view(self));
		else
			smart_view_will_be_closed(smart_position_view(self));
	}
	else
		smart_check_status(smart_scan_seek(smart_position_scan(self), from, from_length, to, to_length, self->backward),
						   self->scan->indexRelation);
}

/* Goes on in the tree, as soon as there is one, with what the view has not returned. */
static pg_noinline void
leave_view(struct smart_position *self)
{
	const struct smart_view_range *rest = smart_view_rest(smart_position_view(self));

	CHECK_FOR_INTERRUPTS();
	smart_view_leave(self->relation, self->scan->indexRelation);
	seek(self, rest->from, rest->from_length, rest->to, rest->to_length);
}

/* The next batch of the range, of the view or, if its pages have gone, of the tree. */
static pg_noinline smart_status
next_of_view(struct smart_position *self)
{
	self->moment.tree = 0;
	/* It may have a view again, which is up to date. */
	for (; smart_position_view(self) != NULL; leave_view(self))
	{
		switch (smart_view_next(smart_position_view(self), &self->batch))
		{
			case SMART_FOUND:
				return SMART_OK;
			case SMART_FOUND_END:
				return SMART_DONE;
			case SMART_FOUND_BEHIND:
				break;
		}
	}
	return smart_relation_next(smart_position_scan(self), &self->batch);
}

/*
 * A read of the tree came to this status: goes on with the range in the pages of the journal, or once more in the tree, where that
 * can help.  sought: some of the range may have been returned.
 */
static pg_noinline bool
go_on_after_failure(struct smart_position *self, smart_status status, bool sought)
{
	struct smart_view_range rest;

	if (smart_position_view(self) != NULL)
		return false;
	/* A range that was read to its end does not fail. */
	if (sought && !smart_scan_rest(smart_position_scan(self), rest.from, &rest.from_length, rest.to, &rest.to_length))
		return false;
	if (!smart_view_after_failure(self->relation, self->scan->indexRelation, status, &self->until))
		return false;
	smart_prefetch_lose(&self->prefetch);
	self->tree_scan = NULL;
	self->known = false;
	if (smart_position_needs_pin(self))
		(void) smart_position_renew_pin(self);
	else if (smart_position_view(self) != NULL)
		smart_view_refresh(self->relation, self->scan->indexRelation);
	if (sought)
		seek(self, rest.from, rest.from_length, rest.to, rest.to_length);
	else
		seek(self, self->ranges->from, self->ranges->from_length, self->ranges->to, self->ranges->to_length);
	return true;
}

/* The next batch of the range, of the tree. */
static smart_status
next_of_tree(struct smart_position *self)
{
	smart_status status = smart_scan_next(smart_position_scan(self), &self->batch);

	while (unlikely(status != SMART_OK && status != SMART_DONE) && go_on_after_failure(self, status, true))
		status = smart_position_view(self) != NULL ? next_of_view(self)
												   : smart_scan_next(smart_position_scan(self), &self->batch);
	/* Where pages cannot answer, it may be that it waits for the memory node. */
	if (unlikely(smart_status_is_of_node(status)))
		status = smart_relation_next(smart_position_scan(self), &self->batch);
	if (unlikely(self->until != 0) && (status == SMART_OK || status == SMART_DONE))
		self->until = 0;
	return status;
}

/* ---- the batch ---- */

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
key_of_entry(struct smart_position *self, int i, uint8 *key)
{
	int length = smart_position_entry(self, i);
	int key_length = smart_codec_key_length(self->relation->codec, self->entry, length);

	smart_assert(key_length > 0 && key_length <= SMART_KEY_MAX);
	memcpy(key, self->entry, key_length);
	return (uint32) key_length;
}

/* The key of the last entry of the batch, or of the first one if the scan goes backward. */
static uint32
key_at_edge(struct smart_position *self, bool backward, uint8 *key)
{
	smart_assert(self->batch.count > 0);
	return key_of_entry(self, backward ? 0 : (int) self->batch.count - 1, key);
}

/* ---- seeking ---- */

/* Comes to the current range of a view: what is to be read of its follower may have been read ahead, or be cached. */
static pg_noinline void
seek_range_of_view(struct smart_position *self)
{
	struct smart_ranges *ranges = self->ranges;
	struct smart_relation *follower;

	/* Others than MVCC's find what was inserted a moment ago, mostly in the delta. */
	if (!IsMVCCSnapshot(self->scan->xs_snapshot))
		smart_view_stay_alone(smart_position_view(self));
	follower = smart_position_tree(self);
	seek(self, ranges->from, ranges->from_length, ranges->to, ranges->to_length);
	if (smart_ranges_are_one_key(ranges))
		smart_view_is_one_key(smart_position_view(self));
	if (follower == NULL)
		return;
	if (smart_prefetch_look(&self->prefetch, follower->tree, ranges, self->backward))
	{
		(void) smart_prefetch_fill(&self->prefetch, ranges, &self->cached, &self->batch);
		smart_view_tell(smart_position_view(self), SMART_VIEW_GIVEN, &self->batch);
	}
	else if (!(smart_prefetch_is_for_one(&self->prefetch) && smart_view_take_near(smart_position_view(self))) &&
			 smart_prefetch_seek(&self->prefetch, smart_relation_scan(follower), ranges, self->backward) == SMART_OK)
		smart_view_tell(smart_position_view(self), SMART_VIEW_POSITIONED, NULL);
}

/* Comes to the current range: seeks it in the tree, unless its result is cached. */
static void
seek_range(struct smart_position *self, bool backward)
{
	smart_status status;
	uint64 since_ns = 0;

	smart_assert(smart_position_is_pinned(self) || !smart_position_needs_pin(self));
	self->backward = backward;
	self->told = false;
	if (unlikely(smart_position_view(self) != NULL))
	{
		self->known = false;
		seek_range_of_view(self);
		return;
	}
	smart_position_forget_follower(self);
	self->known = smart_prefetch_look(&self->prefetch, self->relation->tree, self->ranges, backward);
	if (self->known)
		return;
	status = smart_prefetch_seek(&self->prefetch, smart_position_scan(self), self->ranges, backward);
	if (likely(status == SMART_OK) || go_on_after_failure(self, status, false))
		return;
	while (smart_again_if_away(status, &since_ns))
		status = smart_prefetch_seek(&self->prefetch, smart_position_scan(self), self->ranges, backward);
	smart_check_status(status, self->scan->indexRelation);
}

/* Seeks what lies at or behind (backward: before) a key within the current range.  False: nothing can lie there. */
static bool
seek_key(struct smart_position *self, const uint8 *key, uint32 length, bool backward)
{
	const struct smart_ranges *ranges = self->ranges;

	smart_assert(length > 0 && (smart_position_is_pinned(self) || !smart_position_needs_pin(self)));
	self->backward = backward;
	self->known = false;
	smart_prefetch_lose(&self->prefetch);
	if (backward)
	{
		if (smart_compare_bytes(ranges->from, ranges->from_length, key, length) >= 0)
			return false;
		seek(self, ranges->from, ranges->from_length, key, length);
	}
	else
	{
		if (ranges->to_length > 0 && smart_compare_bytes(key, length, ranges->to, ranges->to_length) >= 0)
			return false;
		seek(self, key, length, ranges->to, ranges->to_length);
	}
	return true;
}

/* Seeks what lies behind (backward: before) the entry with this key, which is changed. */
static bool
seek_beyond(struct smart_position *self, uint8 *key, uint32 length, bool backward)
{
	/* No key begins with another one, so all strings that begin with this one are its own entry. */
	if (!backward)
		length = (uint32) smart_successor(key, length);
	return seek_key(self, key, length, backward);
}

/*
 * Leaps over entries that the conditions on later columns rule out, if those of the batch are all of one group: then
 * more of them may follow, leaf after leaf.  Where groups are smaller, it costs less to read on.  False: the range
 * has no more.
 */
static bool
leap(struct smart_position *self, bool backward)
{
	uint32 last = self->batch.count - 1;
	uint8 key[SMART_KEY_MAX + 1];
	uint8 group[SMART_KEY_MAX];
	uint32 length;
	int entry_length;
	int shared;

	smart_assert(self->batch.count > 0 && backward == self->backward);
	entry_length = smart_position_entry(self, backward ? 0 : (int) last);
	shared = smart_ranges_skip(self->ranges, self->entry, entry_length, backward, key, &length);
	if (shared < 0)
		return true;
	memcpy(group, self->entry, (Size) shared);
	(void) smart_position_entry(self, backward ? (int) last : 0);
	if (memcmp(group, self->entry, (Size) shared) != 0)
		return true;
	return length > 0 && seek_key(self, key, length, backward);
}

/* ---- batches ---- */

/*
 * Reads the next batch of the current range or of the next one that has any.  sought: the current range has been
 * sought, and may have more.  False: there is none.
 */
static bool
read_batch(struct smart_position *self, bool backward, bool sought)
{
	for (;; sought = true)
	{
		smart_status status = SMART_DONE;

		CHECK_FOR_INTERRUPTS();
		if (sought && !self->known)
			status = unlikely(smart_position_view(self) != NULL) ? next_of_view(self) : next_of_tree(self);
		else if (sought && !self->told)
		{
			self->told = true;
			status = smart_prefetch_fill(&self->prefetch, self->ranges, &self->cached, &self->batch);
		}
		if (status == SMART_OK)
		{
			smart_assert(self->batch.count > 0);
			self->prefix_there = false;
			return true;
		}
		if (status != SMART_DONE)
			smart_report_status(status, self->scan->indexRelation);
		self->batch.count = 0;
		if (!smart_ranges_next(self->ranges, backward))
			return false;
		smart_position_begin_pin(self);
		seek_range(self, backward);
	}
}

/* Comes before the first or behind the last entry of a new batch, if there is one; else the scan is at its end. */
static bool
arrive(struct smart_position *self, bool backward, bool there)
{
	if (there)
	{
		self->batches++;
		self->index = backward ? (int) self->batch.count : -1;
		smart_assert(IS_IN_BATCH(self));
		return true;
	}
	self->whereabouts = SMART_AT_START;
	smart_position_rest_pin(self);
	return false;
}

/*
 * What others add from now on meets the lock; what they have added before is to be found: not in a tree that takes no adds any
 * more.
 */
static pg_noinline void
look_again(struct smart_position *self)
{
	if (smart_view_replace_tree(self->relation, self->scan->indexRelation))
	{
		self->tree_scan = NULL;
		smart_prefetch_lose(&self->prefetch);
	}
	if (smart_position_view(self) != NULL)
		smart_view_catch_up_serializable(self->relation, self->scan->indexRelation);
}

/* Comes to the first range.  False: there is none, or nothing is in the index. */
static bool
seek_first_range(struct smart_position *self, bool backward)
{
	smart_predicate_lock(self->scan->indexRelation, self->scan->xs_snapshot, self->ranges);
	if (unlikely(IsolationIsSerializable()))
		look_again(self);
	if (is_empty(self) || !smart_ranges_first(self->ranges, backward))
		return false;
	smart_prefetch_begin(&self->prefetch, self->ranges);
	smart_position_begin_pin(self);
	seek_range(self, backward);
	return true;
}

/* Goes on behind the mark.  False: nothing lies behind it in its range. */
static pg_noinline bool
seek_mark(struct smart_position *self, bool backward)
{
	uint8 key[SMART_KEY_MAX + 1];

	smart_assert(self->mark == SMART_MARK_AT_KEY);
	smart_assert(self->mark_length > 0 && self->mark_length <= SMART_KEY_MAX);
	smart_position_begin_pin(self);
	memcpy(key, self->mark_key, self->mark_length);
	return seek_beyond(self, key, self->mark_length, backward);
}

/* ---- a parallel scan ---- */

/* Takes the next batches in this process's turn.  The pin stays until they are used up. */
static void
take_batches(struct smart_position *self, bool backward)
{
	struct smart_pieces *pieces = &self->pieces;
	struct smart_shared_place *place;
	bool sought = true;
	bool more;

	smart_pieces_clear(pieces);
	place = smart_shared_scan_take(self->scan);
	if (place == NULL)
		return;
	more = !is_empty(self);
	if (!place->started)
		more = seek_first_range(self, backward);
	else if (more)
	{
		smart_prefetch_begin(&self->prefetch, self->ranges);
		smart_position_begin_pin(self);
		smart_ranges_go(self->ranges, place->points);
		sought = seek_beyond(self, place->key, place->length, backward);
	}
	while (more && pieces->count < pieces->wanted)
	{
		if (pieces->count > 0)
			sought = !self->ranges->filtered || leap(self, backward);
		more = read_batch(self, backward, sought);
		if (more)
			smart_pieces_add(pieces, &self->batch);
	}
	if (more)
	{
		place->started = true;
		memcpy(place->points, self->ranges->current, sizeof(place->points));
		place->length = key_at_edge(self, backward, place->key);
	}
	smart_shared_scan_give(self->scan, more);
	pieces->wanted = Min(2 * pieces->wanted, SMART_PIECES_MAX);
}

/* Goes to the next of the batches that this process has taken, or takes others.  False: there are no more. */
static bool
next_shared_batch(struct smart_position *self, bool backward)
{
	struct smart_pieces *pieces = &self->pieces;

	smart_assert(backward == self->backward && pieces->next <= pieces->count);
	if (pieces->next == pieces->count)
		take_batches(self, backward);
	if (pieces->next == pieces->count)
		return arrive(self, backward, false);
	self->prefix_there = false;
	self->batch = pieces->batches[pieces->next++];
	return arrive(self, backward, true);
}

/* ---- moving ---- */

/* Goes to the first batch.  False: there is none. */
static bool
enter(struct smart_position *self, bool backward)
{
	bool sought = true;

	smart_assert(self->whereabouts != SMART_IN_BATCH);
	if (self->scan->parallel_scan != NULL)
	{
		smart_count_search(self->scan);
		self->backward = backward;
		self->whereabouts = SMART_IN_BATCH;
		return next_shared_batch(self, backward);
	}
	if (unlikely(self->whereabouts == SMART_AT_MARK))
		sought = seek_mark(self, backward);
	else
	{
		smart_count_search(self->scan);
		if (!seek_first_range(self, backward))
			return false;
	}
	self->whereabouts = SMART_IN_BATCH;
	return arrive(self, backward, read_batch(self, backward, sought));
}

/*
 * Renews the pin between two batches of a range.  If the index has another tree by now, what lies behind the batch is sought
 * there, and *sought: there may be something.  False: it has the same one.
 */
static pg_noinline bool
renew_pin_within(struct smart_position *self, bool backward, bool *sought)
{
	uint8 key[SMART_KEY_MAX + 1];
	/* The batch may go away with its tree. */
	uint32 length = key_at_edge(self, backward, key);

	if (likely(!smart_position_renew_pin(self)))
		return false;
	*sought = seek_beyond(self, key, length, backward);
	return true;
}

/* Turns round at the edge of the batch. */
static pg_noinline bool
turn(struct smart_position *self, bool backward)
{
	uint8 key[SMART_KEY_MAX + 1];
	uint32 length = key_at_edge(self, backward, key);

	smart_assert(backward != self->backward);
	return seek_beyond(self, key, length, backward);
}

/* Leaves the batch and goes to the next one.  False: there is none. */
static bool
leave_batch(struct smart_position *self, bool backward)
{
	bool sought = true;

	if (self->scan->parallel_scan != NULL)
		return next_shared_batch(self, backward);
	/* The batch that the mark points into goes away. */
	if (self->mark == SMART_MARK_IN_BATCH)
	{
		self->mark_length = key_of_entry(self, self->mark_index, self->mark_key);
		memcpy(self->mark_points, self->ranges->current, self->ranges->nprefix * sizeof(uint32));
		self->mark = SMART_MARK_AT_KEY;
	}
	if (unlikely(smart_position_wants_moment(self)))
		smart_position_take_moment(self);
	if (unlikely(smart_position_wants_pin(self)) && renew_pin_within(self, backward, &sought))
		smart_assert(self->backward == backward);
	else if (backward != self->backward)
		sought = turn(self, backward);
	else if (self->ranges->filtered)
		sought = leap(self, backward);
	return arrive(self, backward, read_batch(self, backward, sought));
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

		smart_assert(IS_IN_BATCH(self));
		if (next < 0 || (uint32) next >= self->batch.count)
		{
			if (!leave_batch(self, backward))
				return false;
			continue;
		}
		self->index = next;
		if (!self->ranges->filtered || smart_ranges_match(self->ranges, self->entry, smart_position_entry(self, next)))
			return true;
	}
}

void
smart_position_reset(struct smart_position *self)
{
	smart_position_rest_pin(self);
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
		smart_assert(self->index >= 0 && (uint32) self->index < self->batch.count);
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
		smart_assert(IS_IN_BATCH(self) && (uint32) self->mark_index < self->batch.count);
		self->index = self->mark_index;
		return;
	}
	smart_position_end_pin(self);
	self->batch.count = 0;
	self->whereabouts = SMART_AT_START;
	if (self->mark == SMART_MARK_AT_KEY)
	{
		smart_ranges_go(self->ranges, self->mark_points);
		self->whereabouts = SMART_AT_MARK;
	}
}

/*
 * position_source.c
 *	  What the position of an index scan is read from.
 *
 * An index that has lost its tree may have a view instead (journal/view.h); the scan goes on in a tree when it has to.
 *
 * A scan that looks at the heap or the visibility map later without a snapshot that keeps removed rows away
 * reads leaves under a pin, for which VACUUM waits before it gives TIDs to other rows.  A pin serves batch
 * after batch until a VACUUM waits for it.
 */
#include "postgres.h"

#include "utils/snapmgr.h"

#include "am/codec/encode.h"
#include "am/index/relation.h"
#include "am/journal/staging.h"
#include "am/journal/view.h"
#include "am/scan/position_source.h"
#include "am/scan/ranges.h"
#include "am/server/key_locks.h"
#include "am/server/tree_changes.h"
#include "base/assert.h"

struct smart_relation *
smart_position_tree(struct smart_position *self)
{
	struct smart_relation *follower;
	uint64 renewals;

	if (likely(smart_position_view(self) == NULL))
	{
		smart_position_forget_follower(self);
		return self->relation->tree == NULL ? NULL : self->relation;
	}
	follower = smart_view_follower(smart_position_view(self), &renewals);
	/* What was read ahead was another one's, or may lack what a run by now has. */
	if (self->renewals != renewals)
	{
		self->renewals = renewals;
		self->tree_scan = NULL;
		if (follower != NULL)
			smart_scan_forget(smart_relation_scan(follower));
		smart_prefetch_lose(&self->prefetch);
	}
	return follower;
}

/* ---- pins ---- */

void
smart_position_rest(struct smart_position *self)
{
	if (self->whereabouts == SMART_AT_START)
		smart_position_rest_pin(self);
}

bool
smart_position_is_to_pin(const struct smart_position *self)
{
	return smart_position_needs_pin(self) && !smart_position_is_pinned(self);
}

/*
 * Brings the view up to date.  Who looks for what others have not committed yet needs all that is staged, or, of a unique index, what
 * is staged of the one key that is looked for.  That is not locked: what is staged a moment later is not seen in either way.
 */
static bool
catch_up(struct smart_position *self)
{
	Relation index = self->scan->indexRelation;
	SnapshotType type = self->scan->xs_snapshot->snapshot_type;
	const struct smart_ranges *ranges = self->ranges;
	struct smart_staged_key key;

	smart_assert(smart_position_is_pinned(self));
	if (type != SNAPSHOT_DIRTY && type != SNAPSHOT_SELF)
		return smart_view_catch_up(self->relation, index, false);
	if (!index->rd_index->indisunique || !smart_ranges_are_one_key(ranges))
		return smart_view_catch_up(self->relation, index, true);
	key = (struct smart_staged_key){.hash = smart_key_hash(index, ranges->from, (int) ranges->from_length),
									.length = ranges->from_length,
									.bytes = ranges->from};
	return smart_view_catch_up_key(self->relation, index, &key);
}

/* Pins the view, which has all that is there afterwards; false: the index has its tree now, and that is to be pinned. */
static pg_noinline bool
pin_view(struct smart_position *self)
{
	Relation index = self->scan->indexRelation;

	smart_assert(!smart_position_is_pinned(self));
	self->pin = smart_pin_enter(smart_view_pinned(smart_position_view(self)));
	smart_view_forget(smart_position_view(self));
	if (likely(self->relation->changes == smart_changes()) || !smart_relation_arrive(self->relation, index))
	{
		if (catch_up(self))
			return true;
		smart_position_end_pin(self);
		smart_view_leave(self->relation, index);
	}
	return false;
}

bool
smart_position_renew_pin(struct smart_position *self)
{
	bool moved = false;

	for (;;)
	{
		smart_position_end_pin(self);
		if (smart_view_replace_tree(self->relation, self->scan->indexRelation))
		{
			self->tree_scan = NULL;
			smart_prefetch_lose(&self->prefetch);
			moved = true;
		}
		if (unlikely(smart_position_view(self) != NULL))
		{
			if (pin_view(self))
			{
				struct smart_relation *follower = smart_position_tree(self);

				if (follower != NULL)
					smart_scan_forget(smart_relation_scan(follower));
				smart_prefetch_lose(&self->prefetch);
				return moved;
			}
			moved = true;
			continue;
		}
		smart_assert(self->relation->tree != NULL);
		self->pin = smart_pin_enter(self->relation->meta.tree);
		/* After the pin: who gives a tree up, or moves it, announces that first; a VACUUM waits for pins afterwards. */
		if (likely(!smart_relation_follow(self->relation, self->scan->indexRelation)))
			break;
		self->tree_scan = NULL;
		moved = true;
	}
	smart_scan_forget(smart_position_scan(self));
	smart_prefetch_lose(&self->prefetch);
	return moved;
}

/* ---- moments, of scans that look themselves ---- */

pg_noinline void
smart_position_take_moment(struct smart_position *self)
{
	smart_assert(smart_position_looks(self) && smart_position_view(self) == NULL);
	smart_follow_take_moment(self->scan->indexRelation, self->relation, &self->moment);
	smart_scan_forget(smart_position_scan(self));
	smart_prefetch_lose(&self->prefetch);
}

bool
smart_position_is_settled(struct smart_position *self)
{
	struct smart_follow_moment *moment = &self->moment;

	if (moment->tree == 0 || smart_position_view(self) != NULL || moment->tree != self->relation->meta.tree)
		return false;
	if (smart_follow_is_moment(self->scan->indexRelation, moment))
		return true;
	moment->tree = 0;
	return false;
}

void
smart_position_begin_pin(struct smart_position *self)
{
	if (unlikely(smart_position_wants_moment(self)))
		smart_position_take_moment(self);
	if (smart_position_wants_pin(self))
		(void) smart_position_renew_pin(self);
	smart_assert(smart_position_is_pinned(self) || !smart_position_needs_pin(self));
}

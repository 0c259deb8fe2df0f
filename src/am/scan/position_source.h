/*
 * position_source.h
 *	  What the position of an index scan is read from: the tree, or the view of an index that has none, and the pin that keeps it.
 */
#ifndef SMART_AM_POSITION_SOURCE_H
#define SMART_AM_POSITION_SOURCE_H

#include "am/index/relation.h"
#include "am/scan/position.h"
#include "base/assert.h"

/*
 * Does the scan look itself which rows its snapshot sees (sight.h)?  As those that began on a standby do to the end: no VACUUM has
 * waited for their pins there.
 */
static inline bool
smart_position_looks(const struct smart_position *position)
{
	const IndexScanDesc scan = position->scan;

	return scan->xs_want_itup && scan->xactStartedInRecovery && IsMVCCSnapshot(scan->xs_snapshot);
}

/* The tree that is read, also by a view: NULL if there is none, and the index is empty or pages alone answer. */
extern struct smart_relation *smart_position_tree(struct smart_position *position);

static inline struct smart_view *
smart_position_view(const struct smart_position *self)
{
	return self->relation->view;
}

/* There is no view any more: what was read ahead of its follower counts with its delta only. */
static inline void
smart_position_forget_follower(struct smart_position *self)
{
	if (likely(self->renewals == 0))
		return;
	self->renewals = 0;
	self->tree_scan = NULL;
	smart_prefetch_lose(&self->prefetch);
}

static inline struct smart_scan *
smart_position_scan(struct smart_position *self)
{
	if (self->tree_scan == NULL)
		self->tree_scan = smart_relation_scan(self->relation);
	return self->tree_scan;
}

/* ---- pins ---- */

/* Must VACUUM wait for what the scan does with TIDs? */
static inline bool
smart_position_needs_pin(const struct smart_position *self)
{
	return !smart_position_looks(self) && (self->scan->xs_want_itup || !IsMVCCSnapshot(self->scan->xs_snapshot));
}

static inline bool
smart_position_is_pinned(const struct smart_position *self)
{
	return self->pin.serial != 0;
}

static inline void
smart_position_end_pin(struct smart_position *self)
{
	if (smart_position_is_pinned(self))
		smart_pin_leave(&self->pin);
	smart_assert(!smart_position_is_pinned(self));
}

/* Between two searches leaves that were read for those to come need it on. */
static inline void
smart_position_rest_pin(struct smart_position *self)
{
	if (self->prefetch.to_come.count == 0)
		smart_position_end_pin(self);
}

/* Is a pin needed for the next leaf: the first one, or a new one, as a VACUUM waits for the present one? */
static inline bool
smart_position_wants_pin(const struct smart_position *self)
{
	/* Copies that were read under a pin need it as long as they are used. */
	return smart_position_needs_pin(self) &&
		   !(smart_position_is_pinned(self) && (self->pieces.count > 0 || !smart_pin_wanted()));
}

/* Will the next search begin a pin, and bring a view up to date for it? */
extern bool smart_position_is_to_pin(const struct smart_position *position);

/*
 * Before a leaf is read that has to be sought: begins a pin where one is needed, or a new one if a VACUUM waits for the
 * present one.  A scan that looks itself needs none, but a tree that is up to date.
 */
extern void smart_position_begin_pin(struct smart_position *position);

/*
 * Nothing, or less, is known of searches to come: ends the pin of a position that is at an end, unless leaves were read for
 * such searches.
 */
extern void smart_position_rest(struct smart_position *position);

/* Begins a pin, in the place of the present one.  Has the index another tree by now?  That is read from now on. */
extern bool smart_position_renew_pin(struct smart_position *position);

/* ---- moments, of scans that look themselves ---- */

/* Copies that were read behind a moment need it as long as they are used. */
static inline bool
smart_position_wants_moment(const struct smart_position *self)
{
	return self->moment.tree == 0 && smart_position_looks(self) && self->pieces.count == 0 &&
		   smart_position_view(self) == NULL && self->relation->standby && self->relation->tree != NULL;
}

/* What was read before is read again. */
extern void smart_position_take_moment(struct smart_position *position);

/*
 * Of a scan that looks itself: has nothing been replayed of the journal but what the tree had before the batch was read?  If not, the
 * next batch is read from a tree that is up to date.
 */
extern bool smart_position_is_settled(struct smart_position *position);

#endif /* SMART_AM_POSITION_SOURCE_H */

/*
 * view_over.c
 *	  What lies over the base of a view: the delta, or what the chain says of the range.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "am/journal/delta_entry.h"
#include "am/journal/chain_range.h"
#include "am/journal/view_state.h"
#include "am/server/report.h"
#include "base/assert.h"
#include "base/bytes.h"

#define CHAIN_READS_MAX 64 /* of one view, whatever a worker may be about to do */

/* An entry stands in its place, which an operation with this mark (delta_entry.h) has left there; or the key, of a removal. */
static void
take(struct smart_view *view, int length, int key_length, uint8 mark)
{
	bool spent = mark >= SMART_DELTA_SPENT;

	view->spent += spent;
	view->passed_by += mark != SMART_DELTA_ADDED && !spent && smart_view_reads_run(view);
	smart_overlay_add_over(&view->overlay, length, key_length, mark == SMART_DELTA_ADDED);
}

/* Where the next entry goes; NULL: the block has enough. */
static inline uint8 *
place_over(struct smart_view *view)
{
	struct smart_overlay *overlay = &view->overlay;

	return smart_overlay_reaches(overlay) ? NULL : smart_overlay_place(overlay, &overlay->over, view->most);
}

/* ---- the delta ---- */

/* Comes to the next entry of the delta; false: there is none. */
static bool
step_in_delta(struct smart_view *view)
{
	struct smart_batch *batch = &view->delta_batch;
	smart_status status;

	view->delta_item += view->backward ? -1 : 1;
	if (likely(smart_view_is_in_batch(batch, view->delta_item)))
		return true;
	status = smart_relation_next(smart_relation_scan(view->delta), batch);
	if (status == SMART_DONE)
		return false;
	smart_check_status(status, view->index);
	view->delta_item = view->backward ? (int) batch->count - 1 : 0;
	smart_assert(smart_view_is_in_batch(batch, view->delta_item));
	return true;
}

static void
fill_from_delta(struct smart_view *view)
{
	bool run = smart_view_reads_run(view);
	uint8 *place;

	while ((place = place_over(view)) != NULL)
	{
		int length;
		uint8 mark;

		if (!step_in_delta(view))
		{
			view->overlay.over.ended = true;
			return;
		}
		length = smart_batch_entry_roomy(&view->delta_batch, (uint32) view->delta_item, place) - 1;
		mark = place[length];
		/* The run has nothing that a spent tombstone would hide; a follower may have. */
		if (run && mark >= SMART_DELTA_SPENT)
			view->spent++;
		else
			take(view, length, smart_delta_key_length(view->codec, place, length + 1), mark);
	}
}

/* ---- the chain ---- */

static void
fill_from_sorted(struct smart_view *view)
{
	struct smart_last_operation *last = &view->last;
	MemoryContext old = MemoryContextSwitchTo(view->of_sorted);
	uint8 *place;

	smart_assert(view->by_chain && !view->backward);
	while ((place = place_over(view)) != NULL)
	{
		enum smart_found found = smart_sorted_chain_next(view->sorted, last);

		view->behind |= found == SMART_FOUND_BEHIND;
		view->overlay.over.ended = found == SMART_FOUND_END;
		if (found != SMART_FOUND)
			break;
		smart_copy_short(place, last->entry, (Size) last->length);
		take(view, last->length, last->key_length, smart_delta_mark(last->operation));
	}
	MemoryContextSwitchTo(old);
}

static void
fill_from_operations(struct smart_view *view)
{
	const struct smart_piece *piece = view->operations;
	uint8 *place;

	while ((place = place_over(view)) != NULL)
	{
		const struct smart_piece_operation *operation;

		view->delta_item += view->backward ? -1 : 1;
		view->overlay.over.ended = view->delta_item < 0 || (uint32) view->delta_item >= piece->count;
		if (view->overlay.over.ended)
			return;
		operation = &piece->operations[view->delta_item];
		memcpy(place, operation->entry, (Size) operation->length);
		take(view, operation->length, operation->key_length, smart_delta_mark(operation->operation));
	}
}

static void
move_far_end(struct smart_view *view, const uint8 *bytes, uint32 length)
{
	struct smart_view_range *range = &view->range;

	smart_assert(length <= sizeof(range->to));
	memcpy(view->backward ? range->from : range->to, bytes, length);
	*(view->backward ? &range->from_length : &range->to_length) = length;
	view->behind_range = view->ahead = false;
}

static void
take_part(struct smart_view *view, const struct smart_chain_bound *bound)
{
	const struct smart_view_range *range = &view->range;

	smart_assert(smart_view_reads_run(view));
	smart_assert(bound->length > 0 && bound->length <= SMART_KEY_MAX);
	if (!view->part)
	{
		view->far_length = view->backward ? range->from_length : range->to_length;
		memcpy(view->far, view->backward ? range->from : range->to, view->far_length);
	}
	view->part = true;
	move_far_end(view, bound->bytes, bound->length);
}

void
smart_view_leave_part(struct smart_view *view)
{
	smart_assert(view->part && view->far_length <= sizeof(view->far));
	view->part = false;
	view->waits = true;
	view->sought = false;
	move_far_end(view, view->far, view->far_length);
}

/* What the chain says of the range, or of a part of it, as smart_chain_range_read() tells; it may be sorted, but once. */
static enum smart_chain_range
read_range(struct smart_view *view, struct smart_chain_bound *bound)
{
	bool run = smart_view_reads_run(view);
	const struct smart_view_range *range = &view->range;
	const struct smart_chain_keys keys = smart_chain_keys(range->from, range->from_length, range->to, range->to_length);
	MemoryContext context = AllocSetContextCreate(view->context, "smart sorted chain", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	enum smart_chain_range found =
		smart_chain_range_read(view->index, view->codec, &view->meta, &keys, view->backward, view->operations,
							   run ? bound : NULL, run && view->to_be_closed ? &view->sorted : NULL);

	MemoryContextSwitchTo(old);
	smart_assert((found == SMART_CHAIN_RANGE_LARGE) == (view->sorted != NULL));
	smart_assert(run || found != SMART_CHAIN_RANGE_PART);
	if (found == SMART_CHAIN_RANGE_LARGE)
		view->of_sorted = context;
	else
		MemoryContextDelete(context);
	return found;
}

/* Reads what the chain says of the range, or of a part of it. */
static void
read_chain(struct smart_view *view)
{
	struct smart_chain_bound bound;

	smart_assert(view->by_chain);
	smart_view_end_sorted(view);
	if (view->waits || ++view->chain_reads > CHAIN_READS_MAX)
	{
		smart_view_wait_for_delta(view);
		return;
	}
	if (view->operations == NULL)
		view->operations = smart_piece_make(view->codec, view->context);
	switch (read_range(view, &bound))
	{
		case SMART_CHAIN_RANGE:
			break;
		case SMART_CHAIN_RANGE_PART:
			take_part(view, &bound);
			break;
		case SMART_CHAIN_RANGE_LARGE:
			/* Who reads such ranges again and again needs the delta. */
			view->waits = true;
			break;
		case SMART_CHAIN_RANGE_DELTA:
			smart_view_wait_for_delta(view);
			break;
		case SMART_CHAIN_RANGE_BEHIND:
			view->behind = true;
			break;
	}
}

/* ---- either ---- */

void
smart_view_seek_over(struct smart_view *view)
{
	const struct smart_view_range *range = &view->range;

	smart_assert(view->sought && !view->behind);
	if (view->by_chain && !smart_view_needs_no_delta(view))
		read_chain(view);
	if (view->behind)
		return;
	view->overlay.over.ended = smart_view_needs_no_delta(view);
	if (view->overlay.over.ended)
		return;
	if (view->by_chain)
	{
		view->delta_item = view->backward ? (int) view->operations->count : -1;
		return;
	}
	view->delta_batch.count = 0;
	view->delta_item = -1;
	smart_check_status(smart_scan_seek(smart_relation_scan(view->delta), range->from, range->from_length, range->to,
									   range->to_length, view->backward),
					   view->index);
}

void
smart_view_fill_over(struct smart_view *view)
{
	smart_assert(view->sought && !view->behind);
	if (!smart_overlay_needs(&view->overlay, &view->overlay.over))
		return;
	if (!view->by_chain)
		fill_from_delta(view);
	else if (view->sorted != NULL)
		fill_from_sorted(view);
	else
		fill_from_operations(view);
}

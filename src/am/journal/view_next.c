/*
 * view_next.c
 *	  The next batch of a view: the base, and what lies over it, merged.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "am/journal/view_state.h"
#include "am/server/settings.h"
#include "base/assert.h"
#include "base/bytes.h"

/* Entries of each side that the first batch of a range takes at most; then half as many more each time. */
#define BATCH_FIRST 16

/* What was returned is not in the range any more. */
static void
shrink(struct smart_view *view, const struct smart_batch *batch)
{
	struct smart_view_range *range = &view->range;
	uint8 *edge = view->backward ? range->to : range->from;
	uint8 entry[SMART_ENTRY_MAX];
	int last = smart_batch_entry(batch, view->backward ? 0 : batch->count - 1, entry);
	uint32 length = (uint32) smart_codec_key_length(view->codec, entry, last);

	smart_assert(batch->count > 0);
	memcpy(edge, entry, length);
	if (view->backward)
		range->to_length = length;
	else
		range->from_length = (uint32) smart_successor(range->from, length);
	/* It does not begin with the columns any more. */
	view->one_key = false;
}

/* Seeks the range on both sides. */
static void
seek(struct smart_view *view)
{
	smart_assert(!view->sought && !view->behind);
	smart_overlay_begin(&view->overlay, view->backward);
	view->sought = true;
	smart_view_seek_base(view);
	smart_view_seek_over(view);
}

static bool
is_at_end(const struct smart_view *view)
{
	return view->sought && smart_overlay_is_used_up(&view->overlay.base) &&
		   smart_overlay_is_used_up(&view->overlay.over);
}

static bool
can_go_on(const struct smart_view *view)
{
	return view->sought && !view->behind;
}

/* Reads what comes next in the range, as far as it can be read. */
static void
read_on(struct smart_view *view, struct smart_batch *batch)
{
	batch->count = 0;
	while (batch->count == 0 && !view->behind && !is_at_end(view))
	{
		/* Once more, by the run, if the follower cannot be read. */
		if (!view->sought)
			seek(view);
		if (can_go_on(view))
			smart_view_read_base(view);
		if (can_go_on(view))
			smart_view_fill_over(view);
		if (!can_go_on(view) || smart_view_pass_follower(view, batch))
			continue;
		smart_view_fill_base(view);
		smart_overlay_merge(&view->overlay, batch);
	}
}

/* The same in whatever there is, if it cannot be read as it was. */
static void
read_on_anyhow(struct smart_view *view, struct smart_batch *batch)
{
	read_on(view, batch);
	/* The journal of now has what a snapshot sees that was taken before, too. */
	for (int i = 0; i < SMART_VIEW_RENEWALS_MAX && batch->count == 0 && view->behind && smart_view_take_run(view) &&
					smart_view_renew(view);
		 i++)
		read_on(view, batch);
}

enum smart_found
smart_view_next(struct smart_view *view, struct smart_batch *batch)
{
	ErrorContextCallback callback;

	smart_assert(view->most >= BATCH_FIRST && view->most <= SMART_SIDE_MAX);
	CHECK_FOR_INTERRUPTS();
	smart_view_begin_reading(view, &callback);
	read_on_anyhow(view, batch);
	if (batch->count == 0 && view->part && !view->behind && smart_view_has_sources(view))
	{
		smart_view_leave_part(view);
		read_on_anyhow(view, batch);
	}
	smart_view_end_reading(view, &callback);
	if (batch->count == 0)
	{
		smart_view_end_sorted(view);
		return view->behind || !smart_view_has_sources(view) ? SMART_FOUND_BEHIND : SMART_FOUND_END;
	}
	shrink(view, batch);
	view->most = Min(view->most + view->most / 2, SMART_SIDE_MAX);
	return SMART_FOUND;
}

void
smart_view_seek(struct smart_view *view, const uint8 *from, uint32 from_length, const uint8 *to, uint32 to_length,
				bool backward)
{
	struct smart_view_range *range = &view->range;

	smart_assert(from_length <= SMART_KEY_MAX && to_length <= SMART_KEY_MAX);
	view->ahead =
		view->behind_range && !backward && smart_compare_bytes(range->to, range->to_length, from, from_length) <= 0;
	memmove(range->from, from, from_length);
	memmove(range->to, to, to_length);
	range->from_length = from_length;
	range->to_length = to_length;
	view->behind_range = false;
	view->backward = backward;
	view->near = false;
	view->part = false;
	view->to_be_closed = false;
	view->one_key = false;
	smart_view_forget(view);
	view->told = SMART_VIEW_NOTHING;
	view->most = BATCH_FIRST;
}

void
smart_view_will_be_closed(struct smart_view *view)
{
	smart_assert(!view->sought);
	view->to_be_closed = true;
}

void
smart_view_wants_delta(struct smart_view *view)
{
	smart_assert(!view->sought);
	view->waits = true;
}

void
smart_view_forget(struct smart_view *view)
{
	view->sought = false;
	smart_view_end_sorted(view);
}

struct smart_relation *
smart_view_follower(const struct smart_view *view, uint64 *renewals)
{
	*renewals = view->renewals;
	return view->follower;
}

void
smart_view_tell(struct smart_view *view, enum smart_view_told told, const struct smart_batch *batch)
{
	smart_assert(view->follower != NULL && !view->sought && (told == SMART_VIEW_GIVEN) == (batch != NULL));
	view->told = told;
	if (batch != NULL)
		view->base_batch = *batch;
}

void
smart_view_stay_alone(struct smart_view *view)
{
	if (view->follower != NULL)
		smart_view_leave_follower(view);
	smart_assert(view->follower == NULL && !view->whole);
	view->alone = true;
}

/* Is the page of the run where the range lies in shared buffers, and is there what has to be merged with it? */
static bool
is_near(struct smart_view *view)
{
	const struct smart_view_range *range = &view->range;

	return smart_reader_is_near(&view->reader, range->from, (int) range->from_length, range->to,
								(int) range->to_length) &&
		   (!view->whole || smart_view_find_delta(view));
}

bool
smart_view_take_near(struct smart_view *view)
{
	ErrorContextCallback callback;

	smart_assert(!view->sought && view->told == SMART_VIEW_NOTHING);
	if (view->follower == NULL || view->behind || view->range.to_length == 0 || !smart_settings.answer_from_pages)
		return false;
	smart_view_begin_reading(view, &callback);
	view->near = is_near(view);
	smart_view_end_reading(view, &callback);
	return view->near;
}

const struct smart_view_range *
smart_view_rest(struct smart_view *view)
{
	if (view->part)
		smart_view_leave_part(view);
	return &view->range;
}

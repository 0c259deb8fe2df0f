/*
 * view_base.c
 *	  The base of a view: the entries of the run, or of a follower.
 */
#include "postgres.h"

#include "utils/rel.h"

#include "am/journal/follow.h"
#include "am/journal/view_state.h"
#include "am/server/report.h"
#include "base/assert.h"
#include "base/bytes.h"

/* ---- the run, forward ---- */

/* What a reader found goes into the block.  False: there is nothing more of the range, or the view is behind.  Forward. */
static bool
take_found(struct smart_view *view, enum smart_found found)
{
	struct smart_side *side = &view->overlay.base;
	const struct smart_unpacker *from = &view->reader.unpacker;

	smart_assert(!view->backward && !view->behind);
	view->behind |= found == SMART_FOUND_BEHIND;
	view->at_end = found == SMART_FOUND_END && view->range.to_length > 0;
	view->behind_range = view->at_end;
	side->ended = found == SMART_FOUND_END;
	if (found != SMART_FOUND)
		return false;
	smart_reader_check(&view->reader, view->codec, false);
	side->ended = view->behind_range = smart_view_is_beyond(view, from->entry, from->length);
	return !side->ended;
}

static enum smart_found
seek_forward(struct smart_view *view)
{
	const struct smart_view_range *range = &view->range;
	bool ahead = view->ahead;

	smart_assert(!view->backward && !view->begun);
	view->ahead = false;
	if (!ahead)
		return smart_reader_seek_entry(&view->reader, range->from, (int) range->from_length);
	/* Rows that are added behind all others are not sought in the run again and again. */
	if (view->at_end)
		return SMART_FOUND_END;
	return smart_reader_seek_ahead(&view->reader, range->from, (int) range->from_length);
}

static void
fill_forward(struct smart_view *view)
{
	struct smart_side *side = &view->overlay.base;
	const struct smart_unpacker *from = &view->reader.unpacker;
	bool whole = !view->begun && view->one_key && !view->part;
	uint8 *place;

	smart_assert(smart_view_reads_run(view));
	if (!view->begun && smart_view_pass_by_run(view))
		return;
	while ((place = smart_overlay_place(&view->overlay, side, view->most)) != NULL)
	{
		enum smart_found found = view->begun ? smart_reader_next_entry(&view->reader) : seek_forward(view);

		view->begun = true;
		if (!take_found(view, found))
			break;
		smart_batch_copy(place, from->entry, (uint32) from->length);
		smart_overlay_add(&view->overlay, side, from->length);
	}
	if (whole && side->ended)
		smart_view_keep_key(view);
}

/* ---- the run, backward ---- */

/* Puts down the entries of the reader's group; those before to alone, if that has a length. */
static void
pile_up(struct smart_view *view, const uint8 *to, uint32 to_length)
{
	struct smart_pile *pile = &view->pile;
	const struct smart_unpacker *from = &view->reader.unpacker;

	smart_assert(pile->ends.len == 0);
	resetStringInfo(&pile->bytes);
	resetStringInfo(&pile->ends);
	while (smart_reader_next_of_group(&view->reader))
	{
		smart_reader_check(&view->reader, view->codec, false);
		if (to_length > 0 && smart_compare_bytes(from->entry, (Size) from->length, to, to_length) >= 0)
			break;
		appendBinaryStringInfo(&pile->bytes, (const char *) from->entry, from->length);
		appendBinaryStringInfo(&pile->ends, (const char *) &pile->bytes.len, sizeof(int));
	}
}

/* Puts down the next group that goes backward.  False: there is none, or the view is behind. */
static bool
pile_up_next(struct smart_view *view)
{
	static const uint8 highest[SMART_KEY_MAX + 1] = {[0 ... SMART_KEY_MAX] = 0xff};
	const struct smart_view_range *range = &view->range;
	bool first = !view->begun;
	enum smart_found found;

	smart_assert(view->backward && !view->behind);
	if (!first)
		found = smart_reader_previous_group(&view->reader);
	else if (range->to_length > 0)
		found = smart_reader_seek_group(&view->reader, range->to, (int) range->to_length);
	else
		found = smart_reader_seek_group(&view->reader, highest, (int) sizeof(highest));
	view->begun = true;
	view->behind |= found == SMART_FOUND_BEHIND;
	view->overlay.base.ended = found == SMART_FOUND_END;
	if (found != SMART_FOUND)
		return false;
	pile_up(view, range->to, first ? range->to_length : 0);
	return true;
}

/* Copies the last entry of the pile, which has one; returns its length. */
static int
take_last(struct smart_pile *pile, uint8 *place)
{
	int begin = 0;
	int end;

	smart_assert(pile->ends.len > 0 && pile->ends.len % (int) sizeof(int) == 0);
	pile->ends.len -= (int) sizeof(int);
	memcpy(&end, pile->ends.data + pile->ends.len, sizeof(end));
	if (pile->ends.len > 0)
		memcpy(&begin, pile->ends.data + pile->ends.len - sizeof(int), sizeof(begin));
	smart_assert(begin < end && end - begin <= SMART_ENTRY_MAX && end <= pile->bytes.len);
	smart_copy_short(place, (const uint8 *) pile->bytes.data + begin, (Size) (end - begin));
	return end - begin;
}

static void
fill_backward(struct smart_view *view)
{
	struct smart_side *side = &view->overlay.base;
	uint8 *place;

	smart_assert(smart_view_reads_run(view));
	while ((place = smart_overlay_place(&view->overlay, side, view->most)) != NULL)
	{
		int length;

		while (view->pile.ends.len == 0)
		{
			if (!pile_up_next(view))
				return;
		}
		length = take_last(&view->pile, place);
		side->ended = smart_view_is_beyond(view, place, length);
		if (side->ended)
			return;
		smart_overlay_add(&view->overlay, side, length);
	}
}

/* ---- the follower ---- */

void
smart_view_leave_follower(struct smart_view *view)
{
	smart_assert(view->follower != NULL);
	view->alone = true;
	view->behind |= view->whole;
	view->whole = false;
	view->follower = NULL;
	view->renewals++;
	view->sought = false;
}

/* A read of the follower came to this. */
static void
leave_unreadable(struct smart_view *view, smart_status status)
{
	smart_assert(status != SMART_OK && status != SMART_DONE);
	if (status == SMART_INTERRUPTED || status == SMART_NO_MEMORY)
		smart_report_status(status, view->index);
	if (status == SMART_CORRUPT)
	{
		/* Without a code that would say that the journal is (look_for_damage()). */
		ereport(LOG,
				errmsg("the tree on memory nodes of index \"%s\" is corrupt", RelationGetRelationName(view->index)),
				errdetail("The pages of its journal answer, and it is loaded anew from them."));
		smart_follow_give_up(view->index, view->follower->meta.tree);
	}
	smart_view_leave_follower(view);
}

static bool
has_left(const struct smart_view *view)
{
	return smart_view_is_in_batch(&view->base_batch, view->base_item + (view->backward ? -1 : 1));
}

/* Stands before the first entry of its batch. */
static void
enter_batch(struct smart_view *view)
{
	view->base_item = view->backward ? (int) view->base_batch.count : -1;
}

/* Right after a seek; the caller may have sought, or read already. */
static smart_status
seek_follower(struct smart_view *view)
{
	const struct smart_view_range *range = &view->range;
	enum smart_view_told told = view->told;

	view->told = SMART_VIEW_NOTHING;
	view->given = told == SMART_VIEW_GIVEN;
	if (!view->given)
		view->base_batch.count = 0;
	enter_batch(view);
	if (told != SMART_VIEW_NOTHING)
		return SMART_OK;
	return smart_scan_seek(smart_relation_scan(view->follower), range->from, range->from_length, range->to,
						   range->to_length, view->backward);
}

/* Reads its next batch, unless something of the one before is left. */
static void
read_follower(struct smart_view *view)
{
	smart_status status = view->begun ? SMART_OK : seek_follower(view);

	smart_assert(view->follower != NULL && !view->near);
	view->begun = true;
	if (status == SMART_OK && has_left(view))
		return;
	if (status == SMART_OK)
		status = view->given ? SMART_DONE : smart_scan_next(smart_relation_scan(view->follower), &view->base_batch);
	if (status == SMART_OK)
	{
		enter_batch(view);
		smart_assert(has_left(view));
		return;
	}
	view->base_batch.count = 0;
	view->overlay.base.ended = true;
	if (status != SMART_DONE)
		leave_unreadable(view, status);
}

static void
fill_from_follower(struct smart_view *view)
{
	struct smart_side *side = &view->overlay.base;
	uint8 *place;

	while (has_left(view) && (place = smart_overlay_place(&view->overlay, side, view->most)) != NULL)
	{
		int length;

		view->base_item += view->backward ? -1 : 1;
		length = smart_batch_entry_roomy(&view->base_batch, (uint32) view->base_item, place);
		side->ended = smart_view_is_beyond(view, place, length);
		if (side->ended)
			return;
		smart_overlay_add(&view->overlay, side, length);
	}
}

bool
smart_view_pass_follower(struct smart_view *view, struct smart_batch *batch)
{
	const struct smart_overlay *overlay = &view->overlay;
	uint32 item = (uint32) (view->base_item + (view->backward ? -1 : 1));

	if (smart_view_reads_run(view) || view->part || !smart_overlay_is_used_up(&overlay->over) ||
		overlay->base.next < overlay->base.count || !has_left(view))
		return false;
	*batch = view->base_batch;
	if (view->backward)
		batch->count = item + 1;
	else
	{
		batch->items += item;
		batch->count -= item;
	}
	view->base_item = view->backward ? -1 : (int) view->base_batch.count;
	smart_assert(batch->count > 0 && !has_left(view));
	return true;
}

/* ---- both ---- */

void
smart_view_seek_base(struct smart_view *view)
{
	view->begun = false;
	resetStringInfo(&view->pile.bytes);
	resetStringInfo(&view->pile.ends);
}

void
smart_view_read_base(struct smart_view *view)
{
	smart_assert(view->sought && !view->behind);
	if (!smart_overlay_needs(&view->overlay, &view->overlay.base))
		return;
	if (!smart_view_reads_run(view))
		read_follower(view);
	else if (view->backward)
		fill_backward(view);
	else
		fill_forward(view);
}

void
smart_view_fill_base(struct smart_view *view)
{
	smart_assert(view->sought && !view->behind);
	if (!smart_view_reads_run(view) && smart_overlay_needs(&view->overlay, &view->overlay.base))
		fill_from_follower(view);
}

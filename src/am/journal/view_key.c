/*
 * view_key.c
 *	  A view that looks for a single key, of which it may be known what the run has: then no page of that is read
 *	  (src/README, J16 and J17).
 */
#include "postgres.h"

#include "executor/instrument.h"
#include "utils/rel.h"

#include "am/journal/view_state.h"
#include "am/server/key_cache.h"
#include "am/server/key_filter.h"
#include "base/assert.h"

void
smart_view_is_one_key(struct smart_view *view)
{
	smart_assert(view->range.from_length > 0 && view->range.to_length > 0);
	smart_assert(!view->sought && !view->part);
	view->one_key = true;
	if (view->number != 0 && view->range.from_length <= SMART_CACHED_BYTES)
		smart_key_cache_prefetch(view->number, view->range.from, (int) view->range.from_length);
}

/* Is the range one key, which the run of a unique index lacks (J16)? */
static bool
lacks_key(const struct smart_view *view)
{
	const struct smart_view_range *range = &view->range;
	struct smart_run_name name;

	if (!view->index->rd_index->indisunique)
		return false;
	name = smart_meta_run_name(&view->file, &view->meta);
	return smart_key_filter_lacks(&name, smart_key_filter_hash(range->from, (int) range->from_length));
}

/* Is it known what the run has under the key (J17)? */
static bool
knows_key(struct smart_view *view, struct smart_cached_key *key)
{
	const struct smart_view_range *range = &view->range;
	struct smart_run_name name;

	if (range->from_length > SMART_CACHED_BYTES)
		return false;
	if (unlikely(view->number == 0))
	{
		name = smart_meta_run_name(&view->file, &view->meta);
		view->number = smart_key_cache_number(&name);
	}
	return view->number != 0 && smart_key_cache_find(view->number, range->from, (int) range->from_length, key);
}

/* Puts down what the run has under the key.  For the first block of a range there is room for so many. */
static void
take_known(struct smart_view *view, const struct smart_cached_key *key)
{
	struct smart_side *side = &view->overlay.base;
	const uint8 *rest = key->byte;
	int columns_length = (int) view->range.from_length;

	smart_assert(!view->begun && side->count == 0 && side->next == 0);
	for (int i = 0; i < key->count; i++)
	{
		uint8 *place = smart_overlay_place(&view->overlay, side, view->most);

		smart_assert(place != NULL);
		memcpy(place, view->range.from, columns_length);
		memcpy(place + columns_length, rest, key->length[i]);
		rest += key->length[i];
		smart_overlay_add(&view->overlay, side, columns_length + key->length[i]);
	}
	smart_assert(rest == key->byte + key->bytes);
	side->ended = true;
	view->begun = true;
	view->ahead = view->at_end = view->behind_range = false;
}

/*
 * For assertions: does the run have these entries under the key, and no others?  Or its pages have been used anew.  What
 * this reads is not counted: tests do that.
 */
static bool is_in_run(struct smart_view *view, const struct smart_cached_key *key) pg_attribute_unused();

static bool
is_in_run(struct smart_view *view, const struct smart_cached_key *key)
{
	const struct smart_view_range *range = &view->range;
	const struct smart_unpacker *from = &view->reader.unpacker;
	const BufferUsage usage = pgBufferUsage;
	const uint8 *rest = key->byte;
	enum smart_found found = smart_reader_seek_entry(&view->reader, range->from, (int) range->from_length);
	bool same = true;

	for (int i = 0; found == SMART_FOUND && same && i < key->count; i++)
	{
		same = from->length == (int) range->from_length + key->length[i] &&
			   memcmp(from->entry, range->from, range->from_length) == 0 &&
			   memcmp(from->entry + range->from_length, rest, key->length[i]) == 0;
		rest += key->length[i];
		found = smart_reader_next_entry(&view->reader);
	}
	pgBufferUsage = usage;
	return found == SMART_FOUND_BEHIND ||
		   (same && rest == key->byte + key->bytes &&
			(found != SMART_FOUND || smart_view_is_beyond(view, from->entry, from->length)));
}

bool
smart_view_pass_by_run(struct smart_view *view)
{
	struct smart_cached_key key = {0};

	smart_assert(!view->begun && !view->backward && smart_view_reads_run(view));
	/* A part of a range is not the key's.  Behind the run's last entry it need not be looked for. */
	if (!view->one_key || view->part || (view->ahead && view->at_end))
		return false;
	if (!lacks_key(view) && !knows_key(view, &key))
		return false;
	smart_assert(is_in_run(view, &key));
	take_known(view, &key);
	return true;
}

void
smart_view_keep_key(const struct smart_view *view)
{
	const struct smart_overlay *overlay = &view->overlay;
	const struct smart_side *side = &overlay->base;
	int columns_length = (int) view->range.from_length;
	struct smart_cached_key key = {0};

	smart_assert(view->one_key && !view->part && side->ended);
	/* A unique index's keys that the run does not have are mostly asked for once, by who adds them. */
	if (view->number == 0 || columns_length > SMART_CACHED_BYTES ||
		(side->count == 0 && view->index->rd_index->indisunique))
		return;
	for (uint32 i = 0; i < side->count; i++)
	{
		const struct smart_item *item = &overlay->items[side->first + i];

		if (!smart_cached_key_add(&key, columns_length, overlay->bytes + item->offset + columns_length,
								  item->length - columns_length))
			return;
	}
	smart_key_cache_keep(view->number, view->range.from, columns_length, &key);
}

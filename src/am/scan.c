/*
 * scan.c
 *	  Index scans: ordered in both directions, bitmaps, mark and restore.
 *
 * A scan goes through the byte ranges of its conditions; within a range it
 * reads a batch of entries at a time, which lies in its own memory, and moves
 * to and fro in it.  Where it leaves the batch against the direction in which
 * the range was read, it seeks again from the batch's edge: entries are unique,
 * so an entry's key is a position.
 */
#include "postgres.h"

#include "access/relscan.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "am/am.h"
#include "am/embedded.h"
#include "am/hold.h"
#include "am/ranges.h"
#include "am/report.h"
#include "base/assert.h"
#include "base/bytes.h"

#define BITMAP_TIDS		256		/* added to a bitmap at a time */

enum place
{
	AT_START,					/* before the first or behind the last entry, as the direction asks */
	IN_BATCH,					/* at the entry index of the batch */
	AT_MARK						/* at the marked key, with no batch */
};

enum mark
{
	MARK_AT_START,
	MARK_IN_BATCH,				/* mark_index in the present batch */
	MARK_AT_KEY					/* mark_key, in the range of mark_points */
};

struct scan_state
{
	MemoryContext context;		/* all that belongs to the scan lives in it */
	struct smart_relation *relation;
	struct smart_scan *scan;	/* of the tree; NULL as long as there is none */
	struct smart_ranges *ranges;

	enum place	place;
	bool		backward;		/* the direction in which the batches come */
	bool		prefix_there;	/* entry[] begins with the batch's prefix */
	int			index;			/* in the batch; -1 and count are just outside */
	struct smart_batch batch;
	uint32		tid_width;		/* bytes of an entry's tail that hold the TID, if that is the same in all */

	bool		holding;		/* VACUUM has to wait for the TIDs of the batch */
	struct smart_hold_ticket hold;

	enum mark	mark;
	int			mark_index;
	uint32		mark_length;
	uint32		mark_points[INDEX_MAX_KEYS];

	char	   *space;			/* for tuples */
	uint8		mark_key[SMART_KEY_MAX + 1];
	uint8		entry[SMART_ENTRY_MAX];
};

static struct smart_scan *
tree_scan(struct scan_state *state)
{
	if (state->scan == NULL)
		state->scan = smart_relation_scan(state->relation);
	return state->scan;
}

/* The whole entry i of the batch, in state->entry; returns its length. */
static int
assemble_entry(struct scan_state *state, int i)
{
	const struct smart_batch *batch = &state->batch;
	const struct smart_item *item = &batch->items[i];

	smart_assert(i >= 0 && (uint32) i < batch->count);
	smart_assert(batch->prefix_length + item->length <= sizeof(state->entry));
	if (!state->prefix_there)
	{
		memcpy(state->entry, batch->prefix, batch->prefix_length);
		state->prefix_there = true;
	}
	memcpy(state->entry + batch->prefix_length, batch->bytes + item->offset, item->length);
	return (int) (batch->prefix_length + item->length);
}

/* The key of entry i of the batch, at key; returns its length. */
static uint32
copy_key(struct scan_state *state, int i, uint8 *key)
{
	int			length = assemble_entry(state, i);
	int			key_length = smart_codec_key_length(state->relation->codec, state->entry, length);

	memcpy(key, state->entry, key_length);
	return (uint32) key_length;
}

/* ---- holds ---- */

static void
end_hold(struct scan_state *state)
{
	if (state->holding)
		smart_hold_leave(&state->hold);
	state->holding = false;
}

/*
 * Before a leaf is read for a scan that looks at the heap or the visibility map
 * later without a snapshot that keeps removed rows away.  A hold serves batch
 * after batch until a VACUUM waits for it.
 */
static void
begin_hold(struct scan_state *state, IndexScanDesc scan)
{
	if (!scan->xs_want_itup && IsMVCCSnapshot(scan->xs_snapshot))
		return;
	if (state->holding && !smart_hold_wanted())
		return;
	end_hold(state);
	state->hold = smart_hold_enter(state->relation->meta.tree);
	state->holding = true;
}

/* ---- positions ---- */

/* Saves the mark before the batch that it points into goes away. */
static void
keep_mark(struct scan_state *state)
{
	if (state->mark != MARK_IN_BATCH)
		return;
	state->mark_length = copy_key(state, state->mark_index, state->mark_key);
	memcpy(state->mark_points, state->ranges->current, state->ranges->nprefix * sizeof(uint32));
	state->mark = MARK_AT_KEY;
}

static void
seek_range(struct scan_state *state, bool backward)
{
	const struct smart_ranges *ranges = state->ranges;

	smart_check_status(smart_scan_seek(tree_scan(state), ranges->from, ranges->from_length, ranges->to,
									   ranges->to_length, backward), NULL);
	state->backward = backward;
}

/*
 * Seeks what lies behind (or, backward, before) a key within the current
 * range.  No key begins with another one, so all strings that begin with this
 * one are its own entry.  False: nothing can lie there.  Changes the key.
 */
static bool
seek_beyond(struct scan_state *state, uint8 *key, uint32 length, bool backward)
{
	const struct smart_ranges *ranges = state->ranges;
	smart_status status;

	state->backward = backward;
	if (backward)
	{
		if (smart_compare_bytes(ranges->from, ranges->from_length, key, length) >= 0)
			return false;
		status = smart_scan_seek(tree_scan(state), ranges->from, ranges->from_length, key, length, true);
	}
	else
	{
		length = (uint32) smart_successor(key, length);
		if (ranges->to_length > 0 && smart_compare_bytes(key, length, ranges->to, ranges->to_length) >= 0)
			return false;
		status = smart_scan_seek(tree_scan(state), key, length, ranges->to, ranges->to_length, false);
	}
	smart_check_status(status, NULL);
	return true;
}

/* Goes to the first range's beginning or to the mark; next_batch() reads there.  False: there is nothing. */
static bool
begin(struct scan_state *state, IndexScanDesc scan, bool backward, bool *sought)
{
	uint8		key[SMART_KEY_MAX + 1];

	if (state->place == AT_MARK)
	{
		begin_hold(state, scan);
		memcpy(key, state->mark_key, state->mark_length);
		*sought = seek_beyond(state, key, state->mark_length, backward);
	}
	else
	{
		pgstat_count_index_scan(scan->indexRelation);
		if (state->relation->tree == NULL || !smart_ranges_first(state->ranges, backward))
			return false;
		begin_hold(state, scan);
		seek_range(state, backward);
		*sought = true;
	}
	state->place = IN_BATCH;
	return true;
}

/* Turns round at the edge of the batch. */
static bool
turn(struct scan_state *state, bool backward)
{
	uint8		key[SMART_KEY_MAX + 1];
	uint32		length = copy_key(state, backward ? 0 : (int) state->batch.count - 1, key);

	return seek_beyond(state, key, length, backward);
}

/*
 * Reads the next batch of this range or of the next one that has any.  sought:
 * the present range may have more.  False: the scan is at its end.
 */
static bool
next_batch(struct scan_state *state, IndexScanDesc scan, bool backward, bool sought)
{
	smart_status status;

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		status = sought ? smart_scan_next(tree_scan(state), &state->batch) : SMART_DONE;
		if (status == SMART_OK)
		{
			smart_assert(state->batch.count > 0);
			state->prefix_there = false;
			state->index = backward ? (int) state->batch.count : -1;
			return true;
		}
		if (status != SMART_DONE)
			smart_report_status(status, scan->indexRelation);
		state->batch.count = 0;
		if (!smart_ranges_next(state->ranges, backward))
			break;
		begin_hold(state, scan);
		seek_range(state, backward);
		sought = true;
	}
	state->place = AT_START;
	end_hold(state);
	return false;
}

/* Leaves the batch and goes to the next one. */
static bool
leave_batch(struct scan_state *state, IndexScanDesc scan, bool backward)
{
	bool		sought = true;

	keep_mark(state);
	begin_hold(state, scan);
	if (backward != state->backward)
		sought = turn(state, backward);
	return next_batch(state, scan, backward, sought);
}

static bool
matches(struct scan_state *state)
{
	int			length;

	if (!state->ranges->filtered)
		return true;
	length = assemble_entry(state, state->index);
	return smart_ranges_match(state->ranges, state->entry, length);
}

/* Moves to the next entry that the scan returns. */
static bool
next_entry(struct scan_state *state, IndexScanDesc scan, bool backward)
{
	int			step = backward ? -1 : 1;
	bool		sought;

	if (unlikely(state->place != IN_BATCH)
		&& !(begin(state, scan, backward, &sought) && next_batch(state, scan, backward, sought)))
		return false;
	for (;;)
	{
		int			next = state->index + step;

		if (next >= 0 && (uint32) next < state->batch.count)
		{
			state->index = next;
			if (matches(state))
				return true;
		}
		else if (!leave_batch(state, scan, backward))
			return false;
	}
}

/* The TID of the entry at the scan's position. */
static inline void
current_tid(struct scan_state *state, ItemPointer tid)
{
	const struct smart_item *item = &state->batch.items[state->index];

	if (likely(item->length >= state->tid_width))
		smart_entry_tid(state->batch.bytes + item->offset,
						item->length - (state->tid_width - SMART_TID_WIDTH), tid);
	else
	{
		int			length = assemble_entry(state, state->index);

		smart_entry_tid(state->entry, smart_codec_key_length(state->relation->codec, state->entry, length), tid);
	}
}

/* ---- callbacks ---- */

IndexScanDesc
smart_am_begin_scan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "smart scan", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	struct scan_state *state = palloc(sizeof(struct scan_state));
	const struct smart_codec *codec;

	memset(state, 0, offsetof(struct scan_state, mark_points));
	state->context = context;
	state->relation = smart_relation_open(index);
	codec = state->relation->codec;
	state->ranges = smart_ranges_make(codec);
	state->tid_width = codec->payload_width < 0 ? UINT32_MAX : (uint32) codec->payload_width + SMART_TID_WIDTH;
	state->space = palloc(codec->space);
	MemoryContextSwitchTo(old);
	scan->opaque = state;
	scan->xs_itupdesc = RelationGetDescr(index);
	return scan;
}

void
smart_am_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	struct scan_state *state = scan->opaque;

	if (keys != NULL && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
	end_hold(state);
	state->place = AT_START;
	state->mark = MARK_AT_START;
	state->batch.count = 0;
	if (state->relation->tree == NULL)
		smart_relation_refresh(state->relation, scan->indexRelation);
	smart_ranges_set(state->ranges, scan->keyData, scan->numberOfKeys);
	scan->xs_recheck = state->ranges->recheck;
}

bool
smart_am_get_tuple(IndexScanDesc scan, ScanDirection direction)
{
	struct scan_state *state = scan->opaque;

	if (!next_entry(state, scan, ScanDirectionIsBackward(direction)))
		return false;
	scan->xs_recheck = state->ranges->recheck;
	if (scan->xs_want_itup)
	{
		int			length = assemble_entry(state, state->index);

		scan->xs_itup = smart_codec_form_tuple(state->relation->codec, state->entry, length, state->space);
		scan->xs_heaptid = scan->xs_itup->t_tid;
	}
	else
		current_tid(state, &scan->xs_heaptid);
	return true;
}

int64
smart_am_get_bitmap(IndexScanDesc scan, TIDBitmap *bitmap)
{
	struct scan_state *state = scan->opaque;
	ItemPointerData tids[BITMAP_TIDS];
	int			count = 0;
	int64		total = 0;

	while (next_entry(state, scan, false))
	{
		current_tid(state, &tids[count++]);
		if (count == BITMAP_TIDS)
		{
			tbm_add_tuples(bitmap, tids, count, state->ranges->recheck);
			total += count;
			count = 0;
		}
	}
	if (count > 0)
		tbm_add_tuples(bitmap, tids, count, state->ranges->recheck);
	return total + count;
}

void
smart_am_end_scan(IndexScanDesc scan)
{
	struct scan_state *state = scan->opaque;

	/* The pin on the tree's handle goes with the context too. */
	end_hold(state);
	MemoryContextDelete(state->context);
}

void
smart_am_mark(IndexScanDesc scan)
{
	struct scan_state *state = scan->opaque;

	if (state->place == IN_BATCH)
	{
		state->mark = MARK_IN_BATCH;
		state->mark_index = state->index;
	}
	else if (state->place == AT_START)
		state->mark = MARK_AT_START;
}

void
smart_am_restore(IndexScanDesc scan)
{
	struct scan_state *state = scan->opaque;

	if (state->mark == MARK_IN_BATCH)
	{
		state->index = state->mark_index;
		return;
	}
	end_hold(state);
	state->batch.count = 0;
	state->place = AT_START;
	if (state->mark == MARK_AT_KEY)
	{
		smart_ranges_go(state->ranges, state->mark_points);
		state->place = AT_MARK;
	}
}

/*
 * scan.c
 *	  Index scans: the callbacks, and what is returned for an entry.
 */
#include "postgres.h"

#include "access/relscan.h"
#include "nodes/tidbitmap.h"
#include "utils/memutils.h"

#include "am/am.h"
#include "am/position.h"
#include "am/ranges.h"
#include "am/tuples.h"
#include "base/assert.h"

#define BITMAP_TIDS 256 /* added to a bitmap at a time */

struct scan_state
{
	MemoryContext context; /* all that belongs to the scan lives in it */
	uint32 payload;        /* bytes behind an entry's TID, or UINT32_MAX if they differ */
	struct smart_position position;
	struct smart_tuples tuples;
};

/* ---- what is returned ---- */

/* The TID of the entry at the scan's position. */
static inline void
current_tid(struct scan_state *state, ItemPointer tid)
{
	struct smart_position *position = &state->position;
	const struct smart_codec *codec = position->relation->codec;
	const struct smart_item *item = &position->batch.items[position->index];
	int length;

	if (likely(item->length > state->payload))
	{
		const uint8 *end = position->batch.bytes + item->offset + (item->length - state->payload);

		if (likely(item->length >= state->payload + (uint32) smart_entry_tid_width(codec, end[-1])))
		{
			smart_entry_tid(codec, end, tid);
			return;
		}
	}

	/* It begins in what the batch's entries share, or a payload of varying length lies behind it. */
	length = smart_position_entry(position, position->index);
	smart_entry_tid(codec, position->entry + smart_codec_key_length(codec, position->entry, length), tid);
}

/* ---- callbacks ---- */

IndexScanDesc
smart_am_begin_scan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "smart scan", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	struct scan_state *state = palloc(sizeof(struct scan_state));
	struct smart_relation *relation = smart_relation_open(index);
	int payload = relation->codec->payload_width;

	state->context = context;
	state->payload = payload < 0 ? UINT32_MAX : (uint32) payload;
	smart_tuples_init(&state->tuples, relation->codec);
	smart_position_init(&state->position, scan, relation, smart_ranges_make(relation->codec));
	MemoryContextSwitchTo(old);
	scan->opaque = state;
	scan->xs_itupdesc = RelationGetDescr(index);
	return scan;
}

void
smart_am_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	struct scan_state *state = scan->opaque;
	struct smart_position *position = &state->position;

	if (keys != NULL && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
	smart_position_reset(position);
	smart_relation_refresh(position->relation, scan->indexRelation);
	smart_ranges_set(position->ranges, scan->keyData, scan->numberOfKeys);
}

bool
smart_am_get_tuple(IndexScanDesc scan, ScanDirection direction)
{
	struct scan_state *state = scan->opaque;
	bool backward = ScanDirectionIsBackward(direction);

	if (!smart_position_next(&state->position, backward))
		return false;
	scan->xs_recheck = state->position.ranges->recheck;
	if (scan->xs_want_itup)
	{
		scan->xs_itup = smart_tuples_same(&state->tuples, &state->position);
		if (scan->xs_itup == NULL)
		{
			scan->xs_itup = smart_tuples_get(&state->tuples, &state->position, backward);
			scan->xs_heaptid = scan->xs_itup->t_tid;
			return true;
		}
	}
	current_tid(state, &scan->xs_heaptid);
	return true;
}

int64
smart_am_get_bitmap(IndexScanDesc scan, TIDBitmap *bitmap)
{
	struct scan_state *state = scan->opaque;
	bool recheck = state->position.ranges->recheck;
	ItemPointerData tids[BITMAP_TIDS];
	int count = 0;
	int64 total = 0;

	while (smart_position_next(&state->position, false))
	{
		current_tid(state, &tids[count++]);
		if (count == BITMAP_TIDS)
		{
			tbm_add_tuples(bitmap, tids, count, recheck);
			total += count;
			count = 0;
		}
	}
	if (count > 0)
		tbm_add_tuples(bitmap, tids, count, recheck);
	return total + count;
}

void
smart_am_end_scan(IndexScanDesc scan)
{
	struct scan_state *state = scan->opaque;

	/* Ends the hold; the pin on the tree's handle goes with the context. */
	smart_position_reset(&state->position);
	MemoryContextDelete(state->context);
}

void
smart_am_mark(IndexScanDesc scan)
{
	smart_position_set_mark(&((struct scan_state *) scan->opaque)->position);
}

void
smart_am_restore(IndexScanDesc scan)
{
	smart_position_restore(&((struct scan_state *) scan->opaque)->position);
}

/*
 * scan.c
 *	  Index scans: the callbacks, and what is returned for an entry.
 */
#include "postgres.h"

#include "access/relscan.h"
#include "nodes/tidbitmap.h"
#include "utils/memutils.h"

#include "am/am.h"
#include "am/explain.h"
#include "am/kill.h"
#include "am/position.h"
#include "am/ranges.h"
#include "am/server.h"
#include "am/tids.h"
#include "am/tuples.h"
#include "base/assert.h"

#define BITMAP_TIDS 256 /* added to a bitmap at a time */

struct scan_state
{
	MemoryContext context; /* all that belongs to the scan lives in it */

	/* Entries of the batch that are as good as returned. */
	uint32 alike;  /* so many, from the first on: all but their TIDs has been returned */
	uint32 formed; /* so many, from tuples.low on: each has its tuple */

	struct smart_position position;
	struct smart_tids tids;
	struct smart_tuples tuples;
	uint64 round_trips; /* while it searched */

	struct smart_kills kills; /* of one batch */
	uint32 killed_batch;      /* which one */
};

/* ---- what is returned ---- */

/* The TID of the entry at the scan's position. */
static inline void
current_tid(struct scan_state *state, ItemPointer tid)
{
	if (state->tids.batch != state->position.batches)
		smart_tids_enter(&state->tids, &state->position);
	smart_tids_get(&state->tids, &state->position, tid);
}

/* The tuple of the entry at the scan's position, with its TID. */
static inline void
return_formed(IndexScanDesc scan, const struct scan_state *state)
{
	scan->xs_itup = state->tuples.tuple[state->position.index - state->tuples.base];
	scan->xs_heaptid = scan->xs_itup->t_tid;
}

/* Returns the entry at the scan's position, and finds out which others of its batch are as good as returned. */
static inline void
return_entry(IndexScanDesc scan, struct scan_state *state, bool backward)
{
	struct smart_position *position = &state->position;
	struct smart_tuples *tuples = &state->tuples;

	scan->xs_recheck = position->ranges->recheck;
	if (scan->xs_want_itup)
	{
		smart_tuples_form(tuples, position, backward);
		if (!tuples->same)
		{
			return_formed(scan, state);
			state->formed = (uint32) (tuples->high - tuples->low + 1);
			return;
		}
		scan->xs_itup = tuples->tuple[tuples->low - tuples->base];
	}
	current_tid(state, &scan->xs_heaptid);
	state->alike = position->ranges->filtered ? 0 : position->batch.count;
}

/* The scan goes elsewhere. */
static inline void
forget_batch(struct scan_state *state)
{
	state->alike = 0;
	state->formed = 0;
}

/* Of this session, so far; of use where EXPLAIN can show them. */
static inline uint64
session_round_trips(void)
{
	const struct smart_client *client = SMART_EXTENDS_EXPLAIN ? smart_backend_client_if_any() : NULL;

	return client == NULL ? 0 : client->fabric->counters.round_trips;
}

uint64
smart_scan_round_trips(IndexScanDesc scan)
{
	return ((const struct scan_state *) scan->opaque)->round_trips;
}

/* ---- dead rows ---- */

/* The executor found that the row of the entry that was returned last is dead for everybody. */
static pg_noinline void
note_dead(IndexScanDesc scan, struct scan_state *state)
{
	struct smart_position *position = &state->position;
	int length;

	if (position->whereabouts != SMART_IN_BATCH || !smart_kills_possible(scan->heapRelation))
		return;
	smart_assert(state->kills.count == 0 || state->killed_batch == position->batches);
	state->killed_batch = position->batches;
	length = smart_position_entry(position, position->index);
	smart_kills_note(&state->kills, position->entry,
					 smart_codec_key_length(position->relation->codec, position->entry, length));
}

/* Removes entries of dead rows when the scan has left their batch. */
static inline void
remove_dead(IndexScanDesc scan, struct scan_state *state)
{
	if (unlikely(state->kills.count > 0))
		smart_kills_apply(&state->kills, state->position.relation, scan->heapRelation);
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

	state->context = context;
	state->round_trips = 0;
	forget_batch(state);
	smart_tids_init(&state->tids, relation->codec);
	smart_tuples_init(&state->tuples, relation->codec);
	smart_kills_init(&state->kills);
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
	remove_dead(scan, state);
	forget_batch(state);
	smart_position_reset(position);
	smart_relation_refresh(position->relation, scan->indexRelation);
	smart_ranges_set(position->ranges, scan->keyData, scan->numberOfKeys);
}

/* Searches the next entry and returns it. */
static pg_noinline bool
search_tuple(IndexScanDesc scan, bool backward)
{
	struct scan_state *state = scan->opaque;
	uint64 before = session_round_trips();
	bool found;

	forget_batch(state);
	found = smart_position_search(&state->position, backward);
	smart_check_snapshot_age(scan->indexRelation, scan->xs_snapshot);
	if (!found || state->position.batches != state->killed_batch)
		remove_dead(scan, state);
	state->round_trips += session_round_trips() - before;
	if (!found)
		return false;
	return_entry(scan, state, backward);
	return true;
}

bool
smart_am_get_tuple(IndexScanDesc scan, ScanDirection direction)
{
	struct scan_state *state = scan->opaque;
	uint32 next = (uint32) (state->position.index + (int) direction);

	if (unlikely(scan->kill_prior_tuple))
		note_dead(scan, state);
	if (likely(next < state->alike))
	{
		state->position.index = (int) next;
		smart_tids_get(&state->tids, &state->position, &scan->xs_heaptid);
		return true;
	}
	if (likely(next - (uint32) state->tuples.low < state->formed))
	{
		state->position.index = (int) next;
		return_formed(scan, state);
		return true;
	}
	return search_tuple(scan, ScanDirectionIsBackward(direction));
}

int64
smart_am_get_bitmap(IndexScanDesc scan, TIDBitmap *bitmap)
{
	struct scan_state *state = scan->opaque;
	bool recheck = state->position.ranges->recheck;
	uint64 before = session_round_trips();
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
	smart_check_snapshot_age(scan->indexRelation, scan->xs_snapshot);
	if (count > 0)
		tbm_add_tuples(bitmap, tids, count, recheck);
	state->round_trips += session_round_trips() - before;
	return total + count;
}

void
smart_am_end_scan(IndexScanDesc scan)
{
	struct scan_state *state = scan->opaque;

	remove_dead(scan, state);
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
	struct scan_state *state = scan->opaque;

	remove_dead(scan, state);
	forget_batch(state);
	smart_position_restore(&state->position);
}

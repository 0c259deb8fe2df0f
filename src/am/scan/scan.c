/*
 * scan.c
 *	  Index scans: the callbacks, and what is returned for an entry.
 *
 * A TID may begin in what the entries of a batch share: where there are many duplicates it always does.  So a
 * key is read from its end, as the number that its last eight bytes make, those that are the entry's own below
 * those that are shared; and what is the same for the whole batch is found out once.  Where an entry's own
 * bytes are fewer than eight, some behind them are read, too, and shifted out: the buffers of a batch end
 * that much later.
 */
#include "postgres.h"

#include "access/relscan.h"
#include "nodes/tidbitmap.h"
#include "utils/memutils.h"

#include "am/codec/encode.h"
#include "am/compat.h"
#include "am/index/relation.h"
#include "am/journal/pending.h"
#include "am/journal/standby.h"
#include "am/journal/view.h"
#include "am/scan/kill.h"
#include "am/scan/position.h"
#include "am/scan/position_source.h"
#include "am/scan/ranges.h"
#include "am/scan/read_ahead.h"
#include "am/scan/scan.h"
#include "am/scan/scankey.h"
#include "am/scan/sight.h"
#include "am/scan/tuples.h"
#include "am/server/dead_rows.h"
#include "am/server/kill_queue.h"
#include "am/server/shared.h"
#include "base/assert.h"
#include "base/bytes.h"

#define BITMAP_TIDS        256 /* added to a bitmap at a time */
#define FEW_DEAD           4   /* entries one behind the other: to remove fewer costs more than to pass them by */
#define STRETCHES_PER_NOTE 8   /* of more dead entries that are passed by */
#define LIVING_MAX         16  /* entries that are looked at ahead, whether they are of dead rows */
#define WORD               sizeof(uint64)

StaticAssertDecl(SMART_BATCH_SLACK >= WORD, "room behind a batch");

/* Where the TIDs of a batch's entries are. */
struct tids
{
	const struct smart_codec *codec;
	uint32 payload; /* bytes behind an entry's TID, or UINT32_MAX if they differ */
	uint32 batch;   /* which one the rest tells of; 0: none */
	bool aligned;   /* the entries are of one length, and so are their TIDs */

	/* aligned: the key of item i ends with the number at bytes + its offset, shifted right by shift, or'ed with shared. */
	const uint8 *bytes;
	unsigned int shift;
	uint64 shared; /* not aligned: the last eight bytes that the entries share */
};

struct scan_state
{
	MemoryContext own;             /* where this lies, and its ranges: they are large, and are kept for the next scan */
	MemoryContext context;         /* all else that belongs to the scan lives in it */
	MemoryContextCallback release; /* at the end of context */

	/* Entries of the batch that are as good as returned, from low on. */
	uint32 low;
	uint32 alike;  /* so many: all but their TIDs has been returned */
	uint32 formed; /* so many: each has its tuple */

	struct smart_position position;
	struct tids tids;
	struct smart_tuples tuples;
	uint64 round_trips; /* while it searched */

	struct smart_kills kills; /* of one batch */
	uint32 killed_batch;      /* which one */

	struct smart_dead_rows dead; /* which are passed by */
	bool passes_dead;            /* there may be some, so that every entry is looked at */

	bool looks; /* which rows there are, itself: every entry is looked at */
	struct smart_sight sight;
};

/* ---- TIDs ---- */

/* Finds out what is the same for all TIDs of the batch that the position has come into. */
static void
enter_batch(struct tids *tids, const struct smart_position *position)
{
	const struct smart_batch *batch = &position->batch;
	uint32 length = batch->items[0].length;
	uint32 own = length - tids->payload;

	smart_assert(batch->count > 0);
	tids->batch = position->batches;
	tids->bytes = batch->bytes;
	tids->shift = 0;
	tids->shared = 0;
	/* A part of the key is each entry's own, unless the tree is damaged. */
	tids->aligned = !tids->codec->compact_tids && likely(length > tids->payload);
	if (tids->aligned && own >= WORD)
	{
		tids->bytes += own - WORD;
		return;
	}
	if (likely(batch->prefix_length >= WORD))
		tids->shared = smart_load_be64(batch->prefix + batch->prefix_length - WORD);
	else if (batch->prefix_length > 0)
		tids->shared = smart_rank(batch->prefix, batch->prefix_length) >> (8 * (WORD - batch->prefix_length));
	if (!tids->aligned)
		return;
	tids->shared <<= 8 * own;
	tids->shift = 8 * (WORD - own);
}

/* The TID of an entry of the position's batch where entries are of different lengths. */
static pg_noinline void
get_any_tid(const struct tids *tids, struct smart_position *position, int index, ItemPointer tid)
{
	const struct smart_batch *batch = &position->batch;
	const struct smart_item *item = &batch->items[index];
	const struct smart_codec *codec = tids->codec;
	int length;

	if (likely(codec->compact_tids && item->length > tids->payload))
	{
		uint32 own = item->length - tids->payload;
		const uint8 *suffix = batch->bytes + item->offset;
		uint64 tail = own >= WORD ? smart_load_be64(suffix + own - WORD)
								  : smart_load_be64(suffix) >> (8 * (WORD - own)) | tids->shared << (8 * own);
		BlockNumber block;
		OffsetNumber offset;

		smart_tid_from_compact(tail, &block, &offset);
		ItemPointerSet(tid, block, offset);
		return;
	}

	/* A payload of any length lies behind the key. */
	length = smart_position_entry(position, index);
	smart_entry_tid(codec, position->entry + smart_codec_key_length(codec, position->entry, length), tid);
}

/* The TID of an entry of the position's batch, which was entered. */
static inline void
get_tid(const struct tids *tids, struct smart_position *position, int index, ItemPointer tid)
{
	const struct smart_item *item = &position->batch.items[index];
	BlockNumber block;
	OffsetNumber offset;

	smart_assert(position->whereabouts == SMART_IN_BATCH && tids->batch == position->batches &&
				 (uint32) index < position->batch.count);
	if (unlikely(!tids->aligned))
	{
		get_any_tid(tids, position, index, tid);
		return;
	}
	smart_tid_from_plain(smart_load_be64(tids->bytes + item->offset) >> tids->shift | tids->shared, &block, &offset);
	ItemPointerSet(tid, block, offset);
}

/* The TID of the entry at the scan's position. */
static inline void
current_tid(struct scan_state *state, ItemPointer tid)
{
	if (state->tids.batch != state->position.batches)
		enter_batch(&state->tids, &state->position);
	get_tid(&state->tids, &state->position, state->position.index, tid);
}

/* ---- what is returned ---- */

/*
 * Starts a run at the position, in the scan's direction, and returns its length.  It ends at the last entry, in front of a row
 * that is known to be dead, or after a few entries, since the executor may not ask for all.
 */
static pg_noinline uint32
begin_living_run(struct scan_state *state, int last)
{
	int index = state->position.index;
	int step = last < index ? -1 : 1;
	int end = index;

	smart_assert(last >= 0 && (uint32) last < state->position.batch.count);
	while (end != last && abs(end - index) < LIVING_MAX)
	{
		ItemPointerData tid;

		get_tid(&state->tids, &state->position, end + step, &tid);
		if (smart_dead_rows_has(&state->dead, &tid))
			break;
		end += step;
	}
	state->low = (uint32) Min(index, end);
	return (uint32) abs(end - index) + 1;
}

/* The same among the entries from low to high, which are ready to be returned: all of them, if no row is known to be dead. */
static inline uint32
begin_run(struct scan_state *state, int low, int high, bool backward)
{
	smart_assert(low >= 0 && low <= high && (uint32) high < state->position.batch.count);
	if (unlikely(state->passes_dead))
		return begin_living_run(state, backward ? low : high);
	state->low = (uint32) low;
	return (uint32) (high - low + 1);
}

/* The tuple of the entry at the scan's position, with its TID. */
static inline void
return_formed(IndexScanDesc scan, const struct scan_state *state)
{
	smart_assert(state->tuples.batch == state->position.batches && state->position.index >= state->tuples.low &&
				 state->position.index <= state->tuples.high);
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
			if (likely(!state->looks))
				state->formed = begin_run(state, tuples->low, tuples->high, backward);
			return;
		}
		scan->xs_itup = tuples->tuple[tuples->low - tuples->base];
	}
	current_tid(state, &scan->xs_heaptid);
	if (likely(!position->ranges->filtered && !state->looks))
		state->alike = begin_run(state, 0, (int) position->batch.count - 1, backward);
}

uint64
smart_scan_round_trips(IndexScanDesc scan)
{
	return ((const struct scan_state *) scan->opaque)->round_trips;
}

bool
smart_scan_read_ahead(IndexScanDesc scan, ScanKey keys, int nkeys, int sets)
{
	struct scan_state *state = scan->opaque;
	uint64 before = smart_session_round_trips();
	bool read = smart_read_ahead(&state->position, keys, nkeys, sets);

	state->round_trips += smart_session_round_trips() - before;
	return read;
}

/* ---- dead rows ---- */

/* Notes an entry of the batch, so that it is removed. */
static void
note_entry(struct scan_state *state, int index)
{
	struct smart_position *position = &state->position;
	int length;

	smart_assert(state->kills.count == 0 || state->killed_batch == position->batches);
	smart_assert(index >= 0 && (uint32) index < position->batch.count);
	state->killed_batch = position->batches;
	length = smart_position_entry(position, index);
	smart_kills_note(&state->kills, position->entry,
					 smart_codec_key_length(position->relation->codec, position->entry, length));
}

/* By what dead rows are remembered that entries of this relation lead to. */
static inline uint64
read_from(const struct smart_relation *relation)
{
	return unlikely(relation->view != NULL) ? smart_view_pinned(relation->view) : relation->meta.tree;
}

/* Is what is remembered of dead rows for this scan?  Not in another tree, nor for a snapshot of a standby. */
static inline bool
knows_dead(IndexScanDesc scan, const struct scan_state *state)
{
	return scan->ignore_killed_tuples && state->dead.tree == read_from(state->position.relation);
}

/*
 * The executor found that the row of the entry that was returned last is dead for all transactions.  That is remembered, and
 * scans pass the entry by.  Where there is a journal it goes together with others (pass_known_dead()), unless it cannot be
 * remembered for long.
 */
static pg_noinline void
note_dead(IndexScanDesc scan, struct scan_state *state)
{
	ItemPointerData tid;

	if (state->position.whereabouts != SMART_IN_BATCH || !smart_kills_possible(scan->heapRelation))
		return;
	current_tid(state, &tid);
	if (!knows_dead(scan, state) || !smart_dead_rows_note(&state->dead, &tid) ||
		state->position.relation->meta.journal_state == SMART_JOURNAL_NONE)
		note_entry(state, state->position.index);
}

/* Can more entries be noted?  Where there is a journal they go into a queue. */
static inline bool
can_note(const struct scan_state *state)
{
	return state->position.relation->meta.journal_state == SMART_JOURNAL_NONE || smart_kill_queue_has_room();
}

/*
 * Are the entries of a stretch that is passed by noted?  They may have been before, and could not be removed yet, or too many
 * waited.  To note them costs more than to pass them by, so of a session's stretches one in some is noted, and the first.
 */
static inline bool
notes_again(IndexScanDesc scan, const struct scan_state *state)
{
	static uint32 stretches = 0;

	return stretches++ % STRETCHES_PER_NOTE == 0 && smart_kills_possible(scan->heapRelation) && can_note(state);
}

/* The scan goes elsewhere: removes entries of dead rows. */
static inline void
leave_batch(IndexScanDesc scan, struct scan_state *state)
{
	state->alike = 0;
	state->formed = 0;
	if (unlikely(state->kills.count > 0))
		smart_kills_apply(&state->kills, state->position.relation, scan->heapRelation);
}

/* ---- memory ---- */

static struct scan_state *idle; /* of a scan that has ended, or NULL */

static void
release_state(void *argument)
{
	struct scan_state *state = argument;

	if (idle == NULL && smart_ranges_rest(state->position.ranges))
		idle = state;
	else
		MemoryContextDelete(state->own);
}

/* The state of a scan whose other memory is in CurrentMemoryContext; nothing but its memory and its ranges is set. */
static struct scan_state *
make_state(void)
{
	struct scan_state *state = idle;

	idle = NULL;
	if (state == NULL)
	{
		MemoryContext own = AllocSetContextCreate(TopMemoryContext, "smart scan state", ALLOCSET_DEFAULT_SIZES);
		MemoryContext old = MemoryContextSwitchTo(own);

		state = palloc(sizeof(struct scan_state));
		state->own = own;
		state->position.ranges = smart_ranges_make();
		MemoryContextSwitchTo(old);
	}
	state->context = CurrentMemoryContext;
	state->release = (MemoryContextCallback){.func = release_state, .arg = state};
	MemoryContextRegisterResetCallback(state->context, &state->release);
	return state;
}

/* ---- callbacks ---- */

IndexScanDesc
smart_am_begin_scan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "smart scan", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	struct scan_state *state = make_state();
	struct smart_ranges *ranges = state->position.ranges;
	struct smart_relation *relation;

	smart_dead_rows_begin(&state->dead, index);
	/* It may be asked for the sake of a constraint, or by a plan that is older than the loss. */
	relation = smart_journal_open(index, true);
	smart_dead_rows_choose(&state->dead, RecoveryInProgress() && relation->view != NULL ? 0 : read_from(relation));
	state->round_trips = 0;
	state->low = 0;
	state->alike = 0;
	state->formed = 0;
	state->tids.codec = relation->codec;
	state->tids.payload = relation->codec->payload_width < 0 ? UINT32_MAX : (uint32) relation->codec->payload_width;
	state->tids.batch = 0;
	state->passes_dead = false;
	smart_sight_init(&state->sight);
	smart_tuples_init(&state->tuples, relation->codec);
	smart_kills_init(&state->kills);
	smart_ranges_use(ranges, relation->codec);
	smart_position_init(&state->position, scan, relation, ranges);
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
	leave_batch(scan, state);
	smart_dead_rows_end(&state->dead);
	smart_position_reset(position);
	smart_pending_before_scan(scan->indexRelation, scan->xs_snapshot);
	if (unlikely(position->relation->tree == NULL && position->relation->view == NULL))
		(void) smart_view_replace_tree(position->relation, scan->indexRelation);
	if (unlikely(position->relation->view != NULL))
	{
		if (!smart_position_is_to_pin(position))
			smart_view_refresh(position->relation, scan->indexRelation);
	}
	else
		smart_relation_refresh(position->relation, scan->indexRelation);
	smart_ranges_set(position->ranges, scan->keyData, scan->numberOfKeys);
}

/* The position has moved: removes the noted entries, if it has left their batch. */
static inline void
follow_position(IndexScanDesc scan, struct scan_state *state, bool found)
{
	if (unlikely(state->kills.count > 0) && (!found || state->position.batches != state->killed_batch))
		smart_kills_apply(&state->kills, state->position.relation, scan->heapRelation);
}

/* Counts the entries of the batch, from the position on, whose rows are known to be dead. */
static inline int
count_known_dead(struct scan_state *state, int step)
{
	struct smart_position *position = &state->position;
	int begin = position->index;
	int end = begin;
	ItemPointerData tid;

	smart_assert(step == 1 || step == -1);
	current_tid(state, &tid);
	while (smart_dead_rows_tells(&state->dead, &tid))
	{
		end += step;
		/* Not all of a batch may satisfy the conditions. */
		if ((uint32) end >= position->batch.count || position->ranges->filtered)
			break;
		get_tid(&state->tids, position, end, &tid);
	}
	return smart_dead_rows_counts(&state->dead) ? abs(end - begin) : 0;
}

/* A stretch of dead entries, which had some before, goes on with these of the batch: notes them, if it is a stretch to note. */
static inline void
note_stretch(IndexScanDesc scan, struct scan_state *state, int before, int count, int step, bool *notes)
{
	smart_assert(before >= 0 && before <= FEW_DEAD && count > 0);
	if (before < FEW_DEAD && before + count >= FEW_DEAD)
		*notes = notes_again(scan, state);
	for (int i = 0; *notes && i < count; i++)
		note_entry(state, state->position.index + i * step);
}

/* Moves behind the entries of rows that are known to be dead; false: there is no other entry. */
static pg_noinline bool
pass_known_dead(IndexScanDesc scan, struct scan_state *state, bool backward)
{
	struct smart_position *position = &state->position;
	int step = backward ? -1 : 1;
	int stretch = 0;
	bool notes = false;
	int count;

	while ((count = count_known_dead(state, step)) > 0)
	{
		uint32 batch = position->batches;
		int next = position->index + count * step;

		note_stretch(scan, state, stretch, count, step, &notes);
		stretch = Min(stretch + count, FEW_DEAD);
		position->index = next - step;
		if ((uint32) next < position->batch.count && !position->ranges->filtered)
		{
			position->index = next;
			return true;
		}
		if (!smart_position_search(position, backward))
		{
			follow_position(scan, state, false);
			return false;
		}
		if (position->batches != batch)
		{
			follow_position(scan, state, true);
			CHECK_FOR_INTERRUPTS();
			notes = notes && can_note(state);
			next = backward ? (int) position->batch.count - 1 : 0;
		}
		/* Between ranges there may be entries that are not dead. */
		if (position->index != next)
		{
			stretch = 0;
			notes = false;
		}
	}
	return true;
}

/* Does the scan's snapshot see the row of the entry at the scan's position? */
static bool
sees_row(struct scan_state *state, bool backward)
{
	struct smart_position *position = &state->position;
	ItemPointerData tids[SMART_SIGHT_AHEAD];
	MemoryContext old;
	bool sees;

	if (!smart_sight_has(&state->sight, position))
	{
		int count = smart_sight_ahead(&state->sight, position, backward);
		int low = backward ? position->index - (count - 1) : position->index;

		smart_assert(low >= 0 && count >= 1 && (uint32) (low + count) <= position->batch.count);
		current_tid(state, &tids[0]);
		for (int i = 0; i < count; i++)
			get_tid(&state->tids, position, low + i, &tids[i]);
		smart_sight_look(&state->sight, position, low, tids, count);
	}
	current_tid(state, &tids[0]);
	old = MemoryContextSwitchTo(state->context);
	sees = smart_sight_sees(&state->sight, position, &tids[0]);
	MemoryContextSwitchTo(old);
	return sees;
}

/* Moves behind the entries of rows that the snapshot does not see; false: there is no other entry. */
static pg_noinline bool
pass_unseen(struct scan_state *state, bool backward)
{
	while (!sees_row(state, backward))
	{
		CHECK_FOR_INTERRUPTS();
		if (!smart_position_search(&state->position, backward))
			return false;
	}
	return true;
}

/* Searches the next entry and returns it. */
static pg_noinline bool
search_tuple(IndexScanDesc scan, bool backward)
{
	struct scan_state *state = scan->opaque;
	uint64 before = smart_session_round_trips();
	bool found;

	state->alike = 0;
	state->formed = 0;
	smart_pending_before_scan(scan->indexRelation, scan->xs_snapshot);
	found = smart_position_search(&state->position, backward);
	follow_position(scan, state, found);
	state->passes_dead = smart_dead_rows_any(&state->dead) && knows_dead(scan, state);
	if (unlikely(state->passes_dead) && found)
		found = pass_known_dead(scan, state, backward);
	state->looks = smart_position_looks(&state->position);
	if (unlikely(state->looks) && found)
		found = pass_unseen(state, backward);
	smart_check_snapshot_age(scan->indexRelation, scan->xs_snapshot);
	state->round_trips += smart_session_round_trips() - before;
	if (!found)
		return false;
	return_entry(scan, state, backward);
	return true;
}

bool
smart_am_get_tuple(IndexScanDesc scan, ScanDirection direction)
{
	struct scan_state *state = scan->opaque;
	int next = state->position.index + (int) direction;
	uint32 ahead = (uint32) next - state->low;

	if (unlikely(scan->kill_prior_tuple))
		note_dead(scan, state);
	if (likely(ahead < state->alike))
	{
		state->position.index = next;
		get_tid(&state->tids, &state->position, next, &scan->xs_heaptid);
		return true;
	}
	if (likely(ahead < state->formed))
	{
		state->position.index = next;
		return_formed(scan, state);
		return true;
	}
	return search_tuple(scan, ScanDirectionIsBackward(direction));
}

/* Moves forward by an entry; most steps stay in the batch, where index and next are inside together. */
static inline bool
next_entry(struct smart_position *position)
{
	int next = position->index + 1;

	if (likely((uint32) next < position->batch.count && !position->ranges->filtered &&
			   position->whereabouts == SMART_IN_BATCH))
	{
		position->index = next;
		return true;
	}
	return smart_position_search(position, false);
}

int64
smart_am_get_bitmap(IndexScanDesc scan, TIDBitmap *bitmap)
{
	struct scan_state *state = scan->opaque;
	/*
	 * What need not be rechecked version 15 may not look for in the heap, where TIDs serve others meanwhile in recovery, and
	 * while pages answer.
	 */
	bool recheck =
		state->position.ranges->recheck || scan->xactStartedInRecovery || state->position.relation->view != NULL;
	bool passes_dead = smart_dead_rows_any(&state->dead) && knows_dead(scan, state);
	uint64 before = smart_session_round_trips();
	ItemPointerData tids[BITMAP_TIDS];
	int count = 0;
	int64 total = 0;

	while (next_entry(&state->position))
	{
		current_tid(state, &tids[count]);
		if (unlikely(passes_dead) && smart_dead_rows_has(&state->dead, &tids[count]))
			continue;
		count++;
		smart_assert(count <= BITMAP_TIDS);
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
	state->round_trips += smart_session_round_trips() - before;
	return total + count;
}

void
smart_am_end_scan(IndexScanDesc scan)
{
	struct scan_state *state = scan->opaque;

	leave_batch(scan, state);
	smart_dead_rows_end(&state->dead);
	smart_sight_end(&state->sight);
	/* Ends the pin; the reference to the tree's handle goes with the context. */
	(void) smart_read_ahead(&state->position, NULL, 0, 0);
	smart_position_reset(&state->position);
	if (state->position.relation != NULL && state->position.relation->view != NULL)
		smart_view_close(state->position.relation);
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

	leave_batch(scan, state);
	smart_position_restore(&state->position);
}

/*
 * scan.c
 *	  Index scans: the callbacks, and what is returned for an entry.
 */
#include "postgres.h"

#include "access/relscan.h"
#include "access/tupmacs.h"
#include "nodes/tidbitmap.h"
#include "utils/memutils.h"

#include "am/am.h"
#include "am/position.h"
#include "am/ranges.h"
#include "base/assert.h"

#define BITMAP_TIDS   256 /* added to a bitmap at a time */
#define TUPLES_AHEAD  64  /* formed at a time by an index-only scan */
#define TUPLES_SPACE  (16 * 1024)
#define ENTRIES_SPACE SMART_ENTRY_MAX
#define SHORT_COPY    16 /* bytes that the compiler copies in one go */

/* The tuples of some neighbouring entries of a batch. */
struct tuples
{
	uint32 batch; /* of which batch; 0: none yet */
	int low;      /* of entries low .. high */
	int high;
	int base;    /* tuple[i - base] is that of entry i */
	bool single; /* one column passed by value: there is a short way */
	char *space;
	IndexTuple tuple[TUPLES_AHEAD];
	uint32 entry_end[TUPLES_AHEAD];
	uint8 entries[ENTRIES_SPACE + SHORT_COPY];
};

struct scan_state
{
	MemoryContext context; /* all that belongs to the scan lives in it */
	uint32 payload;        /* bytes behind an entry's TID, or UINT32_MAX if they differ */
	struct smart_position position;
	struct tuples tuples;
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

/* Copies a string that is mostly short, and perhaps some bytes behind it. */
static inline void
copy_string(uint8 *out, const uint8 *bytes, uint32 length)
{
	if (likely(length <= SHORT_COPY))
		memcpy(out, bytes, SHORT_COPY);
	else
		memcpy(out, bytes, length);
}

/*
 * Copies up to most entries from the scan's position on, in its direction, to
 * tuples->entries, as far as they fit; returns how many.
 */
static int
copy_entries(struct scan_state *state, int most, bool backward)
{
	const struct smart_batch *batch = &state->position.batch;
	struct tuples *tuples = &state->tuples;
	int index = state->position.index;
	int available = backward ? index + 1 : (int) batch->count - index;
	uint32 used = 0;
	int count;

	most = Min(most, Min(available, TUPLES_AHEAD));
	for (count = 0; count < most; count++)
	{
		const struct smart_item *item = &batch->items[backward ? index - count : index + count];

		/* The first one fits always. */
		if (used + batch->prefix_length + item->length > ENTRIES_SPACE)
			break;
		copy_string(tuples->entries + used, batch->prefix, batch->prefix_length);
		used += batch->prefix_length;
		copy_string(tuples->entries + used, batch->bytes + item->offset, item->length);
		used += item->length;
		tuples->entry_end[count] = used;
	}
	smart_assert(count > 0);
	return count;
}

/* Can tuples of this index be formed by form_single(), if they are not NULL? */
static bool
is_single(const struct smart_codec *codec)
{
	return codec->flat && codec->ncolumns == 1 && codec->columns[0].byval && codec->columns[0].flip == 0 &&
		   codec->residue_width == 0 && codec->fixed_length > 0;
}

/*
 * Forms the first count of the entries that were copied, in an index with
 * is_single(); returns how many there are before the first NULL.
 */
static int
form_singles(const struct smart_codec *codec, struct tuples *tuples, int count, int place, int step)
{
	const struct smart_column *column = &codec->columns[0];
	const uint8 *entry = tuples->entries;
	char *space = tuples->space;
	int done;

	smart_assert((Size) count * codec->tuple_size <= TUPLES_SPACE);
	for (done = 0; done < count && likely(entry[0] == SMART_NOT_NULL); done++)
	{
		IndexTuple tuple = (IndexTuple) space;
		Datum value = column->image.decode(&column->image, entry + 1, column->image.width, NULL, NULL);

		store_att_byval(space + column->tuple_offset, value, column->attlen);
		tuple->t_info = (unsigned short) codec->tuple_size;
		smart_entry_tid(codec, entry + codec->fixed_key_length, &tuple->t_tid);
		tuples->tuple[place] = tuple;
		place += step;
		entry += codec->fixed_length;
		space += codec->tuple_size;
	}
	return done;
}

/* The same for any index; all are formed that there is space for, at least one. */
static int
form_any(const struct smart_codec *codec, struct tuples *tuples, int count, int place, int step)
{
	uint32 start = 0;
	Size used = 0;
	int done;

	for (done = 0; done < count && used <= TUPLES_SPACE; done++)
	{
		uint32 end = tuples->entry_end[done];
		IndexTuple tuple =
			smart_codec_form_tuple(codec, tuples->entries + start, (int) (end - start), tuples->space + used);

		tuples->tuple[place] = tuple;
		place += step;
		used += MAXALIGN(IndexTupleSize(tuple));
		start = end;
	}
	return done;
}

/*
 * Forms the tuples of up to most entries from the scan's position on, at least
 * one.  First all are copied and then all are formed, and none is read back
 * right after it was written: that would wait for the store.
 */
static void
form_tuples(struct scan_state *state, int most, bool backward)
{
	const struct smart_codec *codec = state->position.relation->codec;
	struct tuples *tuples = &state->tuples;
	int index = state->position.index;
	int place = backward ? TUPLES_AHEAD - 1 : 0;
	int count = copy_entries(state, most, backward);
	int done = 0;

	if (tuples->space == NULL)
		tuples->space = MemoryContextAlloc(state->context, TUPLES_SPACE + codec->space);
	if (tuples->single)
		done = form_singles(codec, tuples, count, place, backward ? -1 : 1);
	if (done == 0)
		done = form_any(codec, tuples, count, place, backward ? -1 : 1);
	tuples->batch = state->position.batches;
	tuples->base = index - place;
	tuples->low = backward ? index - (done - 1) : index;
	tuples->high = backward ? index : index + (done - 1);
	smart_assert(tuples->low <= index && index <= tuples->high);
}

/* The tuple of the entry at the scan's position: good until the next call. */
static IndexTuple
current_tuple(struct scan_state *state, bool backward)
{
	struct tuples *tuples = &state->tuples;
	int index = state->position.index;

	/* The first of a batch is formed alone, since it may well be the only one that is wanted. */
	if (tuples->batch != state->position.batches)
		form_tuples(state, 1, backward);
	else if (index < tuples->low || index > tuples->high)
		form_tuples(state, state->position.ranges->filtered ? 1 : TUPLES_AHEAD, backward);
	return tuples->tuple[index - tuples->base];
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
	state->tuples.batch = 0;
	state->tuples.single = is_single(relation->codec);
	state->tuples.space = NULL;
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
		scan->xs_itup = current_tuple(state, backward);
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

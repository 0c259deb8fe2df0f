/*
 * view.c
 *	  An index without a tree that answers from the pages of its journal.
 *
 * Two sources are merged, in either direction: the base, and the delta, whose entries count over its.  The base is the run, which
 * is read by groups, or, of an index that writes back, its follower on memory nodes (carry.h), where that has to be asked: a short
 * range is read in the run's page if shared buffers have it.  Until there is a delta, what the chain says of each range that is
 * sought takes its place (chain_range.h); of a large range, that in order (sorted_chain.h).
 */
#include "postgres.h"

#include "access/xact.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "am/compat.h"
#include "am/index/trees.h"
#include "am/journal/apply.h"
#include "am/journal/await.h"
#include "am/journal/carry.h"
#include "am/journal/chain_range.h"
#include "am/journal/delta.h"
#include "am/journal/due.h"
#include "am/journal/follow.h"
#include "am/journal/spent.h"
#include "am/journal/staging.h"
#include "am/journal/view.h"
#include "am/server/errands.h"
#include "am/server/passed.h"
#include "am/server/rebuild_table.h"
#include "am/server/report.h"
#include "am/server/settings.h"
#include "base/assert.h"
#include "base/bytes.h"

#define LOOK_MS      20 /* between two looks at a memory node that may be away */
#define RENEWALS_MAX 10 /* as often runs may be switched faster than a delta is made */

#define KEPT_VIEWS 4 /* of a session */

#define CHAIN_READS_MAX 64 /* of one view, whatever a worker may be about to do */

#define BATCH_FIRST 16    /* entries of the first batch of a range; then twice as many each time */
#define BATCH_MAX   256   /* at most */
#define BATCH_BYTES 49152 /* of a batch; offsets have 16 bits */

StaticAssertDecl(BATCH_BYTES + SMART_ENTRY_MAX <= PG_UINT16_MAX, "the bytes of a batch");

/* Entries of one group of the run, for a scan that goes backward: the last one is taken first, and so on. */
struct pile
{
	StringInfoData bytes; /* of those that have not been taken */
	StringInfoData ends;  /* where in bytes each of them ends: ints */
};

struct smart_view
{
	MemoryContext context; /* all that belongs to the view lives in it */
	struct holder *holder; /* who has opened it; NULL: it is kept for the next one */
	Oid oid;               /* of the index */
	smart_file file;       /* to which the delta belongs */
	Relation index;
	const struct smart_codec *codec;
	struct smart_meta seen; /* the metapage when it was read last */
	struct smart_meta meta; /* of the run */
	struct smart_relation *delta;
	struct smart_pin_ticket pin;     /* of the delta */
	struct smart_relation *follower; /* NULL: the base is the run */
	uint32 changes;                  /* when one was looked for */
	uint64 renewals;                 /* as often the base has been another one */
	uint32 taken;                    /* runs and followers of which its memory has something */
	uint64 passed_by; /* entries of the run that the delta says were removed, and that nobody has counted yet */
	uint64 spent;     /* the same of its spent tombstones (spent.h) */
	int reading;      /* above 0: what is not over, as an error may have ended it */
	bool younger;     /* it was opened behind the snapshot of its scan, which has not begun yet */
	bool backward;
	bool alone;    /* the base is to be the run */
	bool whole;    /* the follower needs no delta, which there may not be */
	bool near;     /* for this range the base is the run, whose page is in shared buffers; with the delta in any case */
	bool by_chain; /* there is no delta: the chain is read for each range */
	bool waits;    /* that is over: the delta is needed */
	uint32 chain_reads;
	bool part;                 /* the range is the part of one where the scan begins: the other one ends at far */
	bool sought;               /* the two sources stand in this range */
	enum smart_view_told told; /* before that: what the caller has done for the follower */
	bool behind;               /* pages of the run were used anew */

	/* Of the run, whose reader is somewhere in it: searches of a statement's keys mostly ascend. */
	bool behind_range; /* at its first entry that is not before the end of the range, if there is one */
	bool at_end;       /* there is none */
	bool ahead;        /* that can be no later than what is sought next */

	/* The base's next entry. */
	const uint8 *base_entry; /* NULL: there is none in the range */
	int base_length;
	struct pile pile; /* of the run */

	/* The follower's. */
	int base_item; /* of its batch */
	bool given;    /* that is all there is in the range */
	bool passed;   /* the rest of it was returned as it is */
	struct smart_batch base_batch;

	/* The delta's next entry. */
	bool delta_there;
	uint8 delta_mark; /* apply.h */
	int delta_length;
	int delta_key_length;
	int delta_item; /* of its batch, or of the operations */
	struct smart_batch delta_batch;
	struct smart_piece *operations;    /* of the range, in the place of the delta; NULL: none have been read */
	bool to_be_closed;                 /* the caller reads all of the range, or closes the view */
	struct smart_sorted_chain *sorted; /* what the chain says of a large range, in the place of operations; or NULL */
	MemoryContext of_sorted;

	uint32 most; /* entries of the batch that is returned */

	/* Large, and not set at first. */
	struct smart_view_range range; /* what has not been returned */
	uint32 far_length;
	uint8 far[SMART_KEY_MAX + 1];
	struct smart_last_operation last; /* of sorted */
	struct smart_reader reader;
	uint8 delta_entry[SMART_ENTRY_MAX];
	uint8 follower_entry[SMART_ENTRY_MAX];
	struct smart_item items[BATCH_MAX];
	uint8 bytes[BATCH_BYTES + SMART_ENTRY_MAX + SMART_BATCH_SLACK];
};

static inline bool
is_in_batch(const struct smart_batch *batch, int item)
{
	return item >= 0 && (uint32) item < batch->count;
}

/* ---- the run ---- */

/* Is an entry that was read in the direction of the scan beyond the range? */
static bool
is_beyond(const struct smart_view *view, const uint8 *entry, int length)
{
	const struct smart_view_range *range = &view->range;

	if (view->backward)
		return smart_compare_bytes(entry, (Size) length, range->from, range->from_length) < 0;
	return range->to_length > 0 && smart_compare_bytes(entry, (Size) length, range->to, range->to_length) >= 0;
}

static void
set_base(struct smart_view *view, const uint8 *entry, int length)
{
	view->base_entry = entry == NULL || is_beyond(view, entry, length) ? NULL : entry;
	view->base_length = length;
}

/* What a reader found is there to be taken; forward. */
static void
take_found(struct smart_view *view, enum smart_found found)
{
	view->behind |= found == SMART_FOUND_BEHIND;
	view->at_end = found == SMART_FOUND_END && !view->backward && view->range.to_length > 0;
	view->behind_range = view->at_end;
	if (found != SMART_FOUND)
	{
		set_base(view, NULL, 0);
		return;
	}
	smart_reader_check(&view->reader, view->codec, false);
	set_base(view, view->reader.unpacker.entry, view->reader.unpacker.length);
	view->behind_range = view->base_entry == NULL;
}

/* Puts down the entries of the reader's group; those before to alone, if that has a length. */
static void
pile_up(struct smart_view *view, const uint8 *to, uint32 to_length)
{
	struct pile *pile = &view->pile;
	const struct smart_unpacker *from = &view->reader.unpacker;

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

/* The last entry of the pile, or of the group before. */
static void
take_from_pile(struct smart_view *view)
{
	struct pile *pile = &view->pile;
	int end;
	int begin = 0;

	while (pile->ends.len == 0)
	{
		enum smart_found found = smart_reader_previous_group(&view->reader);

		if (found != SMART_FOUND)
		{
			take_found(view, found);
			return;
		}
		pile_up(view, NULL, 0);
	}
	pile->ends.len -= (int) sizeof(int);
	memcpy(&end, pile->ends.data + pile->ends.len, sizeof(end));
	if (pile->ends.len > 0)
		memcpy(&begin, pile->ends.data + pile->ends.len - sizeof(int), sizeof(begin));
	set_base(view, (const uint8 *) pile->bytes.data + begin, end - begin);
}

static enum smart_found
seek_forward(struct smart_view *view)
{
	const struct smart_view_range *range = &view->range;
	bool ahead = view->ahead;

	view->ahead = false;
	if (!ahead)
		return smart_reader_seek_entry(&view->reader, range->from, (int) range->from_length);
	/* Rows that are added behind all others are not sought in the run again and again. */
	if (view->at_end)
		return SMART_FOUND_END;
	return smart_reader_seek_ahead(&view->reader, range->from, (int) range->from_length);
}

static void
seek_run(struct smart_view *view)
{
	static const uint8 highest[SMART_KEY_MAX + 1] = {[0 ... SMART_KEY_MAX] = 0xff};
	const struct smart_view_range *range = &view->range;
	enum smart_found found;

	if (!view->backward)
	{
		take_found(view, seek_forward(view));
		return;
	}
	found = range->to_length > 0 ? smart_reader_seek_group(&view->reader, range->to, (int) range->to_length)
								 : smart_reader_seek_group(&view->reader, highest, (int) sizeof(highest));
	if (found != SMART_FOUND)
	{
		take_found(view, found);
		return;
	}
	pile_up(view, range->to, range->to_length);
	take_from_pile(view);
}

static void
advance_run(struct smart_view *view)
{
	if (view->backward)
		take_from_pile(view);
	else
		take_found(view, smart_reader_next_entry(&view->reader));
}

/* ---- the follower ---- */

/*
 * From now on the run is the base, for what has not been returned.  Where the follower needed no delta, that may not be there, or
 * not be up to date.
 */
static void
stay_alone(struct smart_view *view)
{
	view->alone = true;
	view->behind |= view->whole;
	view->whole = false;
	view->follower = NULL;
	view->renewals++;
	view->sought = false;
}

/* A read of the follower came to this. */
static void
leave_follower(struct smart_view *view, smart_status status)
{
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
	stay_alone(view);
}

/* Reads its next batch; false: there is none, or none that can be had. */
static bool
read_follower(struct smart_view *view)
{
	smart_status status = SMART_DONE;

	if (!view->given)
		status = smart_scan_next(smart_relation_scan(view->follower), &view->base_batch);
	if (status == SMART_OK)
	{
		view->base_item = view->backward ? (int) view->base_batch.count : -1;
		return true;
	}
	view->base_batch.count = 0;
	set_base(view, NULL, 0);
	if (status != SMART_DONE)
		leave_follower(view, status);
	return false;
}

static void
advance_follower(struct smart_view *view)
{
	struct smart_batch *batch = &view->base_batch;

	view->base_item += view->backward ? -1 : 1;
	if (!is_in_batch(batch, view->base_item))
	{
		if (!read_follower(view))
			return;
		view->base_item += view->backward ? -1 : 1;
	}
	set_base(view, view->follower_entry, smart_batch_entry(batch, (uint32) view->base_item, view->follower_entry));
}

static void
seek_follower(struct smart_view *view)
{
	const struct smart_view_range *range = &view->range;
	smart_status status = SMART_OK;

	view->given = view->told == SMART_VIEW_GIVEN;
	if (view->told == SMART_VIEW_NOTHING)
		status = smart_scan_seek(smart_relation_scan(view->follower), range->from, range->from_length, range->to,
								 range->to_length, view->backward);
	view->told = SMART_VIEW_NOTHING;
	if (!view->given)
		view->base_batch.count = 0;
	view->base_item = view->backward ? (int) view->base_batch.count : -1;
	if (status == SMART_OK)
		advance_follower(view);
	else
		leave_follower(view, status);
}

/* ---- the base ---- */

static bool
reads_run(const struct smart_view *view)
{
	return view->follower == NULL || view->near;
}

static bool
needs_no_delta(const struct smart_view *view)
{
	return view->whole && !view->near;
}

static void
seek_base(struct smart_view *view)
{
	if (reads_run(view))
		seek_run(view);
	else
		seek_follower(view);
}

static void
advance_base(struct smart_view *view)
{
	if (reads_run(view))
		advance_run(view);
	else
		advance_follower(view);
}

/* ---- the delta ---- */

static inline bool
is_spent(const struct smart_batch *batch, const struct smart_item *item)
{
	return item->length > 0 && batch->bytes[item->offset + item->length - 1] >= SMART_DELTA_SPENT;
}

/* Passes by the spent tombstones that come next.  The run has nothing that they would hide; a follower may have. */
static void
pass_by_spent(struct smart_view *view)
{
	const struct smart_batch *batch = &view->delta_batch;
	int step = view->backward ? -1 : 1;
	int item = view->delta_item;

	while (is_in_batch(batch, item) && is_spent(batch, &batch->items[item]))
		item += step;
	view->spent += (uint64) abs(item - view->delta_item);
	view->delta_item = item;
}

/* Comes to the next entry of the delta; false: there is none. */
static bool
step_in_delta(struct smart_view *view)
{
	struct smart_batch *batch = &view->delta_batch;

	view->delta_item += view->backward ? -1 : 1;
	for (;;)
	{
		smart_status status;

		if (reads_run(view))
			pass_by_spent(view);
		if (is_in_batch(batch, view->delta_item))
			return true;
		status = smart_relation_next(smart_relation_scan(view->delta), batch);
		if (status == SMART_DONE)
			return false;
		smart_check_status(status, view->index);
		view->delta_item = view->backward ? (int) batch->count - 1 : 0;
	}
}

static void
advance_delta(struct smart_view *view)
{
	view->delta_there = step_in_delta(view);
	if (!view->delta_there)
		return;
	view->delta_length = smart_batch_entry(&view->delta_batch, (uint32) view->delta_item, view->delta_entry) - 1;
	view->delta_mark = view->delta_entry[view->delta_length];
	view->delta_key_length = smart_delta_key_length(view->codec, view->delta_entry, view->delta_length + 1);
}

/* The files of a sorted chain are closed; after an error their resource owner does so. */
static void
end_sorted(struct smart_view *view)
{
	if (view->sorted == NULL)
		return;
	smart_sorted_chain_end(view->sorted);
	view->sorted = NULL;
	MemoryContextDelete(view->of_sorted);
}

/* The same where the chain was sorted for the range. */
static void
advance_sorted(struct smart_view *view)
{
	struct smart_last_operation *last = &view->last;
	MemoryContext old = MemoryContextSwitchTo(view->of_sorted);
	enum smart_found found = smart_sorted_chain_next(view->sorted, last);

	MemoryContextSwitchTo(old);
	view->behind |= found == SMART_FOUND_BEHIND;
	view->delta_there = found == SMART_FOUND;
	if (!view->delta_there)
		return;
	smart_copy_short(view->delta_entry, last->entry, (Size) last->length);
	view->delta_length = last->length;
	view->delta_mark = smart_delta_mark(last->operation);
	view->delta_key_length = last->key_length;
}

/* The same where it was read for the range. */
static void
advance_operations(struct smart_view *view)
{
	const struct smart_piece *piece = view->operations;
	const struct smart_piece_operation *operation;

	view->delta_item += view->backward ? -1 : 1;
	view->delta_there = view->delta_item >= 0 && (uint32) view->delta_item < piece->count;
	if (!view->delta_there)
		return;
	operation = &piece->operations[view->delta_item];
	memcpy(view->delta_entry, operation->entry, (Size) operation->length);
	view->delta_length = operation->length;
	view->delta_mark = smart_delta_mark(operation->operation);
	view->delta_key_length = operation->key_length;
}

static void
advance_over(struct smart_view *view)
{
	if (!view->by_chain)
		advance_delta(view);
	else if (view->sorted != NULL)
		advance_sorted(view);
	else
		advance_operations(view);
}

static void
seek_delta(struct smart_view *view)
{
	const struct smart_view_range *range = &view->range;

	view->delta_there = false;
	if (needs_no_delta(view))
		return;
	if (view->by_chain)
	{
		view->delta_item = view->backward ? (int) view->operations->count : -1;
		advance_over(view);
		return;
	}
	smart_check_status(smart_scan_seek(smart_relation_scan(view->delta), range->from, range->from_length, range->to,
									   range->to_length, view->backward),
					   view->index);
	view->delta_batch.count = 0;
	view->delta_item = -1;
	view->delta_there = true;
	advance_delta(view);
}

/* ---- damage ---- */

/* Called for each message while a view's pages are read: nobody else may read those of an index that has no tree for good. */
static void
look_for_damage(void *argument)
{
	const struct smart_view *view = argument;
	int code = geterrcode();

	if (code == ERRCODE_INDEX_CORRUPTED || code == ERRCODE_DATA_CORRUPTED)
		smart_rebuild_want_anew(smart_relation_database(view->index), RelationGetRelid(view->index));
}

static void
begin_reading(struct smart_view *view, ErrorContextCallback *callback)
{
	*callback = (ErrorContextCallback){.previous = error_context_stack, .callback = look_for_damage, .arg = view};
	error_context_stack = callback;
	view->reading++;
}

static void
end_reading(struct smart_view *view, const ErrorContextCallback *callback)
{
	error_context_stack = callback->previous;
	view->reading--;
}

/* ---- what there is now ---- */

/*
 * Scans pass by the same removed entries again and again, until there is another run; and by spent tombstones, until the carrier has
 * removed them.  If he cannot, they count as the others.
 */
static void
count_passed(struct smart_view *view)
{
	uint64 passed = view->passed_by;
	uint64 spent = view->spent;
	uint64 delta;
	uint64 sum;
	bool pays;

	view->passed_by = view->spent = 0;
	if (likely(passed + spent == 0) || view->delta == NULL || RecoveryInProgress())
		return;
	delta = view->delta->meta.tree;
	sum = smart_spent_pass(delta, spent, &pays) + smart_passed_add(delta, passed);
	if (pays)
		smart_errand_hurry(SMART_ERRAND_CARRY, MyDatabaseId, view->oid);
	/* Once: who compacts looks whether it is due (due.h). */
	if (smart_compaction_would_pay(&view->meta, sum) && !smart_compaction_would_pay(&view->meta, sum - passed - spent))
		smart_errand_request(SMART_ERRAND_COMPACT, MyDatabaseId, view->oid);
}

/* Looks whether there is a follower that can be the base, and whether it needs the delta. */
static void
take_follower(struct smart_view *view)
{
	/* As long as the view. */
	MemoryContext old = MemoryContextSwitchTo(view->context);

	view->follower = view->alone ? NULL : smart_carry_open(view->index, view->codec, &view->meta);
	MemoryContextSwitchTo(old);
	view->whole = view->follower != NULL && smart_carry_has_all(view->index, view->follower);
	view->changes = smart_changes();
	view->renewals++;
	view->taken++;
	view->sought = false;
	view->told = SMART_VIEW_NOTHING;
}

/* The same, if there is one now, or the one there was cannot be any more. */
static void
look_for_follower(struct smart_view *view)
{
	if (view->follower != NULL ? !smart_carry_is_usable(view->follower, &view->meta)
							   : !view->alone && unlikely(view->changes != smart_changes()))
		take_follower(view);
}

/* Has the follower all by itself by now?  What was read ahead of it before has not. */
static bool
is_whole(struct smart_view *view)
{
	bool was_whole = view->whole;

	view->whole = view->follower != NULL && smart_carry_has_all(view->index, view->follower);
	if (view->whole && !was_whole)
		view->renewals++;
	return view->whole;
}

/* A lean delta goes with the run alone, another one with a follower that has come as far as its spent tombstones say. */
static bool
go_together(const struct smart_relation *delta, const struct smart_relation *follower)
{
	struct smart_chain_place place;

	return !smart_tree_is_lean(delta->meta.tree) && smart_follow_place(follower->meta.tree, &place) &&
		   smart_spent_allows(delta->meta.tree, &place);
}

static void
leave_unfit_follower(struct smart_view *view)
{
	if (view->follower == NULL || view->whole || view->delta == NULL || go_together(view->delta, view->follower))
		return;
	view->follower = NULL;
	view->renewals++;
	view->sought = false;
	view->told = SMART_VIEW_NOTHING;
}

/* Can it be read? */
static bool
has_sources(const struct smart_view *view)
{
	return view->delta != NULL || view->by_chain || view->whole;
}

/* Nobody has made the delta of a long chain yet: is that read instead? */
static bool
may_do_without_delta(const struct smart_view *view)
{
	return !view->waits && smart_chain_range_pays(&view->meta) && !smart_delta_is_there(view->index, &view->meta);
}

/* From now on the view has a delta, which is up to date, for what has not been returned. */
static void
wait_for_delta(struct smart_view *view)
{
	MemoryContext old = MemoryContextSwitchTo(view->context);

	view->by_chain = false;
	view->waits = true;
	view->delta = smart_delta_open(view->index, view->codec, &view->meta, &view->pin);
	MemoryContextSwitchTo(old);
	if (view->delta == NULL || !smart_delta_catch_up(view->index, view->codec, view->delta, &view->seen))
		view->behind = true;
	/* What was READ of the follower ahead was READ before the delta was pinned. */
	view->renewals++;
	view->told = SMART_VIEW_NOTHING;
	leave_unfit_follower(view);
}

/* From now on the range ends there, or, if the scan goes backward, begins there. */
static void
move_far_end(struct smart_view *view, const uint8 *bytes, uint32 length)
{
	struct smart_view_range *range = &view->range;

	memcpy(view->backward ? range->from : range->to, bytes, length);
	*(view->backward ? &range->from_length : &range->to_length) = length;
	view->behind_range = view->ahead = false;
}

static void
take_part(struct smart_view *view, const struct smart_chain_bound *bound)
{
	const struct smart_view_range *range = &view->range;

	if (!view->part)
	{
		view->far_length = view->backward ? range->from_length : range->to_length;
		memcpy(view->far, view->backward ? range->from : range->to, view->far_length);
	}
	view->part = true;
	move_far_end(view, bound->bytes, bound->length);
}

/* What has not been returned of the whole range; a delta is needed for that. */
static void
leave_part(struct smart_view *view)
{
	view->part = false;
	view->waits = true;
	view->sought = false;
	move_far_end(view, view->far, view->far_length);
}

/* What the chain says of the range, or of a part of it, as smart_chain_range_read() tells; it may be sorted, but once. */
static enum smart_chain_range
read_range(struct smart_view *view, struct smart_chain_bound *bound)
{
	bool run = reads_run(view);
	const struct smart_view_range *range = &view->range;
	const struct smart_chain_keys keys = smart_chain_keys(range->from, range->from_length, range->to, range->to_length);
	MemoryContext context = AllocSetContextCreate(view->context, "smart sorted chain", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	enum smart_chain_range found =
		smart_chain_range_read(view->index, view->codec, &view->meta, &keys, view->backward, view->operations,
							   run ? bound : NULL, run && view->to_be_closed ? &view->sorted : NULL);

	MemoryContextSwitchTo(old);
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

	end_sorted(view);
	if (view->waits || ++view->chain_reads > CHAIN_READS_MAX)
	{
		wait_for_delta(view);
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
			wait_for_delta(view);
			break;
		case SMART_CHAIN_RANGE_BEHIND:
			view->behind = true;
			break;
	}
}

/*
 * Takes the run of now, and its delta, by which what has not been returned is sought: compaction has switched runs.  False: there
 * is no room for the delta, or the index does not answer so any more.
 */
static bool
take_run(struct smart_view *view)
{
	Relation index = view->index;
	MemoryContext old = MemoryContextSwitchTo(view->context);

	count_passed(view);
	end_sorted(view);
	view->delta = NULL;
	view->follower = NULL;
	view->whole = view->near = view->by_chain = false;
	smart_pin_leave(&view->pin);
	for (int i = 0; i < RENEWALS_MAX && !has_sources(view) && smart_relation_can_answer(index); i++)
	{
		uint64 run = view->meta.run;

		/* If the journal has gone on meanwhile, there is another delta to be made. */
		smart_meta_refresh(index, &view->seen);
		view->meta = view->seen;
		if (i > 0 && view->meta.run == run)
			break;
		take_follower(view);
		view->by_chain = !view->whole && may_do_without_delta(view);
		if (!view->whole && !view->by_chain)
			view->delta = smart_delta_open(index, view->codec, &view->meta, &view->pin);
	}
	MemoryContextSwitchTo(old);
	view->sought = false;
	view->behind = false;
	if (!has_sources(view))
		return false;
	smart_reader_begin_run(&view->reader, index, &view->meta, false);
	view->behind_range = view->ahead = false;
	leave_unfit_follower(view);
	return true;
}

/* Without a delta: the chain is read once more, unless there is another run. */
static bool
read_again(struct smart_view *view)
{
	view->sought = false;
	smart_meta_refresh(view->index, &view->seen);
	return smart_meta_is_loadable(&view->seen) && view->seen.journal == view->meta.journal &&
		   view->seen.run == view->meta.run;
}

/* Brings the view up to date, with the run of now if that is another one; false as above. */
static bool
catch_up(struct smart_view *view)
{
	ErrorContextCallback callback;
	bool done = false;
	bool usable = true;

	begin_reading(view, &callback);
	view->near = false;
	for (int i = 0; i < RENEWALS_MAX && usable && !done; i++)
	{
		done = is_whole(view) || (view->by_chain && read_again(view)) ||
			   (view->delta != NULL && smart_delta_catch_up(view->index, view->codec, view->delta, &view->seen));
		usable = done || take_run(view);
	}
	if (done && !view->whole)
		look_for_follower(view);
	leave_unfit_follower(view);
	end_reading(view, &callback);
	return done;
}

/* smart_relation_arrive() on a standby, whose tree has to have all that a snapshot sees which was taken before. */
static bool
arrive_on_standby(struct smart_relation *self, Relation index)
{
	uint32 changes = smart_changes();
	const struct smart_relation *loaded = smart_relation_try_open(index);

	if (loaded == NULL || smart_tree_is_away(loaded->meta.tree))
	{
		self->changes = changes;
		return false;
	}
	if ((loaded->standby && loaded->tree != NULL && !smart_follow_catch_up(index, loaded)) ||
		!smart_relation_arrive(self, index))
		return false;
	/* That was loaded anew between the two. */
	if (self->standby && self->meta.tree != loaded->meta.tree && !smart_follow_catch_up(index, self))
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("index \"%s\" has been loaded anew since the statement began", RelationGetRelationName(index)),
				errhint("Try again."));
	return true;
}

/* Does the index have its tree again?  Then self has that, and no view. */
static bool
arrive(struct smart_relation *self, Relation index)
{
	smart_view_forget(self->view);
	return RecoveryInProgress() ? arrive_on_standby(self, index) : smart_relation_arrive(self, index);
}

/* ---- merging ---- */

/* Which source has the next entry in the direction of the scan?  Below 0: the delta; above: the base; 0: both have it. */
static int
choose(const struct smart_view *view)
{
	int order;

	if (!view->delta_there || view->base_entry == NULL)
		return view->delta_there ? -1 : 1;
	/* No key is a prefix of another one: what begins with a key is its entry. */
	order = smart_compare_bytes(view->delta_entry, (Size) view->delta_key_length, view->base_entry,
								(Size) Min(view->base_length, view->delta_key_length));
	return view->backward ? -order : order;
}

static Size
put(struct smart_view *view, struct smart_batch *batch, Size used, const uint8 *entry, int length)
{
	view->items[batch->count++] = (struct smart_item){.offset = (uint16) used, .length = (uint16) length};
	smart_copy_short(view->bytes + used, entry, (Size) length);
	return used + (Size) length;
}

/* Takes the next entries of both sources, in the direction of the scan. */
static void
gather(struct smart_view *view, struct smart_batch *batch)
{
	Size used = 0;
	bool run = reads_run(view);

	while (batch->count < view->most && used < BATCH_BYTES && !view->behind && view->sought &&
		   (view->delta_there || view->base_entry != NULL))
	{
		int order = choose(view);

		if (order > 0)
			used = put(view, batch, used, view->base_entry, view->base_length);
		else if (view->delta_mark == SMART_DELTA_ADDED)
			used = put(view, batch, used, view->delta_entry, view->delta_length);
		else
		{
			bool spent = view->delta_mark >= SMART_DELTA_SPENT;

			view->spent += spent;
			view->passed_by += run && !spent;
		}
		if (order >= 0)
			advance_base(view);
		if (order <= 0)
			advance_over(view);
	}
}

/* Where the delta has nothing in the range, the rest of the follower's batch is what comes next. */
static void
pass(struct smart_view *view, struct smart_batch *batch)
{
	uint32 item = (uint32) view->base_item;

	*batch = view->base_batch;
	if (view->backward)
		batch->count = item + 1;
	else
	{
		batch->items += item;
		batch->count -= item;
	}
	view->passed = true;
}

/* What was returned is not in the range any more. */
static void
shrink(struct smart_view *view, const struct smart_batch *batch)
{
	struct smart_view_range *range = &view->range;
	uint8 *edge = view->backward ? range->to : range->from;
	uint8 entry[SMART_ENTRY_MAX];
	int last = smart_batch_entry(batch, view->backward ? 0 : batch->count - 1, entry);
	uint32 length = (uint32) smart_codec_key_length(view->codec, entry, last);

	memcpy(edge, entry, length);
	if (view->backward)
		range->to_length = length;
	else
		range->from_length = (uint32) smart_successor(range->from, length);
}

/* Seeks the range in both sources. */
static void
seek(struct smart_view *view)
{
	if (view->by_chain && !needs_no_delta(view) && !view->behind)
		read_chain(view);
	view->sought = true;
	view->passed = false;
	if (!view->behind)
		seek_base(view);
	if (view->sought && !view->behind)
		seek_delta(view);
}

/* Reads what comes next in the range, as far as it can be read. */
static void
read_on(struct smart_view *view, struct smart_batch *batch)
{
	*batch = (struct smart_batch){.prefix = view->bytes, .bytes = view->bytes, .items = view->items};
	if (view->sought && view->passed)
	{
		/* The batch has been used up. */
		view->passed = false;
		view->base_batch.count = 0;
		advance_base(view);
	}
	/* A follower that cannot be read leaves its place to the run. */
	while (!view->sought)
		seek(view);
	if (!reads_run(view) && !view->behind && !view->part && !view->delta_there && view->base_entry != NULL)
		pass(view, batch);
	else
		gather(view, batch);
}

/* Puts entries that were gathered backward in order. */
static void
turn_round(struct smart_view *view, const struct smart_batch *batch)
{
	for (uint32 i = 0; i < batch->count / 2; i++)
	{
		struct smart_item item = view->items[i];

		view->items[i] = view->items[batch->count - 1 - i];
		view->items[batch->count - 1 - i] = item;
	}
}

/* The same in whatever there is, if it cannot be read as it was. */
static void
read_on_anyhow(struct smart_view *view, struct smart_batch *batch)
{
	read_on(view, batch);
	/* A follower that cannot be read leaves its place to the run. */
	if (batch->count == 0 && !view->sought)
		read_on(view, batch);
	/* The journal of now has what a snapshot sees that was taken before, too. */
	for (int i = 0; i < RENEWALS_MAX && batch->count == 0 && view->behind && take_run(view) && catch_up(view); i++)
		read_on(view, batch);
}

enum smart_found
smart_view_next(struct smart_view *view, struct smart_batch *batch)
{
	ErrorContextCallback callback;

	CHECK_FOR_INTERRUPTS();
	begin_reading(view, &callback);
	read_on_anyhow(view, batch);
	if (batch->count == 0 && view->part && !view->behind)
	{
		leave_part(view);
		read_on_anyhow(view, batch);
	}
	end_reading(view, &callback);
	if (batch->count == 0)
	{
		end_sorted(view);
		return view->behind || !has_sources(view) ? SMART_FOUND_BEHIND : SMART_FOUND_END;
	}
	if (view->backward && !view->passed)
		turn_round(view, batch);
	shrink(view, batch);
	view->most = Min(2 * view->most, BATCH_MAX);
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
	smart_view_forget(view);
	view->told = SMART_VIEW_NOTHING;
	view->most = BATCH_FIRST;
}

void
smart_view_will_be_closed(struct smart_view *view)
{
	view->to_be_closed = true;
}

void
smart_view_wants_delta(struct smart_view *view)
{
	view->waits = true;
}

void
smart_view_forget(struct smart_view *view)
{
	view->sought = false;
	end_sorted(view);
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
		stay_alone(view);
	view->alone = true;
}

/* Has a view whose follower needs no delta one all the same, which is up to date, as the run needs it?  It is not made. */
static bool
find_delta(struct smart_view *view)
{
	if (view->by_chain)
		return false;
	if (view->delta == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(view->context);

		view->delta = smart_delta_find(view->index, view->codec, &view->meta, &view->pin);
		MemoryContextSwitchTo(old);
		/* What was READ of the follower ahead was READ before the delta was pinned. */
		view->renewals++;
	}
	return view->delta != NULL && smart_delta_catch_up(view->index, view->codec, view->delta, &view->seen);
}

/* Is the page of the run where the range lies in shared buffers, and is there what has to be merged with it? */
static bool
is_near(struct smart_view *view)
{
	const struct smart_view_range *range = &view->range;

	return smart_reader_is_near(&view->reader, range->from, (int) range->from_length, range->to,
								(int) range->to_length) &&
		   (!view->whole || find_delta(view));
}

bool
smart_view_take_near(struct smart_view *view)
{
	ErrorContextCallback callback;

	smart_assert(!view->sought && view->told == SMART_VIEW_NOTHING);
	if (view->follower == NULL || view->behind || view->range.to_length == 0 || !smart_settings.answer_from_pages)
		return false;
	begin_reading(view, &callback);
	view->near = is_near(view);
	end_reading(view, &callback);
	return view->near;
}

const struct smart_view_range *
smart_view_rest(struct smart_view *view)
{
	if (view->part)
		leave_part(view);
	return &view->range;
}

/* ---- opening ---- */

/*
 * A view is kept when its statement is over, as it is mostly opened again by the next one: with its delta's handle and its
 * buffers, but without its pin.
 */
static struct smart_view *kept[KEPT_VIEWS];

/* Whoever has opened a view; lives in the memory context that he did so in. */
struct holder
{
	struct smart_view *view; /* NULL: it was closed */
	MemoryContextCallback release;
};

/* Can the view be opened once more?  Not if an error has come in between, and what a former run had would be left. */
static bool
is_worth_keeping(const struct smart_view *view)
{
	return view->reading == 0 && view->taken == 1 && has_sources(view) && !view->by_chain && view->operations == NULL;
}

static void
keep(struct smart_view *view)
{
	static uint32 next = 0;
	struct smart_view **place = &kept[next % KEPT_VIEWS];

	for (int i = 0; i < KEPT_VIEWS && *place != NULL; i++)
		place = &kept[++next % KEPT_VIEWS];
	if (*place != NULL)
		MemoryContextDelete((*place)->context);
	*place = view;
	next++;
	view->holder = NULL;
	view->index = NULL;
	view->codec = NULL;
}

/* Takes the view of an index that was kept, or returns NULL.  One that stays alone never takes one with a follower, nor the reverse. */
static struct smart_view *
take_kept(Relation index, bool alone)
{
	for (int i = 0; i < KEPT_VIEWS; i++)
	{
		struct smart_view *view = kept[i];

		if (view == NULL || view->oid != RelationGetRelid(index) ||
			(view->alone != alone && smart_relation_writes_back(index)))
			continue;
		kept[i] = NULL;
		if (likely(view->changes == smart_changes() &&
				   memcmp(&view->file, &smart_relation_locator(index), sizeof(view->file)) == 0))
			return view;
		MemoryContextDelete(view->context);
	}
	return NULL;
}

/* The pin holds the delta's memory back: a statement may open a view for each of its rows (ON CONFLICT). */
static void
release_view(void *argument)
{
	struct holder *holder = argument;
	struct smart_view *view = holder->view;

	if (view == NULL)
		return;
	holder->view = NULL;
	count_passed(view);
	smart_pin_leave(&view->pin);
	if (is_worth_keeping(view))
		keep(view);
	else
		MemoryContextDelete(view->context);
}

void
smart_view_close(struct smart_relation *self)
{
	end_sorted(self->view);
	release_view(self->view->holder);
	self->view = NULL;
}

static struct smart_view *
make_view(Relation index)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "smart view", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	struct smart_view *view = palloc(sizeof(*view));

	memset(view, 0, offsetof(struct smart_view, range));
	view->context = context;
	view->oid = RelationGetRelid(index);
	view->file = smart_relation_locator(index);
	initStringInfo(&view->pile.bytes);
	initStringInfo(&view->pile.ends);
	MemoryContextSwitchTo(old);
	return view;
}

/* Goes on with the follower of a view that was kept, if it is to have one. */
static bool
take_up_follower(struct smart_view *view)
{
	bool carried = !view->alone && smart_relation_is_carried(view->index, &view->seen);

	if (!carried || view->follower == NULL)
		return !carried && view->follower == NULL;
	if (!smart_carry_is_usable(view->follower, &view->seen))
		return false;
	view->whole = smart_carry_has_all(view->index, view->follower);
	/* What was READ of it ahead is of a former statement. */
	view->renewals++;
	view->told = SMART_VIEW_NOTHING;
	return true;
}

/* The same with its run and its delta, if they are still those of the index. */
static bool
take_up(struct smart_view *view)
{
	if (!has_sources(view) || !smart_relation_can_answer(view->index))
		return false;
	smart_meta_refresh(view->index, &view->seen);
	if (view->seen.journal != view->meta.journal || view->seen.run != view->meta.run ||
		!smart_meta_is_loadable(&view->seen) || (view->delta != NULL && !smart_delta_pin(view->delta, &view->pin)) ||
		!take_up_follower(view) || !has_sources(view))
		return false;
	view->meta = view->seen;
	view->sought = false;
	view->near = false;
	view->behind = false;
	view->behind_range = view->ahead = false;
	smart_reader_begin_run(&view->reader, view->index, &view->meta, false);
	leave_unfit_follower(view);
	return true;
}

bool
smart_view_attach(struct smart_relation *self, Relation index, bool alone)
{
	ErrorContextCallback callback;
	struct holder *holder = palloc(sizeof(*holder));
	struct smart_view *view = take_kept(index, alone);
	bool done;

	smart_assert(self->view == NULL);
	if (view == NULL)
		view = make_view(index);
	view->index = index;
	view->codec = self->codec;
	view->alone = alone;
	view->younger = false;
	view->waits = false;
	view->chain_reads = 0;
	view->holder = holder;
	*holder = (struct holder){.view = view, .release = {.func = release_view, .arg = holder}};
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &holder->release);
	begin_reading(view, &callback);
	done = take_up(view) || take_run(view);
	end_reading(view, &callback);
	if (done)
		self->view = view;
	return done;
}

bool
smart_view_open_for_scan(struct smart_relation *self, Relation index)
{
	/* So that all that the snapshot sees is in the chain. */
	smart_staging_write_out_own();
	if (!smart_view_attach(self, index, false))
		return false;
	self->view->younger = true;
	return true;
}

struct smart_relation *
smart_view_open(Relation index, bool alone)
{
	struct smart_relation *self = smart_relation_open_bare(index);

	return smart_view_attach(self, index, alone) ? self : NULL;
}

uint64
smart_view_pinned(const struct smart_view *view)
{
	return view->meta.journal;
}

bool
smart_view_catch_up(struct smart_relation *self, Relation index, bool all)
{
	if (all)
		smart_staging_write_out(index, &self->tail, true);
	else
		smart_staging_write_out_own();
	/* What was read ahead may have been removed meanwhile. */
	self->view->sought = false;
	return catch_up(self->view);
}

bool
smart_view_catch_up_key(struct smart_relation *self, Relation index, const struct smart_staged_key *key)
{
	smart_staging_write_out_key(index, &self->tail, key);
	self->view->sought = false;
	return catch_up(self->view);
}

void
smart_view_catch_up_serializable(struct smart_relation *self, Relation index)
{
	if (IsolationIsSerializable() && !smart_view_catch_up(self, index, true))
		smart_view_leave(self, index);
}

/* The tree has gone, or cannot be read: self has a view, or the tree of now. */
static void
replace_tree(struct smart_relation *self, Relation index)
{
	/* As long as the open index. */
	MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(self));

	smart_relation_lose(self, index);
	while (!smart_view_attach(self, index, false) && smart_relation_can_answer(index))
		smart_journal_await(index);
	MemoryContextSwitchTo(old);
	/* Or it has its tree again. */
	if (self->view == NULL)
		(void) smart_relation_refresh(self, index);
}

bool
smart_view_replace_tree(struct smart_relation *self, Relation index)
{
	if ((likely(self->changes == smart_changes()) && self->meta.tree != 0) || self->view != NULL)
		return false;
	if (self->standby || !smart_relation_can_answer(index))
		return false;
	replace_tree(self, index);
	return true;
}

bool
smart_view_after_failure(struct smart_relation *self, Relation index, smart_status status, TimestampTz *until)
{
	TimestampTz now = GetCurrentTimestamp();

	if (!smart_status_is_of_node(status) || self->view != NULL || self->standby || !smart_relation_could_answer(index))
		return false;
	if (*until == 0)
		*until = TimestampTzPlusMilliseconds(now, smart_settings.fabric_timeout_ms);
	/* Only the launcher can tell that a node is away, which takes it a moment. */
	if (now >= *until)
		return false;
	if (!smart_relation_can_answer(index))
		smart_changes_wait(LOOK_MS);
	if (smart_relation_can_answer(index))
		replace_tree(self, index);
	return true;
}

void
smart_view_leave(struct smart_relation *self, Relation index)
{
	while (!arrive(self, index))
	{
		CHECK_FOR_INTERRUPTS();
		if (smart_relation_is_to_answer(index) && catch_up(self->view))
			return;
		if (smart_relation_is_loadable(index))
			smart_journal_await(index);
		else
		{
			(void) smart_relation_open(index); /* says why it cannot be used, unless that is over */
			smart_changes_wait(LOOK_MS);       /* or it has a tree that does not answer */
		}
	}
}

/* Has the view what the metapage told when it was opened?  Then it has all that the snapshot of its scan sees. */
static bool
is_current(struct smart_view *view)
{
	ErrorContextCallback callback;
	bool current;

	if (!view->younger || view->whole || view->by_chain || view->follower != NULL ||
		unlikely(view->changes != smart_changes()))
		return false;
	begin_reading(view, &callback);
	current = smart_delta_is_current(view->index, view->delta, &view->meta);
	end_reading(view, &callback);
	view->younger = false;
	return current;
}

void
smart_view_refresh(struct smart_relation *self, Relation index)
{
	if (unlikely(self->changes != smart_changes()) && arrive(self, index))
		return;
	if (!is_current(self->view) && !smart_view_catch_up(self, index, false))
		smart_view_leave(self, index);
}

/*
 * view_state.h
 *	  A view as its own files know it.
 *
 *	view.c        who opens one, and what has to be in it
 *	view_kept.c   a view between two statements
 *	view_now.c    the run, the follower and the delta that it reads, and whether they are those of now
 *	view_next.c   the next batch: the base and what lies over it, merged
 *	view_base.c   the base: the run, or a follower
 *	view_key.c    a single key, without the run
 *	view_over.c   over it: the delta, or what the chain says
 */
#ifndef SMART_AM_JOURNAL_VIEW_STATE_H
#define SMART_AM_JOURNAL_VIEW_STATE_H

#include "lib/stringinfo.h"

#include "am/compat.h"
#include "am/index/pin.h"
#include "am/journal/piece.h"
#include "am/journal/sorted_chain.h"
#include "am/journal/view.h"
#include "base/bytes.h"
#include "tree/overlay.h"

/* Entries of one group of the run, for a scan that goes backward: the last one is taken first, and so on. */
struct smart_pile
{
	StringInfoData bytes; /* of those that have not been taken */
	StringInfoData ends;  /* where in bytes each of them ends: ints */
};

#define SMART_VIEW_RENEWALS_MAX 10 /* as often runs may be switched faster than a view is brought up to date */

struct smart_view_holder;

struct smart_view
{
	MemoryContext context;            /* all that belongs to the view lives in it */
	struct smart_view_holder *holder; /* who has opened it; NULL: it is kept for the next one */
	Oid oid;                          /* of the index */
	smart_file file;                  /* to which the delta belongs */
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
	bool one_key;              /* the range is one key */
	bool part;                 /* the range is the part of one where the scan begins: the other one ends at far */
	bool sought;               /* the two sources stand in this range */
	enum smart_view_told told; /* before that: what the caller has done for the follower */
	bool behind;               /* pages of the run were used anew */

	/* Of the run, whose reader is somewhere in it: searches of a statement's keys mostly ascend. */
	uint32 number;          /* of the run in the cache of keys (server/key_cache.h), or 0 */
	bool begun;             /* it has been sought in it */
	bool behind_range;      /* at its first entry that is not before the end of the range, if there is one */
	bool at_end;            /* there is none */
	bool ahead;             /* that can be no later than what is sought next */
	struct smart_pile pile; /* backward */

	/* Of the follower. */
	int base_item; /* of its batch, the last one that was taken */
	bool given;    /* that is all there is in the range */
	struct smart_batch base_batch;

	/* Of the delta. */
	int delta_item; /* of its batch, or of the operations, the last one that was taken */
	struct smart_batch delta_batch;
	struct smart_piece *operations;    /* of the range, in the place of the delta; NULL: none have been read */
	bool to_be_closed;                 /* the caller reads all of the range, or closes the view */
	struct smart_sorted_chain *sorted; /* what the chain says of a large range, in the place of operations; or NULL */
	MemoryContext of_sorted;

	uint32 most; /* entries of each side that are taken together */

	/* Large, and not set at first. */
	struct smart_view_range range; /* what has not been returned */
	uint32 far_length;
	uint8 far[SMART_KEY_MAX + 1];
	struct smart_last_operation last; /* of sorted */
	struct smart_reader reader;
	struct smart_overlay overlay;
};

static inline bool
smart_view_reads_run(const struct smart_view *view)
{
	return view->follower == NULL || view->near;
}

static inline bool
smart_view_needs_no_delta(const struct smart_view *view)
{
	return view->whole && !view->near;
}

/* Can it be read? */
static inline bool
smart_view_has_sources(const struct smart_view *view)
{
	return view->delta != NULL || view->by_chain || view->whole;
}

static inline bool
smart_view_is_in_batch(const struct smart_batch *batch, int item)
{
	return item >= 0 && (uint32) item < batch->count;
}

/* Is an entry that was read in the direction of the scan beyond the range? */
static inline bool
smart_view_is_beyond(const struct smart_view *view, const uint8 *entry, int length)
{
	const struct smart_view_range *range = &view->range;

	if (view->backward)
		return smart_compare_bytes(entry, (Size) length, range->from, range->from_length) < 0;
	return range->to_length > 0 && smart_compare_bytes(entry, (Size) length, range->to, range->to_length) >= 0;
}

/* While its pages are read, damage is reported to who builds indexes anew. */
extern void smart_view_begin_reading(struct smart_view *view, ErrorContextCallback *callback);
extern void smart_view_end_reading(struct smart_view *view, const ErrorContextCallback *callback);

/* ---- view_key.c ---- */

/*
 * Nothing of the range has been read.  If it is one key, of which it is known what the run has, then the base's block has
 * that, and no page of the run is read.  False: it has to be.
 */
extern bool smart_view_pass_by_run(struct smart_view *view);

/* The base's block has all that the run has under the key, whose columns the range still begins with. */
extern void smart_view_keep_key(const struct smart_view *view);

/* ---- view_base.c ---- */

/* Begins in the range. */
extern void smart_view_seek_base(struct smart_view *view);

/*
 * Where the base's block is used up, its next entries are read.  Those of the run go into the block.  Those of a follower stay in
 * the batch that they came in: that is passed on as it is where nothing lies over it, and else they go into the block, too.  The view
 * may be behind afterwards, or not be sought any more.
 */
extern void smart_view_read_base(struct smart_view *view);
extern bool smart_view_pass_follower(struct smart_view *view, struct smart_batch *batch);
extern void smart_view_fill_base(struct smart_view *view);

/*
 * From now on the run is the base, for what has not been returned.  Where the follower needed no delta, that may not be there, or
 * not be up to date.
 */
extern void smart_view_leave_follower(struct smart_view *view);

/* ---- view_over.c ---- */

/* The same with what lies over the base. */
extern void smart_view_seek_over(struct smart_view *view);
extern void smart_view_fill_over(struct smart_view *view);

/* What has not been returned of the whole range; a delta is needed for that. */
extern void smart_view_leave_part(struct smart_view *view);

/* ---- view_now.c ---- */

/*
 * Takes the run of now, and its delta, by which what has not been returned is sought: compaction has switched runs.  False: there
 * is no room for the delta, or the index does not answer so any more.
 */
extern bool smart_view_take_run(struct smart_view *view);

/* Brings the view up to date, with the run of now if that is another one; false as above. */
extern bool smart_view_renew(struct smart_view *view);

/* From now on the view has a delta, which is up to date, for what has not been returned. */
extern void smart_view_wait_for_delta(struct smart_view *view);

/* Has a view whose follower needs no delta one all the same, which is up to date, as the run needs it?  It is not made. */
extern bool smart_view_find_delta(struct smart_view *view);

/* The follower is left if the delta is not one that it can be read with. */
extern void smart_view_leave_unfit_follower(struct smart_view *view);

/* What was passed by is told to who would remove it. */
extern void smart_view_count_passed(struct smart_view *view);

/* The files of a sorted chain are closed; after an error their resource owner does so. */
extern void smart_view_end_sorted(struct smart_view *view);

/* ---- view_kept.c ---- */

/* A view of the index, which ends with the memory context of now, or when it is released; NULL: as smart_view_attach(). */
extern struct smart_view *smart_view_make(Relation index, const struct smart_codec *codec, bool alone);
extern void smart_view_release(struct smart_view *view);

#endif /* SMART_AM_JOURNAL_VIEW_STATE_H */

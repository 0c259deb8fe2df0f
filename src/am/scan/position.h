/*
 * position.h
 *	  Where an index scan is, and how it moves.
 */
#ifndef SMART_AM_POSITION_H
#define SMART_AM_POSITION_H

#include "access/relscan.h"
#include "utils/snapmgr.h"

#include "am/index/pin.h"
#include "am/journal/follow.h"
#include "am/scan/prefetch.h"
#include "am/scan/shared_scan.h"
#include "tree/tree.h"

struct smart_ranges;
struct smart_relation;

enum smart_whereabouts
{
	SMART_AT_START, /* before the first or behind the last entry, as the direction asks */
	SMART_IN_BATCH, /* at the entry index of the batch */
	SMART_AT_MARK   /* at the marked key, with no batch */
};

enum smart_mark
{
	SMART_MARK_AT_START,
	SMART_MARK_IN_BATCH, /* index in the present batch */
	SMART_MARK_AT_KEY    /* key, in the range of points */
};

struct smart_position
{
	IndexScanDesc scan;
	struct smart_relation *relation;
	struct smart_ranges *ranges;
	struct smart_scan *tree_scan; /* NULL until it is needed */
	uint64 renewals;              /* of the view (journal/view.h), when its follower was looked at last */
	struct smart_prefetch prefetch;
	struct smart_ranges *expected; /* of searches to come (read_ahead.c); NULL until it is needed */
	bool known;                    /* the result of the current range is cached, and it is not sought in the tree */
	bool told;                     /* and it has become a batch */

	enum smart_whereabouts whereabouts;
	bool backward;     /* the direction in which the batches come */
	bool prefix_there; /* entry[] begins with the batch's prefix */
	int index;         /* in the batch; -1 and count are just outside */
	uint32 batches;    /* read so far: tells one batch from another */
	struct smart_batch batch;
	struct smart_pieces pieces; /* of a parallel scan: batches to come */

	TimestampTz until; /* while a memory node does not answer: to when it is tried again; else 0 */

	struct smart_pin_ticket pin;       /* for which VACUUM waits, as long as the batch's TIDs are used */
	struct smart_follow_moment moment; /* of a scan that looks itself: before what it has of the tree was read */

	enum smart_mark mark;
	int mark_index;
	uint32 mark_length;
	uint32 mark_points[INDEX_MAX_KEYS];
	uint8 mark_key[SMART_KEY_MAX + 1];

	struct smart_cached cached; /* the batch, if it was known */
	uint8 entry[SMART_ENTRY_MAX];
};

/* Sets up everything but the strings at the end, in CurrentMemoryContext; relation and ranges live as long. */
extern void smart_position_init(struct smart_position *position, IndexScanDesc scan, struct smart_relation *relation,
								struct smart_ranges *ranges);

/* Forgets position and mark; new conditions may follow. */
extern void smart_position_reset(struct smart_position *position);

/*
 * Moves to the next entry that satisfies the conditions, as far as byte strings tell.  False: there is none in this
 * direction; the next call begins at that end.
 */
extern bool smart_position_search(struct smart_position *position, bool backward);

/* The whole entry i of the batch in position->entry; returns its length. */
extern int smart_position_entry(struct smart_position *position, int i);

extern void smart_position_set_mark(struct smart_position *position);
extern void smart_position_restore(struct smart_position *position);

#endif /* SMART_AM_POSITION_H */

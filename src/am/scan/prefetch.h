/*
 * prefetch.h
 *	  The ranges that a scan comes to next, on memory nodes: results that are
 *	  cached, and leaves that are READ before their turn.
 */
#ifndef SMART_AM_PREFETCH_H
#define SMART_AM_PREFETCH_H

#include "am/scan/ahead_ranges.h"
#include "am/scan/ranges.h"
#include "tree/tree.h"

/* A range to come: its cached result, if there is one, or else the ticket to keep it with. */
struct smart_next_range
{
	bool known;
	struct smart_result cached;
};

struct smart_prefetch
{
	MemoryContext context;
	bool several;                /* the tree is on memory nodes and the scan has several ranges */
	bool points;                 /* the tree is on memory nodes and each range is an equality prefix */
	bool said;                   /* the tree was told of those that are left, as far as it has to be */
	bool read_ahead;             /* and their leaves were READ */
	unsigned int left;           /* ranges that were looked at and have not had their turn */
	unsigned int next;           /* which of those is the next */
	unsigned int most;           /* ranges to look at the next time */
	struct smart_next_range now; /* of the current range */
	struct smart_next_range *ahead;
	uint8 *bytes; /* ends of ranges that the tree is told of */
	uint32 room;
	struct smart_ahead_ranges to_come; /* ranges of searches to come */
};

/* No entry of a cached result is told by its length alone. */
#define SMART_CACHED_ENTRIES (SMART_RESULT_BYTES_MAX / 2)

/* What a batch made of a cached result refers to. */
struct smart_cached
{
	struct smart_item items[SMART_CACHED_ENTRIES];
	uint8 point[SMART_RESULT_BYTES_MAX + SMART_BATCH_SLACK];
	uint8 tails[SMART_RESULT_BYTES_MAX + SMART_BATCH_SLACK];
};

/* Sets up; memory comes from context, when it is needed. */
extern void smart_prefetch_init(struct smart_prefetch *prefetch, MemoryContext context);

/* A scan begins at the first or (backward) last of its ranges. */
extern void smart_prefetch_begin(struct smart_prefetch *prefetch, const struct smart_ranges *ranges);

/* Forgets the ranges to come: the tree has forgotten what it was told, or they come in the other direction. */
extern void smart_prefetch_lose(struct smart_prefetch *prefetch);

/* Comes to the current range.  True: prefetch->now has its result, and nothing need be sought. */
extern bool smart_prefetch_look(struct smart_prefetch *prefetch, struct smart_tree *tree, struct smart_ranges *ranges,
								bool backward);

/*
 * After look, if there is a cached result: the batch that it stands for, good as long as *made stays what it is.
 * SMART_DONE: there are no entries.
 */
extern smart_status smart_prefetch_fill(const struct smart_prefetch *prefetch, const struct smart_ranges *ranges,
										struct smart_cached *made, struct smart_batch *batch);

/* After look, if there is none: would nothing but the leaf of the current range be READ for it, and has that not been READ yet? */
static inline bool
smart_prefetch_is_for_one(const struct smart_prefetch *prefetch)
{
	return !prefetch->several && prefetch->to_come.count == 0;
}

/*
 * After look, if there is none: positions the tree's scan on the current range, after telling the tree of it and the
 * next ones if that has not been done.
 */
extern smart_status smart_prefetch_seek(struct smart_prefetch *prefetch, struct smart_scan *scan,
										struct smart_ranges *ranges, bool backward);

#endif /* SMART_AM_PREFETCH_H */

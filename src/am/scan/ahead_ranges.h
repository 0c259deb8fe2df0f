/*
 * ahead_ranges.h
 *	  Ranges of searches to come, whose leaves were READ together.
 */
#ifndef SMART_AM_AHEAD_RANGES_H
#define SMART_AM_AHEAD_RANGES_H

#include "am/scan/ranges.h"
#include "tree/tree.h"

struct smart_ahead_ranges
{
	unsigned int count;       /* ranges; 0: none */
	unsigned int next;        /* which of them is expected next */
	uint64 *tickets;          /* with which their results may be kept; 0: not */
	struct smart_span *spans; /* where they begin, in bytes */
	uint8 *bytes;
	uint32 used;
	uint32 room;
};

/*
 * Adds a range, whose beginning differs from that of the one before it; memory comes from context.  False: there are
 * enough.
 */
extern bool smart_ahead_ranges_add(struct smart_ahead_ranges *ahead, MemoryContext context,
								   const struct smart_ranges *ranges, uint64 ticket);

/*
 * The ticket with which what is found for the current range may be kept, also if it is told by a leaf that was READ
 * before.
 */
extern uint64 smart_ahead_ranges_ticket(struct smart_ahead_ranges *ahead, const struct smart_ranges *ranges);

/* Does the range that was added last begin like the current one of ranges? */
extern bool smart_ahead_ranges_ends_with(const struct smart_ahead_ranges *ahead, const struct smart_ranges *ranges);

/* READs the leaves where the ranges begin.  Status as of smart_scan_points(). */
extern smart_status smart_ahead_ranges_read(const struct smart_ahead_ranges *ahead, struct smart_scan *scan);

#endif /* SMART_AM_AHEAD_RANGES_H */

/*
 * foreseen.h
 *	  Ranges of searches to come, whose leaves were READ together.
 */
#ifndef SMART_AM_FORESEEN_H
#define SMART_AM_FORESEEN_H

#include "am/scan/ranges.h"
#include "tree/tree.h"

struct smart_foreseen
{
	unsigned int count;       /* ranges; 0: none is foreseen */
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
extern bool smart_foreseen_add(struct smart_foreseen *foreseen, MemoryContext context,
							   const struct smart_ranges *ranges, uint64 ticket);

/*
 * The ticket with which what is found for the current range may be kept, also if it is told by a leaf that was READ
 * before.
 */
extern uint64 smart_foreseen_ticket(struct smart_foreseen *foreseen, const struct smart_ranges *ranges);

/* Does the range that was added last begin like the current one of ranges? */
extern bool smart_foreseen_ends_with(const struct smart_foreseen *foreseen, const struct smart_ranges *ranges);

/* READs the leaves where the ranges begin.  Status as of smart_scan_points(). */
extern smart_status smart_foreseen_read(const struct smart_foreseen *foreseen, struct smart_scan *scan);

#endif /* SMART_AM_FORESEEN_H */

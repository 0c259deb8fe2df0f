/*
 * foresight.h
 *	  The ranges that a scan comes to next, said to a tree on memory nodes.
 *
 * Each range costs a round trip, if it is looked for alone; the leaves where many
 * of them begin cost one together.  So a scan with arrays says its next ranges
 * in advance: a few at first, since it may end early (LIMIT), then as many as
 * the tree takes.
 */
#ifndef SMART_AM_FORESIGHT_H
#define SMART_AM_FORESIGHT_H

#include "postgres.h"

#include "am/ranges.h"
#include "tree/tree.h"

struct smart_foresight
{
	bool wanted;       /* the tree is on memory nodes and the scan has several ranges */
	unsigned int left; /* ranges that were said and have not had their turn */
	unsigned int most; /* ranges to say the next time */
	struct smart_ends ends;
};

/* Sets up; memory comes from context, when there is something to say. */
extern void smart_foresight_init(struct smart_foresight *foresight, MemoryContext context);

/* A scan begins at the first or (backward) last of its ranges. */
extern void smart_foresight_begin(struct smart_foresight *foresight, const struct smart_ranges *ranges);

/* What the tree's scan had READ for ranges to come has been forgotten, or they come in the other direction. */
extern void smart_foresight_lose(struct smart_foresight *foresight);

/* Positions the tree's scan on the current range, after saying it and the next ones if that has not been done. */
extern smart_status smart_foresight_seek(struct smart_foresight *foresight, struct smart_scan *scan,
										 struct smart_ranges *ranges, bool backward);

#endif /* SMART_AM_FORESIGHT_H */

/*
 * foresight.h
 *	  The ranges that a scan comes to next, on memory nodes.
 *
 * Each range costs a round trip, if it is looked for alone; the leaves where many
 * of them begin cost one together.  So a scan with arrays says its next ranges
 * in advance: a few at first, since it may end early (LIMIT), then as many as
 * the tree takes.
 *
 * Where the conditions give every key column a value, a range is what the tree calls a
 * point, and what it has may be known without a verb (src/README, Answers).  Such
 * ranges are passed over when others are said.  Like a leaf that is READ ahead, what
 * is known is as old as the moment when it was asked for.
 */
#ifndef SMART_AM_FORESIGHT_H
#define SMART_AM_FORESIGHT_H

#include "postgres.h"

#include "am/ranges.h"
#include "tree/tree.h"

/* A range's answer, if it is known, or else the ticket to keep it with. */
struct smart_foreseen
{
	bool known;
	struct smart_answer answer;
};

struct smart_foresight
{
	bool several;              /* the tree is on memory nodes and the scan has several ranges */
	bool points;               /* the tree is on memory nodes and each range is a point's */
	bool said;                 /* those that are left have been said, as far as they have to be */
	bool read_ahead;           /* and their leaves READ */
	unsigned int left;         /* ranges that were looked at and have not had their turn */
	unsigned int next;         /* which of those is the next */
	unsigned int most;         /* ranges to look at the next time */
	struct smart_foreseen now; /* of the current range */
	struct smart_foreseen *ahead;
	struct smart_ends ends;
};

/* Sets up; memory comes from context, when there is something to say. */
extern void smart_foresight_init(struct smart_foresight *foresight, MemoryContext context);

/* A scan begins at the first or (backward) last of its ranges. */
extern void smart_foresight_begin(struct smart_foresight *foresight, const struct smart_ranges *ranges);

/* What was learnt about ranges to come has been forgotten, or they come in the other direction. */
extern void smart_foresight_lose(struct smart_foresight *foresight);

/* Comes to the current range.  True: foresight->now tells what it has, and nothing need be sought. */
extern bool smart_foresight_look(struct smart_foresight *foresight, struct smart_tree *tree,
								 struct smart_ranges *ranges, bool backward);

/*
 * After look, if it is not known: positions the tree's scan on the current range, after
 * saying it and the next ones if that has not been done.
 */
extern smart_status smart_foresight_seek(struct smart_foresight *foresight, struct smart_scan *scan,
										 struct smart_ranges *ranges, bool backward);

#endif /* SMART_AM_FORESIGHT_H */

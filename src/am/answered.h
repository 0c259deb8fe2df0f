/*
 * answered.h
 *	  What is known about a point (tree.h), as a batch of a scan.
 */
#ifndef SMART_AM_ANSWERED_H
#define SMART_AM_ANSWERED_H

#include "postgres.h"

#include "tree/tree.h"

/* No entry is told by its length alone. */
#define SMART_ANSWERED_ENTRIES (SMART_ANSWER_BYTES_MAX / 2)
#define SMART_ANSWERED_SLACK   16 /* whoever reads entries by words may read beyond the last one */

/* What a batch refers to. */
struct smart_answered
{
	struct smart_item items[SMART_ANSWERED_ENTRIES];
	uint8 point[SMART_ANSWER_BYTES_MAX + SMART_ANSWERED_SLACK];
	uint8 tails[SMART_ANSWER_BYTES_MAX + SMART_ANSWERED_SLACK];
};

/* The entries that an answer tells of a point; the batch is good as long as *answered stays what it is. */
extern void smart_answered_fill(struct smart_answered *answered, const uint8 *point, uint32 length,
								const struct smart_answer *answer, struct smart_batch *batch);

#endif /* SMART_AM_ANSWERED_H */

/*
 * fences.h
 *	  The fence pages of a run while it is written: the levels above its run pages (page.h).
 *
 * On each level one page is open.  It is placed in the file as soon as it is full, and becomes a child on the level above.
 */
#ifndef SMART_AM_JOURNAL_FENCES_H
#define SMART_AM_JOURNAL_FENCES_H

#include "am/journal/page.h"

struct smart_fence_level;

struct smart_fences
{
	uint64 journal;
	uint64 run;
	BlockNumber (*place)(void *, Page); /* puts a page that is finished into the file; which block it has */
	void *argument;
	uint32 pages; /* that have been placed */
	int levels;
	struct smart_fence_level *level[SMART_FENCE_LEVELS]; /* from that above run pages on */
};

/* Adds a run page, the first one or one behind all others.  False: the page it belongs on is full. */
extern bool smart_fences_add(struct smart_fences *fences, const uint8 *separator, int length, BlockNumber block);

/* Places that page, and those above it that have become full.  Errors: those of place. */
extern void smart_fences_place(struct smart_fences *fences);

/* Places all that are open; returns the root's block.  There are run pages.  Errors: those of place. */
extern BlockNumber smart_fences_finish(struct smart_fences *fences);

#endif /* SMART_AM_JOURNAL_FENCES_H */

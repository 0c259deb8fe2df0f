/*
 * fence_cache.h
 *	  Fence pages that this backend has read: a search for one key goes through them each time, and they do not change.
 *
 * The pages of a run are written before a metapage names it and stay until there is another one, so that a copy is as good
 * as the page.  It is checked once.
 */
#ifndef SMART_AM_JOURNAL_FENCE_CACHE_H
#define SMART_AM_JOURNAL_FENCE_CACHE_H

#include "storage/block.h"
#include "storage/bufpage.h"

#include "tree/groups.h"

struct smart_fence_name
{
	uint64 journal;
	uint64 run;
	Oid tablespace;
	Oid file; /* a journal's id may be copied with its file, which then goes on as it likes */
	BlockNumber block;
};

/* The groups of a page that was kept, and its level; NULL: it was not, or is not kept any more. */
extern struct smart_groups *smart_fence_cache_find(const struct smart_fence_name *name, uint32 *level);

/* Keeps a page that smart_run_page_open() has opened, in the place of another one.  It may not be found again. */
extern void smart_fence_cache_keep(const struct smart_fence_name *name, Page page, uint32 level);

/* Whoever is to find out whether pages are damaged reads them themselves. */
extern void smart_fence_cache_clear(void);

#endif /* SMART_AM_JOURNAL_FENCE_CACHE_H */

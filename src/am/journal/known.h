/*
 * known.h
 *	  What this backend knows of the pages of runs, so that a search for one key need not find it out each time: copies of
 *	  fence pages, and which run pages are sound.
 *
 * The pages of a run are written before a metapage names it, and stay until there is another one.
 */
#ifndef SMART_AM_JOURNAL_KNOWN_H
#define SMART_AM_JOURNAL_KNOWN_H

#include "storage/block.h"
#include "storage/bufpage.h"

#include "tree/groups.h"

struct smart_page_name
{
	uint64 journal;
	uint64 run;
	Oid tablespace;
	Oid file; /* a journal's id may be copied with its file, which then goes on as it likes */
	BlockNumber block;
};

/* The groups of a fence page that was kept, and its level; NULL: it was not, or is not kept any more. */
extern struct smart_groups *smart_known_fence(const struct smart_page_name *name, uint32 *level);

/* Keeps a fence page that smart_run_page_open() has opened, in the place of another one.  It may not be found again. */
extern void smart_known_keep_fence(const struct smart_page_name *name, Page page, uint32 level);

/* Has this backend found a run page sound?  It may not know any more. */
extern bool smart_known_sound(const struct smart_page_name *name);

extern void smart_known_note_sound(const struct smart_page_name *name);

/* All is forgotten: for who is to find out what pages are like. */
extern void smart_known_forget(void);

#endif /* SMART_AM_JOURNAL_KNOWN_H */

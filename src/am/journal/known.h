/*
 * known.h
 *	  What this backend remembers of run pages: copies of fence pages, and which pages had the right checksum.
 *
 * A search for one key would read and check them each time otherwise.  The pages of a run do not change while a metapage names it.
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

/* Returns the groups of a copied fence page, and its level; NULL: there is no copy. */
extern struct smart_groups *smart_known_fence(const struct smart_page_name *name, uint32 *level);

/* Copies a fence page that smart_run_page_open() has accepted.  The copy may replace another one, and be replaced. */
extern void smart_known_keep_fence(const struct smart_page_name *name, Page page, uint32 level);

/* Has this backend checked the run page?  False if it was, but is forgotten. */
extern bool smart_known_sound(const struct smart_page_name *name);

extern void smart_known_note_sound(const struct smart_page_name *name);

/* Forgets all, so that smart_index_check() reads and checks the pages themselves. */
extern void smart_known_forget(void);

#endif /* SMART_AM_JOURNAL_KNOWN_H */

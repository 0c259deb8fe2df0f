/*
 * read_page.h
 *	  How a reader comes to a page of the journal: for read.c, which reads the chain, read_run.c, and run_walk.c.
 */
#ifndef SMART_AM_JOURNAL_READ_PAGE_H
#define SMART_AM_JOURNAL_READ_PAGE_H

#include "am/journal/read.h"

/* Sets all but what a run or a chain has of its own.  number: of the first page, in this block; 0: there is none. */
extern void smart_reader_begin(struct smart_reader *reader, Relation index, uint64 journal, uint64 number,
							   BlockNumber block, bool bulk);

/* INDEX_CORRUPTED: "Block 7 " and what. */
extern __attribute__((noreturn)) void smart_reader_report(const struct smart_reader *reader, const char *what);

/*
 * Locks the page where the reader is, of this kind, to be read; *from_disk: it had to be read from there.  load: copies it, of a
 * page of the chain what stands from its offset on.  SMART_FOUND_BEHIND; INDEX_CORRUPTED; errors of reading a file.
 */
extern enum smart_found
smart_reader_lock_page(struct smart_reader *reader, enum smart_page_kind kind, Buffer *buffer, bool *from_disk);
extern enum smart_found smart_reader_load_page(struct smart_reader *reader, enum smart_page_kind kind);

#endif /* SMART_AM_JOURNAL_READ_PAGE_H */

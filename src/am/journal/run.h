/*
 * run.h
 *	  Writing a run: the entries of a whole tree, in order, on pages of their own.
 *
 * A build writes the run of a new file into blocks 1 and up, past shared buffers; nobody else sees the file.  Compaction
 * writes into pages that are not in use, by way of shared buffers, while others append to the chain.  Until the
 * metapage names a run its pages mean nothing.
 */
#ifndef SMART_AM_JOURNAL_RUN_H
#define SMART_AM_JOURNAL_RUN_H

#include "am/index/meta.h"
#include "am/journal/page.h"

/* Where a page of a run stands: what is on it is not before the separator, and what is on pages in front of it is. */
struct smart_run_place
{
	BlockNumber block;
	int length;
	uint8 separator[SMART_KEY_MAX];
};

static inline void
smart_run_place_copy(struct smart_run_place *to, const struct smart_run_place *from)
{
	memcpy(to, from, offsetof(struct smart_run_place, separator) + (Size) from->length);
}

struct smart_run_writer;
struct smart_run_map;

/*
 * Begins the run of a new content of the file, which has no blocks; draws its journal's id.  The writer lives in
 * CurrentMemoryContext.
 */
extern struct smart_run_writer *smart_run_begin_build(Relation index);

/*
 * Begins the run with this id, which the metapage has claimed (compact.h).  before: the pages of the run before, to none of
 * whose blocks another page is written; NULL: none will be kept.
 */
extern struct smart_run_writer *
smart_run_begin(Relation index, const struct smart_meta *meta, uint64 id, const struct smart_run_map *before);

/* Adds the next entry.  True: a page became full.  Errors: DISK_FULL and others of writing a file; INDEX_CORRUPTED. */
extern bool smart_run_add(struct smart_run_writer *writer, const uint8 *entry, int length);

/*
 * The next page is one that the run before has, and which stays where it is.  Errors likewise.  go_on: what is added next was
 * on this page of that run, or would have been: called when a page was kept before.
 */
extern void smart_run_keep(struct smart_run_writer *writer, const struct smart_run_place *page);
extern void smart_run_go_on(struct smart_run_writer *writer, const struct smart_run_place *page);

/* Writes what is left, of a build durably.  run->entries: those that were added. */
extern void smart_run_finish(struct smart_run_writer *writer, struct smart_run *run);

#endif /* SMART_AM_JOURNAL_RUN_H */

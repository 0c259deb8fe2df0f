/*
 * run_filter.h
 *	  The filter of a run that is being written: what its entries have in their columns (server/key_filter.h).
 */
#ifndef SMART_AM_JOURNAL_RUN_FILTER_H
#define SMART_AM_JOURNAL_RUN_FILTER_H

#include "am/codec/encode.h"
#include "am/index/meta.h"

struct smart_run_filter;

/*
 * Begins the filter of a run that will have so many entries, of which more are not in the run before, of this metapage; NULL: a build.
 * The result is NULL if the index is not unique, or there is no room.  It ends with CurrentMemoryContext.
 */
extern struct smart_run_filter *smart_run_filter_begin(Relation index, const struct smart_codec *codec,
													   const struct smart_meta *before, double entries, double more);

/* Each entry of the run that is written.  filter may be NULL, here and below. */
extern void smart_run_filter_add(struct smart_run_filter *filter, const uint8 *entry, int length);

/*
 * A page of the run before is kept: it is read if the filter is a new one.  False: it has gone (SMART_FOUND_BEHIND).  INDEX_CORRUPTED.
 */
extern bool smart_run_filter_keep(struct smart_run_filter *filter, BlockNumber block);

/* The metapage names the run. */
extern void smart_run_filter_end(struct smart_run_filter *filter, Relation index, const struct smart_run *run);

#endif /* SMART_AM_JOURNAL_RUN_FILTER_H */

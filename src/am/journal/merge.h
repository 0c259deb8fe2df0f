/*
 * merge.h
 *	  All entries that a journal holds, in order.
 */
#ifndef SMART_AM_JOURNAL_MERGE_H
#define SMART_AM_JOURNAL_MERGE_H

#include "am/codec/encode.h"
#include "am/index/meta.h"
#include "am/journal/read.h"
#include "am/journal/run.h"
#include "am/journal/sorted_chain.h"

/* Who gets what the journal holds, in order.  False: that is enough. */
struct smart_sink
{
	bool (*take)(void *argument, const uint8 *entry, int length); /* the next entry */

	/* Or all entries of a page of the run, which no operation concerns, where they are.  NULL: entries alone. */
	bool (*keep)(void *argument, const struct smart_run_place *page);

	/* The next entries are on this page of the run, or would be, and those before are on one that was kept. */
	void (*go_on)(void *argument, const struct smart_run_place *page);

	void *argument;
};

struct smart_merged
{
	struct smart_chain_place place;
	uint64 read; /* entries of the run, but for those on pages that were kept */
};

/*
 * Hands out the entries of the run with the chain's operations applied, up to where the chain ends: merged->place.  meta: what
 * the metapage says.  SMART_FOUND_END: that was all; SMART_FOUND: it was enough; SMART_FOUND_BEHIND: the reader was left
 * behind.  INDEX_CORRUPTED: the journal is damaged; what the sink raises.
 */
extern enum smart_found
smart_journal_merge(Relation index, const struct smart_codec *codec, const struct smart_meta *meta,
					const struct smart_look *look, const struct smart_sink *sink, struct smart_merged *merged);

#endif /* SMART_AM_JOURNAL_MERGE_H */

/*
 * merge.h
 *	  All entries that a journal holds, in order.
 */
#ifndef SMART_AM_JOURNAL_MERGE_H
#define SMART_AM_JOURNAL_MERGE_H

#include "am/codec/encode.h"
#include "am/index/meta.h"
#include "am/journal/read.h"
#include "am/journal/sorted_chain.h"

/* Takes the next entry; false: that is enough. */
typedef bool (*smart_sink_fn)(void *argument, const uint8 *entry, int length);

/*
 * Hands out the entries of the run with the chain's operations applied, up to where the chain ends: *place.  meta: what
 * the metapage says.  SMART_FOUND_END: that was all; SMART_FOUND: it was enough; SMART_FOUND_BEHIND: the reader was left
 * behind.  INDEX_CORRUPTED: the journal is damaged; what take() raises.
 */
extern enum smart_found
smart_journal_merge(Relation index, const struct smart_codec *codec, const struct smart_meta *meta,
					const struct smart_look *look, smart_sink_fn take, void *argument, struct smart_chain_place *place);

#endif /* SMART_AM_JOURNAL_MERGE_H */

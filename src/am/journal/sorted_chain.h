/*
 * sorted_chain.h
 *	  The operations of a chain in the order of their entries, of each entry the last one.
 */
#ifndef SMART_AM_JOURNAL_SORTED_CHAIN_H
#define SMART_AM_JOURNAL_SORTED_CHAIN_H

#include "am/codec/encode.h"
#include "am/index/meta.h"
#include "am/journal/chain_keys.h"
#include "am/journal/read.h"

/* Called now and then, to serve interrupts and more. */
struct smart_look
{
	void (*around)(void *argument);
	void *argument;
};

/* One that does nothing else. */
extern const struct smart_look smart_look_for_interrupts;

/* The last operation that concerns an entry; of a removal there is the key alone. */
struct smart_last_operation
{
	enum smart_operation operation;
	int key_length;
	int length;
	uint8 entry[SMART_ENTRY_MAX];
};

struct smart_sorted_chain;

/*
 * Reads the chain of this metapage from its cut to where it ends now: *end.  keys: for these alone, which are copied; NULL: for all.
 * Another result than SMART_FOUND_END, and there is no chain: the reader was left behind.  INDEX_CORRUPTED: the journal is damaged.
 * All belongs to CurrentMemoryContext, and files to CurrentResourceOwner, so an error needs no clean-up.
 */
extern enum smart_found
smart_sorted_chain_begin(Relation index, const struct smart_codec *codec, const struct smart_meta *meta,
						 const struct smart_look *look, const struct smart_chain_keys *keys,
						 struct smart_sorted_chain **chain, struct smart_chain_place *end);

/* The next entry's; pages are read a second time, so that the reader may be left behind here, too.  Errors as above. */
extern enum smart_found smart_sorted_chain_next(struct smart_sorted_chain *chain, struct smart_last_operation *last);

extern void smart_sorted_chain_end(struct smart_sorted_chain *chain);

#endif /* SMART_AM_JOURNAL_SORTED_CHAIN_H */

/*
 * chain_range.h
 *	  What a long chain says of one range of keys, for who does not wait until there is a delta (src/README, J13).
 *
 * The whole chain is read for it, at the speed of memory.
 */
#ifndef SMART_AM_JOURNAL_CHAIN_RANGE_H
#define SMART_AM_JOURNAL_CHAIN_RANGE_H

#include "am/journal/chain_keys.h"
#include "am/journal/piece.h"
#include "am/journal/sorted_chain.h"

enum smart_chain_range
{
	SMART_CHAIN_RANGE,       /* the piece has the last operation on each entry of the range, in order */
	SMART_CHAIN_RANGE_PART,  /* the same of a part of the range, where the scan begins */
	SMART_CHAIN_RANGE_LARGE, /* the sorted chain has the same of the whole range, which is too large for a piece */
	SMART_CHAIN_RANGE_DELTA, /* it has not: there is a delta, or it is time to make it */
	SMART_CHAIN_RANGE_BEHIND /* nor that: the reader was left behind */
};

/* Is the chain of this metapage so long that who reads it does not wait for a delta? */
extern bool smart_chain_range_pays(const struct smart_meta *meta);

/* Where a part of a range ends: its keys are before that, or, where the scan goes backward, not before it. */
struct smart_chain_bound
{
	uint32 length;
	uint8 bytes[SMART_KEY_MAX];
};

/*
 * Reads the chain from this metapage's cut to where it ends now, for these keys; what it found is in piece
 * (smart_piece_make()), or, if sorted is not NULL, and the scan goes forward, in *sorted, which lives in CurrentMemoryContext,
 * and knows the metapage on. bound: for what may be a part, of which it is the end; NULL: all or nothing.  Waits,
 * interruptibly, for others who read so; asks for a worker that makes the delta.  The caller has locked the index.
 * INDEX_CORRUPTED; errors of reading a file.
 */
extern enum smart_chain_range
smart_chain_range_read(Relation index, const struct smart_codec *codec, const struct smart_meta *meta,
					   const struct smart_chain_keys *keys, bool backward, struct smart_piece *piece,
					   struct smart_chain_bound *bound, struct smart_sorted_chain **sorted);

#endif /* SMART_AM_JOURNAL_CHAIN_RANGE_H */

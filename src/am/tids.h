/*
 * tids.h
 *	  The TIDs of the entries of a scan's batch.
 *
 * A TID may begin in what the entries of a batch share: where there are many
 * duplicates it always does.  So a key is read from its end, as the number that
 * its last eight bytes make, those that are the entry's own below those that
 * are shared; and what is the same for the whole batch is found out once.
 */
#ifndef SMART_AM_TIDS_H
#define SMART_AM_TIDS_H

#include "am/position.h"
#include "base/bytes.h"

struct smart_tids
{
	const struct smart_codec *codec;
	uint32 payload; /* bytes behind an entry's TID, or UINT32_MAX if they differ */
	uint32 batch;   /* which one the rest tells of; 0: none */
	bool aligned;   /* the entries are of one length, and so are their TIDs */

	/* aligned: the key of item i ends with the number at bytes + its offset, shifted right by shift, or'ed with shared. */
	const uint8 *bytes;
	unsigned int shift;
	uint64 shared; /* not aligned: the last eight bytes that the entries share */
};

/* codec lives as long. */
extern void smart_tids_init(struct smart_tids *tids, const struct smart_codec *codec);

/* To be called when the position has come into another batch. */
extern void smart_tids_enter(struct smart_tids *tids, const struct smart_position *position);

/* smart_tids_get() where entries are of different lengths. */
extern void smart_tids_get_any(const struct smart_tids *tids, struct smart_position *position, ItemPointer tid);

/* The TID of the entry at a position, in the batch that was entered. */
static inline void
smart_tids_get(const struct smart_tids *tids, struct smart_position *position, ItemPointer tid)
{
	const struct smart_item *item = &position->batch.items[position->index];
	BlockNumber block;
	OffsetNumber offset;

	if (unlikely(!tids->aligned))
	{
		smart_tids_get_any(tids, position, tid);
		return;
	}
	smart_tid_from_plain(smart_load_be64(tids->bytes + item->offset) >> tids->shift | tids->shared, &block, &offset);
	ItemPointerSet(tid, block, offset);
}

#endif /* SMART_AM_TIDS_H */

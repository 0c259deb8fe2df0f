/*
 * tids.c
 *	  The TIDs of the entries of a scan's batch.
 *
 * Where an entry's own bytes are fewer than eight, some behind them are read,
 * too, and shifted out: the buffers of a batch end that much later.
 */
#include "postgres.h"

#include "am/tids.h"
#include "base/assert.h"

#define WORD sizeof(uint64)

/* The last eight bytes that the entries of a batch share, as a number. */
static inline uint64
shared_tail(const struct smart_batch *batch)
{
	if (likely(batch->prefix_length >= WORD))
		return smart_load_be64(batch->prefix + batch->prefix_length - WORD);
	if (batch->prefix_length == 0)
		return 0;
	return smart_rank(batch->prefix, batch->prefix_length) >> (8 * (WORD - batch->prefix_length));
}

void
smart_tids_init(struct smart_tids *tids, const struct smart_codec *codec)
{
	tids->codec = codec;
	tids->payload = codec->payload_width < 0 ? UINT32_MAX : (uint32) codec->payload_width;
	tids->batch = 0;
}

void
smart_tids_enter(struct smart_tids *tids, const struct smart_position *position)
{
	const struct smart_batch *batch = &position->batch;
	uint32 length = batch->items[0].length;
	uint32 own = length - tids->payload;

	smart_assert(batch->count > 0);
	tids->batch = position->batches;
	tids->bytes = batch->bytes;
	tids->shift = 0;
	tids->shared = 0;
	/* A part of the key is each entry's own, unless the tree is damaged. */
	tids->aligned = !tids->codec->compact_tids && likely(length > tids->payload);
	if (tids->aligned && own >= WORD)
	{
		tids->bytes += own - WORD;
		return;
	}
	tids->shared = shared_tail(batch);
	if (!tids->aligned)
		return;
	tids->shared <<= 8 * own;
	tids->shift = 8 * (WORD - own);
}

void
smart_tids_get_any(const struct smart_tids *tids, struct smart_position *position, ItemPointer tid)
{
	const struct smart_batch *batch = &position->batch;
	const struct smart_item *item = &batch->items[position->index];
	const struct smart_codec *codec = tids->codec;
	int length;

	if (likely(codec->compact_tids && item->length > tids->payload))
	{
		uint32 own = item->length - tids->payload;
		const uint8 *suffix = batch->bytes + item->offset;
		uint64 tail = own >= WORD ? smart_load_be64(suffix + own - WORD)
								  : smart_load_be64(suffix) >> (8 * (WORD - own)) | tids->shared << (8 * own);
		BlockNumber block;
		OffsetNumber offset;

		smart_tid_from_compact(tail, &block, &offset);
		ItemPointerSet(tid, block, offset);
		return;
	}

	/* A payload of any length lies behind the key. */
	length = smart_position_entry(position, position->index);
	smart_entry_tid(codec, position->entry + smart_codec_key_length(codec, position->entry, length), tid);
}

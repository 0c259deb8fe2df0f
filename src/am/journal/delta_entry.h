/*
 * delta_entry.h
 *	  How a delta (delta.h) holds an operation: as the entry, or the key of what was removed, and a byte behind that, the mark.
 *
 * A tombstone is spent if the run does not have the entry either (spent.h); that is one mark for each turn.
 */
#ifndef SMART_AM_JOURNAL_DELTA_ENTRY_H
#define SMART_AM_JOURNAL_DELTA_ENTRY_H

#include "am/codec/encode.h"
#include "base/assert.h"
#include "tree/pack.h"

#define SMART_DELTA_REMOVED 0
#define SMART_DELTA_ADDED   1
#define SMART_DELTA_SPENT   2 /* + the turn */

static inline uint8
smart_delta_mark(enum smart_operation operation)
{
	smart_assert(operation == SMART_OPERATION_ADD || operation == SMART_OPERATION_REMOVE);
	return operation == SMART_OPERATION_ADD ? SMART_DELTA_ADDED : SMART_DELTA_REMOVED;
}

/*
 * Entries of one length stay so: zeros fill up a key.  Returns the length of what is put into out, which has SMART_ENTRY_MAX bytes.
 */
static inline int
smart_delta_entry(const struct smart_codec *codec, uint8 mark, const uint8 *entry, int length, uint8 *out)
{
	int rest = codec->fixed_length > 0 ? codec->fixed_length - length : 0;

	smart_assert(length > 0 && rest >= 0 && length + rest < SMART_ENTRY_MAX);
	memcpy(out, entry, (Size) length);
	memset(out + length, 0, (Size) rest);
	out[length + rest] = mark;
	return length + rest + 1;
}

/* Bytes of the key of an entry of a delta, which has length bytes. */
static inline int
smart_delta_key_length(const struct smart_codec *codec, const uint8 *entry, int length)
{
	smart_assert(length > 1);
	if (likely(codec->payload_width == 0))
		return length - 1;
	if (entry[length - 1] == SMART_DELTA_ADDED)
		return smart_codec_key_length(codec, entry, length - 1);
	return codec->fixed_length > 0 ? codec->fixed_key_length : length - 1;
}

#endif /* SMART_AM_JOURNAL_DELTA_ENTRY_H */

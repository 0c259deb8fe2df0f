/*
 * chain_keys.h
 *	  The range of keys for which a chain is read.
 */
#ifndef SMART_AM_JOURNAL_CHAIN_KEYS_H
#define SMART_AM_JOURNAL_CHAIN_KEYS_H

#include "am/journal/read.h"
#include "base/assert.h"
#include "base/bytes.h"

/* Keys that are not before from, and before to if that has a length. */
struct smart_chain_keys
{
	const uint8 *from;
	const uint8 *to;
	uint32 from_length;
	uint32 to_length;
	int common; /* bytes that both begin with, and so does whatever is between them */
};

static inline struct smart_chain_keys
smart_chain_keys(const uint8 *from, uint32 from_length, const uint8 *to, uint32 to_length)
{
	return (struct smart_chain_keys){.from = from,
									 .to = to,
									 .from_length = from_length,
									 .to_length = to_length,
									 .common = (int) smart_common_prefix(from, from_length, to, to_length)};
}

/* Is the entry that a reader has found, or the key of one, in the range?  Mostly one byte says that it is not. */
static inline bool
smart_chain_keys_have(const struct smart_chain_keys *keys, const struct smart_reader *reader)
{
	const struct smart_unpacker *found = &reader->unpacker;
	Size length = (Size) found->length;

	smart_assert(keys->common >= 0 && (uint32) keys->common <= keys->from_length);
	if (keys->common > 0 &&
		(found->length < keys->common || found->entry[keys->common - 1] != keys->from[keys->common - 1]))
		return false;
	return smart_compare_bytes(found->entry, length, keys->from, keys->from_length) >= 0 &&
		   (keys->to_length == 0 || smart_compare_bytes(found->entry, length, keys->to, keys->to_length) < 0);
}

#endif /* SMART_AM_JOURNAL_CHAIN_KEYS_H */

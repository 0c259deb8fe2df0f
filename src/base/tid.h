/*
 * tid.h
 *	  Where a row is (block and offset number), as bytes at the end of a key.
 *
 * Plain: the block in 4 bytes and the offset in 2, big-endian.
 *
 * Compact, 4 to 7 bytes: the first two bits and the last two both hold the
 * length less 4, and between them lies a number, big-endian and padded with
 * zero bits in front:
 *
 *	length	bits	number
 *	4		28		block << 11 | offset		blocks below 2^17
 *	5		36		block << 11 | offset		blocks below 2^25
 *	6		44		block << 11 | offset		all other blocks
 *	7		52		block << 16 | offset		offsets from 2048 on
 *
 * Each TID has one form, the shortest that holds it, and the form gives it
 * back: so different TIDs have different bytes.  The first byte tells the
 * length: so none is a prefix of another.  The last byte tells it too: so a TID
 * is found from the end of a key whose columns have any length.  The first
 * three forms sort by (block, offset), since the first bits grow with the
 * number; the fourth sorts behind them.  Heap tables have offsets below 2048
 * only.  The order of TIDs decides which duplicates lie next to each other, and
 * nothing else.
 */
#ifndef SMART_BASE_TID_H
#define SMART_BASE_TID_H

#include <stdint.h>

#include "base/assert.h"
#include "base/bytes.h"

#define SMART_TID_PLAIN    6 /* bytes of a plain one */
#define SMART_TID_SHORTEST 4 /* bytes of a compact one */
#define SMART_TID_LONGEST  7

#define SMART_TID_OFFSETS 2048 /* offset numbers of the first three forms */

/* The length of a compact TID that begins with this byte, and of one that ends with it. */
static inline unsigned int
smart_tid_length_by_first(uint8_t byte)
{
	return SMART_TID_SHORTEST + (byte >> 6);
}

static inline unsigned int
smart_tid_length_by_last(uint8_t byte)
{
	return SMART_TID_SHORTEST + (byte & 3);
}

/* Both forms are written at out; the result is where they end. */
static inline uint8_t *
smart_tid_put_plain(uint8_t *out, uint32_t block, uint16_t offset)
{
	return smart_put_be16(smart_put_be32(out, block), offset);
}

static inline uint8_t *
smart_tid_put_compact(uint8_t *out, uint32_t block, uint16_t offset)
{
	uint64_t number = (uint64_t) block << 11 | offset;
	uint64_t code = block < 1u << 17 ? 0 : block < 1u << 25 ? 1 : 2;
	unsigned int length;

	if (smart_unlikely(offset >= SMART_TID_OFFSETS))
	{
		number = (uint64_t) block << 16 | offset;
		code = 3;
	}
	length = SMART_TID_SHORTEST + (unsigned int) code;
	smart_assert(number >> (8 * length - 4) == 0);
	number = code << (8 * length - 2) | number << 2 | code;
	smart_put_be32(out, (uint32_t) (number >> (8 * (length - SMART_TID_SHORTEST))));
	for (unsigned int i = SMART_TID_SHORTEST; smart_unlikely(i < length); i++)
		out[i] = (uint8_t) (number >> (8 * (length - 1 - i)));
	smart_assert(smart_tid_length_by_first(out[0]) == length && smart_tid_length_by_last(out[length - 1]) == length);
	return out + length;
}

/*
 * These take the last eight bytes of a key as a big-endian number, whose low end
 * is the TID; bytes before it may be anything.
 */
static inline void
smart_tid_from_plain(uint64_t tail, uint32_t *block, uint16_t *offset)
{
	*block = (uint32_t) (tail >> 16);
	*offset = (uint16_t) tail;
}

static inline void
smart_tid_from_compact(uint64_t tail, uint32_t *block, uint16_t *offset)
{
	unsigned int length = smart_tid_length_by_last((uint8_t) tail);
	unsigned int offset_bits = length == SMART_TID_LONGEST ? 16 : 11;
	uint64_t number = (tail & ((UINT64_C(1) << (8 * length - 2)) - 1)) >> 2;

	smart_assert(smart_tid_length_by_first((uint8_t) (tail >> (8 * length - 8))) == length);
	smart_assert(number >> offset_bits <= UINT32_MAX);
	*block = (uint32_t) (number >> offset_bits);
	*offset = (uint16_t) (number & ((1u << offset_bits) - 1));
}

/* These read the TID that ends before end. */
static inline void
smart_tid_get_plain(const uint8_t *end, uint32_t *block, uint16_t *offset)
{
	const uint8_t *bytes = end - SMART_TID_PLAIN;

	*block = smart_load_be32(bytes);
	*offset = smart_load_be16(bytes + sizeof(*block));
}

static inline void
smart_tid_get_compact(const uint8_t *end, uint32_t *block, uint16_t *offset)
{
	unsigned int length = smart_tid_length_by_last(end[-1]);
	uint64_t tail = smart_load_be32(end - SMART_TID_SHORTEST);

	for (unsigned int i = SMART_TID_SHORTEST + 1; smart_unlikely(i <= length); i++)
		tail |= (uint64_t) end[-(int) i] << (8 * (i - 1));
	smart_tid_from_compact(tail, block, offset);
}

#endif /* SMART_BASE_TID_H */

/*
 * pieces.h
 *	  Byte strings that are written and read piece by piece, within a limit: what normalized keys are made of.
 */
#ifndef SMART_BASE_PIECES_H
#define SMART_BASE_PIECES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"

/*
 * Writing
 *
 * Each takes the end of what is there, or NULL if something was left out before; writes what fits up to limit; and
 * returns the new end, or NULL if something was left out now or before.
 */
static inline uint8_t *
smart_put_bytes(uint8_t *out, uint8_t *limit, const void *bytes, size_t length)
{
	size_t room;

	if (smart_unlikely(out == NULL))
		return NULL;
	smart_assert(out <= limit);
	room = (size_t) (limit - out);
	memcpy(out, bytes, length < room ? length : room);
	return length <= room ? out + length : NULL;
}

static inline uint8_t *
smart_put_byte(uint8_t *out, uint8_t *limit, uint8_t byte)
{
	if (smart_unlikely(out == NULL || out == limit))
		return NULL;
	smart_assert(out < limit);
	*out = byte;
	return out + 1;
}

static inline uint8_t *
smart_put_word16(uint8_t *out, uint8_t *limit, uint16_t word)
{
	uint8_t bytes[2];

	smart_put_be16(bytes, word);
	return smart_put_bytes(out, limit, bytes, sizeof(bytes));
}

static inline uint8_t *
smart_put_word32(uint8_t *out, uint8_t *limit, uint32_t word)
{
	uint8_t bytes[4];

	smart_put_be32(bytes, word);
	return smart_put_bytes(out, limit, bytes, sizeof(bytes));
}

/* The sign bit is flipped, as smart_load_int32() has it. */
static inline uint8_t *
smart_put_number(uint8_t *out, uint8_t *limit, int32_t number)
{
	return smart_put_word32(out, limit, (uint32_t) number ^ UINT32_C(0x80000000));
}

/* Bytes, none of which is 00, and a 00. */
static inline uint8_t *
smart_put_string(uint8_t *out, uint8_t *limit, const char *bytes, size_t length)
{
	smart_assert(memchr(bytes, 0, length) == NULL);
	return smart_put_byte(smart_put_bytes(out, limit, bytes, length), limit, 0);
}

/* Bytes in which 00 becomes 00 FF, so that SMART_ESCAPED_END can end them. */
extern uint8_t *smart_put_escaped(uint8_t *out, uint8_t *limit, const uint8_t *bytes, size_t length);

#define SMART_ESCAPED_END "\0\0"

/*
 * Finding the end
 *
 * Each takes where a piece begins, or NULL if what is before it does not end, and returns where the piece ends, or NULL
 * if that is not before limit.  Where flip is 0xFF all bytes are complemented, else it is 0.
 */
static inline const uint8_t *
smart_skip(const uint8_t *p, const uint8_t *limit, size_t length)
{
	return p != NULL && length <= (size_t) (limit - p) ? p + length : NULL;
}

static inline const uint8_t *
smart_get_byte(const uint8_t *p, const uint8_t *limit, uint8_t flip, uint8_t *byte)
{
	if (p == NULL || p >= limit)
		return NULL;
	*byte = *p ^ flip;
	return p + 1;
}

static inline const uint8_t *
smart_get_word32(const uint8_t *p, const uint8_t *limit, uint8_t flip, uint32_t *word)
{
	const uint8_t *end = smart_skip(p, limit, sizeof(*word));

	smart_assert(flip == 0 || flip == 0xFF);
	if (end != NULL)
		*word = smart_load_be32(p) ^ (flip == 0 ? 0 : UINT32_MAX);
	return end;
}

/* Of what smart_put_string() wrote. */
static inline const uint8_t *
smart_string_end(const uint8_t *p, const uint8_t *limit, uint8_t flip)
{
	const uint8_t *last = p == NULL ? NULL : memchr(p, flip, (size_t) (limit - p));

	return last == NULL ? NULL : last + 1;
}

/* Of escaped bytes and SMART_ESCAPED_END. */
extern const uint8_t *smart_find_escaped_end(const uint8_t *bytes, const uint8_t *limit, uint8_t flip);

/* Writes what was escaped from bytes to end, if out is not NULL; returns how many bytes that are. */
extern int smart_get_escaped(const uint8_t *bytes, const uint8_t *end, char *out);

#endif /* SMART_BASE_PIECES_H */

/*
 * sort.h
 *	  Sorting of entries in memory, by memcmp.
 *
 * Both sorts work in place: most significant byte first (American flag sort:
 * McIlroy, Bostic and McIlroy 1993), insertion sort for small groups.  The
 * stack they take is bounded: 4 KiB per halving of the group.  Neither is
 * stable; entries are distinct, so that it makes no difference.
 */
#ifndef SMART_BASE_SORT_H
#define SMART_BASE_SORT_H

#include "base/bytes.h"
#include "base/env.h"
#include "base/status.h"

#define SMART_SORT_WORDS_MAX 4 /* items of words: entries of up to 32 bytes */

/*
 * Sorts count items of words 64-bit words each (1 to SMART_SORT_WORDS_MAX).
 * Word i holds bytes 8i to 8i+7 of the entry as smart_load_be64 reads them, so
 * that words compare as the bytes do.  SMART_INTERRUPTED: in no order then.
 */
extern smart_status smart_sort_words(uint64_t *items, size_t count, unsigned int words, struct smart_env *env);

/*
 * An entry of any length: a record is its length (uint16_t, aligned or not) and
 * its bytes.  head holds eight of the bytes, at first those from the start.
 */
struct smart_sort_item
{
	uint64_t head;
	const uint8_t *record;
};

/*
 * Sorts items, whose heads have been filled with smart_sort_head(record, 0).
 * The heads are worn out afterwards.  No entry may be a proper prefix of
 * another one.  SMART_INTERRUPTED: in no order then.
 */
extern smart_status smart_sort_strings(struct smart_sort_item *items, size_t count, struct smart_env *env);

static inline size_t
smart_sort_length(const uint8_t *record)
{
	uint16_t length;

	memcpy(&length, record, sizeof(length));
	return length;
}

static inline const uint8_t *
smart_sort_bytes(const uint8_t *record)
{
	return record + sizeof(uint16_t);
}

/* The eight bytes at offset, or what the entry has of them and zeros. */
static inline uint64_t
smart_sort_head(const uint8_t *record, size_t offset)
{
	size_t length = smart_sort_length(record);
	uint8_t rest[8] = {0};

	if (offset + 8 <= length)
		return smart_load_be64(smart_sort_bytes(record) + offset);
	if (offset < length)
		memcpy(rest, smart_sort_bytes(record) + offset, length - offset);
	return smart_load_be64(rest);
}

#endif /* SMART_BASE_SORT_H */

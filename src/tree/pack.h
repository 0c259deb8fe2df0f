/*
 * pack.h
 *	  Entries one after another, as a journal's pages hold them (src/am/journal/page.h; those of a run in groups, groups.h).
 *
 * A packed entry leaves out what it has in common with the entry before: the bytes that both begin with, and those of
 * its last 8 bytes that stand in the last 8 of the other one, too.  These are mostly of its TID: rows that were inserted
 * together lie close to each other.
 *
 *	head     1 byte: how many bytes it shares with the beginning of the entry before (high bits), and how many follow
 *	         these, the rest (low bits); 15: the number less 15 comes behind the head
 *	numbers  7 bits a byte, the lowest ones first; the last byte is below 128
 *	mask     1 byte, if the rest is more than one byte and both entries have at least 8: bit i says whether the byte
 *	         that stands 8 - i bytes before the end is written, else it is as in the entry before.  It is about the
 *	         rest, its last 8 bytes at most; lower bits are 0.
 *	bytes    of the rest: those that the mask is not about, and then those that it says are written
 *
 * A batch is a head and packed entries, the first of which has none before it.
 *
 * What is read comes from disk, perhaps torn or of another life of the page: every number is checked before it is used,
 * and what is accepted lies within its bounds whatever the bytes are.
 */
#ifndef SMART_TREE_PACK_H
#define SMART_TREE_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "tree/layout.h"

/* ---- entries ---- */

/* Where they are written; the entry before is kept for what the next one shares with it. */
struct smart_packer
{
	uint8_t *at;
	uint8_t *end;
	int length; /* of the entry before, 0: none */
	uint8_t before[SMART_ENTRY_MAX];
};

/* Bytes that an entry takes at most. */
#define SMART_PACKED_MAX(length) ((length) + 4)

extern void smart_packer_begin(struct smart_packer *packer, uint8_t *at, uint8_t *end);

/* False: there is no room for it, and nothing was written. */
extern bool smart_packer_add(struct smart_packer *packer, const uint8_t *entry, int length);

/* An entry may be read by whole words, up to so many bytes behind its end. */
#define SMART_UNPACKER_SLACK 8

/* Where they are read. */
struct smart_unpacker
{
	const uint8_t *at;
	const uint8_t *end;
	int length; /* of the entry that was read last, 0: none */
	int shared; /* leading bytes that it has in common with the entry before */
	uint8_t entry[SMART_ENTRY_MAX + SMART_UNPACKER_SLACK];
};

extern void smart_unpacker_begin(struct smart_unpacker *unpacker, const uint8_t *at, const uint8_t *end);

/* The next entry, in unpacker->entry.  False: no more (at == end), or what is there is no entry (at != end). */
extern bool smart_unpacker_next(struct smart_unpacker *unpacker);

/* How many entries follow, up to the end or to what is none; none of them is read. */
extern uint32_t smart_unpacker_count(const struct smart_unpacker *unpacker);

/* ---- batches ---- */

enum smart_operation
{
	SMART_OPERATION_ADD = 1,   /* whole entries */
	SMART_OPERATION_REMOVE = 2 /* keys of entries */
};

/* The head of a batch; entries follow.  Batches are not aligned; integers are in the machine's byte order. */
struct smart_batch_head
{
	uint16_t length;   /* bytes, with the head */
	uint8_t operation; /* enum smart_operation */
	uint8_t unused;    /* 0 */
	uint32_t crc;      /* CRC-32C of the page's serial, the batch's place on the page, and what surrounds this field */
};

_Static_assert(sizeof(struct smart_batch_head) == 8, "batch format");

/* Sets the head of a batch of so many bytes that will lie at this place of the page with this serial. */
extern void
smart_batch_finish(uint8_t *batch, int length, enum smart_operation operation, uint64_t serial, uint32_t place);

/*
 * Begins to read the batch at this place of a page with this serial, whose content ends at end.  *next: the place behind
 * it.  False: there is no batch, or it is damaged; nothing is set then.
 */
extern bool smart_batch_begin(const uint8_t *page, uint32_t place, uint32_t end, uint64_t serial,
							  struct smart_unpacker *unpacker, enum smart_operation *operation, uint32_t *next);

#endif /* SMART_TREE_PACK_H */

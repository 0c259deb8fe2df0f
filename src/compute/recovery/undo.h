/*
 * undo.h
 *	  Undo records: what has to be removed again if the server dies before the log (WAL) of the rows is durable.
 *
 * An entry in a tree outlives the server at once; its row does only when the server's log is flushed up to a position.
 * So a client writes down entry and position before it inserts.  After a death of the server the client that recovers
 * removes the entries whose position lies beyond the log's end (src/README, Undo).
 *
 * Records lie in persistent segments of the region (segment.h): the process that writes one may die at any instruction,
 * the bytes stay.  A record counts from the moment when its segment's used covers it.
 *
 *	  owner   CAS from 0 by the client that claims the segment, stored 0 by it
 *	  used    stored by the owner, with release: the records below it are whole
 *	  last    stored by the owner, before used: no record has a greater position
 *	  number  stored by the owner
 *
 * A segment serves again, empty, when all of its records are durable.  If half of it is free, it serves again at once, and
 * keeps its records.  There is no order among records, nor need there be one: each tells of one entry whose row, if it is
 * lost, is lost whatever else happened (U3).
 */
#ifndef SMART_COMPUTE_UNDO_H
#define SMART_COMPUTE_UNDO_H

#include <string.h>

#include "base/bytes.h"
#include "compute/allocate/segment.h"

#define SMART_UNDO_HEAD_BYTES 64u

struct smart_undo_segment
{
	uint64_t owner; /* client + 1, or 0 */
	uint64_t used;  /* bytes of records */
	uint64_t last;
	uint64_t number; /* the segment's own */
	uint64_t unused[4];
	uint8_t records[SMART_SEGMENT_BYTES - SMART_UNDO_HEAD_BYTES];
};

struct smart_undo_record
{
	uint64_t position; /* in the log: if its end lies before, the entry must not be there */
	uint64_t tree;
	uint16_t bytes; /* of the whole record, a multiple of 8 */
	uint16_t key_length;
	uint16_t leaf_size;    /* of the tree's options, … */
	uint16_t fixed_length; /* … as this */
	uint8_t key[];
};

_Static_assert(offsetof(struct smart_undo_segment, records) == SMART_UNDO_HEAD_BYTES, "a segment's head is a line");
_Static_assert(sizeof(struct smart_undo_segment) == SMART_SEGMENT_BYTES, "an undo segment is a persistent segment");
_Static_assert(offsetof(struct smart_undo_record, key) == 24, "the key follows at once");

/* What becomes a record. */
struct smart_undo
{
	uint64_t position;
	uint64_t tree;
	uint16_t leaf_size;
	uint16_t fixed_length;
	uint16_t key_length;
	const uint8_t *key;
};

/* Adds a record to a segment that the caller has claimed; false: it finds no room. */
static inline bool
smart_undo_put(struct smart_undo_segment *segment, const struct smart_undo *undo)
{
	uint32_t bytes = ((uint32_t) offsetof(struct smart_undo_record, key) + undo->key_length + 7u) & ~7u;
	uint64_t used = segment->used;
	struct smart_undo_record *record = (struct smart_undo_record *) (segment->records + used);

	smart_assert(segment->owner != 0 && used % 8 == 0 && used <= sizeof(segment->records));
	smart_assert(undo->tree != 0 && undo->key_length > 0 && undo->key_length <= SMART_KEY_MAX);
	if (smart_unlikely(used + bytes > sizeof(segment->records)))
		return false;
	record->position = undo->position;
	record->tree = undo->tree;
	record->bytes = (uint16_t) bytes;
	record->key_length = undo->key_length;
	record->leaf_size = undo->leaf_size;
	record->fixed_length = undo->fixed_length;
	memcpy(record->key, undo->key, undo->key_length);
	if (segment->last < undo->position)
		segment->last = undo->position;
	/* Release: a client that finds the segment after this process has died sees whole records below used. */
	__atomic_store_n(&segment->used, used + bytes, __ATOMIC_RELEASE);
	return true;
}

/*
 * A segment that no client owned, now owned by this client: one whose records are durable, empty now, or one that is half
 * empty, as it is.  The one that was released last comes first, so that a client that inserts little looks at one only.
 * NULL if there is none.
 */
extern struct smart_undo_segment *
smart_undo_claim(const struct smart_region *region, unsigned int client, uint64_t durable);

/*
 * The same with a segment that is made for it, if there are fewer than limit of them (at most SMART_SEGMENT_MAX).
 * SMART_NO_SPACE: there are so many; errors of smart_space_segment.  After an error *segment is as before.
 */
extern smart_status smart_undo_claim_new(struct smart_space *space, unsigned int client, unsigned int limit,
										 struct smart_undo_segment **segment);

/* Gives up a segment that the caller has claimed. */
extern void smart_undo_release(const struct smart_region *region, struct smart_undo_segment *segment);

/* The least position up to which the log has to be durable for a segment without owner to serve again; 0: none has one. */
extern uint64_t smart_undo_least(const struct smart_region *region);

/*
 * Visits all records whose position lies beyond `beyond`, with no client at work.  visit() returns SMART_OK,
 * or the status that ends the visits.  SMART_CORRUPT: a segment is not what one is.
 */
typedef smart_status (*smart_undo_fn)(void *argument, const struct smart_undo_record *record);

extern smart_status
smart_undo_each(const struct smart_region *region, uint64_t beyond, smart_undo_fn visit, void *argument);

/* Forgets all records and owners, with no client at work. */
extern void smart_undo_clear(const struct smart_region *region);

#endif /* SMART_COMPUTE_UNDO_H */

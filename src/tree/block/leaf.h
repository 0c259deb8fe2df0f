/*
 * leaf.h
 *	  Leaves: reading, checking, searching.
 */
#ifndef SMART_TREE_LEAF_H
#define SMART_TREE_LEAF_H

#include "base/bytes.h"
#include "tree/fault.h"
#include "tree/step/place.h"
#include "tree/tree.h"

/* A leaf.  Everything but the entries' bytes is loaded once and checked to lie within the block. */
struct smart_leaf
{
	fabric_address address;
	smart_slot link;
	unsigned int units;
	const uint8_t *block; /* in place on a direct provider, else a copy */
	uint64_t header;
	uint64_t meta;
	unsigned int depth;
	unsigned int lo;
	unsigned int hi;
	unsigned int prefix_length;
	unsigned int start; /* offset of the first entry */
	unsigned int sorted_end;
	unsigned int used;
	unsigned int stride; /* bytes of every suffix, 0: each has its length in front */
	enum smart_block_state state;
};

static inline const uint8_t *
smart_leaf_prefix(const struct smart_leaf *leaf)
{
	return leaf->block + SMART_LEAF_HEADER_BYTES;
}

/* Bytes for more entries; with values see smart_leaf_room_for. */
static inline unsigned int
smart_leaf_room(const struct smart_leaf *leaf)
{
	return leaf->units * SMART_UNIT - SMART_LEAF_REAR_BYTES - leaf->used;
}

/* ---- trees with values: the leaf is a copy ---- */

/* Entries below used, whichever lie in range; where they differ in length they are counted one by one. */
extern unsigned int smart_leaf_entries(const struct smart_leaf *leaf);
/* How many lie before the one with this suffix in the copy. */
extern unsigned int smart_leaf_number(const struct smart_leaf *leaf, const uint8_t *suffix);

/* Offset in the block, in bytes, of the word of the entry with this number, counted from 0 as the entries lie. */
static inline unsigned int
smart_value_offset(const struct smart_leaf *leaf, unsigned int entry)
{
	return leaf->units * SMART_UNIT - SMART_LEAF_REAR_BYTES - (entry + 1) * SMART_VALUE_BYTES;
}

/* The word in the copy. */
static inline uint64_t
smart_value_at(const struct smart_leaf *leaf, unsigned int entry)
{
	uint64_t word;

	memcpy(&word, leaf->block + smart_value_offset(leaf, entry), sizeof(word));
	return word;
}

/* How far behind an entry's suffix in the copy its word lies. */
static inline uint32_t
smart_value_distance(const struct smart_leaf *leaf, const uint8_t *suffix)
{
	return smart_value_offset(leaf, smart_leaf_number(leaf, suffix)) - (unsigned int) (suffix - leaf->block);
}

/* Bytes for more entries, values included, in a leaf of any tree. */
static inline unsigned int
smart_leaf_room_for(const struct smart_leaf *leaf, bool values)
{
	unsigned int room = smart_leaf_room(leaf);

	return values ? room - smart_leaf_entries(leaf) * SMART_VALUE_BYTES : room;
}

/*
 * Does an entry that takes so many bytes find room, and is there no value where its own shall be?  In exclusive mode the
 * value of an append that came to nothing may be there still (V6): then the leaf has to be replaced.
 */
static inline bool
smart_leaf_takes(const struct smart_leaf *leaf, unsigned int bytes, bool values)
{
	uint64_t word = 0;

	if (bytes > smart_leaf_room_for(leaf, values))
		return false;
	if (values)
		memcpy(&word, leaf->block + smart_value_offset(leaf, smart_leaf_entries(leaf)), sizeof(word));
	return word == 0 || SMART_FAULT(leftvalue);
}

/* ---- all trees ---- */

/*
 * The offset of the first entry of the sorted run whose suffix is not below rest, a string that goes on behind the
 * leaf's prefix; for suffixes of one length only.
 */
static inline unsigned int
smart_leaf_lower_bound(const struct smart_leaf *leaf, const uint8_t *rest, size_t rest_length)
{
	const uint8_t *run = leaf->block + leaf->start;
	unsigned int stride = leaf->stride;
	size_t shorter = rest_length < stride ? rest_length : stride;
	/* Where rest goes on, an entry that it begins with is below it, too. */
	int below = shorter < rest_length ? 1 : 0;
	unsigned int low = 0;
	unsigned int count = (leaf->sorted_end - leaf->start) / stride;

	smart_assert(leaf->start <= leaf->sorted_end);
	while (count > 0)
	{
		unsigned int half = count / 2;

		if (smart_compare_equal_length(run + (low + half) * stride, rest, shorter) < below)
		{
			low += half + 1;
			count -= half + 1;
		}
		else
			count = half;
	}
	return leaf->start + low * stride;
}

/*
 * Takes a block apart.  meta was loaded, with acquire, before anything else of
 * the block.  Result: is it a leaf whose parts lie within the block?
 */
extern bool smart_leaf_parse(const struct smart_tree *tree, smart_slot link, const uint8_t *block, uint64_t meta,
							 struct smart_leaf *leaf);
/* READ of a leaf that others may be waiting for; remote providers only.  *delivered: it was another client's. */
extern smart_status
smart_leaf_read_together(struct smart_tree *tree, fabric_address leaf, void *buffer, size_t length, bool *delivered);
/* Takes a copy of the leaf that link leads to apart, as a READ has brought it.  Result: is it whole, and right for key? */
extern bool smart_leaf_from_copy(const struct smart_tree *tree, smart_slot link, const uint8_t *copy,
								 const struct smart_key *key, struct smart_leaf *leaf);
/* The leaf was READ, and is not good: is that because promised entries are not there yet (C5a)? */
extern bool smart_leaf_has_open_promise(const struct smart_tree *tree, const struct smart_leaf *leaf);
/*
 * Reads the leaf that link leads to.  *good: its parts make sense, and on a
 * remote provider its checksum is right for key.  In place on a direct
 * provider: meta is loaded with acquire, so that all bytes below used, which
 * never change (I4), are visible.
 */
extern smart_status smart_leaf_read(struct smart_tree *tree, smart_slot link, const struct smart_key *key,
									uint8_t *buffer, struct smart_leaf *leaf, bool *good);
/* The same by a READ that is not shared, for the holder of the leaf's lock. */
extern smart_status smart_leaf_read_alone(struct smart_tree *tree, smart_slot link, const struct smart_key *key,
										  uint8_t *buffer, struct smart_leaf *leaf, bool *good);
/* Is this the content that was written for key's prefix in this tree? */
extern bool
smart_leaf_checksum_ok(const struct smart_tree *tree, const struct smart_leaf *leaf, const struct smart_key *key);
/* Does the leaf answer for key's byte?  Its prefix before depth has been proved otherwise. */
extern bool smart_leaf_covers(const struct smart_leaf *leaf, const struct smart_key *key);
/* Does the key share the bytes that the leaf's entries have in common? */
extern bool smart_leaf_prefix_matches(const struct smart_leaf *leaf, const struct smart_key *key);
/*
 * Do all entries ascend, and does the key, which shares the leaf's prefix, lie
 * above the last one?  Told for suffixes of one length only.
 */
extern bool smart_leaf_ends_below(const struct smart_leaf *leaf, const struct smart_key *key);
/* Is a complete key among the leaf's entries, in range or not? */
extern bool smart_leaf_contains(const struct smart_leaf *leaf, const struct smart_key *key);
/*
 * The entry at offset: its suffix and that suffix's length.  Returns the offset
 * of the next one; 0: the leaf is malformed.
 */
static inline unsigned int
smart_leaf_next_entry(const struct smart_leaf *leaf, unsigned int offset, const uint8_t **suffix, unsigned int *length)
{
	const uint8_t *bytes = leaf->block + offset;
	unsigned int head = 0;
	unsigned int size = leaf->stride;

	if (size == 0)
	{
		head = bytes[0] < 0x80 ? 1 : 2;
		size = head == 1 ? bytes[0] : ((bytes[0] & 0x7fu) << 8) | bytes[1];
	}
	if (smart_unlikely(size == 0 || offset + head + size > leaf->used))
		return 0;
	*suffix = bytes + head;
	*length = size;
	return offset + head + size;
}

/*
 * Order of an entry (whose prefix is known to match) and a key: an entry that
 * begins with all of a complete key equals it; against a bound, padding counts.
 */
extern int smart_leaf_compare(const struct smart_leaf *leaf, const uint8_t *suffix, unsigned int length,
							  const struct smart_key *key);
/* ACTIVATE: new -> live, for a leaf that this operation linked or saw linked in a strict descent. */
extern smart_status smart_leaf_activate(struct smart_tree *tree, const struct smart_leaf *leaf);

#endif /* SMART_TREE_LEAF_H */

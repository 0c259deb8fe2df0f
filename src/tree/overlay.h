/*
 * overlay.h
 *	  Merging two sources of entries in one order: a base, and what lies over it, which has changed since.
 *
 * An entry that lies over the base replaces the one there with the same key; one that was removed hides it.  No key is a prefix of
 * another one: what begins with a key is its entry.
 *
 * Both sides are taken by the block.  Which of them has the next entry is a matter of chance, and a processor that foresees it
 * wrongly loses more time than the comparison takes; so entries are compared by words, in which those of a block differ, without a
 * branch for each.
 */
#ifndef SMART_TREE_OVERLAY_H
#define SMART_TREE_OVERLAY_H

#include "base/assert.h"
#include "base/bytes.h"
#include "tree/tree.h"

#define SMART_SIDE_MAX   256   /* entries of a block */
#define SMART_SIDE_BYTES 32752 /* of their bytes: offsets in a batch have 16 bits */
#define SMART_SIDE_STEP  8     /* entries over the base, after which they are compared with its block */

_Static_assert(2 * SMART_SIDE_BYTES + SMART_BATCH_SLACK <= UINT16_MAX, "the bytes of two sides");

/* A block of one side's entries, in the order of the scan. */
struct smart_side
{
	uint32_t count;
	uint32_t next;  /* the first one that has not been merged */
	uint32_t first; /* where its entries begin among those of the overlay */
	uint32_t begin; /* and its bytes */
	uint32_t used;  /* of them */
	bool ended;     /* no more entries follow */
};

struct smart_overlay
{
	bool backward;
	bool stale; /* the words are not those of these blocks */
	bool exact; /* equal words tell of equal keys */
	struct smart_side base;
	struct smart_side over;
	struct smart_item items[2 * SMART_SIDE_MAX];
	uint64_t words[2 * SMART_SIDE_MAX];
	uint16_t key_lengths[2 * SMART_SIDE_MAX]; /* of over's entries */
	bool there[2 * SMART_SIDE_MAX];           /* over's: it was not removed */
	struct smart_item merged[2 * SMART_SIDE_MAX + 1];
	uint8_t bytes[2 * SMART_SIDE_BYTES + SMART_BATCH_SLACK];
};

/* Both sides are empty, and have not ended. */
extern void smart_overlay_begin(struct smart_overlay *overlay, bool backward);

/* Has a side nothing more? */
static inline bool
smart_overlay_is_used_up(const struct smart_side *side)
{
	return side->ended && side->next == side->count;
}

/* Does a side need its next block?  Then that is begun; what was merged of it before must not be used any more. */
static inline bool
smart_overlay_needs(struct smart_overlay *overlay, struct smart_side *side)
{
	if (side->next < side->count || side->ended)
		return false;
	side->count = side->next = side->used = 0;
	overlay->stale = true;
	return true;
}

/*
 * Where the next entry of a block is to be written, at most SMART_ENTRY_MAX bytes, behind which SMART_BATCH_SLACK more may be
 * overwritten; NULL: the block has no room, or most entries.
 */
static inline uint8_t *
smart_overlay_place(struct smart_overlay *overlay, const struct smart_side *side, uint32_t most)
{
	if (side->count >= most || side->used > SMART_SIDE_BYTES - SMART_ENTRY_MAX - SMART_BATCH_SLACK)
		return NULL;
	return overlay->bytes + side->begin + side->used;
}

/* It has been written there. */
static inline void
smart_overlay_add(struct smart_overlay *overlay, struct smart_side *side, int length)
{
	smart_assert(side->count < SMART_SIDE_MAX && length > 0 && length <= SMART_ENTRY_MAX);
	overlay->items[side->first + side->count++] =
		(struct smart_item){.offset = (uint16_t) (side->begin + side->used), .length = (uint16_t) length};
	side->used += (uint32_t) length;
}

/* The same of what lies over the base; there: it was not removed. */
static inline void
smart_overlay_add_over(struct smart_overlay *overlay, int length, int key_length, bool there)
{
	smart_assert(key_length > 0 && key_length <= length);
	overlay->key_lengths[overlay->over.first + overlay->over.count] = (uint16_t) key_length;
	overlay->there[overlay->over.first + overlay->over.count] = there;
	smart_overlay_add(overlay, &overlay->over, length);
}

/* Is the last entry over the base behind the last one of the base's block, which may have more? */
extern bool smart_overlay_is_behind(const struct smart_overlay *overlay);

/*
 * Is the block that lies over the base full enough, since its last entry is behind all of the base's block, which has to be merged
 * first?  It is compared now and then.
 */
static inline bool
smart_overlay_reaches(const struct smart_overlay *overlay)
{
	return overlay->over.count % SMART_SIDE_STEP == 0 && overlay->over.count > 0 && smart_overlay_is_behind(overlay);
}

/*
 * Merges both blocks until one is used up of a side that has not ended: *batch has the result, in the order of keys, which may be
 * nothing, until the next block of a side is begun.
 */
extern void smart_overlay_merge(struct smart_overlay *overlay, struct smart_batch *batch);

#endif /* SMART_TREE_OVERLAY_H */

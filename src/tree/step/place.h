/*
 * place.h
 *	  Where a key leads, and the one step that every descent is made of: from a
 *	  node, along the key, to the slot that covers its byte (B4 b to e).
 *
 * A descent by pointers takes this step on shared words, one through the cache,
 * a strict one, one of many keys at once and a memory node's on copies.  They
 * differ in how they come by a node's words, and in what they conclude.
 */
#ifndef SMART_TREE_PLACE_H
#define SMART_TREE_PLACE_H

#include "tree/fault.h"
#include "tree/step/cover.h"

/*
 * A key, or a bound: a string that goes on with pad for ever.  Entries end
 * before their padding matters, since no key is a prefix of another.
 */
struct smart_key
{
	const uint8_t *bytes;
	uint32_t length;
	uint8_t pad; /* 0x00, or 0xff for an upper bound */
};

static inline unsigned int
smart_key_byte(const struct smart_key *key, unsigned int position)
{
	return position < key->length ? key->bytes[position] : key->pad;
}

/* The first three say what the slot leads to; with the others the place stays before the node that the step was to pass. */
enum smart_place_kind
{
	SMART_PLACE_LEAF,     /* slot covers the key's byte with a leaf */
	SMART_PLACE_EMPTY,    /* slot covers it with an empty range */
	SMART_PLACE_NODE,     /* within a descent: slot leads to a node for this byte */
	SMART_PLACE_MISMATCH, /* slot leads to a node whose bytes before its depth differ */
	SMART_PLACE_FROZEN,   /* a single descent: the node's slot that covers the byte is frozen, so it needs help */
	SMART_PLACE_UNKNOWN   /* nothing can be concluded: go strict, or start again */
};

struct smart_place
{
	enum smart_place_kind kind;
	smart_slot slot;
	fabric_address slot_address; /* strict paths only, as the next three */
	int index;                   /* of the slot in node, -1: the root slot */
	struct smart_node *node;     /* that holds the slot, NULL: the root slot */
	struct smart_node *child;    /* MISMATCH, FROZEN: the node that differs, or needs help */
	const uint64_t *shared;      /* by pointers: the words of the node that holds the slot, */
	fabric_address shared_at;    /* and where it lies */
	unsigned int depth;          /* position of the byte that the slot's range is about; 0 at the root */
	unsigned int consumed;       /* bytes of the key that lead to the slot's child: depth + 1, at the root 0 */
	unsigned int mismatch_at;    /* MISMATCH: first position that differs */
	unsigned int mismatch_byte;  /* MISMATCH: the node's byte there */
	uint64_t mismatch_header;    /* MISMATCH: the node's header */
};

/* Can a descent that has consumed so many bytes come to a node with this header by a slot for this kind? */
static inline bool
smart_header_fits(uint64_t header, unsigned int kind, unsigned int consumed)
{
	unsigned int depth = smart_node_depth(header);

	smart_assert(consumed <= SMART_KEY_MAX);
	return smart_node_kind(header) == kind && depth >= consumed && depth - consumed <= SMART_NODE_PARTIAL_MAX;
}

/*
 * What the slot that was found to cover byte means.  A view without such a slot, or with a node's slot for another
 * byte, or an empty range that ends before, is torn: made of pieces of different moments (B4 c).  hint: the descent
 * proves nothing, so that a frozen slot is as good as any.
 */
static inline enum smart_place_kind
smart_place_kind_of(smart_slot slot, unsigned int byte, bool hint)
{
	smart_assert(byte <= 255);
	if (smart_unlikely(!hint && smart_slot_frozen(slot)))
		return smart_slot_used(slot) ? SMART_PLACE_FROZEN : SMART_PLACE_UNKNOWN;
	if (!smart_slot_is_range(slot))
		return smart_likely(smart_slot_pk(slot) == byte && smart_slot_used(slot)) ? SMART_PLACE_NODE
																				  : SMART_PLACE_UNKNOWN;
	if (smart_slot_is_leaf(slot))
		return SMART_PLACE_LEAF;
	return smart_slot_empty_hi(slot) >= byte || SMART_FAULT(nohi) ? SMART_PLACE_EMPTY : SMART_PLACE_UNKNOWN;
}

/*
 * One step; returns place->kind.  place->slot leads to a node with this header, which fits, and these slots, shared or
 * copied; place->consumed bytes of the key lead there.  The place moves to the slot that covers the key's next byte,
 * unless the kind is MISMATCH, FROZEN or UNKNOWN now.
 */
static inline enum smart_place_kind
smart_place_step(struct smart_place *place, uint64_t header, const uint64_t *slots, unsigned int kind,
				 unsigned int count, const struct smart_key *key, bool hint)
{
	unsigned int depth = smart_node_depth(header);
	enum smart_place_kind result;
	unsigned int byte;
	smart_slot slot;

	smart_assert(place->consumed <= depth);
	for (unsigned int i = place->consumed; i < depth; i++)
	{
		byte = smart_node_partial_byte(header, i);
		if (smart_likely(byte == smart_key_byte(key, i)))
			continue;
		place->kind = SMART_PLACE_MISMATCH;
		place->mismatch_at = i;
		place->mismatch_byte = byte;
		place->mismatch_header = header;
		return SMART_PLACE_MISMATCH;
	}
	byte = smart_key_byte(key, depth);
	slot = smart_cover(slots, kind, count, byte);
	result = smart_place_kind_of(slot, byte, hint);
	place->kind = result;
	if (smart_unlikely(result > SMART_PLACE_NODE))
		return result;
	place->slot = hint ? slot & ~SMART_SLOT_FROZEN : slot;
	place->depth = depth;
	place->consumed = depth + 1;
	smart_assert(smart_slot_pk(slot) <= byte && place->kind <= SMART_PLACE_NODE);
	return result;
}

#endif /* SMART_TREE_PLACE_H */

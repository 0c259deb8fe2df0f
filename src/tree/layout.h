/*
 * layout.h
 *	  The words of the tree: slots, nodes, leaves.
 *
 * Every word is read into a uint64_t once and taken apart by the functions
 * below; shifts instead of bit-fields, so that the format does not depend on a
 * compiler.  Words carry no tag: that a word is what its reader expects rests
 * on type-stable memory (I6).
 *
 *	  slot          flags 6 | offset/64 34 | memory node 8 | kind or units 7 | leaf 1 | partial key 8
 *	  empty range   a leaf slot of 0 units: hi in bits 6..13
 *	  unused        0; frozen and unused: F alone
 *	  leaf meta     used 16 | state 3 | hi 8 | sorted 1 | locked 1 | updated 1 | spare 2 | crc32c 32
 *	  leaf header   depth 12 | lo 8 | prefix length 12 | end of the sorted run 13 | prefix hash 19
 *	  node header   state 2 | kind 3 | depth 12 | partial bytes 40 | spare 7
 *	  node identity XXH3-64 of the key's bytes before depth, seeded by the tree's id
 *	  value         61 bits | spare 1 | frozen 1 | written 1
 *
 * (lowest bits first).  A leaf block, of 1..127 units of 64 bytes:
 *
 *	  offset           bytes            changed by
 *	  0                8   header       fixed when the block is written
 *	  8                n   prefix       fixed; what all entries share from depth on
 *	  8 + n            .   entries      the lock's holder appends at or above used (I4)
 *	  length - 8 - 8e  8e  values       as the entries, and then CAS only (V1); e entries in whatever range, the first
 *	                                    one's value is the last word; in trees with values
 *	  length - 8       8   meta         CAS only (WRITE while the block is unlinked)
 *
 * An entry in a leaf is its suffix after depth and prefix.  In a tree whose
 * entries have one length the suffix stands alone; else one byte (or, from
 * 0x80 on, two) of length precedes it.  Entries up to the end of the sorted run
 * ascend; those behind it were appended in order of arrival, which meta's sorted
 * bit says to be ascending, too.  The checksum does not cover the values.
 *
 * An internal node: header, identity, then its kind's number of slots.
 */
#ifndef SMART_TREE_LAYOUT_H
#define SMART_TREE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "rdma/fabric.h"

#define SMART_UNIT           64 /* bytes; every block is a multiple */
#define SMART_LEAF_UNITS_MAX 127
#define SMART_LEAF_BYTES_MAX (SMART_LEAF_UNITS_MAX * SMART_UNIT)
#define SMART_KEY_MAX        4095 /* bytes of columns and TID: depth has 12 bits */
#define SMART_ENTRY_MAX      8001 /* bytes with payload */

/* ---- slots ---- */

typedef uint64_t smart_slot;

#define SMART_SLOT_FROZEN         UINT64_C(1)
#define SMART_SLOT_ADDRESS_MASK   UINT64_C(0x0000ffffffffffc0)
#define SMART_SLOT_SIZE_SHIFT     48
#define SMART_SLOT_LEAF           (UINT64_C(1) << 55)
#define SMART_SLOT_PK_SHIFT       56
#define SMART_SLOT_EMPTY_HI_SHIFT 6

static inline bool
smart_slot_used(smart_slot slot)
{
	return (slot & ~SMART_SLOT_FROZEN) != 0;
}

static inline bool
smart_slot_frozen(smart_slot slot)
{
	return (slot & SMART_SLOT_FROZEN) != 0;
}

static inline unsigned int
smart_slot_pk(smart_slot slot)
{
	return (unsigned int) (slot >> SMART_SLOT_PK_SHIFT);
}

/* A leaf or an empty range; false: a node (or an unused slot). */
static inline bool
smart_slot_is_range(smart_slot slot)
{
	return (slot & SMART_SLOT_LEAF) != 0;
}

/* Node kind, or length of the leaf in units; 0 for an empty range. */
static inline unsigned int
smart_slot_size(smart_slot slot)
{
	return (unsigned int) (slot >> SMART_SLOT_SIZE_SHIFT) & 0x7f;
}

static inline bool
smart_slot_is_empty(smart_slot slot)
{
	return smart_slot_is_range(slot) && smart_slot_size(slot) == 0;
}

static inline bool
smart_slot_is_leaf(smart_slot slot)
{
	return smart_slot_is_range(slot) && smart_slot_size(slot) != 0;
}

static inline bool
smart_slot_is_node(smart_slot slot)
{
	return smart_slot_used(slot) && !smart_slot_is_range(slot);
}

static inline fabric_address
smart_slot_address(smart_slot slot)
{
	return slot & SMART_SLOT_ADDRESS_MASK;
}

/* hi of an empty range. */
static inline unsigned int
smart_slot_empty_hi(smart_slot slot)
{
	return (unsigned int) (slot >> SMART_SLOT_EMPTY_HI_SHIFT) & 0xff;
}

static inline smart_slot
smart_slot_make_leaf(unsigned int pk, unsigned int units, fabric_address address)
{
	smart_assert(pk <= 255 && units >= 1 && units <= SMART_LEAF_UNITS_MAX);
	smart_assert((address & ~SMART_SLOT_ADDRESS_MASK) == 0);
	return ((uint64_t) pk << SMART_SLOT_PK_SHIFT) | SMART_SLOT_LEAF | ((uint64_t) units << SMART_SLOT_SIZE_SHIFT) |
		   address;
}

static inline smart_slot
smart_slot_make_node(unsigned int pk, unsigned int kind, fabric_address address)
{
	smart_assert(pk <= 255 && kind >= 1 && kind <= 6);
	smart_assert((address & ~SMART_SLOT_ADDRESS_MASK) == 0);
	return ((uint64_t) pk << SMART_SLOT_PK_SHIFT) | ((uint64_t) kind << SMART_SLOT_SIZE_SHIFT) | address;
}

static inline smart_slot
smart_slot_make_empty(unsigned int pk, unsigned int hi)
{
	smart_assert(pk <= hi && hi <= 255);
	return ((uint64_t) pk << SMART_SLOT_PK_SHIFT) | SMART_SLOT_LEAF | ((uint64_t) hi << SMART_SLOT_EMPTY_HI_SHIFT);
}

/* The root slot of a tree without entries. */
static inline smart_slot
smart_tree_empty_root(void)
{
	return smart_slot_make_empty(0, 255);
}

/* The same block under another partial key. */
static inline smart_slot
smart_slot_with_pk(smart_slot slot, unsigned int pk)
{
	return (slot & ~(UINT64_C(0xff) << SMART_SLOT_PK_SHIFT)) | ((uint64_t) pk << SMART_SLOT_PK_SHIFT);
}

/* ---- leaves ---- */

enum smart_block_state
{
	SMART_NEW = 1, /* written, perhaps not linked: not trusted by a client that came through a cache */
	SMART_LIVE = 2,
	SMART_SEALED = 3, /* leaf: content final, about to be replaced */
	SMART_DEAD = 3    /* node: unlinked */
};

static inline uint64_t
smart_meta_make(unsigned int used, enum smart_block_state state, unsigned int hi, uint32_t crc)
{
	return (uint64_t) used | ((uint64_t) state << 16) | ((uint64_t) hi << 19) | ((uint64_t) crc << 32);
}

/*
 * All entries ascend, the appended ones too: where keys come in order, a leaf
 * is searched as if it had been written sorted.
 */
#define SMART_META_SORTED (UINT64_C(1) << 27)

/* Shared mode: a client holds the leaf's lock. */
#define SMART_META_LOCKED (UINT64_C(1) << 28)

/* A value in this leaf may have been changed, or be changed at any time (V2). */
#define SMART_META_UPDATED (UINT64_C(1) << 29)

static inline bool
smart_meta_locked(uint64_t meta)
{
	return (meta & SMART_META_LOCKED) != 0;
}

/* Offset in the block, in bytes, behind the last entry. */
static inline unsigned int
smart_meta_used(uint64_t meta)
{
	return (unsigned int) meta & 0x1fff;
}

/*
 * Shared mode: a promise (C5a).  The last so many entries below used may not have been WRITTEN yet, and they are taken back
 * if they never are; 0: all are there for good.  Bits 13 to 15, and above them 30 and 31.
 */
#define SMART_PROMISED_MAX   31u
#define SMART_META_PROMISED  (UINT64_C(7) << 13 | UINT64_C(3) << 30)
#define SMART_META_USED_BITS 13

static inline unsigned int
smart_meta_promised(uint64_t meta)
{
	return (unsigned int) ((meta >> 13 & 7) | (meta >> 30 & 3) << 3);
}

static inline uint64_t
smart_meta_with_promise(uint64_t meta, unsigned int entries)
{
	smart_assert(entries <= SMART_PROMISED_MAX);
	return (meta & ~SMART_META_PROMISED) | (uint64_t) (entries & 7) << 13 | (uint64_t) (entries >> 3) << 30;
}

/* The same, and no client can take back what was promised. */
static inline uint64_t
smart_meta_settled(uint64_t meta)
{
	return meta & ~SMART_META_PROMISED;
}

static inline enum smart_block_state
smart_meta_state(uint64_t meta)
{
	return (enum smart_block_state)((meta >> 16) & 7);
}

static inline unsigned int
smart_meta_hi(uint64_t meta)
{
	return (unsigned int) (meta >> 19) & 0xff;
}

static inline uint32_t
smart_meta_crc(uint64_t meta)
{
	return (uint32_t) (meta >> 32);
}

static inline uint64_t
smart_meta_with_state(uint64_t meta, enum smart_block_state state)
{
	return (meta & ~(UINT64_C(7) << 16)) | ((uint64_t) state << 16);
}

/* Sealed, and no client's any more. */
static inline uint64_t
smart_meta_sealed(uint64_t meta)
{
	return smart_meta_settled(smart_meta_with_state(meta, SMART_SEALED)) & ~SMART_META_LOCKED;
}

static inline uint64_t
smart_meta_with_hi(uint64_t meta, unsigned int hi)
{
	return (meta & ~(UINT64_C(0xff) << 19)) | ((uint64_t) hi << 19);
}

#define SMART_LEAF_HEADER_BYTES 8
#define SMART_LEAF_REAR_BYTES   8

static inline uint64_t
smart_leaf_header_make(unsigned int depth, unsigned int lo, unsigned int prefix_length, unsigned int sorted_end,
					   uint32_t prefix_hash)
{
	smart_assert(depth <= SMART_KEY_MAX && lo <= 255 && prefix_length <= SMART_KEY_MAX && sorted_end < 8192);
	return (uint64_t) depth | ((uint64_t) lo << 12) | ((uint64_t) prefix_length << 20) | ((uint64_t) sorted_end << 32) |
		   ((uint64_t) (prefix_hash & 0x7ffff) << 45);
}

/* Position of the byte whose range the leaf covers. */
static inline unsigned int
smart_leaf_depth(uint64_t header)
{
	return (unsigned int) header & 0xfff;
}

static inline unsigned int
smart_leaf_lo(uint64_t header)
{
	return (unsigned int) (header >> 12) & 0xff;
}

static inline unsigned int
smart_leaf_prefix_length(uint64_t header)
{
	return (unsigned int) (header >> 20) & 0xfff;
}

/* Offset in the block, in bytes, behind the sorted run. */
static inline unsigned int
smart_leaf_sorted_end(uint64_t header)
{
	return (unsigned int) (header >> 32) & 0x1fff;
}

/* 19 bits of the hash of the key's bytes before depth. */
static inline uint32_t
smart_leaf_prefix_hash(uint64_t header)
{
	return (uint32_t) (header >> 45);
}

static inline fabric_address
smart_leaf_meta_address(fabric_address leaf, unsigned int units)
{
	return leaf + (uint64_t) units * SMART_UNIT - SMART_LEAF_REAR_BYTES;
}

/* ---- values ---- */

#define SMART_VALUE_BYTES   8
#define SMART_VALUE_MAX     ((UINT64_C(1) << 61) - 1)
#define SMART_VALUE_FROZEN  (UINT64_C(1) << 62) /* the leaf is being copied */
#define SMART_VALUE_WRITTEN (UINT64_C(1) << 63) /* the word is a value */

static inline bool
smart_value_written(uint64_t word)
{
	return (word & SMART_VALUE_WRITTEN) != 0;
}

static inline bool
smart_value_frozen(uint64_t word)
{
	return (word & SMART_VALUE_FROZEN) != 0;
}

/* The word of an entry that has this value. */
static inline uint64_t
smart_value_word(uint64_t value)
{
	smart_assert(value <= SMART_VALUE_MAX);
	return value | SMART_VALUE_WRITTEN;
}

/* ---- nodes ---- */

enum smart_node_kind
{
	SMART_NODE_6 = 1,
	SMART_NODE_14 = 2,
	SMART_NODE_30 = 3,
	SMART_NODE_62 = 4,
	SMART_NODE_126 = 5,
	SMART_NODE_256 = 6 /* direct-mapped: slot i belongs to byte i */
};

#define SMART_NODE_KINDS       6
#define SMART_NODE_HEAD_WORDS  2
#define SMART_NODE_WORDS_MAX   (SMART_NODE_HEAD_WORDS + 256)
#define SMART_NODE_PARTIAL_MAX 5

/* Slots that a node of a kind has room for (kinds start at 1). */
static inline unsigned int
smart_kind_slots(unsigned int kind)
{
	static const uint16_t slots[8] = {0, 6, 14, 30, 62, 126, 256, 0};

	return slots[kind & 7];
}

/* Bytes of the block, a multiple of SMART_UNIT. */
static inline unsigned int
smart_kind_bytes(unsigned int kind)
{
	static const uint16_t bytes[8] = {0, 64, 128, 256, 512, 1024, 2112, 0};

	return bytes[kind & 7];
}

/* partial: the last min(5, depth) bytes before depth; byte depth - 1 lowest. */
static inline uint64_t
smart_node_header_make(enum smart_block_state state, unsigned int kind, unsigned int depth, uint64_t partial)
{
	smart_assert(kind >= 1 && kind <= SMART_NODE_KINDS && depth <= SMART_KEY_MAX && partial < (UINT64_C(1) << 40));
	return (uint64_t) state | ((uint64_t) kind << 2) | ((uint64_t) depth << 5) | (partial << 17);
}

static inline enum smart_block_state
smart_node_state(uint64_t header)
{
	return (enum smart_block_state)(header & 3);
}

static inline unsigned int
smart_node_kind(uint64_t header)
{
	return (unsigned int) (header >> 2) & 7;
}

/* Position of the byte that the node branches on. */
static inline unsigned int
smart_node_depth(uint64_t header)
{
	return (unsigned int) (header >> 5) & 0xfff;
}

/* The byte that all keys below the node have at position, depth - 5 <= position < depth. */
static inline unsigned int
smart_node_partial_byte(uint64_t header, unsigned int position)
{
	return (unsigned int) (header >> (17 + 8 * (smart_node_depth(header) - 1 - position))) & 0xff;
}

static inline uint64_t
smart_node_with_state(uint64_t header, enum smart_block_state state)
{
	return (header & ~UINT64_C(3)) | (uint64_t) state;
}

static inline fabric_address
smart_node_slot_address(fabric_address node, unsigned int index)
{
	return node + 8 * (uint64_t) (SMART_NODE_HEAD_WORDS + index);
}

/* ---- block classes: what a slab holds, for life (I6) ---- */

/* 1..127: a leaf of that many units; 128 + kind: a node. */
typedef uint8_t smart_class;

#define SMART_CLASS_NODE(kind)  ((smart_class) (128 + (kind)))
#define SMART_CLASS_LEAF(units) ((smart_class) (units))
#define SMART_CLASSES           (128 + SMART_NODE_KINDS + 1)

static inline bool
smart_class_is_node(smart_class class)
{
	return class > 128;
}

static inline unsigned int
smart_class_bytes(smart_class class)
{
	return smart_class_is_node(class) ? smart_kind_bytes(class - 128u) : class * (unsigned int) SMART_UNIT;
}

/* The class of the block that a slot links to (a leaf or a node). */
static inline smart_class
smart_slot_class(smart_slot slot)
{
	return smart_slot_is_range(slot) ? SMART_CLASS_LEAF(smart_slot_size(slot))
									 : SMART_CLASS_NODE(smart_slot_size(slot));
}

_Static_assert(SMART_LEAF_BYTES_MAX == 8128, "a leaf's length has 7 bits");
_Static_assert(SMART_LEAF_BYTES_MAX < 1 << SMART_META_USED_BITS, "a promise stands above used in meta");
_Static_assert(SMART_ENTRY_MAX + 2 + SMART_LEAF_HEADER_BYTES + SMART_LEAF_REAR_BYTES <= SMART_LEAF_BYTES_MAX,
			   "the longest entry fits the longest leaf");
_Static_assert((SMART_SLOT_ADDRESS_MASK >> FABRIC_NODE_SHIFT) == 0xff, "a slot holds a whole global address");

#endif /* SMART_TREE_LAYOUT_H */

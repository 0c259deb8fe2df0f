/*
 * pack.c
 *	  A node's words in fewer bits; pack.h has the format.
 */
#include <string.h>

#include "compute/cache/pack.h"

#define PK_BITS     8
#define LOW_BITS    40 /* of a slot: flags and offset */
#define UNIT_SHIFT  6
#define OFFSET_BITS (LOW_BITS - UNIT_SHIFT)

/* The slots of a packed node. */
struct shape
{
	unsigned int count;
	bool mapped;      /* those in use of a direct-mapped node: each stands where its partial key says */
	bool units;       /* low parts count units, and have no flags */
	unsigned int low; /* bits */
	unsigned int node;
	unsigned int leads;
	uint64_t least; /* of the low parts of slots that lead to blocks */
};

static inline uint64_t
ones(unsigned int bits)
{
	return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

static inline unsigned int
bits_of(uint64_t value)
{
	return value == 0 ? 0 : 64 - (unsigned int) __builtin_clzll(value);
}

/* ---- a slot's fields ---- */

static inline uint64_t
low_of(const struct shape *shape, smart_slot slot)
{
	uint64_t low = slot & ones(LOW_BITS);

	return shape->units ? low >> UNIT_SHIFT : low;
}

static inline uint64_t
node_of(smart_slot slot)
{
	return slot >> LOW_BITS & 0xff;
}

/* Kind or length, and whether it is a leaf's: the other way round, so that short ones have few bits. */
static inline uint64_t
leads_of(smart_slot slot)
{
	return (uint64_t) smart_slot_size(slot) << 1 | (smart_slot_is_range(slot) ? 1 : 0);
}

static inline unsigned int
bits_per_slot(const struct shape *shape)
{
	return PK_BITS + shape->leads + shape->node + shape->low;
}

static inline unsigned int
packed_words(const struct shape *shape)
{
	return CACHE_PACKED_HEAD + (shape->count * bits_per_slot(shape) + 63) / 64;
}

/* ---- the shape ---- */

/* Every slot in use of a direct-mapped node has its place: what is not stored is 0. */
static bool
is_mapped(const uint64_t *slots, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
	{
		if (slots[i] != 0 && smart_slot_pk(slots[i]) != i)
			return false;
	}
	return count == smart_kind_slots(SMART_NODE_256);
}

static void
find_least(struct shape *shape, const uint64_t *slots, unsigned int count)
{
	uint64_t least = UINT64_MAX;

	shape->units = true;
	for (unsigned int i = 0; i < count; i++)
		shape->units &= (slots[i] & ones(UNIT_SHIFT)) == 0;
	for (unsigned int i = 0; i < count; i++)
	{
		if (smart_slot_size(slots[i]) != 0 && low_of(shape, slots[i]) < least)
			least = low_of(shape, slots[i]);
	}
	shape->least = shape->units && least != UINT64_MAX ? least : 0;
}

static struct shape
shape_of(const uint64_t *slots, unsigned int count)
{
	struct shape shape = {.mapped = is_mapped(slots, count)};
	uint64_t low = 0;
	uint64_t node = 0;
	uint64_t leads = 0;

	while (count > 0 && slots[count - 1] == 0)
		count--;
	find_least(&shape, slots, count);
	for (unsigned int i = 0; i < count; i++)
	{
		low |= low_of(&shape, slots[i]) - (smart_slot_size(slots[i]) != 0 ? shape.least : 0);
		node |= node_of(slots[i]);
		leads |= leads_of(slots[i]);
		shape.count += !shape.mapped || slots[i] != 0;
	}
	shape.low = bits_of(low);
	shape.node = bits_of(node);
	shape.leads = bits_of(leads);
	smart_assert(bits_per_slot(&shape) <= 64 && shape.least <= ones(OFFSET_BITS));
	return shape;
}

static uint64_t
shape_word(const struct shape *shape)
{
	return (uint64_t) shape->count | (uint64_t) shape->mapped << 9 | (uint64_t) shape->units << 10 |
		   (uint64_t) shape->low << 11 | (uint64_t) shape->node << 17 | (uint64_t) shape->leads << 21 |
		   shape->least << 25;
}

static struct shape
shape_from(uint64_t word)
{
	return (struct shape){.count = (unsigned int) word & 0x1ff,
						  .mapped = (word >> 9 & 1) != 0,
						  .units = (word >> 10 & 1) != 0,
						  .low = (unsigned int) (word >> 11) & 0x3f,
						  .node = (unsigned int) (word >> 17) & 0xf,
						  .leads = (unsigned int) (word >> 21) & 0xf,
						  .least = word >> 25};
}

/* ---- to and fro ---- */

unsigned int
cache_pack(const uint64_t *words, unsigned int slots, uint64_t *packed)
{
	struct shape shape = shape_of(words + SMART_NODE_HEAD_WORDS, slots);
	unsigned int width = bits_per_slot(&shape);
	unsigned int at = 0;

	memcpy(packed, words, SMART_NODE_HEAD_WORDS * sizeof(uint64_t));
	packed[SMART_NODE_HEAD_WORDS] = shape_word(&shape);
	memset(packed + CACHE_PACKED_HEAD, 0, (packed_words(&shape) - CACHE_PACKED_HEAD) * sizeof(uint64_t));
	for (unsigned int i = 0; at < shape.count * width; i++)
	{
		smart_slot slot = words[SMART_NODE_HEAD_WORDS + i];
		uint64_t *to = packed + CACHE_PACKED_HEAD + at / 64;
		uint64_t field = low_of(&shape, slot) - (smart_slot_size(slot) != 0 ? shape.least : 0);

		if (shape.mapped && slot == 0)
			continue;
		field = field << shape.node | node_of(slot);
		field = field << shape.leads | leads_of(slot);
		field = field << PK_BITS | smart_slot_pk(slot);
		to[0] |= field << at % 64;
		if (at % 64 + width > 64)
			to[1] |= field >> (64 - at % 64);
		at += width;
	}
	return packed_words(&shape);
}

/* A slot from its fields. */
static inline smart_slot
slot_from(const struct shape *shape, uint64_t field)
{
	uint64_t leads = field >> PK_BITS & ones(shape->leads);
	uint64_t node = field >> (PK_BITS + shape->leads) & ones(shape->node);
	uint64_t low = field >> (PK_BITS + shape->leads) >> shape->node;

	low += leads > 1 ? shape->least : 0;
	return field << SMART_SLOT_PK_SHIFT | (leads & 1) * SMART_SLOT_LEAF | leads >> 1 << SMART_SLOT_SIZE_SHIFT |
		   node << LOW_BITS | low << (shape->units ? UNIT_SHIFT : 0);
}

void
cache_unpack(const uint64_t *packed, unsigned int slots, uint64_t *words)
{
	const struct shape shape = shape_from(packed[SMART_NODE_HEAD_WORDS]);
	const unsigned int width = bits_per_slot(&shape);
	const uint64_t mask = ones(width);
	uint64_t *to = words + SMART_NODE_HEAD_WORDS;
	unsigned int at = CACHE_PACKED_HEAD * 64;

	smart_assert(shape.count <= slots && width <= 64);
	memcpy(words, packed, SMART_NODE_HEAD_WORDS * sizeof(uint64_t));
	memset(to, 0, slots * sizeof(uint64_t));
	for (unsigned int i = 0; i < shape.count; i++, at += width)
	{
		const uint64_t *from = packed + at / 64;
		/* The next word is there, be it that of another copy; without a branch, which would be a coin's throw. */
		uint64_t field = (from[0] >> at % 64 | from[1] << 1 << (63 - at % 64)) & mask;
		smart_slot slot = slot_from(&shape, field);

		to[shape.mapped ? smart_slot_pk(slot) : i] = slot;
	}
}

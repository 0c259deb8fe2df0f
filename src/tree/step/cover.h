/*
 * cover.h
 *	  The slot that covers a byte: the greatest partial key that is not above it.
 *
 * The partial key is a slot's highest byte, so this is the greatest slot, as a
 * number, that is not above (byte, all ones).  Slots of a node stand in the
 * order in which they came.  A slot that is frozen and unused is 1, smaller than
 * every used one.
 *
 * The words may be shared and changing.  Each is loaded once; the acquire
 * fence at the end orders what the caller loads next, and pairs with the CAS that
 * stored the slot.
 */
#ifndef SMART_TREE_COVER_H
#define SMART_TREE_COVER_H

#include "tree/layout.h"

/* The thread sanitizer knows no fences: there the loads themselves acquire. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SMART_COVER_ORDER __ATOMIC_ACQUIRE
#endif
#endif
#ifndef SMART_COVER_ORDER
#define SMART_COVER_ORDER __ATOMIC_RELAXED
#endif

/* The greatest slot that is not above limit; 0: none. */
static inline smart_slot
smart_cover_each(const uint64_t *slots, unsigned int count, uint64_t limit)
{
	uint64_t best = 0;

	for (unsigned int i = 0; i < count; i++)
	{
		uint64_t slot = __atomic_load_n(&slots[i], SMART_COVER_ORDER);
		uint64_t candidate = slot <= limit ? slot : 0;

		best = candidate > best ? candidate : best;
	}
	smart_assert(best <= limit);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return best;
}

/* The same of the wide kinds. */
extern smart_slot smart_cover_wide(const uint64_t *slots, unsigned int count, uint64_t limit);

/* Result 0: none, a torn view. */
static inline smart_slot
smart_cover_scan(const uint64_t *slots, unsigned int count, unsigned int byte)
{
	uint64_t limit = ((uint64_t) byte << SMART_SLOT_PK_SHIFT) | ((UINT64_C(1) << SMART_SLOT_PK_SHIFT) - 1);

	smart_assert(byte <= 255 && count < 256);
	return count > 14 ? smart_cover_wide(slots, count, limit) : smart_cover_each(slots, count, limit);
}

static inline smart_slot
smart_cover(const uint64_t *slots, unsigned int kind, unsigned int count, unsigned int byte)
{
	smart_assert(kind >= SMART_NODE_6 && kind <= SMART_NODE_256 && count <= smart_kind_slots(kind));
	if (kind != SMART_NODE_256)
		return smart_cover_scan(slots, count, byte);
	/* Direct-mapped: from byte's own slot back to a used one. */
	for (int i = (int) byte; i >= 0; i--)
	{
		uint64_t slot = __atomic_load_n(&slots[i], __ATOMIC_ACQUIRE);

		if (smart_slot_used(slot))
			return slot;
	}
	return 0;
}

#endif /* SMART_TREE_COVER_H */

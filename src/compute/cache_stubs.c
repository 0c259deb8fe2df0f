/*
 * cache_stubs.c
 *	  Stubs of leaves: what an append has to know of a leaf before it is posted
 *	  (src/tree/stubs.c).
 *
 * There are many leaves, so a stub takes few bytes.  Its frame stands under the leaf's
 * own address and length, which no two trees share at a time, so the tree's id need not
 * be there: the identity depends on it.  Words:
 *
 *	  words[0]   generation 44 | spare 4 | bytes of the greatest key 4 | prefix length 12 (highest bits first)
 *	  words[1]   identity
 *	  words[2]   meta
 *	  words[3]   the greatest key's first bytes; left out where they are not known
 *
 * Progress: find is wait-free; keep gives up.
 */
#include <string.h>

#include "compute/cache_parts.h"

#define STUB_WORDS     4 /* of the longer kind */
#define GREATEST_SHIFT 12
#define LENGTHS_MASK   (UINT64_C(0xffff))

_Static_assert(LENGTHS_MASK < CACHE_GENERATION, "lengths stand below a gate's generation");
_Static_assert(SMART_KEY_MAX < 1 << GREATEST_SHIFT, "a prefix's length has twelve bits");

static inline uint64_t
key_of_leaf(smart_slot leaf)
{
	smart_assert(smart_slot_is_leaf(leaf));
	return smart_slot_with_pk(leaf, 0) & ~SMART_SLOT_FROZEN;
}

static inline uint32_t
gate_of(const struct smart_cache *cache, uint64_t key)
{
	/* Other bits than those that choose partition and bucket. */
	return (uint32_t) (cache_hash(0, key) >> 12) & (cache->gates - 1);
}

static struct cache_asked
asked(struct cache_line *line)
{
	return (struct cache_asked){&line->stub_hits, &line->stub_misses, &line->stub_share};
}

bool
smart_cache_stub(struct smart_cache *cache, unsigned int client, smart_slot leaf, struct smart_stub *stub)
{
	uint64_t key = key_of_leaf(leaf);
	struct cache_part part = cache_part_of(cache, client, 0, key);
	struct cache_asked questions = asked(part.line);
	uint64_t words[STUB_WORDS] = {0};
	uint32_t number = cache_find_frame(&part, 0, key, words);
	bool found = number != 0 && cache_stands(cache, gate_of(cache, key), words[0]);

	cache_note_question(&questions, found);
	if (!found)
		return false;
	cache_heat(&part, number);
	*stub = (struct smart_stub){.identity = words[1],
								.meta = words[2],
								.prefix_length = (uint16_t) (words[0] & ((1 << GREATEST_SHIFT) - 1)),
								.greatest_length = (uint8_t) ((words[0] & LENGTHS_MASK) >> GREATEST_SHIFT)};
	memcpy(stub->greatest, &words[3], sizeof(stub->greatest));
	return true;
}

void
smart_cache_keep_stub(struct smart_cache *cache, unsigned int client, smart_slot leaf, const struct smart_stub *stub,
					  uint64_t ticket, bool hot)
{
	uint64_t key = key_of_leaf(leaf);
	struct cache_part part = cache_part_of(cache, client, 0, key);
	unsigned int kind = stub->greatest_length > 0 ? CACHE_STUB + 1 : CACHE_STUB;
	uint64_t words[STUB_WORDS] = {(ticket & ~CACHE_WRITERS) | (uint64_t) stub->greatest_length << GREATEST_SHIFT |
									  stub->prefix_length,
								  stub->identity, stub->meta};
	struct cache_frame *frame;
	uint32_t number;

	smart_assert(ticket != 0 && stub->greatest_length <= sizeof(stub->greatest));
	memcpy(&words[3], stub->greatest, sizeof(stub->greatest));
	if ((!hot && !cache_is_admitted(&part, part.line->stub_share)) || !cache_try_lock(&part))
		return;
	if (cache_ticket_good(&part, gate_of(cache, key), ticket))
	{
		number = cache_find_frame(&part, 0, key, NULL);
		if (number != 0)
			cache_vacate(&part, number);
		number = cache_make_frame(&part, kind, 0, key);
		frame = cache_frame_at(&part, number);
		for (unsigned int i = 0; i < cache_kind_words(kind); i++)
			__atomic_store_n(&frame->body[i], words[i], __ATOMIC_RELAXED);
		cache_end_change(frame);
		if (hot)
			cache_heat(&part, number);
		cache_count(&part.line->stub_stores);
	}
	cache_unlock(&part);
}

struct smart_blocked
smart_cache_block_stub(struct smart_cache *cache, unsigned int client, smart_slot leaf)
{
	uint64_t key = key_of_leaf(leaf);
	struct cache_part part = cache_part_of(cache, client, 0, key);

	cache_count(&part.line->stub_blocks);
	return cache_block(&part, gate_of(cache, key), 0, key, &part.line->stub_drops);
}

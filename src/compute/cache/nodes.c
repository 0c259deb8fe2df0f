/*
 * nodes.c
 *	  Copies of nodes and root words come, change and go; frames.c tells how room is made.
 */
#include "compute/cache/pack.h"
#include "compute/cache/parts.h"

#define WANTED_ONE_IN 16 /* large nodes, where there is no room left: those that are asked for most get in first */

/* A copy's words as a frame has them, and the shortest kind of frame for them. */
struct form
{
	const uint64_t *words;
	unsigned int count;
	unsigned int kind;
};

/* As they are, up to the last slot in use. */
static struct form
plain_form(uint64_t key, const uint64_t *words)
{
	struct form form = {.words = words, .count = SMART_NODE_HEAD_WORDS + cache_key_slots(key), .kind = 1};
	unsigned int used = cache_key_slots(key);

	while (used > 0 && words[SMART_NODE_HEAD_WORDS + used - 1] == 0)
		used--;
	while (cache_kind_slots(form.kind) < used)
		form.kind++;
	return form;
}

/* Packed, if that makes them shorter. */
static struct form
packed_form(uint64_t key, const uint64_t *words, uint64_t *packed)
{
	struct form plain = plain_form(key, words);
	struct form form = {.words = packed, .count = cache_pack(words, cache_key_slots(key), packed), .kind = CACHE_PACK};

	while (form.kind < CACHE_RESULT && cache_kind_words(form.kind) < form.count)
		form.kind++;
	return form.kind < CACHE_RESULT && cache_kind_words(form.kind) < cache_kind_words(plain.kind) ? form : plain;
}

static struct form
form_of(const struct cache_part *part, uint64_t key, const uint64_t *words, uint64_t *packed)
{
	if (key == CACHE_ROOT_KEY)
		return (struct form){.words = words, .count = 1, .kind = cache_root_kind(part)};
	if (part->cache->packs || !cache_has_spare_room(part))
		return packed_form(key, words, packed);
	return plain_form(key, words);
}

/* May words for this kind of frame be in one of that kind? */
static inline bool
takes(unsigned int frame, unsigned int kind)
{
	return frame >= kind && cache_is_packed(frame) == cache_is_packed(kind);
}

/* Keeps these words under key, in the frame that has it (number; 0: none) if they find room there. */
static void
put_words(const struct cache_part *part, uint32_t number, uint64_t tree, uint64_t key, const uint64_t *words,
		  uint64_t moment)
{
	uint64_t packed[CACHE_PACKED_MAX];
	struct form form = form_of(part, key, words, packed);
	struct cache_frame *frame;
	bool moves;

	smart_assert(!cache_is_result(key) && !cache_is_hint(key) && cache_is_locked(part));
	smart_assert(number == 0 || cache_frame_at(part, number)->key == key);
	if (!cache_has_frames(part, form.kind))
	{
		if (number != 0)
			cache_vacate(part, number);
		return;
	}
	moves = number != 0 && key != CACHE_ROOT_KEY && !takes(cache_kind_of_frame(part, number), form.kind);
	if (moves)
		cache_vacate(part, number);
	if (number != 0 && !moves)
		cache_begin_change(cache_frame_at(part, number));
	else
		number = cache_make_frame(part, form.kind, tree, key);
	if (moves)
		cache_heat(part, number);
	frame = cache_frame_at(part, number);
	if (key != CACHE_ROOT_KEY)
		__atomic_store_n(&frame->body[0], moment, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < form.count && i < cache_words(key, cache_kind_of_frame(part, number)); i++)
		__atomic_store_n(&cache_words_of(frame, key)[i], form.words[i], __ATOMIC_RELAXED);
	cache_end_change(frame);
	smart_assert(frame->key == key && form.count >= 1);
}

void
cache_store(struct smart_services *services, uint64_t tree, smart_slot slot, const uint64_t *words, uint64_t moment)
{
	uint64_t key = cache_node_key(tree, slot);
	uint64_t owner = cache_node_tree(tree, slot);
	struct cache_part part = cache_part_of(services->cache, services->cache_client, owner, key);

	if (!cache_try_lock(&part))
		return;
	put_words(&part, cache_find_frame(&part, owner, key, NULL), owner, key, words, moment);
	cache_count(&part.line->counters.stores);
	cache_unlock(&part);
}

/* The word at index of the node, or the root word, in this frame. */
static uint64_t
word_at(const struct cache_part *part, uint32_t number, uint64_t key, unsigned int index)
{
	const uint64_t *stored = cache_words_of(cache_frame_at(part, number), key);
	unsigned int kind = cache_kind_of_frame(part, number);
	uint64_t words[SMART_NODE_WORDS_MAX];

	if (key == CACHE_ROOT_KEY || !cache_is_packed(kind))
		return index < cache_words(key, kind) ? stored[index] : 0;
	return cache_find_frame(part, 0, key, words) == number ? words[index] : 0;
}

/* words[index] becomes `to`, for which the frame may be too short. */
static void
put_word(const struct cache_part *part, uint32_t number, uint64_t tree, uint64_t key, unsigned int index, uint64_t to)
{
	struct cache_frame *frame = cache_frame_at(part, number);
	unsigned int kind = cache_kind_of_frame(part, number);
	uint64_t words[SMART_NODE_WORDS_MAX];
	uint64_t moment;

	smart_assert(cache_is_locked(part) && frame->key == key && cache_tree_of(frame) == tree);
	if ((key == CACHE_ROOT_KEY || !cache_is_packed(kind)) && index < cache_words(key, kind))
	{
		cache_begin_change(frame);
		__atomic_store_n(&cache_words_of(frame, key)[index], to, __ATOMIC_RELAXED);
		cache_end_change(frame);
	}
	else if (cache_find_node(part, key, words, &moment) == number)
	{
		words[index] = to;
		put_words(part, number, tree, key, words, moment);
	}
}

/*
 * Locks the partition if there is a copy, and returns its frame's number.  0: there is no copy, or the lock was not to
 * be had, and the partition is not locked.  Whether there is a copy is known without the lock.
 */
static uint32_t
lock_copy(const struct smart_services *services, uint64_t tree, smart_slot slot, struct cache_part *part)
{
	uint64_t owner = cache_node_tree(tree, slot);
	uint64_t key = cache_node_key(tree, slot);
	uint32_t number;

	smart_assert(tree != 0);
	*part = cache_part_of(services->cache, services->cache_client, owner, key);
	if (!cache_has(services->cache, tree, slot) || !cache_try_lock(part))
		return 0;
	number = cache_find_frame(part, owner, key, NULL);
	if (number == 0)
		cache_unlock(part);
	else
		smart_assert(cache_is_locked(part) && cache_frame_at(part, number)->key == key);
	return number;
}

void
cache_update(struct smart_services *services, uint64_t tree, smart_slot slot, unsigned int index, uint64_t from,
			 uint64_t to)
{
	uint64_t key = cache_node_key(tree, slot);
	struct cache_part part;
	uint64_t word;
	uint32_t number = lock_copy(services, tree, slot, &part);

	smart_assert(slot == 0 ? index == 0 : index < SMART_NODE_HEAD_WORDS + cache_key_slots(key));
	if (number == 0)
		return;
	word = word_at(&part, number, key, index);
	if (word == from)
	{
		put_word(&part, number, cache_node_tree(tree, slot), key, index, to);
		cache_count(&part.line->counters.updates);
	}
	else if (word != to)
	{
		cache_vacate(&part, number);
		cache_count(&part.line->counters.drops);
	}
	cache_unlock(&part);
}

void
cache_drop(struct smart_services *services, uint64_t tree, smart_slot slot)
{
	struct cache_part part;
	uint32_t number = lock_copy(services, tree, slot, &part);

	if (number == 0)
		return;
	cache_vacate(&part, number);
	cache_count(&part.line->counters.drops);
	cache_unlock(&part);
}

bool
cache_wants(struct smart_services *services, uint64_t tree, smart_slot slot)
{
	uint64_t owner = cache_node_tree(tree, slot);
	struct cache_part part = cache_part_of(services->cache, services->cache_client, owner, cache_node_key(tree, slot));

	if (cache_has_spare_room(&part) || cache_random(&part.line->random) % WANTED_ONE_IN == 0)
		return true;
	cache_count(&part.line->counters.parts);
	return false;
}

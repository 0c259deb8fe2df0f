/*
 * cache.c
 *	  The ART cache: finding, keeping and dropping copies.
 *
 * cache_parts.h tells what lies where and who may change it, cache_frames.c how
 * room is made.
 */
#include <string.h>

#include "compute/cache_parts.h"

#define PARTITION_BYTES  ((size_t) 4 << 20) /* of frames, at least, in each of several partitions */
#define PARTITIONS_MAX   16
#define SPAN_SHIFT       15
#define SPAN_SHIFT_SMALL 12 /* in a small cache, so that every kind finds room */
#define SMALL_BYTES      ((size_t) 1 << 20)
#define BYTES_PER_HEAD   128 /* of frames: about one head for each of the smallest ones */
#define BYTES_PER_GATE   1024
#define BUCKET_MAX       64 /* frames that a reader looks at: it may have been led into another bucket */
#define READS_MAX        4  /* of a bucket that changes under the reader */
#define LOCK_ATTEMPTS    256

/* ---- where things lie ---- */

static size_t
align(size_t bytes)
{
	return (bytes + CACHE_ALIGNMENT - 1) / CACHE_ALIGNMENT * CACHE_ALIGNMENT;
}

static struct smart_cache
lay_out(size_t bytes, unsigned int clients)
{
	struct smart_cache cache = {.clients = clients, .partitions = 1, .head_bits = 1};
	size_t span_bytes;

	smart_assert(bytes >= SMART_CACHE_BYTES_MIN && bytes <= SMART_CACHE_BYTES_MAX && clients >= 1);
	while (cache.partitions < PARTITIONS_MAX && bytes / (2 * cache.partitions) >= PARTITION_BYTES)
		cache.partitions *= 2;
	cache.span_shift = bytes < SMALL_BYTES ? SPAN_SHIFT_SMALL : SPAN_SHIFT;
	cache.spans = (uint32_t) ((bytes / cache.partitions) >> cache.span_shift);
	span_bytes = (size_t) cache.spans << cache.span_shift;
	while (((size_t) 1 << cache.head_bits) * BYTES_PER_HEAD < span_bytes)
		cache.head_bits++;
	cache.gates = 1;
	while (bytes / (2 * cache.gates) >= BYTES_PER_GATE)
		cache.gates *= 2;
	cache.gates_at = align(sizeof(struct smart_cache)) + align(clients * sizeof(struct cache_line));
	cache.partitions_at = cache.gates_at + align(cache.gates * sizeof(struct cache_gate));
	cache.heads_at = sizeof(struct cache_partition);
	cache.spans_at = align(cache.heads_at + (sizeof(uint32_t) << cache.head_bits));
	cache.heat_at = align(cache.spans_at + cache.spans * sizeof(struct cache_span));
	cache.frames_at = align(cache.heat_at + span_bytes / CACHE_MARK);
	cache.partition_bytes = align(cache.frames_at + span_bytes);
	return cache;
}

size_t
smart_cache_size(size_t bytes, unsigned int clients)
{
	struct smart_cache cache = lay_out(bytes, clients);

	return cache.partitions_at + cache.partitions * cache.partition_bytes;
}

static struct cache_line *
line_of(const struct smart_cache *cache, unsigned int client)
{
	return (struct cache_line *) (void *) ((uint8_t *) (uintptr_t) cache + align(sizeof(struct smart_cache))) + client;
}

static struct cache_part
part_at(const struct smart_cache *cache, unsigned int client, uint32_t partition)
{
	uint8_t *base = (uint8_t *) (uintptr_t) cache + cache->partitions_at + partition * cache->partition_bytes;

	return (struct cache_part){
		.cache = cache,
		.shared = (struct cache_partition *) (void *) base,
		.heads = (uint32_t *) (void *) (base + cache->heads_at),
		.spans = (struct cache_span *) (void *) (base + cache->spans_at),
		.heat = base + cache->heat_at,
		.frames = base + cache->frames_at,
		.line = line_of(cache, client),
	};
}

uint64_t
cache_hash(uint64_t tree, uint64_t key)
{
	uint64_t hash = tree * UINT64_C(0x9e3779b97f4a7c15) ^ key;

	hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
	hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return hash ^ hash >> 32;
}

/*
 * What a copy is kept under: a slot without flags, and in place of its partial key some bits of the
 * tree's id (cache_parts.h, cache_has_trees).
 */
static inline uint64_t
key_of(uint64_t tree, smart_slot slot)
{
	smart_assert(slot == 0 ||
				 (smart_slot_is_node(slot) && smart_slot_size(slot) >= 1 && smart_slot_size(slot) <= SMART_NODE_KINDS));
	return slot == 0 ? CACHE_ROOT_KEY : smart_slot_with_pk(slot & ~SMART_SLOT_FROZEN, (unsigned int) tree & 0xff);
}

/* The tree that goes with that key. */
static inline uint64_t
tree_for(uint64_t tree, smart_slot slot)
{
	return slot == 0 ? tree : 0;
}

struct cache_part
cache_part_of(const struct smart_cache *cache, unsigned int client, uint64_t tree, uint64_t key)
{
	smart_assert(client < cache->clients);
	return part_at(cache, client, (uint32_t) cache_hash(tree, key) & (cache->partitions - 1));
}

uint32_t *
cache_head(const struct cache_part *part, uint64_t tree, uint64_t key)
{
	return &part->heads[cache_hash(tree, key) >> (64 - part->cache->head_bits)];
}

void
smart_cache_init(struct smart_cache *cache, size_t bytes, unsigned int clients, uint64_t seed)
{
	*cache = lay_out(bytes, clients);
	memset(line_of(cache, 0), 0, clients * sizeof(struct cache_line));
	for (unsigned int i = 0; i < clients; i++)
		line_of(cache, i)->random = cache_hash(seed, i) | 1;
	for (uint32_t i = 0; i < cache->gates; i++)
		*cache_gate_at(cache, i) = (struct cache_gate){.word = CACHE_GENERATION};
	for (uint32_t i = 0; i < cache->partitions; i++)
	{
		struct cache_part part = part_at(cache, 0, i);

		/* Frames are made when their span gets a kind. */
		memset(part.shared, 0, cache->frames_at);
		part.shared->random = (seed ^ i) | 1;
	}
}

/* ---- without a lock ---- */

enum reading
{
	READ_OTHER, /* the frame holds something else */
	READ_FOUND,
	READ_CHANGED /* it changed, or is not a frame any more: the bucket has to be read anew */
};

/* Copies a frame's words (not if NULL) if it holds key, and tells the next frame. */
static enum reading
read_frame(const struct cache_part *part, uint32_t number, uint64_t tree, uint64_t key, uint64_t *words, uint32_t *next)
{
	struct cache_span *span = &part->spans[cache_span_of(part, number)];
	struct cache_frame *frame = cache_frame_at(part, number);
	uint64_t within = cache_offset(number) & ((UINT64_C(1) << part->cache->span_shift) - 1);
	/* Acquire: the span's frames were made before.  Partner: format_span. */
	uint64_t identity = __atomic_load_n(&span->identity, __ATOMIC_ACQUIRE);
	unsigned int kind = cache_identity_kind(identity);
	uint32_t sequence;
	bool found;

	if (kind == 0 || within % cache_frame_bytes(kind) != 0)
		return READ_CHANGED;
	/* Acquire: what was written before the sequence became even.  Partner: cache_end_change. */
	sequence = __atomic_load_n(&frame->sequence, __ATOMIC_ACQUIRE);
	if ((sequence & 1) != 0)
		return READ_CHANGED;
	*next = __atomic_load_n(&frame->next, __ATOMIC_RELAXED);
	found = __atomic_load_n(&frame->key, __ATOMIC_RELAXED) == key && cache_key_fits(key, kind) &&
			(!cache_has_trees(key) || __atomic_load_n(&frame->body[0], __ATOMIC_RELAXED) == tree);
	for (unsigned int i = 0; found && words != NULL && i < cache_words(key, kind); i++)
		words[i] = __atomic_load_n(&cache_words_of(frame, key)[i], __ATOMIC_RELAXED);
	if (found && words != NULL && kind < CACHE_ANSWER && key != CACHE_ROOT_KEY)
		memset(words + cache_kind_words(kind), 0, (cache_key_slots(key) - cache_kind_slots(kind)) * sizeof(uint64_t));
	/*
	 * Whoever changes a word has announced it before: having seen the word, the
	 * loads below see the announcement.  Partners: the release fences in
	 * cache_begin_change and format_span.
	 */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&frame->sequence, __ATOMIC_RELAXED) != sequence ||
		__atomic_load_n(&span->identity, __ATOMIC_RELAXED) != identity)
		return READ_CHANGED;
	return found ? READ_FOUND : READ_OTHER;
}

uint32_t
cache_find_frame(const struct cache_part *part, uint64_t tree, uint64_t key, uint64_t *words)
{
	const uint32_t *head = cache_head(part, tree, key);

	for (int attempt = 0; attempt < READS_MAX; attempt++)
	{
		uint32_t number = __atomic_load_n(head, __ATOMIC_ACQUIRE);
		enum reading reading = READ_OTHER;

		for (int i = 0; number != 0 && i < BUCKET_MAX; i++)
		{
			uint32_t next = 0;

			reading = read_frame(part, number, tree, key, words, &next);
			if (reading == READ_FOUND)
				return number;
			if (reading == READ_CHANGED)
				break;
			number = next;
		}
		if (reading != READ_CHANGED)
			return 0;
	}
	return 0;
}

bool
cache_has(const struct smart_cache *cache, uint64_t tree, smart_slot slot)
{
	uint64_t owner = tree_for(tree, slot);
	struct cache_part part = cache_part_of(cache, 0, owner, key_of(tree, slot));

	return cache_find_frame(&part, owner, key_of(tree, slot), NULL) != 0;
}

/* The frame may be another's by now: a hint.  Stored only when it changes, so that the line stays shared. */
void
cache_heat(const struct cache_part *part, uint32_t number)
{
	uint8_t *heat = cache_heat_of(part, number);

	if (__atomic_load_n(heat, __ATOMIC_RELAXED) == 0)
		__atomic_store_n(heat, 1, __ATOMIC_RELAXED);
}

bool
smart_cache_find(struct smart_cache *cache, unsigned int client, uint64_t tree, smart_slot slot, uint64_t *words)
{
	uint64_t key = key_of(tree, slot);
	uint64_t owner = tree_for(tree, slot);
	struct cache_part part = cache_part_of(cache, client, owner, key);
	uint32_t number = cache_find_frame(&part, owner, key, words);

	cache_count(number != 0 ? &part.line->hits : &part.line->misses);
	if (number == 0)
		return false;
	cache_heat(&part, number);
	return true;
}

/* ---- under a partition's lock ---- */

bool
cache_try_lock(const struct cache_part *part)
{
	for (int i = 0; i < LOCK_ATTEMPTS; i++)
	{
		uint32_t expected = 0;

		/* Acquire: pairs with the release in cache_unlock. */
		if (__atomic_load_n(&part->shared->lock, __ATOMIC_RELAXED) == 0 &&
			__atomic_compare_exchange_n(&part->shared->lock, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return true;
	}
	cache_count(&part->line->skips);
	return false;
}

void
cache_unlock(const struct cache_part *part)
{
	__atomic_store_n(&part->shared->lock, 0, __ATOMIC_RELEASE);
}

static inline unsigned int
kind_of_frame(const struct cache_part *part, uint32_t number)
{
	return cache_identity_kind(part->spans[cache_span_of(part, number)].identity);
}

/* The shortest kind of frame for a node's words up to the last slot in use, or for a root word. */
static unsigned int
kind_for(uint64_t key, const uint64_t *words)
{
	unsigned int used = key == CACHE_ROOT_KEY ? 0 : cache_key_slots(key);
	unsigned int kind = 1;

	while (used > 0 && words[SMART_NODE_HEAD_WORDS + used - 1] == 0)
		used--;
	while (cache_kind_slots(kind) < used)
		kind++;
	return kind;
}

/* Keeps these words under key, in the frame that has it (number; 0: none) if they find room there. */
static void
put_words(const struct cache_part *part, uint32_t number, uint64_t tree, uint64_t key, const uint64_t *words)
{
	unsigned int kind = kind_for(key, words);
	bool grows = number != 0 && kind_of_frame(part, number) < kind;
	struct cache_frame *frame;

	if (grows)
		cache_vacate(part, number);
	if (number != 0 && !grows)
		cache_begin_change(cache_frame_at(part, number));
	else
		number = cache_make_frame(part, kind, tree, key);
	if (grows)
		cache_heat(part, number);
	frame = cache_frame_at(part, number);
	for (unsigned int i = 0; i < cache_words(key, kind_of_frame(part, number)); i++)
		__atomic_store_n(&cache_words_of(frame, key)[i], words[i], __ATOMIC_RELAXED);
	cache_end_change(frame);
}

void
smart_cache_store(struct smart_cache *cache, unsigned int client, uint64_t tree, smart_slot slot, const uint64_t *words)
{
	uint64_t key = key_of(tree, slot);
	uint64_t owner = tree_for(tree, slot);
	struct cache_part part = cache_part_of(cache, client, owner, key);

	if (!cache_try_lock(&part))
		return;
	put_words(&part, cache_find_frame(&part, owner, key, NULL), owner, key, words);
	cache_count(&part.line->stores);
	cache_unlock(&part);
}

/* words[index] becomes `to`, for which the frame may be too short. */
static void
put_word(const struct cache_part *part, uint32_t number, uint64_t tree, uint64_t key, unsigned int index, uint64_t to)
{
	struct cache_frame *frame = cache_frame_at(part, number);
	uint64_t words[SMART_NODE_WORDS_MAX];

	if (index < cache_words(key, kind_of_frame(part, number)))
	{
		cache_begin_change(frame);
		__atomic_store_n(&cache_words_of(frame, key)[index], to, __ATOMIC_RELAXED);
		cache_end_change(frame);
	}
	else if (cache_find_frame(part, tree, key, words) == number)
	{
		words[index] = to;
		put_words(part, number, tree, key, words);
	}
}

void
smart_cache_update(struct smart_cache *cache, unsigned int client, uint64_t tree, smart_slot slot, unsigned int index,
				   uint64_t from, uint64_t to)
{
	uint64_t key = key_of(tree, slot);
	uint64_t owner = tree_for(tree, slot);
	struct cache_part part = cache_part_of(cache, client, owner, key);
	uint64_t word = 0;
	uint32_t number;

	smart_assert(slot == 0 ? index == 0 : index < SMART_NODE_HEAD_WORDS + cache_key_slots(key));
	if (!cache_has(cache, tree, slot) || !cache_try_lock(&part))
		return;
	number = cache_find_frame(&part, owner, key, NULL);
	if (number != 0 && index < cache_words(key, kind_of_frame(&part, number)))
		word = cache_words_of(cache_frame_at(&part, number), key)[index];
	if (number != 0 && word == from)
	{
		put_word(&part, number, owner, key, index, to);
		cache_count(&part.line->updates);
	}
	else if (number != 0 && word != to)
	{
		cache_vacate(&part, number);
		cache_count(&part.line->drops);
	}
	cache_unlock(&part);
}

void
smart_cache_drop(struct smart_cache *cache, unsigned int client, uint64_t tree, smart_slot slot)
{
	uint64_t key = key_of(tree, slot);
	uint64_t owner = tree_for(tree, slot);
	struct cache_part part = cache_part_of(cache, client, owner, key);
	uint32_t number;

	if (!cache_has(cache, tree, slot) || !cache_try_lock(&part))
		return;
	number = cache_find_frame(&part, owner, key, NULL);
	if (number != 0)
	{
		cache_vacate(&part, number);
		cache_count(&part.line->drops);
	}
	cache_unlock(&part);
}

/* ---- figures ---- */

static uint64_t
look(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

void
smart_cache_stat(const struct smart_cache *cache, struct smart_cache_stat *stat)
{
	memset(stat, 0, sizeof(*stat));
	stat->size = (uint64_t) cache->partitions * cache->spans << cache->span_shift;
	for (uint32_t i = 0; i < cache->clients; i++)
	{
		const struct cache_line *line = line_of(cache, i);

		stat->hits += look(&line->hits);
		stat->misses += look(&line->misses);
		stat->stores += look(&line->stores);
		stat->updates += look(&line->updates);
		stat->drops += look(&line->drops);
		stat->evictions += look(&line->evictions);
		stat->moves += look(&line->moves);
		stat->skips += look(&line->skips);
		stat->answer_hits += look(&line->answer_hits);
		stat->answer_misses += look(&line->answer_misses);
		stat->answer_stores += look(&line->answer_stores);
		stat->answer_refusals += look(&line->answer_refusals);
		stat->answer_drops += look(&line->answer_drops);
		stat->blocks += look(&line->blocks);
		stat->voids += look(&line->voids);
		stat->stub_hits += look(&line->stub_hits);
		stat->stub_misses += look(&line->stub_misses);
		stat->stub_stores += look(&line->stub_stores);
		stat->stub_drops += look(&line->stub_drops);
		stat->stub_blocks += look(&line->stub_blocks);
	}
	for (uint32_t i = 0; i < cache->partitions; i++)
	{
		struct cache_part part = part_at(cache, 0, i);

		for (unsigned int kind = 1; kind <= SMART_NODE_KINDS; kind++)
		{
			stat->frames[kind] += look(&part.shared->frames[kind]);
			stat->bytes[kind] += look(&part.shared->bytes[kind]);
		}
		stat->answers += look(&part.shared->frames[CACHE_SORT]);
		stat->answer_bytes += look(&part.shared->bytes[CACHE_SORT]);
		stat->stubs += look(&part.shared->frames[CACHE_SORT + 1]);
		stat->stub_bytes += look(&part.shared->bytes[CACHE_SORT + 1]);
	}
}

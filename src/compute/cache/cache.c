/*
 * cache.c
 *	  The ART cache: where things lie, and finding copies.
 *
 * parts.h tells what lies where and which lock its changes need.
 */
#include <string.h>

#include "compute/cache/pack.h"
#include "compute/cache/parts.h"

#define PARTITION_BYTES   ((size_t) 4 << 20) /* of frames, at least, in each of several partitions */
#define PARTITIONS_MAX    16
#define SPAN_SHIFT        15
#define SPAN_SHIFT_SMALL  11 /* in a small cache, so that every kind finds room */
#define SMALL_BYTES       ((size_t) 1 << 20)
#define BYTES_PER_HEAD    128 /* of frames: about one head for each of the smallest ones */
#define BYTES_PER_VERSION 1024
#define BUCKET_MAX        64 /* frames that a reader looks at: it may have been led into another bucket */
#define READS_MAX         4  /* of a bucket that changes under the reader */
#define LOCK_ATTEMPTS     256

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
	cache.packs = bytes < SMALL_BYTES;
	while (cache.partitions < PARTITIONS_MAX && bytes / (2 * cache.partitions) >= PARTITION_BYTES)
		cache.partitions *= 2;
	cache.span_shift = bytes < SMALL_BYTES ? SPAN_SHIFT_SMALL : SPAN_SHIFT;
	cache.spans = (uint32_t) ((bytes / cache.partitions) >> cache.span_shift);
	span_bytes = (size_t) cache.spans << cache.span_shift;
	while (((size_t) 1 << cache.head_bits) * BYTES_PER_HEAD < span_bytes)
		cache.head_bits++;
	cache.versions = 1;
	while (bytes / (2 * cache.versions) >= BYTES_PER_VERSION)
		cache.versions *= 2;
	cache.versions_at = align(sizeof(struct smart_cache)) + align(clients * sizeof(struct cache_line));
	cache.partitions_at = cache.versions_at + align(cache.versions * sizeof(struct cache_version));
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

struct cache_part
cache_part_of(const struct smart_cache *cache, unsigned int client, uint64_t tree, uint64_t key)
{
	smart_assert(client < cache->clients);
	return part_at(cache, client, (uint32_t) cache_hash(tree, key) & (cache->partitions - 1));
}

void
smart_cache_init(struct smart_cache *cache, size_t bytes, unsigned int clients, uint64_t seed)
{
	smart_assert((uintptr_t) cache % CACHE_ALIGNMENT == 0);
	*cache = lay_out(bytes, clients);
	memset(line_of(cache, 0), 0, clients * sizeof(struct cache_line));
	for (unsigned int i = 0; i < clients; i++)
		line_of(cache, i)->random = cache_hash(seed, i) | 1;
	for (uint32_t i = 0; i < cache->versions; i++)
		*cache_version_at(cache, i) = (struct cache_version){.word = CACHE_GENERATION};
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
read_frame(const struct cache_part *part, uint32_t number, uint64_t tree, uint64_t key, uint64_t *words,
		   uint64_t *moment, uint32_t *next)
{
	struct cache_span *span = &part->spans[cache_span_of(part, number)];
	struct cache_frame *frame = cache_frame_at(part, number);
	uint64_t within = cache_offset(number) & ((UINT64_C(1) << part->cache->span_shift) - 1);
	/* Acquire: the span's frames were made before.  Partner: format_span. */
	uint64_t identity = __atomic_load_n(&span->identity, __ATOMIC_ACQUIRE);
	unsigned int kind = cache_identity_kind(identity);
	bool packed = cache_is_packed(kind);
	uint64_t packed_words[CACHE_PACKED_MAX + 1];
	uint64_t *copy = packed && key != CACHE_ROOT_KEY ? packed_words : words;
	uint32_t sequence;
	bool found;

	smart_assert(number != 0 && cache_span_of(part, number) < part->cache->spans && kind < CACHE_KINDS);
	if (kind == 0 || within % cache_frame_bytes(kind) != 0)
		return READ_CHANGED;
	/* Acquire: what was written before the sequence became even.  Partner: cache_end_change. */
	sequence = __atomic_load_n(&frame->sequence, __ATOMIC_ACQUIRE);
	if ((sequence & 1) != 0)
		return READ_CHANGED;
	*next = __atomic_load_n(&frame->next, __ATOMIC_RELAXED);
	found = __atomic_load_n(&frame->key, __ATOMIC_RELAXED) == key && cache_key_fits(key, kind) &&
			(!cache_has_trees(key) || __atomic_load_n(&frame->body[0], __ATOMIC_RELAXED) == tree);
	*moment = __atomic_load_n(&frame->body[0], __ATOMIC_RELAXED);
	for (unsigned int i = 0; found && words != NULL && i < cache_words(key, kind); i++)
		copy[i] = __atomic_load_n(&cache_words_of(frame, key)[i], __ATOMIC_RELAXED);
	/*
	 * A client that changes a word has announced it before: having seen the word, the
	 * loads below see the announcement.  Partners: the release fences in
	 * cache_begin_change and format_span.
	 */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&frame->sequence, __ATOMIC_RELAXED) != sequence ||
		__atomic_load_n(&span->identity, __ATOMIC_RELAXED) != identity)
		return READ_CHANGED;
	if (found && words != NULL && key != CACHE_ROOT_KEY && packed)
		cache_unpack(copy, cache_key_slots(key), words);
	else if (found && words != NULL && kind < CACHE_PACK && key != CACHE_ROOT_KEY)
		memset(words + cache_kind_words(kind), 0, (cache_key_slots(key) - cache_kind_slots(kind)) * sizeof(uint64_t));
	return found ? READ_FOUND : READ_OTHER;
}

static uint32_t
find_frame(const struct cache_part *part, uint64_t tree, uint64_t key, uint64_t *words, uint64_t *moment)
{
	const uint32_t *head = cache_head(part, tree, key);

	for (int attempt = 0; attempt < READS_MAX; attempt++)
	{
		uint32_t number = __atomic_load_n(head, __ATOMIC_ACQUIRE);
		enum reading reading = READ_OTHER;

		for (int i = 0; number != 0 && i < BUCKET_MAX; i++)
		{
			uint32_t next = 0;

			reading = read_frame(part, number, tree, key, words, moment, &next);
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

uint32_t
cache_find_frame(const struct cache_part *part, uint64_t tree, uint64_t key, uint64_t *words)
{
	uint64_t moment;

	return find_frame(part, tree, key, words, &moment);
}

uint32_t
cache_find_node(const struct cache_part *part, uint64_t key, uint64_t *words, uint64_t *moment)
{
	smart_assert(!cache_has_trees(key) && !cache_is_hint(key));
	return find_frame(part, 0, key, words, moment);
}

bool
cache_has(const struct smart_cache *cache, uint64_t tree, smart_slot slot)
{
	uint64_t owner = cache_node_tree(tree, slot);
	struct cache_part part = cache_part_of(cache, 0, owner, cache_node_key(tree, slot));

	return cache_find_frame(&part, owner, cache_node_key(tree, slot), NULL) != 0;
}

bool
cache_find(struct smart_services *services, uint64_t tree, smart_slot slot, uint64_t *words, uint64_t *moment)
{
	uint64_t key = cache_node_key(tree, slot);
	uint64_t owner = cache_node_tree(tree, slot);
	struct cache_part part = cache_part_of(services->cache, services->cache_client, owner, key);
	uint32_t number = find_frame(&part, owner, key, words, moment);

	cache_count(number != 0 ? &part.line->counters.hits : &part.line->counters.misses);
	if (number == 0)
		return false;
	cache_heat(&part, number);
	if (slot == 0)
		*moment = 0;
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
	cache_count(&part->line->counters.skips);
	return false;
}

void
cache_unlock(const struct cache_part *part)
{
	smart_assert(cache_is_locked(part));
	__atomic_store_n(&part->shared->lock, 0, __ATOMIC_RELEASE);
}

/* ---- figures ---- */

/* Adds up words that others change meanwhile. */
static void
add_up(uint64_t *sums, const uint64_t *counters, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sums[i] += __atomic_load_n(&counters[i], __ATOMIC_RELAXED);
}

void
smart_cache_stat(const struct smart_cache *cache, struct smart_cache_stat *stat)
{
	memset(stat, 0, sizeof(*stat));
	stat->size = (uint64_t) cache->partitions * cache->spans << cache->span_shift;
	for (uint32_t i = 0; i < cache->clients; i++)
		add_up(&stat->counters.hits, &line_of(cache, i)->counters.hits, SMART_CACHE_COUNTERS);
	for (uint32_t i = 0; i < cache->partitions; i++)
	{
		const struct cache_partition *shared = part_at(cache, 0, i).shared;

		add_up(&stat->frames[1], &shared->frames[1], SMART_NODE_KINDS);
		add_up(&stat->bytes[1], &shared->bytes[1], SMART_NODE_KINDS);
		add_up(&stat->results, &shared->frames[CACHE_SORT], 1);
		add_up(&stat->result_bytes, &shared->bytes[CACHE_SORT], 1);
		add_up(&stat->hints, &shared->frames[CACHE_SORT + 1], 1);
		add_up(&stat->hint_bytes, &shared->bytes[CACHE_SORT + 1], 1);
	}
}

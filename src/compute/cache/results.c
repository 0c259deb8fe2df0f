/*
 * results.c
 *	  Cached results and leaf hints, and the versions that keep them true.
 *
 * The tree checks what a node's copy leads to, so a copy may be stale.  The tree does not check a cached result (which
 * entries an equality prefix has) or a leaf hint (what an append has to know of a leaf before it is posted,
 * src/tree/cached/hints.c), so these have to be true (src/README, A1-A6).  Each belongs to a version, one of an array of
 * words that are never evicted:
 *
 *	  - A writer blocks what its change makes untrue, and unblocks it afterwards.  A block raises the version's
 *	    generation and its number of writers, by one addition, and then takes the copy out of the cache.
 *	  - A reader that wants to keep a copy has looked at the version before it READ the leaf.  It keeps the copy only
 *	    if the version is unchanged, without a writer, under the lock under which a block takes the copy out.  So a
 *	    copy from before a block is either not kept, or is there to be taken out.
 *
 * A block waits for that lock no longer than what is done under it takes.  If another client has the lock all that
 * time, the block raises the version's floor above all copies that were kept so far, of this key and of others: a hit
 * compares the copy's generation with the floor.
 *
 * Both kinds lie in frames beside the copies of nodes, and make room as nodes do.  The words of a cached result:
 *
 *	  words[0]   generation 44 | bytes of the tails 8 | bytes of the equality prefix 8 (highest bits first)
 *	  words[1..] the equality prefix, then for each entry the length of its tail, and the tail
 *
 * There are many leaves, so a leaf hint takes few bytes.  It is kept under the leaf's own address and length, which no
 * two trees share at a time, so it has no tree's id: the identity depends on that.  Its words:
 *
 *	  words[0]   generation 44 | spare 4 | bytes of the greatest key 4 | prefix length 12 (highest bits first)
 *	  words[1]   identity
 *	  words[2]   meta
 *	  words[3]   the greatest key's first bytes; left out where they are not known
 *
 * A leaf copy is kept in the place of a hint, where hints are not asked for.  Its words:
 *
 *	  words[0]   generation 44 | spare 4 | 15 4 | units 12 (highest bits first)
 *	  words[1]   what the tree's copies are kept as: another owner's are not found
 *	  words[2..] the leaf
 *
 * Progress: find is wait-free; keep gives up; block and unblock are bounded.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>

#include "compute/cache/parts.h"
#include "tree/fault.h"

#define SHARE_MEMORY 1024               /* questions that the share remembers, about */
#define SHARE_MIN    (CACHE_SHARE / 16) /* new copies come in all the same, and may show that they are worth it */

#define AHEAD_MEMORY   64                              /* questions for scans that are remembered, about */
#define AHEAD_VAIN_MAX (CACHE_SHARE - CACHE_SHARE / 4) /* of them in vain, and every scan asks */
#define AHEAD_ONE_IN   16                              /* batches that ask else */

#define WORDS_MAX        16 /* of the longest kind of cached result */
#define RESULT_KEY_BITS  6  /* of a key that are not of the hash */
#define GENERATION_SHIFT 20
#define TAILS_SHIFT      8
#define HINT_WORDS       4 /* of the longer kind */
#define GREATEST_SHIFT   12
#define COPY_MARK        (UINT64_C(15) << GREATEST_SHIFT) /* no hint's greatest key is so long */
#define COPY_WORDS       2                                /* ahead of the leaf */
#define LEAF_WORDS_MAX   (COPY_WORDS + CACHE_COPY_UNITS * SMART_UNIT / sizeof(uint64_t))
#define LENGTHS_MASK     (UINT64_C(0xffff))

_Static_assert(CACHE_GENERATION == UINT64_C(1) << GENERATION_SHIFT,
			   "a version's generation stands where a cached result's does");
_Static_assert(SMART_RESULT_BYTES_MAX == (WORDS_MAX - 1) * sizeof(uint64_t), "the longest cached result has a kind");
_Static_assert(SMART_RESULT_BYTES_MAX < 256, "lengths have eight bits");
_Static_assert(LENGTHS_MASK < CACHE_GENERATION, "lengths stand below a version's generation");
_Static_assert(SMART_KEY_MAX < 1 << GREATEST_SHIFT, "a prefix's length has twelve bits");

/* What a cached result or a leaf hint is kept under. */
struct place
{
	struct cache_part part;
	struct cache_version *version;
	uint32_t version_number;
	uint64_t tree; /* 0 where the key stands for it */
	uint64_t key;
};

static struct place
place_at(const struct smart_services *services, uint64_t tree, uint64_t key, uint64_t version_hash)
{
	const struct smart_cache *cache = services->cache;
	uint32_t version = (uint32_t) version_hash & (cache->versions - 1);

	return (struct place){
		.part = cache_part_of(cache, services->cache_client, tree, key),
		.version = cache_version_at(cache, version),
		.version_number = version,
		.tree = tree,
		.key = key,
	};
}

static struct place
place_of_point(const struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length)
{
	uint64_t hash = XXH3_64bits_withSeed(point, length, tree) >> RESULT_KEY_BITS;

	return place_at(services, tree, hash << RESULT_KEY_BITS | CACHE_RESULT_KEY, hash);
}

static struct place
place_of_leaf(const struct smart_services *services, smart_slot leaf)
{
	uint64_t key = smart_slot_with_pk(leaf, 0) & ~SMART_SLOT_FROZEN;

	smart_assert(smart_slot_is_leaf(leaf));
	/* Other bits than those that choose partition and bucket. */
	return place_at(services, 0, key, cache_hash(0, key) >> 12);
}

/* ---- finding and keeping ---- */

/* A question was answered, or not; the share forgets what was long ago. */
static inline void
note_question(uint64_t *hits, uint64_t *misses, uint32_t *share, bool answered)
{
	cache_count(answered ? hits : misses);
	*share = *share - *share / SHARE_MEMORY + (answered ? CACHE_SHARE / SHARE_MEMORY : 0);
}

/* Is a copy with this first word, found a moment ago, true? */
static inline bool
stands(const struct place *place, uint64_t word)
{
	/* The floor after the words: a block that has raised it by now is seen.  Partner: block. */
	return word >= __atomic_load_n(&place->version->floor, __ATOMIC_ACQUIRE);
}

/*
 * Keeps count words in a frame of this kind, unless the ticket is not good any more.
 *
 * A new copy (not hot) is worth the room that others have to leave for it as likely as such questions were answered of
 * late, which is their share: where hardly any of them comes again the nodes keep their room.  What a scan has READ is
 * not worth any.
 */
static void
keep(const struct place *place, unsigned int kind, const uint64_t *words, unsigned int count, uint64_t ticket,
	 enum smart_keep how, uint64_t share, uint64_t *stores)
{
	const struct cache_part *part = &place->part;
	struct cache_frame *frame;
	uint32_t number;

	smart_assert(ticket != 0 && count <= cache_kind_words(kind) && cache_key_fits(place->key, kind));
	smart_assert((ticket & CACHE_WRITERS) == 0 || SMART_FAULT(openfill));
	if (how != SMART_KEEP_HOT && !cache_has_spare_room(part) &&
		(how == SMART_KEEP_SPARE ||
		 cache_random(&part->line->random) % CACHE_SHARE >= (share > SHARE_MIN ? share : SHARE_MIN)))
		return;
	if (!cache_try_lock(part))
		return;
	/* A block that is not seen here takes the copy out, for which it needs the lock, or raises the floor. */
	if (__atomic_load_n(&place->version->word, __ATOMIC_SEQ_CST) == ticket || SMART_FAULT(openfill))
	{
		/* Another client may have been as fast; or it is another equality prefix with this hash. */
		number = cache_find_frame(part, place->tree, place->key, NULL);
		if (number != 0)
			cache_vacate(part, number);
		number = cache_make_frame(part, kind, place->tree, place->key);
		frame = cache_frame_at(part, number);
		for (unsigned int i = 0; i < count; i++)
			__atomic_store_n(&cache_words_of(frame, place->key)[i], words[i], __ATOMIC_RELAXED);
		cache_end_change(frame);
		if (how == SMART_KEEP_HOT)
			cache_heat(part, number);
		cache_count(stores);
	}
	else
		cache_count(&part->line->counters.result_refusals);
	cache_unlock(part);
}

/* ---- blocking ---- */

/* *dropped counts a copy that was there. */
static struct smart_blocked
block(const struct place *place, uint64_t *dropped)
{
	const struct cache_part *part = &place->part;
	uint64_t word = __atomic_add_fetch(&place->version->word, CACHE_GENERATION + 1, __ATOMIC_SEQ_CST);
	uint64_t floor;

	/* From here on until the unblock no copy of the version is kept (A2). */
	smart_assert((word & CACHE_WRITERS) != 0 && word >= CACHE_GENERATION);
	if (cache_try_lock(part))
	{
		/* The whole bucket is looked at: readers stop after some frames, and may not see a copy that lies behind. */
		uint32_t number = *cache_head(part, place->tree, place->key);

		while (number != 0)
		{
			const struct cache_frame *frame = cache_frame_at(part, number);
			uint32_t next = frame->next;

			if (frame->key == place->key && cache_tree_of(frame) == place->tree)
			{
				cache_vacate(part, number);
				cache_count(dropped);
			}
			number = next;
		}
		smart_assert(cache_find_frame(part, place->tree, place->key, NULL) == 0);
		cache_unlock(part);
	}
	else
	{
		/* Copies of the version that were kept so far are void. */
		floor = __atomic_load_n(&place->version->floor, __ATOMIC_RELAXED);
		while (floor < (word & ~CACHE_WRITERS) &&
			   !__atomic_compare_exchange_n(&place->version->floor, &floor, word & ~CACHE_WRITERS, false,
											__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			;
		cache_count(&part->line->counters.voids);
	}
	return (struct smart_blocked){.word = word, .version = place->version_number};
}

uint64_t
cache_unblock_point(struct smart_services *services, const struct smart_blocked *blocked)
{
	/* Release: a client that finds no writer READs what this one wrote.  Partner: cache_find_result. */
	uint64_t word = __atomic_fetch_sub(&cache_version_at(services->cache, blocked->version)->word, 1, __ATOMIC_RELEASE);

	smart_assert((word & CACHE_WRITERS) != 0 && (word & ~CACHE_WRITERS) >= (blocked->word & ~CACHE_WRITERS));
	/* Alone from the block on: no writer was there, and none came.  One that had begun before may have changed more. */
	return word == blocked->word && (word & CACHE_WRITERS) == 1 ? word - 1 : 0;
}

/* ---- cached results ---- */

bool
cache_find_result(struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length,
				  struct smart_result *cached)
{
	struct place place = place_of_point(services, tree, point, length);
	struct cache_line *line = place.part.line;
	uint64_t words[WORDS_MAX];
	uint32_t number = cache_find_frame(&place.part, tree, place.key, words);
	bool found =
		number != 0 && stands(&place, words[0]) && (words[0] & 0xff) == length && memcmp(words + 1, point, length) == 0;

	note_question(&line->counters.result_hits, &line->counters.result_misses, &line->result_share, found);
	cached->hot = found;
	if (found)
	{
		cache_heat(&place.part, number);
		cached->length = (unsigned int) (words[0] >> TAILS_SHIFT) & 0xff;
		smart_assert(length + cached->length <= SMART_RESULT_BYTES_MAX);
		memcpy(cached->tails, (const uint8_t *) (words + 1) + length, cached->length);
		return true;
	}
	cached->ticket = 0;
	if (length < SMART_RESULT_BYTES_MAX)
	{
		/* Acquire: what the caller READs from here on has all that former writers did.  Partner: unblock. */
		uint64_t word = __atomic_load_n(&place.version->word, __ATOMIC_ACQUIRE);

		if ((word & CACHE_WRITERS) == 0 || SMART_FAULT(openfill))
			cached->ticket = word;
	}
	return false;
}

void
cache_keep_result(struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length,
				  const struct smart_result *cached)
{
	struct place place = place_of_point(services, tree, point, length);
	struct cache_line *line = place.part.line;
	unsigned int bytes = length + cached->length;
	unsigned int count = 1 + (bytes + (unsigned int) sizeof(uint64_t) - 1) / (unsigned int) sizeof(uint64_t);
	uint64_t words[WORDS_MAX] = {0};
	unsigned int kind = CACHE_RESULT;

	smart_assert(length > 0 && cached->ticket != 0);
	if (bytes > SMART_RESULT_BYTES_MAX)
		return;
	/* The shortest kind of frame that has room. */
	while (cache_kind_words(kind) < count)
		kind++;
	smart_assert(kind < CACHE_HINT);
	words[0] = (cached->ticket & ~CACHE_WRITERS) | (uint64_t) cached->length << TAILS_SHIFT | length;
	memcpy(words + 1, point, length);
	memcpy((uint8_t *) (words + 1) + length, cached->tails, cached->length);
	keep(&place, kind, words, count, cached->ticket, cached->hot ? SMART_KEEP_HOT : SMART_KEEP_READ, line->result_share,
		 &line->counters.result_stores);
}

struct smart_blocked
cache_block_point(struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length)
{
	struct place place = place_of_point(services, tree, point, length);

	cache_count(&place.part.line->counters.blocks);
	return block(&place, &place.part.line->counters.result_drops);
}

/* ---- leaf hints ---- */

bool
cache_find_hint(struct smart_services *services, smart_slot leaf, struct smart_leaf_hint *hint)
{
	struct place place = place_of_leaf(services, leaf);
	struct cache_line *line = place.part.line;
	uint64_t words[LEAF_WORDS_MAX];
	uint32_t number = cache_find_frame(&place.part, 0, place.key, words);
	bool found = number != 0 && stands(&place, words[0]) && (words[0] & COPY_MARK) != COPY_MARK;

	note_question(&line->counters.hint_hits, &line->counters.hint_misses, &line->hint_share, found);
	if (!found)
		return false;
	cache_heat(&place.part, number);
	*hint = (struct smart_leaf_hint){.identity = words[1],
									 .meta = words[2],
									 .prefix_length = (uint16_t) (words[0] & ((1 << GREATEST_SHIFT) - 1)),
									 .greatest_length = (uint8_t) ((words[0] & LENGTHS_MASK) >> GREATEST_SHIFT)};
	if (hint->greatest_length > 0)
		memcpy(hint->greatest, &words[3], sizeof(hint->greatest));
	smart_assert(hint->greatest_length <= sizeof(hint->greatest) && hint->prefix_length <= SMART_KEY_MAX);
	return true;
}

void
cache_keep_hint(struct smart_services *services, smart_slot leaf, const struct smart_leaf_hint *hint, uint64_t ticket,
				bool hot)
{
	struct place place = place_of_leaf(services, leaf);
	struct cache_line *line = place.part.line;
	unsigned int kind = hint->greatest_length > 0 ? CACHE_HINT + 1 : CACHE_HINT;
	uint64_t words[HINT_WORDS] = {(ticket & ~CACHE_WRITERS) | (uint64_t) hint->greatest_length << GREATEST_SHIFT |
									  hint->prefix_length,
								  hint->identity, hint->meta};

	smart_assert(hint->greatest_length <= sizeof(hint->greatest) && hint->prefix_length <= SMART_KEY_MAX);
	memcpy(&words[3], hint->greatest, sizeof(hint->greatest));
	keep(&place, kind, words, cache_kind_words(kind), ticket, hot ? SMART_KEEP_HOT : SMART_KEEP_READ, line->hint_share,
		 &line->counters.hint_stores);
}

struct smart_blocked
cache_block_hint(struct smart_services *services, smart_slot leaf)
{
	struct place place = place_of_leaf(services, leaf);

	cache_count(&place.part.line->counters.hint_blocks);
	return block(&place, &place.part.line->counters.hint_drops);
}

/* ---- leaf copies ---- */

bool
cache_find_leaf(struct smart_services *services, uint64_t tree, smart_slot leaf, bool ahead, uint8_t *copy,
				uint64_t *ticket)
{
	struct place place = place_of_leaf(services, leaf);
	struct cache_line *line = place.part.line;
	unsigned int units = smart_slot_size(leaf);
	uint64_t words[LEAF_WORDS_MAX];
	uint32_t number = 0;
	bool found;
	bool worth;
	uint64_t word;

	*ticket = 0;
	if (units > CACHE_COPY_UNITS)
		return false;
	number = cache_find_frame(&place.part, 0, place.key, words);
	found =
		number != 0 && stands(&place, words[0]) && (words[0] & LENGTHS_MASK) == (COPY_MARK | units) && words[1] == tree;
	worth = found || (ahead && cache_has_spare_room(&place.part));
	if (ahead)
	{
		cache_count(found ? &line->counters.hint_hits : &line->counters.hint_misses);
		line->ahead_vain =
			line->ahead_vain - line->ahead_vain / AHEAD_MEMORY + (worth ? 0 : CACHE_SHARE / AHEAD_MEMORY);
	}
	else
		note_question(&line->counters.hint_hits, &line->counters.hint_misses, &line->hint_share, found);
	if (found)
	{
		if (!ahead)
			cache_heat(&place.part, number);
		memcpy(copy, words + COPY_WORDS, units * SMART_UNIT);
		*ticket = words[0] & ~LENGTHS_MASK;
		return true;
	}
	if (ahead && !worth)
		return false;
	/* Acquire: what the caller READs from here on has all that former writers did.  Partner: unblock. */
	word = __atomic_load_n(&place.version->word, __ATOMIC_ACQUIRE);
	if ((word & CACHE_WRITERS) == 0)
		*ticket = word;
	return false;
}

/* Where the last questions for scans were in vain a few go on asking: that shows when it is otherwise. */
bool
cache_asks_leaves(struct smart_services *services)
{
	struct cache_line *line = cache_part_of(services->cache, services->cache_client, 0, 0).line;

	smart_assert(line->ahead_vain <= CACHE_SHARE);
	return line->ahead_vain <= AHEAD_VAIN_MAX || cache_random(&line->random) % AHEAD_ONE_IN == 0;
}

void
cache_keep_leaf(struct smart_services *services, uint64_t tree, smart_slot leaf, const uint8_t *copy, uint64_t meta,
				uint64_t ticket, enum smart_keep how)
{
	struct place place = place_of_leaf(services, leaf);
	struct cache_line *line = place.part.line;
	unsigned int units = smart_slot_size(leaf);
	unsigned int count = COPY_WORDS + units * SMART_UNIT / (unsigned int) sizeof(uint64_t);
	unsigned int kind = CACHE_COPY;
	uint64_t words[LEAF_WORDS_MAX];

	if (units > CACHE_COPY_UNITS)
		return;
	while (cache_kind_words(kind) < count)
		kind++;
	smart_assert(kind < CACHE_KINDS && units > 0 && (ticket & CACHE_WRITERS) == 0);
	words[0] = ticket | COPY_MARK | units;
	words[1] = tree;
	memcpy(words + COPY_WORDS, copy, units * SMART_UNIT);
	memcpy((uint8_t *) (words + COPY_WORDS) + units * SMART_UNIT - SMART_LEAF_REAR_BYTES, &meta, sizeof(meta));
	keep(&place, kind, words, count, ticket, how, line->hint_share, &line->counters.hint_stores);
}

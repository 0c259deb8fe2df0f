/*
 * cache_answers.c
 *	  Hot answers: which entries a point has.
 *
 * An answer is not checked by who finds it, so it has to be true (src/README, A1-A3):
 * cache_gates.c keeps it so.
 *
 * Answers lie in frames, beside the copies of nodes, and make room for each other
 * and for nodes as nodes do.  Their words:
 *
 *	  words[0]   generation 44 | bytes of the tails 8 | bytes of the point 8 (highest bits first)
 *	  words[1..] the point, then for each entry the length of its tail, and the tail
 *
 * Progress: find is wait-free; keep gives up; block is bounded.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>

#include "compute/cache_parts.h"
#include "tree/fault.h"

#define ANSWER_WORDS     16 /* of the longest kind */
#define ANSWER_KEY_BITS  6  /* of a key that are not of the hash */
#define GENERATION_SHIFT 20
#define TAILS_SHIFT      8

_Static_assert(CACHE_GENERATION == UINT64_C(1) << GENERATION_SHIFT,
			   "a gate's generation stands where an answer's does");
_Static_assert(SMART_ANSWER_BYTES_MAX == (ANSWER_WORDS - 1) * sizeof(uint64_t), "the longest answer has a kind");
_Static_assert(SMART_ANSWER_BYTES_MAX < 256, "lengths have eight bits");

static inline uint64_t
key_of_point(uint64_t tree, const uint8_t *point, unsigned int length)
{
	uint64_t hash = XXH3_64bits_withSeed(point, length, tree);

	return hash >> ANSWER_KEY_BITS << ANSWER_KEY_BITS | CACHE_ANSWER_KEY;
}

static inline uint32_t
gate_of(const struct smart_cache *cache, uint64_t key)
{
	return (uint32_t) (key >> ANSWER_KEY_BITS) & (cache->gates - 1);
}

static inline unsigned int
point_length(const uint64_t *words)
{
	return (unsigned int) words[0] & 0xff;
}

static inline unsigned int
tails_length(const uint64_t *words)
{
	return (unsigned int) (words[0] >> TAILS_SHIFT) & 0xff;
}

/* The shortest kind of frame for so many bytes behind the first word. */
static unsigned int
kind_for(unsigned int bytes)
{
	unsigned int kind = CACHE_ANSWER;

	while ((cache_kind_words(kind) - 1) * sizeof(uint64_t) < bytes)
		kind++;
	smart_assert(kind < CACHE_STUB);
	return kind;
}

static struct cache_asked
asked(struct cache_line *line)
{
	return (struct cache_asked){&line->answer_hits, &line->answer_misses, &line->answer_share};
}

bool
smart_cache_answer(struct smart_cache *cache, unsigned int client, uint64_t tree, const uint8_t *point,
				   unsigned int length, struct smart_answer *answer)
{
	uint64_t key = key_of_point(tree, point, length);
	struct cache_part part = cache_part_of(cache, client, tree, key);
	struct cache_asked questions = asked(part.line);
	uint32_t gate = gate_of(cache, key);
	uint64_t words[ANSWER_WORDS];
	uint32_t number = cache_find_frame(&part, tree, key, words);

	if (number != 0 && cache_stands(cache, gate, words[0]) && point_length(words) == length &&
		memcmp(words + 1, point, length) == 0)
	{
		cache_note_question(&questions, true);
		cache_heat(&part, number);
		answer->hot = true;
		answer->length = tails_length(words);
		memcpy(answer->tails, (const uint8_t *) (words + 1) + length, answer->length);
		return true;
	}
	cache_note_question(&questions, false);
	answer->ticket = 0;
	answer->hot = false;
	if (length < SMART_ANSWER_BYTES_MAX)
	{
		/* Acquire: what the caller READs from here on has all that former writers did.  Partner: unblock. */
		uint64_t word = __atomic_load_n(&cache_gate_at(cache, gate)->word, __ATOMIC_ACQUIRE);

		if ((word & CACHE_WRITERS) == 0 || SMART_FAULT(openfill))
			answer->ticket = word;
	}
	return false;
}

static void
fill_frame(struct cache_frame *frame, const uint64_t *words, unsigned int bytes)
{
	for (unsigned int i = 0; i * sizeof(uint64_t) < sizeof(uint64_t) + bytes; i++)
		__atomic_store_n(&frame->body[1 + i], words[i], __ATOMIC_RELAXED);
	cache_end_change(frame);
}

void
smart_cache_keep_answer(struct smart_cache *cache, unsigned int client, uint64_t tree, const uint8_t *point,
						unsigned int length, const struct smart_answer *answer)
{
	uint64_t key = key_of_point(tree, point, length);
	struct cache_part part = cache_part_of(cache, client, tree, key);
	unsigned int bytes = length + answer->length;
	uint64_t words[ANSWER_WORDS] = {0};
	uint32_t number;

	if (bytes > SMART_ANSWER_BYTES_MAX || (!answer->hot && !cache_is_admitted(&part, part.line->answer_share)) ||
		!cache_try_lock(&part))
		return;
	if (cache_ticket_good(&part, gate_of(cache, key), answer->ticket))
	{
		/* Another one may have been as fast; or it is another point with this hash. */
		number = cache_find_frame(&part, tree, key, NULL);
		if (number != 0)
			cache_vacate(&part, number);
		number = cache_make_frame(&part, kind_for(bytes), tree, key);
		words[0] = (answer->ticket & ~CACHE_WRITERS) | (uint64_t) answer->length << TAILS_SHIFT | length;
		memcpy(words + 1, point, length);
		memcpy((uint8_t *) (words + 1) + length, answer->tails, answer->length);
		fill_frame(cache_frame_at(&part, number), words, bytes);
		if (answer->hot)
			cache_heat(&part, number);
		cache_count(&part.line->answer_stores);
	}
	cache_unlock(&part);
}

struct smart_blocked
smart_cache_block(struct smart_cache *cache, unsigned int client, uint64_t tree, const uint8_t *point,
				  unsigned int length)
{
	uint64_t key = key_of_point(tree, point, length);
	struct cache_part part = cache_part_of(cache, client, tree, key);

	cache_count(&part.line->blocks);
	return cache_block(&part, gate_of(cache, key), tree, key, &part.line->answer_drops);
}

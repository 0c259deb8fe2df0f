/*
 * cache_answers.c
 *	  Hot answers: which entries a point has.
 *
 * A node's copy may be stale, since the tree checks what it is led to.  An answer
 * is not checked, so it has to be true (src/README, A1-A3).  Each point belongs to
 * a gate, one of an array of words that are never evicted, and:
 *
 *	  - who changes a point's entries blocks it before and unblocks it afterwards:
 *	    a block raises the gate's generation and its number of writers, by one
 *	    addition, and then takes the point's answer out of the cache;
 *	  - who wants to keep an answer has looked at the gate before it READ the leaf,
 *	    and finds it unchanged, without a writer, under the lock under which a
 *	    block takes the answer out.  So an answer of before is either not kept, or
 *	    there to be taken out.
 *
 * A block waits for that lock no longer than what is done under it takes.  If
 * somebody has it all that time, the gate's floor rises above all answers that
 * were kept so far, of this point and of others: hits compare an answer's
 * generation with the floor.
 *
 * Answers lie in frames, beside the copies of nodes, and make room for each other
 * and for nodes as nodes do.  Their words:
 *
 *	  words[0]   generation 44 | bytes of the tails 8 | bytes of the point 8 (highest bits first)
 *	  words[1..] the point, then for each entry the length of its tail, and the tail
 *
 * Progress: find is wait-free; keep gives up; block and unblock are bounded.
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
#define SHARE_MEMORY     1024               /* questions that the share remembers, about */
#define SHARE_MIN        (CACHE_SHARE / 16) /* new answers come in all the same, and may show that they are worth it */

_Static_assert(CACHE_GENERATION == UINT64_C(1) << GENERATION_SHIFT,
			   "a gate's generation stands where an answer's does");
_Static_assert(SMART_ANSWER_BYTES_MAX == (ANSWER_WORDS - 1) * sizeof(uint64_t), "the longest answer has a kind");
_Static_assert(SMART_ANSWER_BYTES_MAX < SMART_POINT_STUB && SMART_POINT_STUB < 256, "lengths have eight bits");

/* A point's length as it is given, and kept, says whether it is a stub's. */
static inline bool
is_stub(unsigned int length)
{
	return (length & SMART_POINT_STUB) != 0;
}

static inline unsigned int
point_bytes(unsigned int length)
{
	return length & ~(unsigned int) SMART_POINT_STUB;
}

static inline uint64_t
key_of_point(uint64_t tree, const uint8_t *point, unsigned int length)
{
	uint64_t hash = XXH3_64bits_withSeed(point, point_bytes(length), tree);

	return hash >> ANSWER_KEY_BITS << ANSWER_KEY_BITS | CACHE_ANSWER_KEY;
}

static inline uint32_t
gate_of(const struct smart_cache *cache, uint64_t key)
{
	return (uint32_t) (key >> ANSWER_KEY_BITS) & (cache->gates - 1);
}

/* As it was given. */
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
	unsigned int kind = SMART_NODE_KINDS + 1;

	while ((cache_kind_words(kind) - 1) * sizeof(uint64_t) < bytes)
		kind++;
	smart_assert(kind < CACHE_KINDS);
	return kind;
}

/*
 * Is a new answer worth the room that others have to leave for it?  As likely as
 * such questions were answered of late: where hardly any of them comes again the
 * nodes keep their room.
 */
static bool
is_admitted(const struct cache_part *part, bool stub)
{
	uint64_t share = stub ? part->line->stub_share : part->line->answer_share;
	uint64_t *state = &part->line->random;

	if (__atomic_load_n(&part->shared->spans_used, __ATOMIC_RELAXED) < part->cache->spans)
		return true;
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % CACHE_SHARE < (share > SHARE_MIN ? share : SHARE_MIN);
}

/* A question was answered, or not; the share forgets what was long ago. */
static void
note_question(const struct cache_part *part, bool stub, bool answered)
{
	struct cache_line *line = part->line;
	uint64_t *share = stub ? &line->stub_share : &line->answer_share;

	if (answered)
		cache_count(stub ? &line->stub_hits : &line->answer_hits);
	else
		cache_count(stub ? &line->stub_misses : &line->answer_misses);
	*share = *share - *share / SHARE_MEMORY + (answered ? CACHE_SHARE / SHARE_MEMORY : 0);
}

bool
smart_cache_answer(struct smart_cache *cache, unsigned int client, uint64_t tree, const uint8_t *point,
				   unsigned int length, struct smart_answer *answer)
{
	uint64_t key = key_of_point(tree, point, length);
	struct cache_part part = cache_part_of(cache, client, tree, key);
	struct cache_gate *gate = cache_gate_at(cache, gate_of(cache, key));
	uint64_t words[ANSWER_WORDS];
	uint32_t number = cache_find_frame(&part, tree, key, words);

	/* The floor after the words: a block that has raised it by now is seen.  Partner: void_answers. */
	if (number != 0 && words[0] >= __atomic_load_n(&gate->floor, __ATOMIC_ACQUIRE) && point_length(words) == length &&
		memcmp(words + 1, point, point_bytes(length)) == 0)
	{
		note_question(&part, is_stub(length), true);
		cache_heat(&part, number);
		answer->hot = true;
		answer->length = tails_length(words);
		memcpy(answer->tails, (const uint8_t *) (words + 1) + point_bytes(length), answer->length);
		return true;
	}
	note_question(&part, is_stub(length), false);
	answer->ticket = 0;
	answer->hot = false;
	if (point_bytes(length) < SMART_ANSWER_BYTES_MAX)
	{
		/* Acquire: what the caller READs from here on has all that former writers did.  Partner: unblock. */
		uint64_t word = __atomic_load_n(&gate->word, __ATOMIC_ACQUIRE);

		if ((word & CACHE_WRITERS) == 0 || SMART_FAULT(openfill))
			answer->ticket = word;
	}
	return false;
}

static void
fill_frame(struct cache_frame *frame, const uint64_t *words, unsigned int bytes)
{
	for (unsigned int i = 0; i * sizeof(uint64_t) < sizeof(uint64_t) + bytes; i++)
		__atomic_store_n(&frame->words[i], words[i], __ATOMIC_RELAXED);
	cache_end_change(frame);
}

void
smart_cache_keep_answer(struct smart_cache *cache, unsigned int client, uint64_t tree, const uint8_t *point,
						unsigned int length, const struct smart_answer *answer)
{
	uint64_t key = key_of_point(tree, point, length);
	struct cache_part part = cache_part_of(cache, client, tree, key);
	const struct cache_gate *gate = cache_gate_at(cache, gate_of(cache, key));
	unsigned int bytes = point_bytes(length) + answer->length;
	uint64_t words[ANSWER_WORDS] = {0};
	uint32_t number;

	smart_assert(answer->ticket != 0);
	if (bytes > SMART_ANSWER_BYTES_MAX || (!answer->hot && !is_admitted(&part, is_stub(length))) ||
		!cache_try_lock(&part))
		return;
	/* A block that is not seen here takes the answer out, for which it needs the lock, or raises the floor. */
	if (__atomic_load_n(&gate->word, __ATOMIC_SEQ_CST) != answer->ticket && !SMART_FAULT(openfill))
	{
		cache_count(&part.line->answer_refusals);
		cache_unlock(&part);
		return;
	}
	/* Another one may have been as fast; or it is another point with this hash. */
	number = cache_find_frame(&part, tree, key, NULL);
	if (number != 0)
		cache_vacate(&part, number);
	number = cache_make_frame(&part, kind_for(bytes), tree, key);
	words[0] = (answer->ticket & ~CACHE_WRITERS) | (uint64_t) answer->length << TAILS_SHIFT | length;
	memcpy(words + 1, point, point_bytes(length));
	memcpy((uint8_t *) (words + 1) + point_bytes(length), answer->tails, answer->length);
	fill_frame(cache_frame_at(&part, number), words, bytes);
	if (answer->hot)
		cache_heat(&part, number);
	cache_count(is_stub(length) ? &part.line->stub_stores : &part.line->answer_stores);
	cache_unlock(&part);
}

/* Answers of a gate that were kept so far are void. */
static void
void_answers(struct cache_gate *gate, uint64_t generation)
{
	uint64_t floor = __atomic_load_n(&gate->floor, __ATOMIC_RELAXED);

	while (floor < generation &&
		   !__atomic_compare_exchange_n(&gate->floor, &floor, generation, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

struct smart_blocked
smart_cache_block(struct smart_cache *cache, unsigned int client, uint64_t tree, const uint8_t *point,
				  unsigned int length)
{
	uint64_t key = key_of_point(tree, point, length);
	struct cache_part part = cache_part_of(cache, client, tree, key);
	uint32_t index = gate_of(cache, key);
	struct cache_gate *gate = cache_gate_at(cache, index);
	uint64_t word = __atomic_add_fetch(&gate->word, CACHE_GENERATION + 1, __ATOMIC_SEQ_CST);

	smart_assert((word & CACHE_WRITERS) != 0);
	cache_count(is_stub(length) ? &part.line->stub_blocks : &part.line->blocks);
	if (cache_try_lock(&part))
	{
		uint32_t number = cache_find_frame(&part, tree, key, NULL);

		if (number != 0)
		{
			cache_vacate(&part, number);
			cache_count(is_stub(length) ? &part.line->stub_drops : &part.line->answer_drops);
		}
		cache_unlock(&part);
	}
	else
	{
		void_answers(gate, word & ~CACHE_WRITERS);
		cache_count(&part.line->voids);
	}
	return (struct smart_blocked){.word = word, .gate = index};
}

uint64_t
smart_cache_unblock(struct smart_cache *cache, const struct smart_blocked *blocked)
{
	/* Release: who finds no writer READs what this one wrote.  Partner: smart_cache_answer. */
	uint64_t word = __atomic_fetch_sub(&cache_gate_at(cache, blocked->gate)->word, 1, __ATOMIC_RELEASE);

	smart_assert((word & CACHE_WRITERS) != 0);
	/* Alone from the block on: nobody was there, nobody came.  A writer that had begun before may have changed more since. */
	return word == blocked->word && (word & CACHE_WRITERS) == 1 ? word - 1 : 0;
}

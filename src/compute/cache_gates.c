/*
 * cache_gates.c
 *	  Gates: what keeps answers and stubs true.
 *
 * A node's copy may be stale, since the tree checks what it is led to.  An answer
 * or a stub is not checked, so it has to be true (src/README, A1-A4).  Each belongs to
 * a gate, one of an array of words that are never evicted, and:
 *
 *	  - who changes what a copy tells of blocks it before and unblocks it afterwards:
 *	    a block raises the gate's generation and its number of writers, by one
 *	    addition, and then takes the copy out of the cache;
 *	  - who wants to keep a copy has looked at the gate before it READ the leaf,
 *	    and finds it unchanged, without a writer, under the lock under which a
 *	    block takes the copy out.  So a copy of before is either not kept, or
 *	    there to be taken out.
 *
 * A block waits for that lock no longer than what is done under it takes.  If
 * somebody has it all that time, the gate's floor rises above all copies that
 * were kept so far, of this key and of others: hits compare a copy's generation
 * with the floor.
 *
 * Progress: block and unblock are bounded.
 */
#include "compute/cache_parts.h"
#include "tree/fault.h"

#define SHARE_MEMORY 1024               /* questions that the share remembers, about */
#define SHARE_MIN    (CACHE_SHARE / 16) /* new copies come in all the same, and may show that they are worth it */

/* A question was answered, or not; the share forgets what was long ago. */
void
cache_note_question(const struct cache_asked *asked, bool answered)
{
	cache_count(answered ? asked->hits : asked->misses);
	*asked->share = *asked->share - *asked->share / SHARE_MEMORY + (answered ? CACHE_SHARE / SHARE_MEMORY : 0);
}

/*
 * Is a new copy worth the room that others have to leave for it?  As likely as
 * such questions were answered of late: where hardly any of them comes again the
 * nodes keep their room.
 */
bool
cache_is_admitted(const struct cache_part *part, uint64_t share)
{
	if (__atomic_load_n(&part->shared->spans_used, __ATOMIC_RELAXED) < part->cache->spans)
		return true;
	return cache_random(&part->line->random) % CACHE_SHARE < (share > SHARE_MIN ? share : SHARE_MIN);
}

bool
cache_stands(const struct smart_cache *cache, uint32_t gate, uint64_t generation)
{
	/* The floor after the words: a block that has raised it by now is seen.  Partner: void_copies. */
	return generation >= __atomic_load_n(&cache_gate_at(cache, gate)->floor, __ATOMIC_ACQUIRE);
}

bool
cache_ticket_good(const struct cache_part *part, uint32_t gate, uint64_t ticket)
{
	smart_assert(ticket != 0);
	/* A block that is not seen here takes the copy out, for which it needs the lock, or raises the floor. */
	if (__atomic_load_n(&cache_gate_at(part->cache, gate)->word, __ATOMIC_SEQ_CST) == ticket || SMART_FAULT(openfill))
		return true;
	cache_count(&part->line->answer_refusals);
	return false;
}

/* Copies of a gate that were kept so far are void. */
static void
void_copies(struct cache_gate *gate, uint64_t generation)
{
	uint64_t floor = __atomic_load_n(&gate->floor, __ATOMIC_RELAXED);

	while (floor < generation &&
		   !__atomic_compare_exchange_n(&gate->floor, &floor, generation, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

/* Takes out what is kept under a key, under the lock; all of its bucket is looked at, which readers leave at some point. */
static void
take_out(const struct cache_part *part, uint64_t tree, uint64_t key, uint64_t *dropped)
{
	uint32_t number = *cache_head(part, tree, key);

	while (number != 0)
	{
		const struct cache_frame *frame = cache_frame_at(part, number);
		uint32_t next = frame->next;

		if (frame->key == key && cache_tree_of(frame) == tree)
		{
			cache_vacate(part, number);
			cache_count(dropped);
		}
		number = next;
	}
}

struct smart_blocked
cache_block(const struct cache_part *part, uint32_t index, uint64_t tree, uint64_t key, uint64_t *dropped)
{
	struct cache_gate *gate = cache_gate_at(part->cache, index);
	uint64_t word = __atomic_add_fetch(&gate->word, CACHE_GENERATION + 1, __ATOMIC_SEQ_CST);

	smart_assert((word & CACHE_WRITERS) != 0);
	if (cache_try_lock(part))
	{
		take_out(part, tree, key, dropped);
		cache_unlock(part);
	}
	else
	{
		void_copies(gate, word & ~CACHE_WRITERS);
		cache_count(&part->line->voids);
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

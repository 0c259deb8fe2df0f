/*
 * cache_stress.c
 *	  Threads find, store, update and drop copies in one small cache at once,
 *	  while its spans go from kind to kind: whatever is found is one copy, whole.
 *
 * The words of a copy tell its tree, its slot and a version, all of them the same
 * one; an update replaces the last word by one that is as easy to know.
 */
#include <stdlib.h>
#include <string.h>

#include "support/cache.h"
#include "support/check.h"
#include "support/env_thread.h"
#include "support/threads.h"

#define THREADS    4
#define OPERATIONS 400000
#define BYTES      ((size_t) 256 << 10)
#define TREES      3
#define NODES      600 /* of each tree; all of them do not fit */
#define HOT        2

static struct smart_cache *cache;

static unsigned int
words_of(smart_slot slot)
{
	return SMART_NODE_HEAD_WORDS + smart_kind_slots(smart_slot_size(slot));
}

/* Leaf slots, so that no word names a child. */
static uint64_t
word_of(uint64_t tree, smart_slot slot, uint64_t version, unsigned int index)
{
	uint64_t mixed =
		(tree * 1000003 + slot / SMART_UNIT * 7919 + version * 104729 + index) * UINT64_C(0x9e3779b97f4a7c15);

	return (mixed & ~UINT64_C(0xffff)) | SMART_SLOT_LEAF | version;
}

static void
make_words(uint64_t *words, uint64_t tree, smart_slot slot, uint64_t version)
{
	for (unsigned int i = 0; i < words_of(slot); i++)
		words[i] = word_of(tree, slot, version, i);
}

/* The last word may be of any version. */
static bool
is_whole(const uint64_t *words, uint64_t tree, smart_slot slot)
{
	uint64_t version = words[0] & 0xff;
	unsigned int last = words_of(slot) - 1;
	bool whole = words[last] == word_of(tree, slot, words[last] & 0xff, last);

	for (unsigned int i = 0; i < last; i++)
		whole &= words[i] == word_of(tree, slot, version, i);
	return whole;
}

struct worker
{
	unsigned int number;
	unsigned long found;
	unsigned long torn;
};

static void
work_once(struct worker *worker, uint64_t *state, unsigned int kinds_from)
{
	uint64_t tree = 1 + test_random(state) % TREES;
	/* Half of the time the same few, so that readers and writers meet. */
	uint64_t node = 1 + test_random(state) % (test_random(state) % 2 == 0 ? NODES : HOT);
	unsigned int kind = 1 + (unsigned int) (node + kinds_from) % SMART_NODE_KINDS;
	smart_slot slot = smart_slot_make_node(0, kind, node * SMART_UNIT);
	unsigned int last = words_of(slot) - 1;
	uint64_t words[SMART_NODE_WORDS_MAX];
	uint64_t version = test_random(state) & 0xff;

	switch (test_random(state) % 8)
	{
		case 0:
		case 1:
			make_words(words, tree, slot, version);
			test_cache_store(cache, worker->number, tree, slot, words);
			break;
		case 2:
			if (test_cache_find(cache, worker->number, tree, slot, words))
				test_cache_update(cache, worker->number, tree, slot, last, words[last],
								  word_of(tree, slot, version, last));
			break;
		case 3:
			test_cache_drop(cache, worker->number, tree, slot);
			break;
		default:
			if (!test_cache_find(cache, worker->number, tree, slot, words))
				break;
			worker->found++;
			worker->torn += !is_whole(words, tree, slot);
			break;
	}
}

static void *
work(void *argument)
{
	struct worker *worker = argument;
	uint64_t state = worker->number + 1;

	/* The nodes change their kinds, and with them the spans. */
	for (unsigned int i = 0; i < OPERATIONS; i++)
		work_once(worker, &state, i / (OPERATIONS / 12));
	return NULL;
}

int
main(void)
{
	struct worker workers[THREADS] = {0};
	struct smart_cache_stat stat;
	uint64_t bytes = 0;
	unsigned long found = 0;
	unsigned long torn = 0;

	cache = aligned_alloc(128, (smart_cache_size(BYTES, THREADS) + 127) / 128 * 128);
	smart_cache_init(cache, BYTES, THREADS, 1);
	for (unsigned int i = 0; i < THREADS; i++)
		workers[i].number = i;
	test_run_threads(THREADS, work, workers, sizeof(workers[0]));
	for (unsigned int i = 0; i < THREADS; i++)
	{
		found += workers[i].found;
		torn += workers[i].torn;
	}
	smart_cache_stat(cache, &stat);
	for (unsigned int kind = 1; kind <= SMART_NODE_KINDS; kind++)
		bytes += stat.bytes[kind];
	CHECK(torn == 0 && found > OPERATIONS / 10);
	CHECK(bytes <= stat.size && stat.counters.stores > 0 && stat.counters.updates > 0 && stat.counters.drops > 0);
	CHECK(stat.counters.evictions > 0 && stat.counters.moves > 0);
	free(cache);
	return check_finish();
}

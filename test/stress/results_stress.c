/*
 * results_stress.c
 *	  Threads look up equality prefixes, keep their cached results and change their entries, and
 *	  do the same with leaf hints, while copies of nodes come and go in the same small cache: no
 *	  cached result and no leaf hint is older than the call that returns it.
 *
 * The truth about an equality prefix, or a leaf, is a version, which only rises, while it is blocked.
 * A reader looks at it before and afterwards.
 */
#include <stdlib.h>
#include <string.h>

#include "support/cache.h"
#include "support/check.h"
#include "support/env_thread.h"
#include "support/threads.h"

#define THREADS    4
#define OPERATIONS 300000
#define BYTES      ((size_t) 64 << 10)
#define POINTS     2000 /* not all of them find room */
#define HOT        3
#define TREE       7

static struct smart_cache *cache;
static uint64_t truth[POINTS];
static uint64_t leaf_truth[POINTS];

struct worker
{
	unsigned int number;
	unsigned long results;
	unsigned long hints;
	unsigned long wrong;
};

/* Of different lengths. */
static unsigned int
make_point(unsigned int number, uint8_t *point)
{
	unsigned int length = 4 + number % 40;

	memset(point, 'p', length);
	memcpy(point, &number, sizeof(number));
	return length;
}

static void
ask(struct worker *worker, unsigned int number)
{
	uint8_t point[64];
	unsigned int length = make_point(number, point);
	uint64_t before = __atomic_load_n(&truth[number], __ATOMIC_ACQUIRE);
	struct smart_result cached;
	uint64_t version;

	if (test_cache_result(cache, worker->number, TREE, point, length, &cached))
	{
		uint64_t after = __atomic_load_n(&truth[number], __ATOMIC_ACQUIRE);

		memcpy(&version, cached.tails + 1, sizeof(version));
		worker->results++;
		worker->wrong += cached.length != 9 || cached.tails[0] != 8 || version < before || version > after;
		return;
	}
	if (cached.ticket == 0)
		return;
	version = __atomic_load_n(&truth[number], __ATOMIC_ACQUIRE);
	cached.length = 9;
	cached.tails[0] = 8;
	memcpy(cached.tails + 1, &version, sizeof(version));
	test_cache_keep_result(cache, worker->number, TREE, point, length, &cached);
}

static void
change(const struct worker *worker, unsigned int number)
{
	uint8_t point[64];
	unsigned int length = make_point(number, point);
	struct smart_blocked blocked = test_cache_block(cache, worker->number, TREE, point, length);

	struct smart_result cached = {.length = 9, .tails = {8}};
	uint64_t version = __atomic_add_fetch(&truth[number], 1, __ATOMIC_SEQ_CST);

	cached.ticket = test_cache_unblock(cache, &blocked);
	/* The writer that changed it knows it, if no other came. */
	memcpy(cached.tails + 1, &version, sizeof(version));
	if (cached.ticket != 0)
		test_cache_keep_result(cache, worker->number, TREE, point, length, &cached);
}

/* Leaf hints of two lengths; all words of one tell the same version. */
static void
ask_hint(struct worker *worker, unsigned int number)
{
	uint64_t before = __atomic_load_n(&leaf_truth[number], __ATOMIC_ACQUIRE);
	struct smart_leaf_hint hint;
	uint64_t after;

	if (!test_cache_hint(cache, worker->number, smart_slot_make_leaf(0, 1, (1 + (uint64_t) number) * SMART_UNIT),
						 &hint))
		return;
	after = __atomic_load_n(&leaf_truth[number], __ATOMIC_ACQUIRE);
	worker->hints++;
	worker->wrong += hint.meta < before || hint.meta > after || hint.identity != ~hint.meta ||
					 hint.greatest_length != hint.meta % 2 * 8 ||
					 (hint.greatest_length > 0 && memcmp(hint.greatest, &hint.meta, sizeof(hint.greatest)) != 0);
}

static void
change_leaf(const struct worker *worker, unsigned int number)
{
	smart_slot leaf = smart_slot_make_leaf(0, 1, (1 + (uint64_t) number) * SMART_UNIT);
	struct smart_blocked blocked = test_cache_block_hint(cache, worker->number, leaf);
	uint64_t version = __atomic_add_fetch(&leaf_truth[number], 1, __ATOMIC_SEQ_CST);
	uint64_t ticket = test_cache_unblock(cache, &blocked);
	struct smart_leaf_hint hint = {.identity = ~version,
								   .meta = version,
								   .greatest_length = (uint8_t) (version % 2 * 8)};

	memcpy(hint.greatest, &version, sizeof(hint.greatest));
	if (ticket != 0)
		test_cache_keep_hint(cache, worker->number, leaf, &hint, ticket, version % 3 == 0);
}

static void
store_node(const struct worker *worker, uint64_t node)
{
	uint64_t words[SMART_NODE_WORDS_MAX] = {0};

	test_cache_store(cache, worker->number, TREE,
					 smart_slot_make_node(0, 1 + (unsigned int) node % SMART_NODE_KINDS, (1 + node) * SMART_UNIT),
					 words);
}

static void *
work(void *argument)
{
	struct worker *worker = argument;
	uint64_t state = worker->number + 1;

	for (unsigned int i = 0; i < OPERATIONS; i++)
	{
		/* Half of the time the same few, so that readers and writers meet. */
		unsigned int number = (unsigned int) (test_random(&state) % (test_random(&state) % 2 == 0 ? POINTS : HOT));

		switch (test_random(&state) % 12)
		{
			case 0:
				change(worker, number);
				break;
			case 1:
				store_node(worker, test_random(&state) % 100);
				break;
			case 2:
				change_leaf(worker, number);
				break;
			case 3:
			case 4:
			case 5:
				ask_hint(worker, number);
				break;
			default:
				ask(worker, number);
				break;
		}
	}
	return NULL;
}

int
main(void)
{
	struct worker workers[THREADS] = {0};
	struct smart_cache_stat stat;
	unsigned long results = 0;
	unsigned long hints = 0;
	unsigned long wrong = 0;

	cache = aligned_alloc(128, (smart_cache_size(BYTES, THREADS) + 127) / 128 * 128);
	smart_cache_init(cache, BYTES, THREADS, 1);
	for (unsigned int i = 0; i < THREADS; i++)
		workers[i].number = i;
	test_run_threads(THREADS, work, workers, sizeof(workers[0]));
	for (unsigned int i = 0; i < THREADS; i++)
	{
		results += workers[i].results;
		hints += workers[i].hints;
		wrong += workers[i].wrong;
	}
	smart_cache_stat(cache, &stat);
	CHECK(wrong == 0 && results > OPERATIONS / 10 && results == stat.counters.result_hits);
	CHECK(hints > OPERATIONS / 100 && hints == stat.counters.hint_hits && stat.counters.hint_stores > 0 &&
		  stat.counters.hint_drops > 0);
	CHECK(stat.counters.result_stores > 0 && stat.counters.result_drops > 0 && stat.counters.blocks > 0 &&
		  stat.counters.evictions > 0);
	free(cache);
	return check_finish();
}

/*
 * answers_stress.c
 *	  Threads ask for points, keep answers, and change points, and do the same with stubs of
 *	  leaves, while copies of nodes come and go in the same small cache: no answer and no
 *	  stub is older than the call that returns it.
 *
 * The truth about a point, or a leaf, is a version, which only rises, while it is blocked.
 * Whoever asks looks at it before and afterwards.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "compute/cache.h"
#include "support/check.h"
#include "support/env_thread.h"

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
	pthread_t thread;
	unsigned int number;
	unsigned long answered;
	unsigned long stubs;
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
	struct smart_answer answer;
	uint64_t version;

	if (smart_cache_answer(cache, worker->number, TREE, point, length, &answer))
	{
		uint64_t after = __atomic_load_n(&truth[number], __ATOMIC_ACQUIRE);

		memcpy(&version, answer.tails + 1, sizeof(version));
		worker->answered++;
		worker->wrong += answer.length != 9 || answer.tails[0] != 8 || version < before || version > after;
		return;
	}
	if (answer.ticket == 0)
		return;
	version = __atomic_load_n(&truth[number], __ATOMIC_ACQUIRE);
	answer.length = 9;
	answer.tails[0] = 8;
	memcpy(answer.tails + 1, &version, sizeof(version));
	smart_cache_keep_answer(cache, worker->number, TREE, point, length, &answer);
}

static void
change(const struct worker *worker, unsigned int number)
{
	uint8_t point[64];
	unsigned int length = make_point(number, point);
	struct smart_blocked blocked = smart_cache_block(cache, worker->number, TREE, point, length);

	struct smart_answer answer = {.length = 9, .tails = {8}};
	uint64_t version = __atomic_add_fetch(&truth[number], 1, __ATOMIC_SEQ_CST);

	answer.ticket = smart_cache_unblock(cache, &blocked);
	/* Who changed it knows it, if nobody else came. */
	memcpy(answer.tails + 1, &version, sizeof(version));
	if (answer.ticket != 0)
		smart_cache_keep_answer(cache, worker->number, TREE, point, length, &answer);
}

/* Stubs of two lengths; all words of one tell the same version. */
static void
ask_stub(struct worker *worker, unsigned int number)
{
	uint64_t before = __atomic_load_n(&leaf_truth[number], __ATOMIC_ACQUIRE);
	struct smart_stub stub;
	uint64_t after;

	if (!smart_cache_stub(cache, worker->number, smart_slot_make_leaf(0, 1, (1 + (uint64_t) number) * SMART_UNIT),
						  &stub))
		return;
	after = __atomic_load_n(&leaf_truth[number], __ATOMIC_ACQUIRE);
	worker->stubs++;
	worker->wrong += stub.meta < before || stub.meta > after || stub.identity != ~stub.meta ||
					 stub.greatest_length != stub.meta % 2 * 8 ||
					 (stub.greatest_length > 0 && memcmp(stub.greatest, &stub.meta, sizeof(stub.greatest)) != 0);
}

static void
change_leaf(const struct worker *worker, unsigned int number)
{
	smart_slot leaf = smart_slot_make_leaf(0, 1, (1 + (uint64_t) number) * SMART_UNIT);
	struct smart_blocked blocked = smart_cache_block_stub(cache, worker->number, leaf);
	uint64_t version = __atomic_add_fetch(&leaf_truth[number], 1, __ATOMIC_SEQ_CST);
	uint64_t ticket = smart_cache_unblock(cache, &blocked);
	struct smart_stub stub = {.identity = ~version, .meta = version, .greatest_length = (uint8_t) (version % 2 * 8)};

	memcpy(stub.greatest, &version, sizeof(stub.greatest));
	if (ticket != 0)
		smart_cache_keep_stub(cache, worker->number, leaf, &stub, ticket, version % 3 == 0);
}

static void
store_node(const struct worker *worker, uint64_t node)
{
	uint64_t words[SMART_NODE_WORDS_MAX] = {0};

	smart_cache_store(cache, worker->number, TREE,
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
				ask_stub(worker, number);
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
	unsigned long answered = 0;
	unsigned long stubs = 0;
	unsigned long wrong = 0;

	cache = aligned_alloc(128, (smart_cache_size(BYTES, THREADS) + 127) / 128 * 128);
	smart_cache_init(cache, BYTES, THREADS, 1);
	for (unsigned int i = 0; i < THREADS; i++)
	{
		workers[i].number = i;
		CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
	}
	for (unsigned int i = 0; i < THREADS; i++)
	{
		CHECK(pthread_join(workers[i].thread, NULL) == 0);
		answered += workers[i].answered;
		stubs += workers[i].stubs;
		wrong += workers[i].wrong;
	}
	smart_cache_stat(cache, &stat);
	CHECK(wrong == 0 && answered > OPERATIONS / 10 && answered == stat.answer_hits);
	CHECK(stubs > OPERATIONS / 100 && stubs == stat.stub_hits && stat.stub_stores > 0 && stat.stub_drops > 0);
	CHECK(stat.answer_stores > 0 && stat.answer_drops > 0 && stat.blocks > 0 && stat.evictions > 0);
	free(cache);
	return check_finish();
}

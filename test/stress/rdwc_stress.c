/*
 * rdwc_stress.c
 *	  Threads read and write a few leaves through one small table at once: no entry is
 *	  lost or written twice, and no delivered copy is older than its receiver's question.
 *
 * A leaf is a row of numbers, one for each thread; a thread's entries say that its
 * number goes up by one.  So an entry that is lost, or comes twice, or out of order, is seen
 * by its writer; and a copy that is too old by the thread that has just written.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "compute/coordinate/rdwc.h"
#include "support/check.h"
#include "support/env_thread.h"
#include "support/rdwc.h"
#include "support/threads.h"

#define THREADS    4
#define LEAVES     3
#define PLACES     2
#define LOCKS      2
#define OPERATIONS 30000
#define TAKEN_MAX  2
#define TREE       1
#define TIMEOUT_MS 600000

struct entry
{
	uint32_t thread;
	uint32_t leaf;
	uint64_t number;
};

struct worker
{
	struct env_thread env; /* first */
	struct test_rdwc_client client;
	uint32_t number;
	uint64_t written[LEAVES];       /* the last number of its own in each leaf */
	uint64_t seen[LEAVES][THREADS]; /* the greatest that it has read */
	uint64_t delivered;
	uint64_t combined;
	uint64_t unknown;
	uint64_t interrupted;
	uint64_t wrong;
};

static struct smart_rdwc *rdwc;
static struct smart_leaf_locks locks;
static pthread_barrier_t together;
static uint64_t memory[LEAVES][THREADS];

static fabric_address
address_of(unsigned int leaf)
{
	return (fabric_address) (1 + leaf) * 1024;
}

static unsigned int
lock_of(fabric_address leaf)
{
	return (unsigned int) (leaf / 1024 - 1) % LOCKS;
}

static bool
now_and_then(struct smart_env *env)
{
	return test_random(&((struct env_thread *) env)->random_state) % 256 == 0;
}

static bool
one_in(struct worker *worker, unsigned int n)
{
	return test_random(&worker->env.random_state) % n == 0;
}

/* READs and WRITEs do: others come meanwhile. */
static void
take_time(struct worker *worker)
{
	if (one_in(worker, 4))
		worker->env.env.pause(&worker->env.env, 100);
}

/* ---- writing; the leaf's lock is held ---- */

static void
apply(struct worker *worker, const struct entry *entry)
{
	uint64_t *number = &memory[entry->leaf][entry->thread];

	worker->wrong += __atomic_load_n(number, __ATOMIC_RELAXED) != entry->number - 1;
	__atomic_store_n(number, entry->number, __ATOMIC_RELEASE);
}

/* Takes what others have handed in; some of it is given back, and of some it is not told whether it was written. */
static void
apply_for_others(struct worker *worker, unsigned int leaf)
{
	struct smart_handed taken[TAKEN_MAX];
	unsigned int count = test_take_handed(&worker->client, address_of(leaf), TREE, taken, TAKEN_MAX);

	for (unsigned int i = 0; i < count; i++)
	{
		enum smart_combined outcome = SMART_COMBINED_ADDED;
		struct entry entry;

		memcpy(&entry, taken[i].bytes, sizeof(entry));
		worker->wrong += entry.leaf != leaf || entry.thread != taken[i].from || entry.thread == worker->number;
		if (one_in(worker, 8))
			outcome = SMART_COMBINED_NOT;
		else if (one_in(worker, 8))
			outcome = SMART_COMBINED_UNKNOWN;
		if (outcome == SMART_COMBINED_ADDED || (outcome == SMART_COMBINED_UNKNOWN && one_in(worker, 2)))
			apply(worker, &entry);
		test_tell_handed(&worker->client, &taken[i], outcome);
	}
}

static void
write_once(struct worker *worker, unsigned int leaf)
{
	struct entry entry = {.thread = worker->number, .leaf = leaf, .number = worker->written[leaf] + 1};
	struct smart_handed handed = {.tree = TREE, .bytes = (const uint8_t *) &entry, .length = sizeof(entry)};
	enum smart_combined combined;
	uint64_t unknown = test_rdwc_unknown(rdwc, worker->number);
	smart_status status = test_lock_or_combine(&worker->client, address_of(leaf), &handed, &combined);
	bool unsure = test_rdwc_unknown(rdwc, worker->number) != unknown;

	worker->unknown += unsure;
	worker->interrupted += status == SMART_INTERRUPTED;
	worker->wrong += status != SMART_OK && status != SMART_INTERRUPTED;
	if (status != SMART_OK)
	{
		/* Only the thread's own entries change its number. */
		if (unsure)
			worker->written[leaf] = __atomic_load_n(&memory[leaf][worker->number], __ATOMIC_RELAXED);
		return;
	}
	worker->written[leaf] = entry.number;
	if (combined == SMART_COMBINED_ADDED || combined == SMART_COMBINED_THERE)
	{
		worker->combined++;
		return;
	}
	if (combined == SMART_COMBINED_NOT ||
		__atomic_load_n(&memory[leaf][worker->number], __ATOMIC_RELAXED) != entry.number)
		apply(worker, &entry);
	take_time(worker);
	apply_for_others(worker, leaf);
	worker->client.services.unlock_leaf(&worker->client.services, address_of(leaf));
}

/* ---- reading ---- */

static void
read_once(struct worker *worker, unsigned int leaf)
{
	enum smart_delegation delegation;
	uint64_t copy[THREADS];
	smart_status status =
		test_read_begin(&worker->client, address_of(leaf), (uint8_t *) copy, sizeof(copy), &delegation);

	worker->interrupted += status == SMART_INTERRUPTED;
	worker->wrong += status != SMART_OK && status != SMART_INTERRUPTED;
	if (status != SMART_OK)
		return;
	worker->delivered += delegation == SMART_READ_DELIVERED;
	if (delegation != SMART_READ_DELIVERED)
	{
		for (unsigned int i = 0; i < THREADS; i++)
			copy[i] = __atomic_load_n(&memory[leaf][i], __ATOMIC_ACQUIRE);
		take_time(worker);
	}
	if (delegation == SMART_READ_LEADS)
		test_read_end(&worker->client, one_in(worker, 16) ? NULL : (const uint8_t *) copy, sizeof(copy));
	worker->wrong += copy[worker->number] != worker->written[leaf];
	for (unsigned int i = 0; i < THREADS; i++)
	{
		worker->wrong += copy[i] < worker->seen[leaf][i];
		worker->seen[leaf][i] = copy[i];
	}
}

static void *
work(void *argument)
{
	struct worker *worker = argument;

	pthread_barrier_wait(&together);
	for (unsigned int i = 0; i < OPERATIONS; i++)
	{
		/* Mostly the same leaf, so that many meet. */
		unsigned int leaf = one_in(worker, 4) ? (unsigned int) (test_random(&worker->env.random_state) % LEAVES) : 0;

		if (one_in(worker, 2))
			write_once(worker, leaf);
		else
			read_once(worker, leaf);
	}
	return NULL;
}

int
main(void)
{
	static struct worker workers[THREADS];
	struct smart_rdwc_counters sum;
	uint64_t delivered = 0;
	uint64_t combined = 0;
	uint64_t unknown = 0;
	uint64_t interrupted = 0;

	rdwc = aligned_alloc(128, (smart_rdwc_size(PLACES, THREADS) + 127) / 128 * 128);
	if (rdwc == NULL)
		abort();
	smart_rdwc_init(rdwc, PLACES, THREADS);
	pthread_barrier_init(&together, NULL, THREADS);
	for (uint32_t i = 0; i < THREADS; i++)
	{
		env_thread_init(&workers[i].env, i + 1);
		workers[i].env.env.interrupted = now_and_then;
		workers[i].number = i;
		test_rdwc_open(&workers[i].client,
					   &(struct smart_rdwc_member){
						   .caller = {.rdwc = rdwc, .env = &workers[i].env.env, .client = i, .timeout_ms = TIMEOUT_MS},
						   .locks = &locks,
						   .lock_of = lock_of});
	}
	test_run_threads(THREADS, work, workers, sizeof(workers[0]));
	for (uint32_t i = 0; i < THREADS; i++)
	{
		CHECK(workers[i].wrong == 0);
		for (unsigned int leaf = 0; leaf < LEAVES; leaf++)
			CHECK(memory[leaf][i] == workers[i].written[leaf]);
		delivered += workers[i].delivered;
		combined += workers[i].combined;
		unknown += workers[i].unknown;
		interrupted += workers[i].interrupted;
	}
	smart_rdwc_sum(rdwc, &sum);
	CHECK(delivered == sum.delegated_reads && combined == sum.combined_entries);
	CHECK(delivered > 0 && combined > 0 && unknown > 0 && interrupted > 0);
	CHECK(sum.failures > 0 && sum.refusals > 0 && sum.withdrawals > 0);
	pthread_barrier_destroy(&together);
	free(rdwc);
	return check_finish();
}

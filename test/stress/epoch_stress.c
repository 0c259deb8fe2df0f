/*
 * epoch_stress.c
 *	  Threads come and go as clients while the epoch rises: what a client saw
 *	  published inside an epoch is not used again before it leaves (I6).
 */
#include <sched.h>
#include <stdlib.h>

#include "compute/coordinate/epoch.h"
#include "support/check.h"
#include "support/threads.h"

#define THREADS 4
#define LINES   3 /* fewer than threads: lines pass from one to the next */
#define ROUNDS  30000

static struct smart_epoch_shared *shared;

static unsigned int
claim(uint64_t owner)
{
	unsigned int client;

	while ((client = smart_epoch_claim(shared, owner)) == SMART_CLIENT_NONE)
		sched_yield();
	return client;
}

/* An epoch that a client is in cannot rise by the grace. */
static void *
work(void *argument)
{
	uint64_t owner = (uint64_t) (uintptr_t) argument;
	unsigned long wrong = 0;

	for (unsigned int i = 0; i < ROUNDS; i++)
	{
		unsigned int client = claim(owner);
		uint64_t entered;

		wrong += smart_epoch_owner(shared, client) != owner;
		smart_epoch_enter(shared, client);
		entered = smart_epoch_now(shared);
		(void) smart_epoch_try_advance(shared);
		(void) smart_epoch_try_advance(shared);
		wrong += smart_epoch_now(shared) >= entered + SMART_EPOCH_GRACE;
		smart_epoch_leave(shared, client);
		smart_epoch_unclaim(shared, client);
	}
	CHECK(wrong == 0);
	return NULL;
}

int
main(void)
{
	uint64_t first;

	shared = aligned_alloc(64, (smart_epoch_size(LINES) + 63) / 64 * 64);
	smart_epoch_init(shared, LINES, 0);
	first = smart_epoch_now(shared);
	test_run_threads(THREADS, work, (void *) 1, 1);
	for (unsigned int i = 0; i < LINES; i++)
		CHECK(smart_epoch_owner(shared, i) == 0);
	CHECK(smart_epoch_now(shared) > first);
	free(shared);
	return check_finish();
}

/*
 * epoch_test.c
 *	  Epochs and the vacuum pin: the rules one by one, then with threads.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "compute/coordinate/pins.h"
#include "support/check.h"
#include "support/env_thread.h"
#include "support/threads.h"

#define CLIENTS 8
#define TREE    UINT64_C(77)
#define OTHER   UINT64_C(78)

static struct smart_epoch_shared *epoch;
static struct smart_pins_shared *pins;

/* ---- epochs ---- */

static void
test_claim(void)
{
	smart_epoch_init(epoch, 3, 0);
	CHECK(smart_epoch_claim(epoch, 10) == 0);
	CHECK(smart_epoch_claim(epoch, 11) == 1);
	CHECK(smart_epoch_claim(epoch, 12) == 2);
	CHECK(smart_epoch_claim(epoch, 13) == SMART_CLIENT_NONE);
	CHECK(smart_epoch_owner(epoch, 1) == 11);
	smart_epoch_unclaim(epoch, 1);
	CHECK(smart_epoch_owner(epoch, 1) == 0);
	CHECK(smart_epoch_claim(epoch, 14) == 1);
}

static void
test_advance(void)
{
	uint64_t start;

	smart_epoch_init(epoch, CLIENTS, 1000);
	start = smart_epoch_now(epoch);
	CHECK(start >= 1000);
	for (unsigned int client = 0; client < 2; client++)
		CHECK(smart_epoch_claim(epoch, 1 + client) == client);

	CHECK(smart_epoch_try_advance(epoch) && smart_epoch_now(epoch) == start + 1);
	smart_epoch_enter(epoch, 0);
	/* A client inside lets it rise once, and no further. */
	CHECK(smart_epoch_try_advance(epoch) && smart_epoch_now(epoch) == start + 2);
	CHECK(!smart_epoch_try_advance(epoch) && smart_epoch_now(epoch) == start + 2);
	smart_epoch_enter(epoch, 1);
	CHECK(!smart_epoch_try_advance(epoch));
	smart_epoch_leave(epoch, 0);
	CHECK(smart_epoch_try_advance(epoch) && smart_epoch_now(epoch) == start + 3);
	CHECK(!smart_epoch_try_advance(epoch));
	/* A client that gives its line up is not inside any more. */
	smart_epoch_unclaim(epoch, 1);
	CHECK(smart_epoch_try_advance(epoch) && smart_epoch_now(epoch) == start + 4);
}

/*
 * Threads swap cells for new ones and retire the old, as the tree does with blocks;
 * a cell is filled with poison as soon as its epochs are over.
 */
#define CELLS      64
#define THREADS    4
#define OPERATIONS 20000

struct cell
{
	uint64_t value;
	uint64_t stamp;
	struct cell *next;
};

static struct cell *published[CELLS];

static void
poison_ripe(struct cell **retired)
{
	struct cell **link = retired;

	while (*link != NULL)
	{
		struct cell *cell = *link;

		if (cell->stamp + SMART_EPOCH_GRACE > smart_epoch_now(epoch))
		{
			link = &cell->next;
			continue;
		}
		*link = cell->next;
		cell->value = 0;
		free(cell);
	}
}

static void *
swap_cells(void *argument)
{
	uint64_t random = (uint64_t) (uintptr_t) argument;
	unsigned int client = smart_epoch_claim(epoch, random);
	struct cell *retired = NULL;
	unsigned long bad = 0;

	for (unsigned int i = 0; i < OPERATIONS; i++)
	{
		struct cell **place = &published[test_random(&random) % CELLS];
		struct cell *seen;

		smart_epoch_enter(epoch, client);
		seen = __atomic_load_n(place, __ATOMIC_ACQUIRE);
		bad += seen->value != UINT64_C(0x600d600d600d600d);
		if (test_random(&random) % 4 == 0)
		{
			struct cell *fresh = malloc(sizeof(*fresh));

			fresh->value = UINT64_C(0x600d600d600d600d);
			if (__atomic_compare_exchange_n(place, &seen, fresh, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			{
				seen->stamp = smart_epoch_now(epoch);
				seen->next = retired;
				retired = seen;
			}
			else
				free(fresh);
		}
		bad += __atomic_load_n(place, __ATOMIC_ACQUIRE)->value != UINT64_C(0x600d600d600d600d);
		smart_epoch_leave(epoch, client);
		if (i % 16 == 0)
		{
			(void) smart_epoch_try_advance(epoch);
			poison_ripe(&retired);
		}
	}
	CHECK(bad == 0);
	/* No client stays inside for good, so everything becomes free at last. */
	while (retired != NULL)
	{
		(void) smart_epoch_try_advance(epoch);
		poison_ripe(&retired);
	}
	smart_epoch_unclaim(epoch, client);
	return NULL;
}

static void
test_epoch_threads(void)
{
	uint64_t start;

	smart_epoch_init(epoch, CLIENTS, 0);
	start = smart_epoch_now(epoch);
	for (unsigned int i = 0; i < CELLS; i++)
	{
		published[i] = malloc(sizeof(struct cell));
		published[i]->value = UINT64_C(0x600d600d600d600d);
	}
	test_run_threads(THREADS, swap_cells, (void *) 1, 1);
	for (unsigned int i = 0; i < CELLS; i++)
		free(published[i]);
	CHECK(smart_epoch_now(epoch) > start + 100);
}

/* ---- the vacuum pin ---- */

static void
test_pins(void)
{
	unsigned int older;
	unsigned int younger;
	uint64_t number;

	smart_pins_init(pins, CLIENTS);
	older = smart_pins_enter(pins, 2, TREE);
	number = smart_pins_advance(pins);
	younger = smart_pins_enter(pins, 5, TREE);
	CHECK(smart_pins_holder(pins, TREE, number, 0) == 2);
	CHECK(smart_pins_holder(pins, TREE, number, 3) == SMART_CLIENT_NONE);
	CHECK(smart_pins_holder(pins, OTHER, number, 0) == SMART_CLIENT_NONE);
	CHECK(!smart_pins_leave(pins, 2, older));
	CHECK(smart_pins_holder(pins, TREE, number, 0) == SMART_CLIENT_NONE);

	/* The younger one is old for the next bulk delete; a client that leaves is told that a bulk delete waits. */
	number = smart_pins_advance(pins);
	CHECK(smart_pins_holder(pins, TREE, number, 0) == 5);
	smart_pins_begin_wait(pins);
	CHECK(smart_pins_leave(pins, 5, younger));
	smart_pins_end_wait(pins);
	CHECK(smart_pins_holder(pins, TREE, number, 0) == SMART_CLIENT_NONE);
}

static void
test_many_pins(void)
{
	unsigned int pin[3 * SMART_PINS_PER_CLIENT];
	unsigned int count = sizeof(pin) / sizeof(pin[0]);
	uint64_t number;

	smart_pins_init(pins, CLIENTS);
	for (unsigned int i = 0; i < count; i++)
		pin[i] = smart_pins_enter(pins, 0, TREE + i);
	number = smart_pins_advance(pins);
	for (unsigned int i = 0; i < count; i++)
		CHECK(smart_pins_holder(pins, TREE + i, number, 0) == 0);
	/* Let go of those beyond the places first: then each tree is by itself again. */
	for (unsigned int i = SMART_PINS_PER_CLIENT; i < count; i++)
	{
		CHECK(pin[i] == SMART_PIN_OVERFLOW);
		(void) smart_pins_leave(pins, 0, pin[i]);
		CHECK((smart_pins_holder(pins, TREE + i, number, 0) == SMART_CLIENT_NONE) == (i == count - 1));
	}
	for (unsigned int i = 0; i < SMART_PINS_PER_CLIENT; i++)
	{
		CHECK(smart_pins_holder(pins, TREE + i, number, 0) == 0);
		(void) smart_pins_leave(pins, 0, pin[i]);
		CHECK(smart_pins_holder(pins, TREE + i, number, 0) == SMART_CLIENT_NONE);
	}
	for (unsigned int i = 0; i < count; i++)
		(void) smart_pins_enter(pins, 3, TREE + i);
	(void) smart_pins_leave_all(pins, 3);
	number = smart_pins_advance(pins);
	for (unsigned int i = 0; i < count; i++)
		CHECK(smart_pins_holder(pins, TREE + i, number, 0) == SMART_CLIENT_NONE);
}

/*
 * A reader finds an item under its pin and looks it up in the heap; the remover takes items
 * out, waits for older pins, and only then out of the heap.
 */
#define ITEMS 2000

static uint64_t in_index[ITEMS];
static uint64_t in_heap[ITEMS];
static bool removing = true;

static void *
remove_items(void *argument)
{
	for (unsigned int i = 0; i < ITEMS; i++)
	{
		uint64_t number;

		__atomic_store_n(&in_index[i], 0, __ATOMIC_SEQ_CST);
		number = smart_pins_advance(pins);
		while (smart_pins_holder(pins, TREE, number, 0) != SMART_CLIENT_NONE)
			sched_yield();
		__atomic_store_n(&in_heap[i], 0, __ATOMIC_SEQ_CST);
	}
	__atomic_store_n(&removing, false, __ATOMIC_SEQ_CST);
	return argument;
}

static void *
read_items(void *argument)
{
	unsigned int client = (unsigned int) (uintptr_t) argument;
	uint64_t random = client;
	unsigned long bad = 0;

	while (__atomic_load_n(&removing, __ATOMIC_RELAXED))
	{
		unsigned int item = (unsigned int) (test_random(&random) % ITEMS);
		unsigned int pin = smart_pins_enter(pins, client, TREE);

		if (__atomic_load_n(&in_index[item], __ATOMIC_RELAXED) != 0)
		{
			if (test_random(&random) % 8 == 0)
				sched_yield();
			bad += __atomic_load_n(&in_heap[item], __ATOMIC_RELAXED) == 0;
		}
		(void) smart_pins_leave(pins, client, pin);
	}
	CHECK(bad == 0);
	return NULL;
}

static void
test_pins_threads(void)
{
	pthread_t thread[THREADS];

	smart_pins_init(pins, CLIENTS);
	for (unsigned int i = 0; i < ITEMS; i++)
		in_index[i] = in_heap[i] = 1;
	CHECK(pthread_create(&thread[0], NULL, remove_items, NULL) == 0);
	for (unsigned int i = 1; i < THREADS; i++)
		CHECK(pthread_create(&thread[i], NULL, read_items, (void *) (uintptr_t) i) == 0);
	for (unsigned int i = 0; i < THREADS; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
}

int
main(void)
{
	epoch = aligned_alloc(128, (smart_epoch_size(CLIENTS) + 127) / 128 * 128);
	pins = aligned_alloc(128, (smart_pins_size(CLIENTS) + 127) / 128 * 128);
	test_claim();
	test_advance();
	test_epoch_threads();
	test_pins();
	test_many_pins();
	test_pins_threads();
	free(epoch);
	free(pins);
	return check_finish();
}

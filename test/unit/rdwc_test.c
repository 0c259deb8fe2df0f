/*
 * rdwc_test.c
 *	  Read delegation and write combining: what a table tells its clients.
 *
 * combine_test.c has which entries are appended for others, rdwc_cost_test.c
 * what all of it saves.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/env_thread.h"
#include "support/rdwc.h"

#define CLIENTS 4
#define LEAF    (UINT64_C(64) * SMART_UNIT)
#define BYTES   512
#define LONG_MS 60000

static struct smart_rdwc *table;
static struct smart_leaf_locks locks;
static struct env_thread environments[CLIENTS];

static void
open_table(unsigned int places)
{
	table = aligned_alloc(128, (smart_rdwc_size(places, CLIENTS) + 127) / 128 * 128);
	if (table == NULL)
		abort();
	smart_rdwc_init(table, places, CLIENTS);
	for (unsigned int i = 0; i < CLIENTS; i++)
		env_thread_init(&environments[i], i + 1);
}

/* All leaves have one lock. */
static unsigned int
lock_of(fabric_address leaf)
{
	return 0;
}

/* As this client of the table from now on. */
static struct test_rdwc_client *
open_client(uint32_t number, uint32_t timeout_ms)
{
	static struct test_rdwc_client clients[CLIENTS];
	const struct smart_rdwc_member member = {
		.caller = {.rdwc = table, .env = &environments[number].env, .client = number, .timeout_ms = timeout_ms},
		.locks = &locks,
		.lock_of = lock_of,
	};

	test_rdwc_open(&clients[number], &member);
	return &clients[number];
}

static struct smart_rdwc_counters
counters(void)
{
	struct smart_rdwc_counters sum;

	smart_rdwc_sum(table, &sum);
	return sum;
}

static void
await_waits(uint64_t count)
{
	for (unsigned int attempt = 0; counters().waits < count; attempt++)
		environments[0].env.pause(&environments[0].env, attempt);
}

/* Waits until a client's line is in a state. */
static void
await_state(uint32_t client, uint32_t state)
{
	for (unsigned int attempt = 0; rdwc_state(rdwc_line(table, client)) != state; attempt++)
		environments[0].env.pause(&environments[0].env, attempt);
}

/* ---- a client that waits, in a thread of its own ---- */

struct waiter
{
	pthread_t thread;
	uint32_t client;
	uint32_t timeout_ms;
	uint32_t length;   /* of the READ */
	bool succeeds;     /* its READ, if it leads */
	const char *entry; /* NULL: it READs */
	smart_status status;
	enum smart_delegation delegation;
	enum smart_combined combined;
	uint8_t buffer[2 * SMART_RDWC_COPY_BYTES];
};

static void *
wait_main(void *argument)
{
	struct waiter *waiter = argument;
	struct test_rdwc_client *mine = open_client(waiter->client, waiter->timeout_ms);

	if (waiter->entry != NULL)
	{
		struct smart_handed entry = {.tree = 1,
									 .bytes = (const uint8_t *) waiter->entry,
									 .key_length = (uint32_t) strlen(waiter->entry),
									 .length = (uint32_t) strlen(waiter->entry)};

		waiter->status = test_lock_or_combine(mine, LEAF, &entry, &waiter->combined);
		return NULL;
	}
	waiter->status = test_read_begin(mine, LEAF, waiter->buffer, waiter->length, &waiter->delegation);
	if (waiter->status != SMART_OK || waiter->delegation != SMART_READ_LEADS)
		return NULL;
	/* As long as a client has yet to come, so that all of them wait for one READ. */
	memset(waiter->buffer, (int) ('a' + waiter->client), waiter->length);
	test_read_end(mine, waiter->succeeds ? waiter->buffer : NULL, waiter->length);
	return NULL;
}

static void
start(struct waiter *waiter, uint32_t client, const char *entry)
{
	waiter->client = client;
	waiter->entry = entry;
	waiter->timeout_ms = waiter->timeout_ms != 0 ? waiter->timeout_ms : LONG_MS;
	waiter->length = waiter->length != 0 ? waiter->length : BYTES;
	CHECK(pthread_create(&waiter->thread, NULL, wait_main, waiter) == 0);
}

static void
finish(struct waiter *waiter)
{
	CHECK(pthread_join(waiter->thread, NULL) == 0);
}

/* ---- READs ---- */

/* Client 0 READs while two others come: one of them READs for both, after it. */
static void
read_for_others(uint32_t length, bool succeeds, enum smart_delegation expected)
{
	struct waiter waiters[2] = {{.length = length, .succeeds = succeeds}, {.length = length, .succeeds = succeeds}};
	struct test_rdwc_client *mine = open_client(0, LONG_MS);
	struct smart_rdwc_counters before = counters();
	struct smart_rdwc_counters after;
	enum smart_delegation delegation;
	uint8_t copy[2 * SMART_RDWC_COPY_BYTES];
	unsigned int leader;

	memset(copy, 'x', sizeof(copy));
	CHECK(test_read_begin(mine, LEAF, copy, length, &delegation) == SMART_OK && delegation == SMART_READ_LEADS);
	start(&waiters[0], 1, NULL);
	start(&waiters[1], 2, NULL);
	await_waits(before.waits + 2);
	test_read_end(mine, copy, length);
	finish(&waiters[0]);
	finish(&waiters[1]);
	leader = waiters[0].delegation == SMART_READ_LEADS ? 0 : 1;
	CHECK(waiters[leader].delegation == SMART_READ_LEADS && waiters[1 - leader].delegation == expected);
	CHECK(waiters[0].status == SMART_OK && waiters[1].status == SMART_OK);
	if (expected == SMART_READ_DELIVERED)
		CHECK(memcmp(waiters[0].buffer, waiters[1].buffer, length) == 0);
	after = counters();
	CHECK(after.delegated_reads - before.delegated_reads == (expected == SMART_READ_DELIVERED));
	CHECK(after.read_batches - before.read_batches == (expected == SMART_READ_DELIVERED));
	CHECK(after.failures - before.failures == !succeeds);
	CHECK(after.refusals - before.refusals == (succeeds && expected != SMART_READ_DELIVERED));
}

/* A client that is interrupted goes, whether its READ is in the air or not; then its line is free for the next one. */
static void
check_read_interrupt(void)
{
	struct waiter waiter = {.succeeds = true};
	struct test_rdwc_client *mine = open_client(0, LONG_MS);
	struct test_rdwc_client *other = open_client(3, LONG_MS);
	struct smart_rdwc_counters before = counters();
	enum smart_delegation delegation;
	uint8_t copy[BYTES] = {0};

	CHECK(test_read_begin(mine, LEAF, copy, BYTES, &delegation) == SMART_OK);
	start(&waiter, 1, NULL);
	await_waits(before.waits + 1);
	__atomic_store_n(&environments[1].stop, true, __ATOMIC_RELAXED);
	finish(&waiter);
	CHECK(waiter.status == SMART_INTERRUPTED && rdwc_state(rdwc_line(table, 1)) == RDWC_IDLE);
	test_read_end(mine, copy, BYTES);

	/* The leader takes it, and finds it gone. */
	__atomic_store_n(&environments[1].stop, false, __ATOMIC_RELAXED);
	CHECK(test_read_begin(mine, LEAF, copy, BYTES, &delegation) == SMART_OK);
	rdwc_push(table, &rdwc_line(table, 0)->waits, 1, RDWC_TAKEN);
	CHECK(rdwc_give_up(rdwc_line(table, 1)));
	test_read_end(mine, copy, BYTES);
	CHECK(rdwc_state(rdwc_line(table, 1)) == RDWC_IDLE && rdwc_line(table, 0)->copy[0].takers == 0);

	/* Until then it READs by itself. */
	__atomic_store_n(&rdwc_line(table, 3)->state, RDWC_GONE, __ATOMIC_RELAXED);
	CHECK(test_read_begin(other, LEAF, copy, BYTES, &delegation) == SMART_OK && delegation == SMART_READ_ALONE);
	__atomic_store_n(&rdwc_line(table, 3)->state, RDWC_IDLE, __ATOMIC_RELAXED);
}

/* A wait ends at its limit; another leaf at the same place is read as if there were no table. */
static void
check_read_limits(void)
{
	struct test_rdwc_client *mine = open_client(0, LONG_MS);
	struct test_rdwc_client *other = open_client(1, 1);
	enum smart_delegation delegation;
	uint8_t copy[BYTES] = {0};

	CHECK(test_read_begin(mine, LEAF, copy, BYTES, &delegation) == SMART_OK && delegation == SMART_READ_LEADS);
	CHECK(test_read_begin(other, LEAF, copy, BYTES, &delegation) == SMART_OK && delegation == SMART_READ_ALONE);
	CHECK(test_read_begin(other, 2 * LEAF, copy, BYTES, &delegation) == SMART_OK && delegation == SMART_READ_ALONE);
	test_read_end(mine, copy, BYTES);
	CHECK(test_read_begin(other, 2 * LEAF, copy, BYTES, &delegation) == SMART_OK && delegation == SMART_READ_LEADS);
	test_read_end(other, NULL, BYTES);
}

/* A copy that a client has yet to take is not overwritten. */
static void
check_copy_kept(void)
{
	struct test_rdwc_client *mine = open_client(0, LONG_MS);
	struct rdwc_line *line = rdwc_line(table, 1);
	enum smart_delegation delegation;
	uint8_t copy[BYTES] = {1};

	rdwc_line(table, 0)->copy[0].takers = rdwc_line(table, 0)->copy[1].takers = 1;
	CHECK(test_read_begin(mine, LEAF, copy, BYTES, &delegation) == SMART_OK);
	rdwc_push(table, &rdwc_line(table, 0)->waits, 1, RDWC_TAKEN);
	test_read_end(mine, copy, BYTES);
	CHECK(rdwc_state(line) == RDWC_UNCOPIED && rdwc_line(table, 0)->copy[0].takers == 1);
	rdwc_line(table, 0)->copy[0].takers = rdwc_line(table, 0)->copy[1].takers = 0;
	__atomic_store_n(&line->state, RDWC_IDLE, __ATOMIC_RELAXED);
}

/* ---- entries ---- */

/* Client 0 holds the lock, takes the entry of client 1, and tells it. */
static void
settle_one(enum smart_combined outcome)
{
	struct waiter waiter = {.timeout_ms = LONG_MS};
	struct test_rdwc_client *mine = open_client(0, LONG_MS);
	struct smart_handed taken[2];

	CHECK(smart_leaf_lock_try(&locks, 0, 0));
	start(&waiter, 1, "entry");
	await_state(1, RDWC_HANDED);
	CHECK(test_take_handed(mine, 2 * LEAF, 1, taken, 2) == 0 && test_take_handed(mine, LEAF, 2, taken, 2) == 0);
	CHECK(test_take_handed(mine, LEAF, 1, taken, 0) == 0 && test_take_handed(mine, LEAF, 1, taken, 2) == 1);
	CHECK(taken[0].length == 5 && memcmp(taken[0].bytes, "entry", 5) == 0);
	/* An interrupt does not take back what was taken. */
	__atomic_store_n(&environments[1].stop, true, __ATOMIC_RELAXED);
	test_tell_handed(mine, &taken[0], outcome);
	if (outcome == SMART_COMBINED_ADDED || outcome == SMART_COMBINED_THERE)
	{
		finish(&waiter);
		CHECK(waiter.status == SMART_OK && waiter.combined == outcome && locks.holder[0] == 1);
		smart_leaf_lock_drop(&locks, 0, 0);
	}
	else
	{
		__atomic_store_n(&environments[1].stop, false, __ATOMIC_RELAXED);
		smart_leaf_lock_drop(&locks, 0, 0);
		finish(&waiter);
		CHECK(waiter.status == SMART_INTERRUPTED || (waiter.combined == outcome && locks.holder[0] == 2));
		if (waiter.status == SMART_OK)
			smart_leaf_lock_drop(&locks, 0, 1);
	}
	__atomic_store_n(&environments[1].stop, false, __ATOMIC_RELAXED);
	CHECK(rdwc_state(rdwc_line(table, 1)) == RDWC_IDLE);
}

/* No client takes the entry: its owner gets the lock, or goes. */
static void
check_withdrawals(void)
{
	struct smart_rdwc_counters before = counters();
	struct waiter waiter = {.timeout_ms = LONG_MS};
	struct waiter hasty = {.timeout_ms = 1};

	CHECK(smart_leaf_lock_try(&locks, 0, 0));
	start(&waiter, 1, "entry");
	await_state(1, RDWC_HANDED);
	start(&hasty, 2, "other");
	finish(&hasty);
	CHECK(hasty.status == SMART_TIMEOUT && rdwc_state(rdwc_line(table, 2)) == RDWC_IDLE);
	smart_leaf_lock_drop(&locks, 0, 0);
	finish(&waiter);
	CHECK(waiter.status == SMART_OK && waiter.combined == SMART_COMBINED_NOT && locks.holder[0] == 2);
	smart_leaf_lock_drop(&locks, 0, 1);
	CHECK(counters().withdrawals == before.withdrawals + 2);
}

/* The holder sleeps with an entry that it took: its owner waits no longer than its limit. */
static void
check_sleeping_holder(void)
{
	struct waiter waiter = {.timeout_ms = 200};
	struct test_rdwc_client *mine = open_client(0, LONG_MS);
	struct smart_handed taken;

	CHECK(smart_leaf_lock_try(&locks, 0, 0));
	start(&waiter, 1, "entry");
	await_state(1, RDWC_HANDED);
	CHECK(test_take_handed(mine, LEAF, 1, &taken, 1) == 1);
	finish(&waiter);
	CHECK(waiter.status == SMART_TIMEOUT && rdwc_state(rdwc_line(table, 1)) == RDWC_GONE);
	test_tell_handed(mine, &taken, SMART_COMBINED_ADDED);
	CHECK(rdwc_state(rdwc_line(table, 1)) == RDWC_IDLE);
	smart_leaf_lock_drop(&locks, 0, 0);
}

int
main(void)
{
	open_table(1);
	read_for_others(BYTES, true, SMART_READ_DELIVERED);
	read_for_others(BYTES, false, SMART_READ_ALONE);
	read_for_others(2 * SMART_RDWC_COPY_BYTES, true, SMART_READ_ALONE);
	check_read_interrupt();
	check_read_limits();
	check_copy_kept();
	settle_one(SMART_COMBINED_ADDED);
	settle_one(SMART_COMBINED_THERE);
	settle_one(SMART_COMBINED_NOT);
	settle_one(SMART_COMBINED_UNKNOWN);
	CHECK(test_rdwc_unknown(table, 1) == 1);
	check_withdrawals();
	check_sleeping_holder();
	free(table);
	return check_finish();
}

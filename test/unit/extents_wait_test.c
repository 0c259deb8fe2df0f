/*
 * extents_wait_test.c
 *	  Several clients want memory of an extent map at once: one asks a memory node, the
 *	  others wait for it, and none waits for ever.
 *
 * The memory node's reply is held back until the others wait.
 */
#include <sched.h>
#include <stdlib.h>

#include "compute/allocate/extents_parts.h"
#include "support/check.h"
#include "support/node.h"

#define PAGE_LEAF SMART_CLASS_LEAF(64) /* a slab of one page, one block */
#define WAITERS   4

static struct test_node *node;
static uint64_t tree;
static bool held_back;     /* replies are held back … */
static bool held;          /* … and one is */
static unsigned int waits; /* that have begun */
static void (*real_pause)(struct smart_env *env, unsigned int attempt);

struct client_thread
{
	pthread_t thread;
	struct test_client *client;
	smart_status status;
	bool ended;
};

static void
hold_answer(struct test_memory *memory, unsigned int number)
{
	__atomic_store_n(&held, true, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&held_back, __ATOMIC_SEQ_CST))
		sched_yield();
}

static void
counting_pause(struct smart_env *env, unsigned int attempt)
{
	if (attempt == 0)
		__atomic_fetch_add(&waits, 1, __ATOMIC_SEQ_CST);
	real_pause(env, attempt);
}

static void *
allocate_one(void *argument)
{
	struct client_thread *mine = argument;
	fabric_address block;

	mine->status = smart_space_allocate(&mine->client->client->space, tree, PAGE_LEAF, &block);
	__atomic_store_n(&mine->ended, true, __ATOMIC_SEQ_CST);
	return NULL;
}

static void
start(struct client_thread *mine)
{
	CHECK(pthread_create(&mine->thread, NULL, allocate_one, mine) == 0);
}

static bool
ended(struct client_thread *mine)
{
	return __atomic_load_n(&mine->ended, __ATOMIC_SEQ_CST);
}

static void
finish(struct client_thread *mine)
{
	CHECK(pthread_join(mine->thread, NULL) == 0);
	mine->ended = false;
}

static unsigned long
requests(void)
{
	return node->memory->node[0].requests + node->memory->node[1].requests;
}

/* An extent map without a free page, a client that asks for a chunk, and some that wait for it. */
static void
open_all(struct client_thread *asker, struct client_thread *waiter)
{
	fabric_address root;

	node = test_book_open(WAITERS + 1, 2, 20);
	asker->client = test_client_open(node, 1);
	tree = test_tree_create(asker->client, &root);
	node->memory->asked = hold_answer;
	held_back = true;
	held = false;
	waits = 0;
	for (unsigned int i = 0; i < WAITERS; i++)
	{
		waiter[i].client = test_client_open(node, 2 + i);
		real_pause = waiter[i].client->thread.env.pause;
		waiter[i].client->thread.env.pause = counting_pause;
	}
	start(asker);
	while (!__atomic_load_n(&held, __ATOMIC_SEQ_CST))
		sched_yield();
}

static void
close_all(struct client_thread *asker, struct client_thread *waiter)
{
	char message[200];

	CHECK(smart_space_verify(&asker->client->client->space, message, sizeof(message)) == SMART_OK);
	for (unsigned int i = 0; i < WAITERS; i++)
		test_client_close(waiter[i].client);
	test_client_close(asker->client);
	test_node_close(node);
}

static void
let_all_wait(struct client_thread *waiter)
{
	for (unsigned int i = 0; i < WAITERS; i++)
		start(&waiter[i]);
	while (__atomic_load_n(&waits, __ATOMIC_SEQ_CST) < WAITERS)
		sched_yield();
}

static void
let_answer(void)
{
	__atomic_store_n(&held_back, false, __ATOMIC_SEQ_CST);
}

/* One asks, the others wait; one chunk is enough for all. */
static void
test_one_asks(void)
{
	struct client_thread asker = {0};
	struct client_thread waiter[WAITERS] = {0};
	unsigned long before;

	open_all(&asker, waiter);
	before = requests();
	let_all_wait(waiter);
	CHECK(!ended(&asker));
	for (unsigned int i = 0; i < WAITERS; i++)
		CHECK(!ended(&waiter[i]));
	let_answer();
	finish(&asker);
	CHECK(asker.status == SMART_OK);
	for (unsigned int i = 0; i < WAITERS; i++)
	{
		finish(&waiter[i]);
		CHECK(waiter[i].status == SMART_OK);
	}
	CHECK(requests() == before + 1);
	close_all(&asker, waiter);
}

/* A wait ends at an interrupt, and at its time limit, though there is no reply. */
static void
test_wait_ends(void)
{
	struct client_thread asker = {0};
	struct client_thread waiter[WAITERS] = {0};

	open_all(&asker, waiter);
	waiter[0].client->client->supply.timeout_ms = 20;
	start(&waiter[0]);
	start(&waiter[1]);
	finish(&waiter[0]);
	CHECK(waiter[0].status == SMART_TIMEOUT && !ended(&waiter[1]));
	__atomic_store_n(&waiter[1].client->thread.stop, true, __ATOMIC_RELAXED);
	finish(&waiter[1]);
	CHECK(waiter[1].status == SMART_INTERRUPTED && !ended(&asker));
	let_answer();
	finish(&asker);
	CHECK(asker.status == SMART_OK);
	close_all(&asker, waiter);
}

/* Why the one that asked got nothing is the others' reason, too: they do not ask one after the other. */
static void
test_failure_shared(void)
{
	struct client_thread asker = {0};
	struct client_thread waiter[WAITERS] = {0};
	unsigned long before;

	open_all(&asker, waiter);
	let_all_wait(waiter);
	pthread_mutex_lock(&node->memory->mutex);
	node->memory->node[0].down = node->memory->node[1].down = true;
	before = requests();
	pthread_mutex_unlock(&node->memory->mutex);
	let_answer();
	finish(&asker);
	CHECK(asker.status == SMART_UNREACHABLE);
	for (unsigned int i = 0; i < WAITERS; i++)
	{
		finish(&waiter[i]);
		CHECK(waiter[i].status == SMART_UNREACHABLE);
		CHECK(waiter[i].client->client->fabric->problem[0] != '\0');
	}
	CHECK(requests() == before + 1);
	close_all(&asker, waiter);
}

/* The client that asked is interrupted: another one asks. */
static void
test_interrupted_asker(void)
{
	struct client_thread asker = {0};
	struct client_thread waiter[WAITERS] = {0};

	open_all(&asker, waiter);
	let_all_wait(waiter);
	/* Its node is full, and at the next one it sees the interrupt. */
	node->memory->node[0].chunks = 1;
	__atomic_store_n(&asker.client->thread.stop, true, __ATOMIC_RELAXED);
	let_answer();
	finish(&asker);
	CHECK(asker.status == SMART_INTERRUPTED);
	for (unsigned int i = 0; i < WAITERS; i++)
	{
		finish(&waiter[i]);
		CHECK(waiter[i].status == SMART_OK);
	}
	asker.client->thread.stop = false;
	node->memory->node[0].chunks = 20;
	close_all(&asker, waiter);
}

int
main(void)
{
	test_one_asks();
	test_wait_ends();
	test_failure_shared();
	test_interrupted_asker();
	return check_finish();
}

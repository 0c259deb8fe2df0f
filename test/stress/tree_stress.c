/*
 * tree_stress.c
 *	  Threads on one tree at once: each owns every fourth key and so knows what
 *	  has to come out, while their keys share leaves and nodes.
 *
 * Exclusive trees use the local locks of the compute node; shared ones the rear
 * locks alone, as if every thread were a compute node of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "support/check.h"
#include "support/threads.h"
#include "support/tree_client.h"

#define THREADS    4
#define KEYS       2400  /* together */
#define OPERATIONS 12000 /* of a thread */
#define KEY_LENGTH 12

/*
 * A handle that remembers a node reads its first words to learn whether it is
 * still there (B3).  That load may meet the next life of the memory, which is
 * written plainly; then it finds other words, and no more is read.
 */
extern const char *__tsan_default_suppressions(void);

const char *
__tsan_default_suppressions(void)
{
	return "race:ancestor_stands\n";
}

struct arena
{
	struct test_node *node;
	struct smart_tree_options options;
	bool present[KEYS]; /* a key's owner alone uses its mark */
};

struct worker
{
	struct arena *arena;
	unsigned int number;
	uint64_t random_state;
	struct tree_client *client;
	struct smart_scan *scan;
	uint64_t dead_salt;
};

/* Ascending keys of which neighbours belong to different threads. */
static void
key_bytes(unsigned int key, uint8_t *bytes)
{
	memset(bytes, 'k', KEY_LENGTH);
	bytes[4] = (uint8_t) (key / 320);
	bytes[9] = (uint8_t) (key / 8 % 40 * 5);
	bytes[11] = (uint8_t) (key % 8 * 30);
}

/* The key of an entry's bytes; KEYS: none. */
static unsigned int
key_number(const uint8_t *bytes)
{
	unsigned int low = 0;
	unsigned int high = KEYS;

	while (low < high)
	{
		unsigned int middle = (low + high) / 2;
		uint8_t other[KEY_LENGTH];
		int order;

		key_bytes(middle, other);
		order = memcmp(other, bytes, KEY_LENGTH);
		if (order == 0)
			return middle;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return KEYS;
}

static unsigned int
own_key(struct worker *worker, unsigned int span, unsigned int base)
{
	return ((base + (unsigned int) (test_random(&worker->random_state) % span)) * THREADS + worker->number) % KEYS;
}

static void
change(struct worker *worker, unsigned int key, bool insert)
{
	uint8_t bytes[KEY_LENGTH];
	bool changed;
	smart_status status;

	key_bytes(key, bytes);
	if (insert)
		status = smart_tree_insert(worker->client->tree, bytes, KEY_LENGTH, KEY_LENGTH, &changed);
	else
		status = smart_tree_remove(worker->client->tree, bytes, KEY_LENGTH, &changed);
	CHECK(status == SMART_OK && changed == (worker->arena->present[key] != insert));
	worker->arena->present[key] = insert;
}

static void
look_up(struct worker *worker, unsigned int key)
{
	uint8_t bytes[KEY_LENGTH];
	bool found;

	key_bytes(key, bytes);
	CHECK(smart_tree_lookup(worker->client->tree, bytes, KEY_LENGTH, &found) == SMART_OK &&
		  found == worker->arena->present[key]);
}

/* Does the batch continue an ascent (descent), and how many of the worker's keys are in it? */
static bool
check_batch(const struct worker *worker, const struct smart_batch *batch, bool backward, int *last, unsigned int *own)
{
	for (uint32_t i = 0; i < batch->count; i++)
	{
		const struct smart_item *item = &batch->items[backward ? batch->count - 1 - i : i];
		uint8_t bytes[KEY_LENGTH];
		unsigned int key;

		if (batch->prefix_length + (unsigned int) item->length != KEY_LENGTH)
			return false;
		memcpy(bytes, batch->prefix, batch->prefix_length);
		memcpy(bytes + batch->prefix_length, batch->bytes + item->offset, item->length);
		key = key_number(bytes);
		if (key == KEYS || (*last >= 0 && (backward ? (int) key >= *last : (int) key <= *last)))
			return false;
		if (key % THREADS == worker->number)
		{
			if (!worker->arena->present[key])
				return false;
			++*own;
		}
		*last = (int) key;
	}
	return true;
}

/* A range: the worker's own keys do not change meanwhile, so each has to come, once. */
static void
scan(struct worker *worker)
{
	bool backward = test_random(&worker->random_state) % 2 == 0;
	unsigned int from = (unsigned int) (test_random(&worker->random_state) % KEYS);
	unsigned int to = from + 1 + (unsigned int) (test_random(&worker->random_state) % (KEYS - from));
	uint8_t low[KEY_LENGTH];
	uint8_t high[KEY_LENGTH];
	struct smart_batch batch;
	unsigned int expected = 0;
	unsigned int own = 0;
	int last = -1;
	bool right = true;
	smart_status status;

	key_bytes(from, low);
	if (to < KEYS)
		key_bytes(to, high);
	status = smart_scan_seek(worker->scan, low, KEY_LENGTH, high, to < KEYS ? KEY_LENGTH : 0, backward);
	while (status == SMART_OK && (status = smart_scan_next(worker->scan, &batch)) == SMART_OK)
		right = right && check_batch(worker, &batch, backward, &last, &own);
	for (unsigned int key = from; key < to; key++)
		expected += key % THREADS == worker->number && worker->arena->present[key];
	CHECK(status == SMART_DONE && right && own == expected);
}

/* Bulk delete of some of the worker's own keys. */
static bool
is_dead(void *argument, const uint8_t *entry, size_t length)
{
	struct worker *worker = argument;
	unsigned int key = key_number(entry);

	return key < KEYS && key % THREADS == worker->number && key / THREADS % 8 == worker->dead_salt;
}

static void
bulk_delete(struct worker *worker)
{
	uint64_t visited;
	uint64_t removed;
	uint64_t expected = 0;

	worker->dead_salt = test_random(&worker->random_state) % 8;
	for (unsigned int key = worker->number; key < KEYS; key += THREADS)
	{
		if (worker->arena->present[key] && key / THREADS % 8 == worker->dead_salt)
		{
			expected++;
			worker->arena->present[key] = false;
		}
	}
	CHECK(smart_tree_bulk_delete(worker->client->tree, &(struct smart_victims){.dead = is_dead, .argument = worker},
								 NULL, &visited, &removed) == SMART_OK &&
		  removed == expected);
}

static void *
work(void *argument)
{
	struct worker *worker = argument;
	struct smart_tree_options options = worker->arena->options;
	unsigned int base = 0;

	worker->client = tree_client_open(worker->arena->node, &options, false, worker->number + 1);
	worker->client->no_local_locks = options.shared;
	CHECK(smart_scan_open(worker->client->tree, &worker->scan) == SMART_OK);
	for (unsigned int i = 0; i < OPERATIONS; i++)
	{
		unsigned int dice = (unsigned int) (test_random(&worker->random_state) % 1000);
		/* Now everywhere, now all in one place. */
		unsigned int span = i / 500 % 2 == 0 ? KEYS / THREADS : 12;
		unsigned int key = own_key(worker, span, base);

		if (i % 500 == 0)
			base = i / 1000 * 37 % (KEYS / THREADS);
		if (dice < 500)
			change(worker, key, (i / 3000 + dice / 100) % 3 != 0);
		else if (dice < 980)
			look_up(worker, key);
		else if (dice < 998)
			scan(worker);
		else
			bulk_delete(worker);
	}
	smart_scan_close(worker->scan);
	tree_client_close(worker->client);
	return NULL;
}

static bool
expect_entry(void *argument, const uint8_t *entry, size_t length)
{
	bool *seen = argument;
	unsigned int key = length == KEY_LENGTH ? key_number(entry) : KEYS;

	if (CHECK(key < KEYS))
		seen[key] = true;
	return true;
}

static void
run(bool shared, unsigned int leaf_size, unsigned int tiny_nodes)
{
	static struct arena arena;
	struct worker workers[THREADS];
	struct test_client *owner;
	struct tree_client *client;
	struct smart_verify_report report;
	bool seen[KEYS] = {false};
	char message[256] = "";

	memset(&arena, 0, sizeof(arena));
	arena.node = test_node_open(16, 256 << 20);
	owner = test_client_open(arena.node, 99);
	arena.options = (struct smart_tree_options){.leaf_size = leaf_size,
												.fixed_length = KEY_LENGTH,
												.shared = shared,
												.tiny_nodes = (uint8_t) tiny_nodes};
	arena.options.id = test_tree_create(owner, &arena.options.root);
	for (unsigned int i = 0; i < THREADS; i++)
		workers[i] = (struct worker){.arena = &arena, .number = i, .random_state = leaf_size + i};
	test_run_threads(THREADS, work, workers, sizeof(workers[0]));
	client = tree_client_open(arena.node, &arena.options, false, 5);
	if (!CHECK(smart_tree_verify(client->tree, expect_entry, seen, &report, message, sizeof(message)) == SMART_OK))
		printf("%s\n", message);
	CHECK(memcmp(seen, arena.present, sizeof(seen)) == 0);
	if (!CHECK(smart_space_verify(&owner->client->space, message, sizeof(message)) == SMART_OK))
		printf("%s\n", message);
	tree_client_close(client);
	test_client_close(owner);
	test_node_close(arena.node);
}

int
main(void)
{
	run(false, 512, 0);
	run(false, 64, 2);
	run(true, 512, 0);
	run(true, 64, 2);
	return check_finish();
}

/*
 * long_keys_test.c
 *	  Keys that share long prefixes, below which there are chains of nodes: walks over all entries take steps in
 *	  proportion to the leaves, and not to the nodes above them.  On a remote provider those that know all nodes take few
 *	  round trips, and a first one takes one for each node.
 */
#include <string.h>

#include "support/all_nodes.h"
#include "support/check.h"
#include "support/tree_client.h"

#define WORDS  60
#define LENGTH 1500 /* of a word, that COPIES entries begin with */
#define COPIES 3
#define KEY    (LENGTH + 1)
#define STEPS  16 /* for a word, at most */

struct bench
{
	struct test_node *node;
	struct test_client *owner;
	struct tree_client *client;
};

static void (*enter)(struct smart_services *services);
static unsigned int steps;

/* Each step of a walk is an operation of its own. */
static void
count_step(struct smart_services *services)
{
	steps++;
	enter(services);
}

static void
open_bench(struct bench *bench, bool remote)
{
	struct smart_tree_options options = {.leaf_size = 1024};

	bench->node = test_node_open(8, 64 << 20);
	bench->owner = test_client_open(bench->node, 1);
	options.id = test_tree_create(bench->owner, &options.root);
	bench->client = tree_client_open(bench->node, &options, remote, 1);
	enter = bench->client->services.enter;
	bench->client->services.enter = count_step;
}

static void
close_bench(struct bench *bench)
{
	tree_client_close(bench->client);
	test_client_close(bench->owner);
	test_node_close(bench->node);
}

/* Words that differ early, or late, or both, so that chains of nodes begin at the root and between others. */
static void
make_key(uint8_t *key, unsigned int number)
{
	unsigned int word = number / COPIES;

	memset(key, 'p', KEY);
	key[100] = (uint8_t) ('a' + word / 20);
	key[700] = (uint8_t) (word / 5 % 4 == 0 ? 0 : word / 5 % 4 == 3 ? 255 : 'a' + word / 5 % 4);
	key[710] = (uint8_t) (50 * (word % 5));
	key[LENGTH] = (uint8_t) (number % COPIES == 0 ? 0 : number % COPIES == 1 ? 7 : 255);
}

static void
fill(struct bench *bench)
{
	for (unsigned int i = 0; i < WORDS * COPIES; i++)
	{
		uint8_t key[KEY];
		bool added;

		make_key(key, i * 7 % (WORDS * COPIES));
		CHECK(smart_tree_insert(bench->client->tree, key, KEY, KEY, &added) == SMART_OK && added);
	}
}

/* Entries of one word are in one leaf, however long it is: there is no chain of nodes above each of them. */
static uint64_t
check_nodes(struct bench *bench)
{
	const struct fabric_counters *counters = &bench->client->sim.fabric.counters;
	uint64_t begin = counters->round_trips;
	struct smart_verify_report report = {0};
	uint64_t nodes = 0;
	char message[256] = "";

	CHECK(smart_tree_verify(bench->client->tree, NULL, NULL, &report, message, sizeof(message)) == SMART_OK);
	/* Nodes of chains beside each other come in one batch. */
	CHECK(counters->round_trips - begin <= 3 * WORDS);
	for (unsigned int kind = 1; kind <= SMART_NODE_KINDS; kind++)
		nodes += report.nodes[kind];
	CHECK(report.leaves <= 2 * WORDS && nodes < 10 * WORDS);
	return nodes;
}

static void
scan_all(struct bench *bench, bool backward)
{
	unsigned int count = 0;
	struct smart_scan *scan;
	struct smart_batch batch;
	smart_status status;

	CHECK(smart_scan_open(bench->client->tree, &scan) == SMART_OK);
	steps = 0;
	status = smart_scan_seek(scan, NULL, 0, NULL, 0, backward);
	while (status == SMART_OK && (status = smart_scan_next(scan, &batch)) == SMART_OK)
	{
		for (uint32_t i = 0; i < batch.count; i++)
		{
			uint8_t key[KEY];
			uint8_t found[SMART_ENTRY_MAX];
			uint32_t at = backward ? batch.count - 1 - i : i;

			make_key(key, backward ? WORDS * COPIES - 1 - count : count);
			CHECK(smart_batch_entry(&batch, at, found) == KEY && memcmp(found, key, KEY) == 0);
			count++;
		}
	}
	CHECK(status == SMART_DONE && count == WORDS * COPIES);
	smart_scan_close(scan);
}

static void
check_round_trips(struct bench *bench, bool backward, uint64_t nodes)
{
	const struct fabric_counters *counters = &bench->client->sim.fabric.counters;
	uint64_t first;
	uint64_t begin;

	forget_all_nodes();
	begin = counters->round_trips;
	scan_all(bench, backward);
	first = counters->round_trips;
	CHECK(first - begin <= nodes + WORDS);
	scan_all(bench, backward);
	CHECK(counters->round_trips - first <= WORDS);
}

/* smart_dead_fn: the entries of words with even numbers, or of all. */
static bool
is_dead(void *argument, const uint8_t *entry, size_t length)
{
	const unsigned int *every = argument;

	return entry[710] / 50 % *every == 0;
}

static void
check_bulk_delete(struct bench *bench, unsigned int every, uint64_t there, uint64_t dead)
{
	const struct smart_victims victims = {.dead = is_dead, .argument = &every};
	uint64_t visited;
	uint64_t removed;

	steps = 0;
	CHECK(smart_tree_bulk_delete(bench->client->tree, &victims, NULL, &visited, &removed) == SMART_OK);
	CHECK(visited == there && removed == dead);
	CHECK(steps <= STEPS * WORDS);
}

static void
check_steps(void)
{
	struct bench bench;

	open_bench(&bench, false);
	fill(&bench);
	(void) check_nodes(&bench);
	for (int backward = 0; backward < 2; backward++)
	{
		scan_all(&bench, backward);
		CHECK(steps <= STEPS * WORDS);
	}
	check_bulk_delete(&bench, 2, WORDS * COPIES, WORDS * COPIES * 3 / 5);
	check_bulk_delete(&bench, 2, WORDS * COPIES * 2 / 5, 0);
	check_bulk_delete(&bench, 1, WORDS * COPIES * 2 / 5, WORDS * COPIES * 2 / 5);
	check_bulk_delete(&bench, 1, 0, 0);
	close_bench(&bench);
}

static void
check_remote(void)
{
	struct bench bench;
	uint64_t nodes;

	open_bench(&bench, true);
	fill(&bench);
	nodes = check_nodes(&bench);
	keep_all_nodes(bench.client);
	for (int backward = 0; backward < 2; backward++)
		check_round_trips(&bench, backward, nodes);
	close_bench(&bench);
}

int
main(void)
{
	check_steps();
	check_remote();
	return check_finish();
}

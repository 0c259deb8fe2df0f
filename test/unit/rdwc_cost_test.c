/*
 * rdwc_cost_test.c
 *	  What read delegation and write combining save: READs and WRITEs of 16 clients of
 *	  one compute node at one leaf, in virtual time, so that one seed gives one result.
 */
#include <stdlib.h>

#include "bench/ycsb/cluster.h"
#include "support/check.h"

#define CLIENTS 16
#define LOOKUPS 200 /* of each client */
#define INSERTS 20
#define KEY     YCSB_INTEGER_BYTES
#define ENTRY   (KEY + YCSB_PAYLOAD) /* bytes of an integer record */

struct bench
{
	struct ycsb_options options;
	struct ycsb_cluster *cluster;
	unsigned int failures;
};

static void
make_entry(uint8_t *entry, unsigned int number)
{
	for (unsigned int i = 0; i < ENTRY; i++)
		entry[i] = i < KEY - 2 || i >= KEY ? 1 : (uint8_t) (number >> (8 * (KEY - 1 - i)));
}

static void
open_bench(struct bench *bench, bool shared, bool rdwc, bool cache)
{
	*bench = (struct bench){.failures = 0};
	ycsb_options_default(&bench->options);
	bench->options.clients = CLIENTS;
	bench->options.keys = bench->options.operations = 1;
	bench->options.leaf_size = 4096;
	bench->options.shared = shared;
	bench->options.rdwc = rdwc;
	if (!cache)
		bench->options.cache_bytes = 0;
	bench->cluster = ycsb_sim_open(&bench->options);
	if (bench->cluster == NULL)
		abort();
}

static uint64_t
requests(const struct bench *bench, enum fabric_verb verb)
{
	uint64_t count = 0;

	for (unsigned int i = 0; i < CLIENTS; i++)
		count += bench->cluster->client[i]->fabric->counters.requests[verb];
	return count;
}

/* The key that is there, again and again. */
static void
look_up(struct ycsb_client *client, void *argument)
{
	struct bench *bench = argument;
	uint8_t entry[ENTRY];

	make_entry(entry, 0);
	for (unsigned int i = 0; i < LOOKUPS; i++)
	{
		bool found = false;

		if (smart_tree_lookup(client->tree, entry, KEY, &found) != SMART_OK || !found)
			bench->failures++;
	}
}

/* Keys of one leaf, each client's own. */
static void
insert(struct ycsb_client *client, void *argument)
{
	struct bench *bench = argument;
	uint8_t entry[ENTRY];

	for (unsigned int i = 0; i < INSERTS; i++)
	{
		bool added;

		make_entry(entry, 1 + client->number * INSERTS + i);
		if (smart_tree_insert(client->tree, entry, KEY, ENTRY, &added) != SMART_OK || !added)
			bench->failures++;
	}
}

static void
insert_one(struct bench *bench)
{
	struct smart_tree *tree = bench->cluster->client[0]->tree;
	uint8_t entry[ENTRY];
	bool added = false;

	make_entry(entry, 0);
	CHECK(smart_tree_insert(tree, entry, KEY, ENTRY, &added) == SMART_OK && added);
}

/*
 * READs of the leaf by all lookups together.  An exclusive tree's cache would reply without
 * a READ; so it has none, and every lookup READs the root's word, too.
 */
static uint64_t
reads(bool shared, bool rdwc)
{
	struct bench bench;
	uint64_t before;
	uint64_t count;

	open_bench(&bench, shared, rdwc, shared);
	insert_one(&bench);
	before = requests(&bench, FABRIC_READ) + (shared ? 0 : CLIENTS * LOOKUPS);
	CHECK(bench.cluster->run(bench.cluster, CLIENTS, look_up, &bench));
	count = requests(&bench, FABRIC_READ) - before;
	CHECK(bench.failures == 0);
	bench.cluster->close(bench.cluster);
	return count;
}

/* WRITEs of all inserts together. */
static uint64_t
writes(bool shared, bool rdwc)
{
	struct bench bench;
	struct smart_verify_report report;
	char message[256];
	uint64_t before;
	uint64_t count;

	open_bench(&bench, shared, rdwc, true);
	insert_one(&bench);
	before = requests(&bench, FABRIC_WRITE);
	CHECK(bench.cluster->run(bench.cluster, CLIENTS, insert, &bench));
	count = requests(&bench, FABRIC_WRITE) - before;
	CHECK(bench.failures == 0);
	CHECK(smart_tree_verify(bench.cluster->client[0]->tree, NULL, NULL, &report, message, sizeof(message)) == SMART_OK);
	CHECK(report.entries == 1 + CLIENTS * INSERTS && report.leaves == 1);
	bench.cluster->close(bench.cluster);
	return count;
}

int
main(void)
{
	for (int shared = 0; shared < 2; shared++)
	{
		CHECK(reads(shared, false) >= CLIENTS * LOOKUPS);
		CHECK(2 * reads(shared, true) < CLIENTS * LOOKUPS);
		CHECK(writes(shared, false) >= CLIENTS * INSERTS);
		CHECK(2 * writes(shared, true) < CLIENTS * INSERTS);
	}
	return check_finish();
}

/*
 * ycsb_partitions_test.c
 *	  The benchmark on a tree in ranges: every workload's records are found, the trees are whole, and ranges change hands
 *	  under load.
 */
#include "support/ycsb_results.h"

#define KEYS       3000
#define OPERATIONS 3000
#define NODES      4
#define RANGES     10

static struct ycsb_options
options_of(enum ycsb_keys key_type, bool values)
{
	struct ycsb_options options;

	ycsb_options_default(&options);
	options.keys = KEYS;
	options.operations = OPERATIONS;
	options.warmup = OPERATIONS / 10;
	options.check = true;
	options.key_type = key_type;
	options.values = values;
	options.shared = false;
	options.partitions = RANGES;
	options.compute_nodes = NODES;
	options.memory_nodes = 2;
	options.clients = 3;
	options.rdwc = true;
	options.leaf_size = 256;
	for (int i = 0; i < YCSB_WORKLOADS; i++)
		options.wanted[i] = true;
	return options;
}

/* All workloads, one after the other.  A lookup that misses its record fails the run. */
static void
test_workloads(enum ycsb_keys key_type, bool values, bool rdwc)
{
	struct ycsb_options options = options_of(key_type, values);
	struct ycsb_results *results;

	options.rdwc = rdwc;
	results = ycsb_results_of(&options);
	CHECK(results->count == YCSB_WORKLOADS && results->moved == 0);
	ycsb_results_release(results);
}

/* Those of the last compute node go to the others, and come back. */
static void
test_moves(enum ycsb_workload workload, bool values)
{
	struct ycsb_options options = options_of(YCSB_INTEGER, values);
	struct ycsb_results *results;
	unsigned int last = 0;

	for (unsigned int range = 0; range < RANGES; range++)
		last += range * NODES / RANGES == NODES - 1;
	for (int i = 0; i < YCSB_WORKLOADS; i++)
		options.wanted[i] = i == (int) workload;
	options.sorted = true;
	options.move = true;
	results = ycsb_results_of(&options);
	CHECK(last > 0 && results->moved == 2 * last);
	CHECK(results->longest_ns > 0 && results->longest_ns < UINT64_C(2000000000));
	ycsb_results_release(results);
}

/* An owner's lookups need no verb once it has the leaves, and no update an atomic. */
static void
test_costs(void)
{
	struct ycsb_options options = options_of(YCSB_RANDINT, true);
	struct ycsb_results *results;
	struct ycsb_summary lookups;
	struct ycsb_summary updates;

	for (int i = 0; i < YCSB_WORKLOADS; i++)
		options.wanted[i] = i == YCSB_C || i == YCSB_UPDATES;
	options.sorted = true;
	options.warmup = 10 * KEYS;
	results = ycsb_results_of(&options);
	ycsb_summarize(&results->result[0], &lookups);
	ycsb_summarize(&results->result[1], &updates);
	CHECK(results->count == 2 && lookups.reads < 0.01);
	CHECK(updates.atomics == 0 && updates.reads < 0.1 && updates.writes <= 1);
	ycsb_results_release(results);
}

/* Logs so small that each is full many times: every workload's records are found, and the trees have all in the end. */
static void
test_logs(bool values, unsigned int copies)
{
	struct ycsb_options options = options_of(YCSB_RANDINT, values);
	struct ycsb_results *results;

	options.log_bytes = YCSB_LOG_BYTES_MIN;
	options.log_copies = copies;
	results = ycsb_results_of(&options);
	CHECK(results->count == YCSB_WORKLOADS);
	ycsb_results_release(results);
}

/* L6: a tree that was bare before the log is not asked, so an insert is its share of the log's WRITE. */
static void
test_bare_trees(void)
{
	struct ycsb_options options = options_of(YCSB_RANDINT, true);
	struct ycsb_results *results;
	struct ycsb_summary inserts;

	for (int i = 0; i < YCSB_WORKLOADS; i++)
		options.wanted[i] = i == YCSB_LOAD;
	options.log_bytes = 16 << 20;
	results = ycsb_results_of(&options);
	ycsb_summarize(&results->result[0], &inserts);
	CHECK(inserts.reads < 0.1 && inserts.writes <= 1 && inserts.atomics == 0);
	ycsb_results_release(results);
}

/* L4: with changes in the log ranges change hands as fast as without: below a millisecond. */
static void
test_moves_of_logs(void)
{
	struct ycsb_options options = options_of(YCSB_RANDINT, true);
	struct ycsb_results *results;
	struct ycsb_summary updates;

	for (int i = 0; i < YCSB_WORKLOADS; i++)
		options.wanted[i] = i == YCSB_UPDATES;
	options.sorted = true;
	options.move = true;
	options.log_bytes = 1 << 20;
	results = ycsb_results_of(&options);
	ycsb_summarize(&results->result[0], &updates);
	CHECK(results->moved > 0 && results->longest_ns > 0 && results->longest_ns < 1000000);
	/* A share of the log's WRITE each, and of what goes into leaves when ranges move. */
	CHECK(updates.writes < 1 && updates.atomics < 0.1);
	ycsb_results_release(results);
}

int
main(void)
{
	test_workloads(YCSB_RANDINT, true, true);
	test_workloads(YCSB_INTEGER, true, false);
	test_workloads(YCSB_INTEGER, false, true);
	test_workloads(YCSB_EMAIL, false, true);
	test_moves(YCSB_A, true);
	test_moves(YCSB_E, true);
	test_moves(YCSB_A, false);
	test_costs();
	test_logs(true, 1);
	test_logs(false, 2);
	test_bare_trees();
	test_moves_of_logs();
	return check_finish();
}

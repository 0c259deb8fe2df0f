/*
 * ycsb_run_test.c
 *	  Whole runs of the benchmark on small simulated clusters: they end, the tree
 *	  is whole, the counts add up, and one seed gives one result.
 */
#include <string.h>

#include "bench/ycsb/keys.h"
#include "bench/ycsb/workload.h"
#include "support/env_thread.h"
#include "support/ycsb_results.h"

#define KEYS       3000
#define OPERATIONS 1500

static void
default_options(struct ycsb_options *options)
{
	ycsb_options_default(options);
	options->keys = KEYS;
	options->operations = OPERATIONS;
	options->warmup = OPERATIONS / 10;
	options->check = true;
	for (int i = 0; i < YCSB_WORKLOADS; i++)
		options->wanted[i] = true;
}

/* ---- counts ---- */

/* Kinds of operations that a workload has. */
static const unsigned int kinds[YCSB_WORKLOADS] = {
	[YCSB_LOAD] = 1u << YCSB_INSERT,
	[YCSB_A] = 1u << YCSB_READ | 1u << YCSB_UPDATE,
	[YCSB_B] = 1u << YCSB_READ | 1u << YCSB_UPDATE,
	[YCSB_C] = 1u << YCSB_READ,
	[YCSB_D] = 1u << YCSB_READ | 1u << YCSB_INSERT,
	[YCSB_E] = 1u << YCSB_SCAN | 1u << YCSB_INSERT,
	[YCSB_F] = 1u << YCSB_READ | 1u << YCSB_READ_MODIFY_WRITE,
	[YCSB_BESIDE] = 1u << YCSB_INSERT,
	[YCSB_UPDATES] = 1u << YCSB_UPDATE,
};

/* Every operation but a lookup that the cache serves asks a memory node, or several times. */
static void
check_counts(const struct ycsb_results *results)
{
	CHECK(results->count == YCSB_WORKLOADS);
	for (unsigned int i = 0; i < results->count; i++)
	{
		const struct ycsb_result *result = &results->result[i];
		const struct ycsb_measure *measure = result->measure;
		uint64_t operations = 0;

		CHECK(result->workload == (enum ycsb_workload) i && result->elapsed_ns > 0);
		for (int kind = 0; kind < YCSB_OPERATIONS; kind++)
		{
			const struct fabric_counters *cost = &measure->cost[kind];
			uint64_t asked = measure->operations[kind];
			uint64_t timed = 0;

			for (int bucket = 0; bucket < YCSB_BUCKETS; bucket++)
				timed += measure->latency[kind].count[bucket];
			CHECK((measure->operations[kind] > 0) == ((kinds[i] >> kind & 1) != 0));
			if (kind == YCSB_READ)
				asked -= result->cache.result_hits < asked ? result->cache.result_hits : asked;
			CHECK(timed == measure->operations[kind] && cost->round_trips >= asked);
			CHECK(cost->requests[FABRIC_READ] + cost->requests[FABRIC_CAS] >= asked);
			operations += measure->operations[kind];
		}
		CHECK(operations == (i == YCSB_LOAD ? KEYS : OPERATIONS));
		CHECK((measure->entries > 0) == (i == YCSB_E));
	}
}

static void
check_summary(const struct ycsb_results *results, bool alone)
{
	struct ycsb_summary load;
	struct ycsb_summary lookups;
	struct ycsb_summary scans;

	ycsb_summarize(&results->result[YCSB_LOAD], &load);
	ycsb_summarize(&results->result[YCSB_C], &lookups);
	ycsb_summarize(&results->result[YCSB_E], &scans);
	CHECK(load.writes >= 1 && load.atomics >= 1 && load.write_bytes >= 14);
	CHECK(lookups.writes == 0 && lookups.read_bytes > 64 && lookups.hit_ratio > 0.9);
	/* All nodes fit into the cache: a lookup is a READ of a leaf, unless another compute node has changed the path. */
	CHECK(lookups.round_trips >= (lookups.answer_ratio > 0 ? 0 : 1) && lookups.round_trips < (alone ? 1.02 : 1.5));
	CHECK(lookups.reads >= lookups.round_trips && lookups.reads < (alone ? 1.02 : 1.5));
	/* What the last change has made becomes live with a lookup that asks a memory node. */
	CHECK(!alone || (lookups.read_bytes <= 512 && lookups.atomics < 0.01));
	CHECK(scans.reads > 1.5);
	CHECK(lookups.p50_us > 0 && lookups.p50_us <= lookups.p99_us && lookups.throughput > 0);
}

/* ---- determinism ---- */

static bool
same_result(const struct ycsb_result *a, const struct ycsb_result *b)
{
	return a->workload == b->workload && a->clients == b->clients && a->operations == b->operations &&
		   a->elapsed_ns == b->elapsed_ns && memcmp(&a->cache, &b->cache, sizeof(a->cache)) == 0 &&
		   memcmp(a->measure, b->measure, sizeof(*a->measure)) == 0;
}

static bool
same_results(const struct ycsb_results *a, const struct ycsb_results *b)
{
	if (a->count != b->count)
		return false;
	for (unsigned int i = 0; i < a->count; i++)
	{
		if (!same_result(&a->result[i], &b->result[i]))
			return false;
	}
	return true;
}

static void
check_determinism(struct ycsb_options *options)
{
	struct ycsb_results *first = ycsb_results_of(options);
	struct ycsb_results *second = ycsb_results_of(options);
	struct ycsb_results *other;

	CHECK(same_results(first, second));
	check_counts(first);
	check_summary(first, options->compute_nodes == 1);
	options->seed++;
	other = ycsb_results_of(options);
	CHECK(!same_results(first, other));
	ycsb_results_release(first);
	ycsb_results_release(second);
	ycsb_results_release(other);
}

/* ---- the parts ---- */

/* Every number of clients of a curve has its result, and more of them do more. */
static void
check_curve(void)
{
	struct ycsb_options options;
	struct ycsb_results *results;
	static const unsigned int expected[] = {2, 4, 8, 12};

	default_options(&options);
	memset(options.wanted, 0, sizeof(options.wanted));
	options.wanted[YCSB_C] = true;
	options.timed = true;
	options.compute_nodes = 2;
	options.clients = 6;
	results = ycsb_results_of(&options);
	CHECK(results->count == 4);
	for (unsigned int i = 0; i < results->count; i++)
	{
		CHECK(results->result[i].workload == YCSB_C && results->result[i].clients == expected[i]);
		CHECK(i == 0 || results->result[i].elapsed_ns < results->result[i - 1].elapsed_ns);
	}
	ycsb_results_release(results);
}

/* With values an update is a READ and a CAS or two, and nothing is written; without, an entry leaves and comes back. */
static void
check_values(enum ycsb_keys key_type)
{
	struct ycsb_options options;
	struct ycsb_results *results;
	struct ycsb_summary updates;

	default_options(&options);
	options.key_type = key_type;
	options.compute_nodes = 3;
	options.clients = 4;
	options.rdwc = true;
	options.values = true;
	results = ycsb_results_of(&options);
	ycsb_summarize(&results->result[YCSB_UPDATES], &updates);
	CHECK(updates.writes == 0 && updates.atomics > 0.5 && updates.atomics < 2.5);
	/* The way to a leaf may have to be learnt. */
	CHECK(updates.round_trips >= 1.5 && updates.round_trips < 3 && updates.reads < 2);
	CHECK(results->result[YCSB_A].measure->absent == 0 && results->result[YCSB_F].measure->absent == 0);
	ycsb_results_release(results);
	options.values = false;
	results = ycsb_results_of(&options);
	ycsb_summarize(&results->result[YCSB_UPDATES], &updates);
	CHECK(updates.writes > 1 && updates.atomics > 4);
	ycsb_results_release(results);
}

/* Keys next to a record: each is another one, a record's own is none of them, and they lie where it lies. */
static void
check_keys_beside(void)
{
	uint8_t record[YCSB_ENTRY_MAX];
	uint8_t last[YCSB_ENTRY_MAX];
	uint8_t entry[YCSB_ENTRY_MAX];
	size_t name = 0;

	CHECK(ycsb_key(false, 7, record) == YCSB_INTEGER_BYTES);
	for (uint64_t number = 0; number < 1000; number++)
	{
		CHECK(ycsb_key_beside(false, 7, number, entry) == YCSB_INTEGER_BYTES);
		CHECK(memcmp(entry, record, 4) == 0 && memcmp(entry, record, YCSB_INTEGER_BYTES) != 0);
		CHECK(number == 0 || memcmp(entry, last, YCSB_INTEGER_BYTES) != 0);
		memcpy(last, entry, sizeof(last));
	}
	ycsb_key(true, 7, record);
	name = strcspn((const char *) record, "@");
	CHECK(ycsb_key_beside(true, 7, 12, entry) == strlen((const char *) record) + 4);
	CHECK(memcmp(entry, record, name) == 0 && memcmp(entry + name, "+12@", 4) == 0);
	CHECK(strcmp((const char *) entry + name + 3, (const char *) record + name) == 0);
	CHECK(ycsb_key_beside(true, 7, YCSB_STRINGS_MAX - 1, entry) == strlen((const char *) record) + 12);
}

static void
check_records(void)
{
	static struct ycsb_records records;
	struct env_thread thread;

	env_thread_init(&thread, 1);
	for (uint64_t i = 0; i < 4; i++)
		CHECK(ycsb_records_take(&records, &thread.env) == i);
	ycsb_records_end(&records, 1);
	ycsb_records_end(&records, 3);
	CHECK(ycsb_records_present(&records) == 0);
	ycsb_records_end(&records, 0);
	CHECK(ycsb_records_present(&records) == 2);
	ycsb_records_end(&records, 2);
	CHECK(ycsb_records_present(&records) == 4);
	/* Marks serve again. */
	for (uint64_t i = 4; i < 3 * (uint64_t) YCSB_WINDOW; i++)
	{
		CHECK(ycsb_records_take(&records, &thread.env) == i);
		CHECK(ycsb_records_present(&records) == i);
		ycsb_records_end(&records, i);
	}
}

static void
check_histogram(void)
{
	static struct ycsb_histogram histogram;

	CHECK(ycsb_histogram_quantile(&histogram, 0.5) == 0);
	for (uint64_t ns = 1; ns <= 100; ns++)
		ycsb_histogram_add(&histogram, ns);
	CHECK(ycsb_histogram_quantile(&histogram, 0.5) == 50 && ycsb_histogram_quantile(&histogram, 0.99) == 99);
	memset(&histogram, 0, sizeof(histogram));
	for (uint64_t ns = 1000; ns <= 1000000; ns += 1000)
		ycsb_histogram_add(&histogram, ns);
	CHECK(ycsb_histogram_quantile(&histogram, 0.5) > 500000 / 1.016 &&
		  ycsb_histogram_quantile(&histogram, 0.5) < 500000 * 1.016);
	CHECK(ycsb_histogram_quantile(&histogram, 1) > 1000000 / 1.016);
	ycsb_histogram_add(&histogram, UINT64_MAX);
	CHECK(ycsb_histogram_quantile(&histogram, 1) > 1e12);
}

int
main(void)
{
	struct ycsb_options options;

	check_records();
	check_keys_beside();
	check_histogram();
	check_curve();
	check_values(YCSB_INTEGER);
	check_values(YCSB_EMAIL);
	default_options(&options);
	check_determinism(&options);
	options.key_type = YCSB_STRING;
	options.zipf = false;
	options.shared = false;
	options.clients = 5;
	options.memory_nodes = 3;
	check_determinism(&options);
	options.shared = true;
	options.compute_nodes = 3;
	options.clients = 4;
	check_determinism(&options);
	return check_finish();
}

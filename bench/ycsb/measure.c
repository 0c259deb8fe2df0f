/*
 * measure.c
 *	  Latencies and costs of operations.
 */
#include "base/assert.h"
#include "measure.h"

const char *const ycsb_operation_names[YCSB_OPERATIONS] = {"read", "update", "insert", "scan", "read-modify-write"};

/* ---- latencies ---- */

static unsigned int
bucket_of(uint64_t ns)
{
	unsigned int doubling;
	uint64_t bucket;

	if (ns < YCSB_STEPS)
		return (unsigned int) ns;
	doubling = 63 - (unsigned int) __builtin_clzll(ns) - 6; /* YCSB_STEPS << doubling <= ns */
	bucket = (uint64_t) YCSB_STEPS * (doubling + 1) + (ns >> doubling) - YCSB_STEPS;
	smart_assert(bucket >= YCSB_STEPS);
	return bucket < YCSB_BUCKETS ? (unsigned int) bucket : YCSB_BUCKETS - 1;
}

/* The middle of what falls into a bucket. */
static double
bucket_ns(unsigned int bucket)
{
	unsigned int doubling = bucket / YCSB_STEPS;
	uint64_t step = bucket % YCSB_STEPS;

	smart_assert(bucket < YCSB_BUCKETS);
	if (doubling == 0)
		return (double) step;
	return ((double) (YCSB_STEPS + step) + 0.5) * (double) (UINT64_C(1) << (doubling - 1)) - 0.5;
}

void
ycsb_histogram_add(struct ycsb_histogram *histogram, uint64_t ns)
{
	histogram->count[bucket_of(ns)]++;
}

double
ycsb_histogram_quantile(const struct ycsb_histogram *histogram, double share)
{
	uint64_t total = 0;
	uint64_t seen = 0;

	smart_assert(share >= 0 && share <= 1);
	for (unsigned int i = 0; i < YCSB_BUCKETS; i++)
		total += histogram->count[i];
	for (unsigned int i = 0; i < YCSB_BUCKETS; i++)
	{
		seen += histogram->count[i];
		if (histogram->count[i] > 0 && (double) seen >= share * (double) total)
			return bucket_ns(i);
	}
	smart_assert(total == 0);
	return 0;
}

/* ---- costs ---- */

void
ycsb_add(void *sum, const void *part, size_t bytes)
{
	smart_assert(bytes % sizeof(uint64_t) == 0 && sum != part);
	for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
		((uint64_t *) sum)[i] += ((const uint64_t *) part)[i];
}

void
ycsb_measure_operation(struct ycsb_measure *measure, enum ycsb_operation operation, uint64_t ns,
					   const struct fabric_counters *before, const struct fabric_counters *after)
{
	struct fabric_counters *cost = &measure->cost[operation];

	smart_assert(operation < YCSB_OPERATIONS);
	smart_assert(after->doorbells >= before->doorbells && after->round_trips >= before->round_trips);
	measure->operations[operation]++;
	ycsb_histogram_add(&measure->latency[operation], ns);
	for (int verb = 0; verb < FABRIC_VERBS; verb++)
	{
		cost->requests[verb] += after->requests[verb] - before->requests[verb];
		cost->bytes[verb] += after->bytes[verb] - before->bytes[verb];
	}
	cost->doorbells += after->doorbells - before->doorbells;
	cost->round_trips += after->round_trips - before->round_trips;
	cost->descents += after->descents - before->descents;
}

void
ycsb_cache_use_add(struct ycsb_cache_use *sum, const struct smart_cache_stat *stat)
{
	sum->hits += stat->counters.hits;
	sum->misses += stat->counters.misses;
	sum->result_hits += stat->counters.result_hits;
	sum->result_misses += stat->counters.result_misses;
	sum->hint_hits += stat->counters.hint_hits;
	sum->hint_misses += stat->counters.hint_misses;
	for (unsigned int kind = 1; kind <= SMART_NODE_KINDS; kind++)
		sum->node_bytes += stat->bytes[kind];
	sum->result_bytes += stat->result_bytes;
	sum->hint_bytes += stat->hint_bytes;
}

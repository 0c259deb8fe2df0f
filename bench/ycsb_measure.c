/*
 * ycsb_measure.c
 *	  Latencies and costs of operations.
 */
#include "ycsb_measure.h"

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
	return bucket < YCSB_BUCKETS ? (unsigned int) bucket : YCSB_BUCKETS - 1;
}

/* The middle of what falls into a bucket. */
static double
bucket_ns(unsigned int bucket)
{
	unsigned int doubling = bucket / YCSB_STEPS;
	uint64_t step = bucket % YCSB_STEPS;

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

	for (unsigned int i = 0; i < YCSB_BUCKETS; i++)
		total += histogram->count[i];
	for (unsigned int i = 0; i < YCSB_BUCKETS; i++)
	{
		seen += histogram->count[i];
		if (histogram->count[i] > 0 && (double) seen >= share * (double) total)
			return bucket_ns(i);
	}
	return 0;
}

void
ycsb_histogram_merge(struct ycsb_histogram *sum, const struct ycsb_histogram *part)
{
	for (unsigned int i = 0; i < YCSB_BUCKETS; i++)
		sum->count[i] += part->count[i];
}

/* ---- costs ---- */

void
ycsb_counters_merge(struct fabric_counters *sum, const struct fabric_counters *part)
{
	for (int verb = 0; verb < FABRIC_VERBS; verb++)
	{
		sum->requests[verb] += part->requests[verb];
		sum->bytes[verb] += part->bytes[verb];
	}
	sum->doorbells += part->doorbells;
	sum->round_trips += part->round_trips;
	sum->connections += part->connections;
	sum->timeouts += part->timeouts;
	sum->failures += part->failures;
	sum->descents += part->descents;
	sum->descents_busy += part->descents_busy;
	sum->descents_stopped += part->descents_stopped;
}

void
ycsb_measure_operation(struct ycsb_measure *measure, enum ycsb_operation operation, uint64_t ns,
					   const struct fabric_counters *before, const struct fabric_counters *after)
{
	struct fabric_counters *cost = &measure->cost[operation];

	measure->operations[operation]++;
	ycsb_histogram_add(&measure->latency[operation], ns);
	for (int verb = 0; verb < FABRIC_VERBS; verb++)
	{
		cost->requests[verb] += after->requests[verb] - before->requests[verb];
		cost->bytes[verb] += after->bytes[verb] - before->bytes[verb];
	}
	cost->doorbells += after->doorbells - before->doorbells;
	cost->round_trips += after->round_trips - before->round_trips;
}

void
ycsb_measure_merge(struct ycsb_measure *sum, const struct ycsb_measure *part)
{
	for (int i = 0; i < YCSB_OPERATIONS; i++)
	{
		sum->operations[i] += part->operations[i];
		ycsb_histogram_merge(&sum->latency[i], &part->latency[i]);
		ycsb_counters_merge(&sum->cost[i], &part->cost[i]);
	}
	sum->absent += part->absent;
	sum->entries += part->entries;
}

void
ycsb_cache_use_add(struct ycsb_cache_use *sum, const struct smart_cache_stat *stat)
{
	sum->hits += stat->hits;
	sum->misses += stat->misses;
	sum->answer_hits += stat->answer_hits;
	sum->answer_misses += stat->answer_misses;
	sum->stub_hits += stat->stub_hits;
	sum->stub_misses += stat->stub_misses;
	for (unsigned int kind = 1; kind <= SMART_NODE_KINDS; kind++)
		sum->node_bytes += stat->bytes[kind];
	sum->answer_bytes += stat->answer_bytes;
	sum->stub_bytes += stat->stub_bytes;
}

void
ycsb_cache_use_merge(struct ycsb_cache_use *sum, const struct ycsb_cache_use *part)
{
	sum->hits += part->hits;
	sum->misses += part->misses;
	sum->answer_hits += part->answer_hits;
	sum->answer_misses += part->answer_misses;
	sum->stub_hits += part->stub_hits;
	sum->stub_misses += part->stub_misses;
	sum->node_bytes += part->node_bytes;
	sum->answer_bytes += part->answer_bytes;
	sum->stub_bytes += part->stub_bytes;
}

/*
 * measure.h
 *	  What operations took: latencies, and what they cost on the fabric.
 */
#ifndef YCSB_MEASURE_H
#define YCSB_MEASURE_H

#include "compute/cache/cache.h"
#include "rdma/fabric.h"

enum ycsb_operation
{
	YCSB_READ,
	YCSB_UPDATE,
	YCSB_INSERT,
	YCSB_SCAN,
	YCSB_READ_MODIFY_WRITE,
	YCSB_OPERATIONS
};

/* Counts by latency: exact up to 64 ns, then 64 steps to a doubling (1.6 %). */
#define YCSB_STEPS     64
#define YCSB_DOUBLINGS 36
#define YCSB_BUCKETS   (YCSB_STEPS * (YCSB_DOUBLINGS + 1))

struct ycsb_histogram
{
	uint64_t count[YCSB_BUCKETS];
};

/* Of one client, or of many added up. */
struct ycsb_measure
{
	uint64_t operations[YCSB_OPERATIONS];
	struct fabric_counters cost[YCSB_OPERATIONS];
	struct ycsb_histogram latency[YCSB_OPERATIONS];
	uint64_t absent;  /* lookups that did not find their record */
	uint64_t entries; /* that scans returned */
};

/* Of caches: copies of nodes, cached results and leaf hints; hits and misses of some time, bytes at its end. */
struct ycsb_cache_use
{
	uint64_t hits;
	uint64_t misses;
	uint64_t result_hits;
	uint64_t result_misses;
	uint64_t hint_hits; /* an append looks for a leaf hint, and once more when it has locked the leaf */
	uint64_t hint_misses;
	uint64_t node_bytes;
	uint64_t result_bytes;
	uint64_t hint_bytes;
	uint64_t memory_bytes; /* of a model's memory nodes: blocks in use */
};

extern const char *const ycsb_operation_names[YCSB_OPERATIONS];

extern void ycsb_histogram_add(struct ycsb_histogram *histogram, uint64_t ns);

/* The latency in ns that a share (0 to 1) of the counted did not exceed, to 1.6 %; 0 if nothing was counted. */
extern double ycsb_histogram_quantile(const struct ycsb_histogram *histogram, double share);

/* An operation has ended; before and after: the client's counters. */
extern void ycsb_measure_operation(struct ycsb_measure *measure, enum ycsb_operation operation, uint64_t ns,
								   const struct fabric_counters *before, const struct fabric_counters *after);

/* Adds what a cache counted so far, and holds now. */
extern void ycsb_cache_use_add(struct ycsb_cache_use *sum, const struct smart_cache_stat *stat);

/* Adds up structures of 64-bit counters alone: measures, histograms, the fabric's counters, caches. */
extern void ycsb_add(void *sum, const void *part, size_t bytes);

#endif /* YCSB_MEASURE_H */

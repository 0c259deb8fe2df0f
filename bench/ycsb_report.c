/*
 * ycsb_report.c
 *	  Results as text and as CSV.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ycsb_report.h"

/* Averages of so many operations. */
static void
average(struct ycsb_summary *summary, const struct fabric_counters *cost, const struct ycsb_histogram *latency,
		uint64_t operations)
{
	double n = operations > 0 ? (double) operations : 1;

	summary->p50_us = ycsb_histogram_quantile(latency, 0.5) / 1000;
	summary->p99_us = ycsb_histogram_quantile(latency, 0.99) / 1000;
	summary->round_trips = (double) cost->round_trips / n;
	summary->reads = (double) cost->requests[FABRIC_READ] / n;
	summary->writes = (double) cost->requests[FABRIC_WRITE] / n;
	summary->atomics = (double) (cost->requests[FABRIC_CAS] + cost->requests[FABRIC_FAA]) / n;
	summary->read_bytes = (double) cost->bytes[FABRIC_READ] / n;
	summary->write_bytes = (double) cost->bytes[FABRIC_WRITE] / n;
}

static double
a_second(uint64_t operations, uint64_t elapsed_ns)
{
	return elapsed_ns > 0 ? (double) operations * 1e9 / (double) elapsed_ns : 0;
}

void
ycsb_summarize(const struct ycsb_result *result, struct ycsb_summary *summary)
{
	struct ycsb_histogram latency = {{0}};
	struct fabric_counters cost = {.round_trips = 0};
	uint64_t asked = result->cache.hits + result->cache.misses;
	uint64_t answers = result->cache.answer_hits + result->cache.answer_misses;

	for (int i = 0; i < YCSB_OPERATIONS; i++)
	{
		ycsb_histogram_merge(&latency, &result->measure->latency[i]);
		ycsb_counters_merge(&cost, &result->measure->cost[i]);
	}
	average(summary, &cost, &latency, result->operations);
	summary->throughput = a_second(result->operations, result->elapsed_ns);
	summary->hit_ratio = asked > 0 ? (double) result->cache.hits / (double) asked : -1;
	summary->answer_ratio = answers > 0 ? (double) result->cache.answer_hits / (double) answers : -1;
}

/* ---- text ---- */

static void
print_line(const char *name, unsigned int clients, const struct ycsb_summary *summary)
{
	char number[16] = "";
	char hits[16] = "";

	if (clients > 0)
		snprintf(number, sizeof(number), "%u", clients);
	if (summary->hit_ratio >= 0)
		snprintf(hits, sizeof(hits), "%.4f", summary->hit_ratio);
	printf("%-20s %7s %11.0f %9.2f %9.2f %7.3f %7.3f %7.3f %7.3f %9.1f %9.1f %7s\n", name, number, summary->throughput,
		   summary->p50_us, summary->p99_us, summary->round_trips, summary->reads, summary->writes, summary->atomics,
		   summary->read_bytes, summary->write_bytes, hits);
}

void
ycsb_print_heading(const struct ycsb_options *options)
{
	printf("%s, %s keys, %s, %s, %llu records, %llu operations, cache %llu bytes",
		   ycsb_provider_names[options->provider], options->string ? "string" : "integer",
		   options->zipf ? "zipf" : "uniform", options->shared ? "shared" : "exclusive",
		   (unsigned long long) options->keys, (unsigned long long) options->operations,
		   (unsigned long long) options->cache_bytes);
	if (options->provider == YCSB_SIM)
		printf(";\nvirtual time: %u compute nodes, %u memory nodes, round trip %llu ns, %llu requests/s a NIC, "
			   "%llu Gbit/s a link, %llu ns local work",
			   options->compute_nodes, options->memory_nodes, (unsigned long long) options->round_trip_ns,
			   (unsigned long long) options->nic_rate, (unsigned long long) options->gbits,
			   (unsigned long long) options->local_ns);
	printf("\n\n%-20s %7s %11s %9s %9s %7s %7s %7s %7s %9s %9s %7s\n", "workload", "clients", "ops/s", "p50 us",
		   "p99 us", "trips", "reads", "writes", "atomics", "read B", "write B", "hits");
}

static void
print_cache(const struct ycsb_cache_use *cache)
{
	uint64_t answers = cache->answer_hits + cache->answer_misses;
	uint64_t stubs = cache->stub_hits + cache->stub_misses;

	if (cache->node_bytes == 0)
		return;
	printf("  cache: %llu bytes of nodes, %llu of answers, %llu of stubs", (unsigned long long) cache->node_bytes,
		   (unsigned long long) cache->answer_bytes, (unsigned long long) cache->stub_bytes);
	if (answers > 0)
		printf("; answered %.4f", (double) cache->answer_hits / (double) answers);
	if (stubs > 0)
		printf("; stubs found %.4f", (double) cache->stub_hits / (double) stubs);
	putchar('\n');
}

void
ycsb_print_result(const struct ycsb_options *options, const struct ycsb_result *result)
{
	const struct ycsb_measure *measure = result->measure;
	struct ycsb_summary summary;

	ycsb_summarize(result, &summary);
	print_line(ycsb_workload_names[result->workload], result->clients, &summary);
	for (int i = 0; i < YCSB_OPERATIONS; i++)
	{
		char name[32];

		if (measure->operations[i] == 0 || measure->operations[i] == result->operations)
			continue;
		snprintf(name, sizeof(name), "  %s", ycsb_operation_names[i]);
		average(&summary, &measure->cost[i], &measure->latency[i], measure->operations[i]);
		summary.throughput = a_second(measure->operations[i], result->elapsed_ns);
		summary.hit_ratio = -1;
		print_line(name, 0, &summary);
	}
	print_cache(&result->cache);
	if (measure->absent > 0)
		printf("  absent %llu\n", (unsigned long long) measure->absent);
	fflush(stdout);
}

/* ---- CSV ---- */

static void
write_row(FILE *file, const struct ycsb_options *options, const struct ycsb_result *result)
{
	struct ycsb_summary summary;

	ycsb_summarize(result, &summary);
	fprintf(file, "%s,%s,%s,%s,%s,%llu,%llu,%u,%u,%u,%llu,%llu,", ycsb_workload_names[result->workload],
			ycsb_provider_names[options->provider], options->string ? "string" : "integer",
			options->zipf ? "zipf" : "uniform", options->shared ? "shared" : "exclusive",
			(unsigned long long) options->keys, (unsigned long long) result->operations, result->clients,
			options->compute_nodes, options->memory_nodes, (unsigned long long) options->cache_bytes,
			(unsigned long long) options->seed);
	fprintf(file, "%.1f,%.3f,%.3f,%.6f,%.6f,%.6f,%.6f,%.3f,%.3f,", summary.throughput, summary.p50_us, summary.p99_us,
			summary.round_trips, summary.reads, summary.writes, summary.atomics, summary.read_bytes,
			summary.write_bytes);
	if (summary.hit_ratio >= 0)
		fprintf(file, "%.6f", summary.hit_ratio);
	fprintf(file, ",%llu,%llu\n", (unsigned long long) result->measure->absent,
			(unsigned long long) result->measure->entries);
}

bool
ycsb_write_csv(const struct ycsb_options *options, const struct ycsb_results *results)
{
	FILE *file = fopen(options->csv, "w");

	if (file != NULL)
	{
		fputs("workload,provider,key_type,distribution,mode,keys,operations,clients,compute_nodes,memory_nodes,"
			  "cache_bytes,seed,throughput,p50_us,p99_us,round_trips,reads,writes,atomics,read_bytes,write_bytes,"
			  "hit_ratio,absent,scanned_entries\n",
			  file);
		for (unsigned int i = 0; i < results->count; i++)
			write_row(file, options, &results->result[i]);
		if (ferror(file) == 0 && fclose(file) == 0)
			return true;
	}
	fprintf(stderr, "ycsb: %s: %s\n", options->csv, strerror(errno));
	return false;
}

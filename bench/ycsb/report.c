/*
 * report.c
 *	  Results as text, as CSV, and as a picture.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "report.h"

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
	summary->messages = (double) cost->descents / n;
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
	uint64_t answers = result->cache.result_hits + result->cache.result_misses;

	for (int i = 0; i < YCSB_OPERATIONS; i++)
	{
		ycsb_add(&latency, &result->measure->latency[i], sizeof(latency));
		ycsb_add(&cost, &result->measure->cost[i], sizeof(cost));
	}
	average(summary, &cost, &latency, result->operations);
	summary->throughput = a_second(result->operations, result->elapsed_ns);
	summary->hit_ratio = asked > 0 ? (double) result->cache.hits / (double) asked : -1;
	summary->answer_ratio = answers > 0 ? (double) result->cache.result_hits / (double) answers : -1;
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

/* The simulated cluster, and what was asked for otherwise than the table has it. */
static void
print_model(const struct ycsb_options *options)
{
	printf(";\nvirtual time: %u compute nodes, %u memory nodes%s", options->compute_nodes, options->memory_nodes,
		   options->colocated ? " on the same machines" : "");
	if (options->copies > 1)
		printf(", %u copies", options->copies);
	for (int i = 0; i < SIM_PARAMETERS; i++)
	{
		const struct sim_parameter *parameter = &sim_parameters[i];
		uint64_t value = *(const uint64_t *) (const void *) ((const char *) &options->model + parameter->offset);

		if (value != parameter->value)
			printf(", %s %llu %s", parameter->name, (unsigned long long) value, parameter->unit);
	}
}

void
ycsb_print_heading(const struct ycsb_options *options)
{
	printf("%s, %s keys, %s, %s, %llu records, %llu operations, cache %llu bytes",
		   ycsb_provider_names[options->provider], ycsb_key_names[options->key_type],
		   options->zipf ? "zipf" : "uniform", options->shared ? "shared" : "exclusive",
		   (unsigned long long) options->keys, (unsigned long long) options->operations,
		   (unsigned long long) options->cache_bytes);
	if (options->provider == YCSB_SIM)
		print_model(options);
	printf("\n\n%-20s %7s %11s %9s %9s %7s %7s %7s %7s %9s %9s %7s\n", "workload", "clients", "ops/s", "p50 us",
		   "p99 us", "trips", "reads", "writes", "atomics", "read B", "write B", "hits");
}

static void
print_cache(const struct ycsb_cache_use *cache)
{
	uint64_t answers = cache->result_hits + cache->result_misses;
	uint64_t hints = cache->hint_hits + cache->hint_misses;

	if (cache->node_bytes == 0)
		return;
	printf("  cache: %llu bytes of nodes, %llu of cached results, %llu of leaf hints",
		   (unsigned long long) cache->node_bytes, (unsigned long long) cache->result_bytes,
		   (unsigned long long) cache->hint_bytes);
	if (answers > 0)
		printf("; answered %.4f", (double) cache->result_hits / (double) answers);
	if (hints > 0)
		printf("; leaf hints found %.4f", (double) cache->hint_hits / (double) hints);
	putchar('\n');
}

void
ycsb_print_result(const struct ycsb_options *options, const struct ycsb_result *result)
{
	const struct ycsb_measure *measure = result->measure;
	struct ycsb_summary summary;

	smart_assert(result->workload < YCSB_WORKLOADS);
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

/* Closes a file that may not have been opened; tells on stderr what went wrong with it. */
static bool
close_file(FILE *file, const char *path)
{
	if (file != NULL && ferror(file) == 0 && fclose(file) == 0)
		return true;
	fprintf(stderr, "ycsb: %s: %s\n", path, strerror(errno));
	return false;
}

static void
write_row(FILE *file, const struct ycsb_options *options, const struct ycsb_result *result)
{
	struct ycsb_summary summary;

	ycsb_summarize(result, &summary);
	fprintf(file, "%s,%s,%s,%s,%s,%llu,%llu,%u,%u,%u,%llu,%llu,", ycsb_workload_names[result->workload],
			ycsb_provider_names[options->provider], ycsb_key_names[options->key_type],
			options->zipf ? "zipf" : "uniform", options->shared ? "shared" : "exclusive",
			(unsigned long long) options->keys, (unsigned long long) result->operations, result->clients,
			options->compute_nodes, options->memory_nodes, (unsigned long long) options->cache_bytes,
			(unsigned long long) options->seed);
	fprintf(file, "%.1f,%.3f,%.3f,%.6f,%.6f,%.6f,%.6f,%.3f,%.3f,", summary.throughput, summary.p50_us, summary.p99_us,
			summary.round_trips, summary.reads, summary.writes, summary.atomics, summary.read_bytes,
			summary.write_bytes);
	if (summary.hit_ratio >= 0)
		fprintf(file, "%.6f", summary.hit_ratio);
	fprintf(file, ",%llu,%llu,%.6f,%llu\n", (unsigned long long) result->measure->absent,
			(unsigned long long) result->measure->entries, summary.messages,
			(unsigned long long) result->cache.memory_bytes);
}

bool
ycsb_write_csv(const struct ycsb_options *options, const struct ycsb_results *results)
{
	FILE *file = fopen(options->csv, "w");

	if (file != NULL)
	{
		fputs("workload,provider,key_type,distribution,mode,keys,operations,clients,compute_nodes,memory_nodes,"
			  "cache_bytes,seed,throughput,p50_us,p99_us,round_trips,reads,writes,atomics,read_bytes,write_bytes,"
			  "hit_ratio,absent,scanned_entries,messages,memory_bytes\n",
			  file);
		for (unsigned int i = 0; i < results->count; i++)
			write_row(file, options, &results->result[i]);
	}
	return close_file(file, options->csv);
}

/*
 * ---- the picture: throughput to the right, latency upwards (by powers of ten), a line for each workload through its
 * numbers of clients ----
 */

#define WIDTH  720
#define HEIGHT 420
#define LEFT   70 /* of the field */
#define RIGHT  600
#define TOP    60
#define BOTTOM 360
#define TICKS  5

static const char *const colours[YCSB_WORKLOADS] = {"#777777", "#c8553d", "#d99a2b", "#2a7f9e", "#5b8c3e",
													"#7a4fa3", "#b0417c", "#1f6f54", "#8a6d3b"};

struct field
{
	double throughput; /* at the right edge */
	double low_us;     /* at the lower one */
	double high_us;
};

/* The row … 0.001, 0.002, 0.005, 0.01, … */
static double
step(int number)
{
	static const double steps[] = {1, 2, 5};

	smart_assert(number >= 0);
	return steps[number % 3] * pow(10, number / 3 - 3);
}

/* The first of the row that is not below. */
static int
step_above(double value)
{
	int number = 0;

	while (step(number) < value)
		number++;
	return number;
}

static struct field
measure_field(const struct ycsb_results *results)
{
	struct field field = {0, INFINITY, 0};

	for (unsigned int i = 0; i < results->count; i++)
	{
		struct ycsb_summary summary;

		ycsb_summarize(&results->result[i], &summary);
		if (summary.throughput > field.throughput)
			field.throughput = summary.throughput;
		field.low_us = fmin(field.low_us, summary.p50_us);
		field.high_us = fmax(field.high_us, summary.p99_us);
	}
	return (struct field){step(step_above(field.throughput)), step(step_above(field.low_us / 2.5)),
						  step(step_above(field.high_us) + 1)};
}

static double
x_of(const struct field *field, double throughput)
{
	smart_assert(field->throughput > 0);
	return LEFT + (RIGHT - LEFT) * throughput / field->throughput;
}

static double
y_of(const struct field *field, double latency_us)
{
	double us = fmax(latency_us, field->low_us);

	smart_assert(field->low_us > 0 && field->low_us < field->high_us);
	return BOTTOM - (BOTTOM - TOP) * log(us / field->low_us) / log(field->high_us / field->low_us);
}

static void
draw_field(FILE *file, const struct ycsb_options *options, const struct field *field)
{
	fprintf(file,
			"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
			"font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
			WIDTH, HEIGHT);
	fprintf(file,
			"<text x=\"%d\" y=\"24\" font-size=\"16\" font-weight=\"bold\">YCSB on SMART: %s, %s keys, %s</text>\n",
			LEFT, ycsb_provider_names[options->provider], ycsb_key_names[options->key_type],
			options->zipf ? "zipf" : "uniform");
	fprintf(file,
			"<text x=\"%d\" y=\"43\" fill=\"#555\">latency (us) over throughput (thousand operations a second); "
			"solid: median, dashed: p99</text>\n",
			LEFT);
	for (int i = step_above(field->low_us); step(i) <= field->high_us; i++)
	{
		double y = y_of(field, step(i));

		fprintf(file, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", LEFT, RIGHT, y, y);
		fprintf(file, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 8, y + 4, step(i));
	}
	for (int i = 0; i <= TICKS; i++)
	{
		double throughput = field->throughput * i / TICKS;

		fprintf(file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", x_of(field, throughput),
				BOTTOM + 20, throughput / 1000);
	}
}

/* The points of a workload as they were measured, by their median or their 99th percentile. */
static void
draw_line(FILE *file, const struct ycsb_results *results, const struct field *field, enum ycsb_workload workload,
		  bool median)
{
	struct ycsb_summary summary;

	smart_assert(workload < YCSB_WORKLOADS);
	fprintf(file, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s points=\"", colours[workload],
			median ? "" : " stroke-dasharray=\"4 3\"");
	for (unsigned int i = 0; i < results->count; i++)
	{
		if (results->result[i].workload != workload)
			continue;
		ycsb_summarize(&results->result[i], &summary);
		fprintf(file, "%.1f,%.1f ", x_of(field, summary.throughput),
				y_of(field, median ? summary.p50_us : summary.p99_us));
	}
	fputs("\"/>\n", file);
}

static void
draw_points(FILE *file, const struct ycsb_results *results, const struct field *field)
{
	struct ycsb_summary summary;

	for (unsigned int i = 0; i < results->count; i++)
	{
		const struct ycsb_result *result = &results->result[i];

		ycsb_summarize(result, &summary);
		fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"><title>%s, %u clients</title></circle>\n",
				x_of(field, summary.throughput), y_of(field, summary.p50_us), colours[result->workload],
				ycsb_workload_names[result->workload], result->clients);
	}
}

/* The lines and names of the workloads that ran. */
static void
draw_workloads(FILE *file, const struct ycsb_results *results, const struct field *field)
{
	int shown = 0;

	for (int workload = 0; workload < YCSB_WORKLOADS; workload++)
	{
		bool ran = false;

		for (unsigned int i = 0; i < results->count; i++)
			ran |= (int) results->result[i].workload == workload;
		if (!ran)
			continue;
		draw_line(file, results, field, (enum ycsb_workload) workload, true);
		draw_line(file, results, field, (enum ycsb_workload) workload, false);
		fprintf(file, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\" fill=\"%s\">%s</text>\n", RIGHT + 24,
				TOP + 20 * ++shown, colours[workload], ycsb_workload_names[workload]);
	}
}

bool
ycsb_write_svg(const struct ycsb_options *options, const struct ycsb_results *results)
{
	struct field field = measure_field(results);
	FILE *file = fopen(options->svg, "w");

	if (file != NULL)
	{
		draw_field(file, options, &field);
		draw_workloads(file, results, &field);
		draw_points(file, results, &field);
		fputs("</svg>\n", file);
	}
	return close_file(file, options->svg);
}

/*
 * ycsb_svg.c
 *	  Results as a picture: throughput to the right, latency upwards (by powers of
 *	  ten), a line for each workload through its numbers of clients.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ycsb_report.h"

#define WIDTH  720
#define HEIGHT 420
#define LEFT   70 /* of the field */
#define RIGHT  600
#define TOP    60
#define BOTTOM 360
#define TICKS  5

static const char *const colours[YCSB_WORKLOADS] = {"#777777", "#c8553d", "#d99a2b", "#2a7f9e",
													"#5b8c3e", "#7a4fa3", "#b0417c", "#1f6f54"};

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
	return LEFT + (RIGHT - LEFT) * throughput / field->throughput;
}

static double
y_of(const struct field *field, double latency_us)
{
	double us = fmax(latency_us, field->low_us);

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
			LEFT, ycsb_provider_names[options->provider], options->string ? "string" : "integer",
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
		if (ferror(file) == 0 && fclose(file) == 0)
			return true;
	}
	fprintf(stderr, "ycsb: %s: %s\n", options->svg, strerror(errno));
	return false;
}

/*
 * report.h
 *	  Results as text, CSV, and a picture.
 */
#ifndef YCSB_REPORT_H
#define YCSB_REPORT_H

#include "run.h"

/* What one operation of a run cost, on average. */
struct ycsb_summary
{
	double throughput; /* operations a second */
	double p50_us;
	double p99_us;
	double round_trips;
	double reads;
	double writes;
	double atomics;
	double messages;
	double read_bytes;
	double write_bytes;
	double hit_ratio;    /* of the caches; negative: they were not asked */
	double answer_ratio; /* the same of cached results */
};

/* Of all operations of a run. */
extern void ycsb_summarize(const struct ycsb_result *result, struct ycsb_summary *summary);

/* The heading of a table; a run's line, and one for each kind of operation if there are several. */
extern void ycsb_print_heading(const struct ycsb_options *options);
extern void ycsb_print_result(const struct ycsb_options *options, const struct ycsb_result *result);

/* Writes a file.  False: the reason was told on stderr. */
extern bool ycsb_write_csv(const struct ycsb_options *options, const struct ycsb_results *results);
extern bool ycsb_write_svg(const struct ycsb_options *options, const struct ycsb_results *results);

#endif /* YCSB_REPORT_H */

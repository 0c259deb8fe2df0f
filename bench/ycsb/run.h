/*
 * run.h
 *	  Runs what the options ask for: the load, and each workload, one after the
 *	  other on the same tree.
 */
#ifndef YCSB_RUN_H
#define YCSB_RUN_H

#include "measure.h"
#include "options.h"

#define YCSB_RESULTS_MAX 128

/* One workload with one number of clients. */
struct ycsb_result
{
	enum ycsb_workload workload;
	unsigned int clients; /* in all */
	uint64_t operations;
	uint64_t elapsed_ns; /* from the first operation's begin to the last one's end */
	struct ycsb_cache_use cache;
	struct ycsb_measure *measure;
};

struct ycsb_results
{
	unsigned int moved;  /* ranges that have changed hands */
	uint64_t longest_ns; /* for which one of them could not be used */
	unsigned int count;
	struct ycsb_result result[YCSB_RESULTS_MAX];
};

/*
 * Called after each run of a workload that was asked for.  False: something failed, and was told on stderr.
 */
typedef void (*ycsb_report)(const struct ycsb_options *options, const struct ycsb_result *result);

extern bool ycsb_run(const struct ycsb_options *options, ycsb_report report, struct ycsb_results *results);

/* Frees what run left in results. */
extern void ycsb_results_free(struct ycsb_results *results);

#endif /* YCSB_RUN_H */

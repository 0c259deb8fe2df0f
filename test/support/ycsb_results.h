/*
 * ycsb_results.h
 *	  A run of the benchmark within a test.
 */
#ifndef TEST_YCSB_RESULTS_H
#define TEST_YCSB_RESULTS_H

#include <stdlib.h>

#include "bench/ycsb/report.h"
#include "bench/ycsb/run.h"
#include "support/check.h"

/* Of the options; a lookup that misses its record fails the run.  To be released. */
static inline struct ycsb_results *
ycsb_results_of(const struct ycsb_options *options)
{
	struct ycsb_results *results = calloc(1, sizeof(*results));

	if (results == NULL)
		abort();
	CHECK(ycsb_run(options, NULL, results));
	return results;
}

static inline void
ycsb_results_release(struct ycsb_results *results)
{
	ycsb_results_free(results);
	free(results);
}

#endif /* TEST_YCSB_RESULTS_H */

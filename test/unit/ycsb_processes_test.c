/*
 * ycsb_processes_test.c
 *	  Runs of the benchmark whose compute nodes are processes: on this program's
 *	  memory, and on two real memory nodes by way of messages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/ycsb/run.h"
#include "support/check.h"
#include "support/memnodes.h"

#define KEYS       3000
#define OPERATIONS 1500
#define PROCESSES  3
#define CLIENTS    2 /* of each */

static void
default_options(struct ycsb_options *options)
{
	ycsb_options_default(options);
	options->keys = KEYS;
	options->operations = OPERATIONS;
	options->warmup = 0;
	options->check = true;
	options->cache_bytes = 1 << 20;
	options->clients = CLIENTS;
	options->compute_nodes = PROCESSES;
	for (int i = 0; i < YCSB_WORKLOADS; i++)
		options->wanted[i] = true;
}

/* No process's operations got lost, and the tree was checked. */
static void
check_run(const struct ycsb_options *options, bool remote)
{
	struct ycsb_results *results = calloc(1, sizeof(*results));

	CHECK(results != NULL && ycsb_run(options, NULL, results) && results->count == YCSB_WORKLOADS);
	for (unsigned int i = 0; results != NULL && i < results->count; i++)
	{
		const struct ycsb_result *result = &results->result[i];
		uint64_t operations = 0;
		uint64_t round_trips = 0;

		for (int kind = 0; kind < YCSB_OPERATIONS; kind++)
		{
			operations += result->measure->operations[kind];
			round_trips += result->measure->cost[kind].round_trips;
		}
		CHECK(operations == (i == YCSB_LOAD ? KEYS : OPERATIONS));
		CHECK(result->clients == options->clients * options->compute_nodes);
		CHECK(remote ? round_trips + result->cache.result_hits >= operations && result->cache.hits > 0
					 : round_trips == 0);
	}
	if (results != NULL)
		ycsb_results_free(results);
	free(results);
}

int
main(void)
{
	struct test_memnodes *nodes = test_memnodes_open(2, true);
	struct ycsb_options options;
	char secret[64];
	char places[64];

	default_options(&options);
	options.provider = YCSB_LOCAL;
	check_run(&options, false);
	options.provider = YCSB_TCP;
	snprintf(places, sizeof(places), "127.0.0.1:%s,127.0.0.1:%s", nodes->node[0].port, nodes->node[1].port);
	snprintf(secret, sizeof(secret), "%s/secret", nodes->directory);
	options.nodes = places;
	options.secret_file = secret;
	options.memory_nodes = 2;
	check_run(&options, true);
	options.shared = false;
	options.compute_nodes = 1;
	check_run(&options, true);
	test_memnodes_close(nodes);
	return check_finish();
}

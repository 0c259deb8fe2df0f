/*
 * run.c
 *	  Runs workloads on a cluster.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "peers.h"
#include "random.h"
#include "run.h"
#include "workload.h"

#define SHARED_MORE 4096 /* what alignment takes */

/* What the clients of a run have in common, in memory that all processes share. */
struct common
{
	struct ycsb_task task;
	struct ycsb_records records;
};

struct run
{
	const struct ycsb_options *options;
	struct ycsb_shared shared;
	struct common *common;
	struct ycsb_measure *measure; /* of each client, as ended_ns */
	uint64_t *ended_ns;
	struct ycsb_cluster *cluster;
	struct ycsb_results *results;
	ycsb_report report;
	unsigned int tasks; /* so far */
};

/* ---- one workload with some clients ---- */

static bool
run_task(struct run *run, struct ycsb_task *task, struct ycsb_result *result)
{
	struct ycsb_client *first = run->cluster->client[0];
	uint64_t begin_ns = first->env->now_ns(first->env);
	uint64_t end_ns = begin_ns;
	struct ycsb_cache_use before;

	smart_assert(task->clients >= 1 && task->clients <= run->cluster->clients);
	run->cluster->cache_use(run->cluster, &before);
	if (!run->cluster->run(run->cluster, task->clients, ycsb_work_off, task) || task->failed)
		return false;
	for (unsigned int i = 0; i < task->clients; i++)
	{
		ycsb_add(result->measure, &task->measure[i], sizeof(task->measure[i]));
		if (task->ended_ns[i] > end_ns)
			end_ns = task->ended_ns[i];
	}
	smart_assert(end_ns >= begin_ns);
	result->elapsed_ns = end_ns - begin_ns;
	run->cluster->cache_use(run->cluster, &result->cache);
	result->cache.hits -= before.hits;
	result->cache.misses -= before.misses;
	result->cache.result_hits -= before.result_hits;
	result->cache.result_misses -= before.result_misses;
	result->cache.hint_hits -= before.hint_hits;
	result->cache.hint_misses -= before.hint_misses;
	/* Where nothing is updated, every record that is asked for is there all the time. */
	if (result->measure->absent == 0 ||
		(first->index->update_is_removal &&
		 (task->workload == YCSB_A || task->workload == YCSB_B || task->workload == YCSB_F)))
		return true;
	fprintf(stderr, "ycsb: workload %s: %llu lookups did not find their records\n", ycsb_workload_names[task->workload],
			(unsigned long long) result->measure->absent);
	return false;
}

static bool
run_workload(struct run *run, enum ycsb_workload workload, unsigned int clients, uint64_t operations,
			 struct ycsb_result *result)
{
	struct ycsb_task *task = &run->common->task;

	smart_assert(clients >= 1 && clients <= run->cluster->clients);
	*task = (struct ycsb_task){
		.options = run->options,
		.workload = workload,
		.clients = clients,
		.operations = operations,
		.seed = run->options->seed + ((uint64_t) ++run->tasks << 32),
		.records = &run->common->records,
		.measure = run->measure,
		.ended_ns = run->ended_ns,
	};
	*result = (struct ycsb_result){
		.workload = workload,
		.clients = clients,
		.operations = operations,
		.measure = calloc(1, sizeof(struct ycsb_measure)),
	};
	if (result->measure == NULL)
	{
		perror("ycsb");
		return false;
	}
	memset(run->measure, 0, clients * sizeof(*run->measure));
	return run_task(run, task, result);
}

static void
keep(struct run *run, const struct ycsb_result *result)
{
	smart_assert(run->results->count < YCSB_RESULTS_MAX);
	run->results->result[run->results->count++] = *result;
	if (run->report != NULL)
		run->report(run->options, result);
}

/* With this number of clients: the warm-up, and what is counted. */
static bool
measure_workload(struct run *run, enum ycsb_workload workload, unsigned int clients)
{
	struct ycsb_result result;
	bool done = true;

	if (run->results->count == YCSB_RESULTS_MAX)
	{
		fprintf(stderr, "ycsb: more than %d runs\n", YCSB_RESULTS_MAX);
		return false;
	}
	if (run->options->warmup > 0)
	{
		done = run_workload(run, workload, clients, run->options->warmup, &result);
		free(result.measure);
	}
	if (!done)
		return false;
	done = run_workload(run, workload, clients, run->options->operations, &result);
	if (done)
		keep(run, &result);
	else
		free(result.measure);
	return done;
}

/* With 1, 2, 4, … clients of each compute node, and with all. */
static bool
measure_curve(struct run *run, enum ycsb_workload workload)
{
	unsigned int most = run->options->clients;
	unsigned int clients = run->options->timed ? 1 : most;

	for (;;)
	{
		smart_assert(clients >= 1 && clients <= most);
		if (!measure_workload(run, workload, clients * run->options->compute_nodes))
			return false;
		if (clients == most)
			return true;
		clients = 2 * clients < most ? 2 * clients : most;
	}
}

/* ---- all of it ---- */

/* The tree, or those of all ranges, added up as far as check wants. */
static smart_status
verify(struct ycsb_cluster *cluster, struct smart_verify_report *sum, char *message, size_t message_size)
{
	struct ycsb_client *first = cluster->client[0];
	struct smart_verify_report report;
	smart_status status = SMART_OK;

	if (cluster->turn_to == NULL)
		return smart_tree_verify(first->tree, NULL, NULL, sum, message, message_size);
	*sum = (struct smart_verify_report){.entries = 0};
	for (unsigned int range = 0; status == SMART_OK && cluster->turn_to(first, range); range++)
	{
		status = smart_tree_verify(first->tree, NULL, NULL, &report, message, message_size);
		sum->entries += status == SMART_OK ? report.entries : 0;
		sum->bytes_blocks += status == SMART_OK ? report.bytes_blocks : 0;
	}
	return status;
}

/* Is the tree whole, with every record, and every entry beside one, once? */
static bool
check(struct run *run)
{
	const struct ycsb_records *records = &run->common->records;
	uint64_t entries = ycsb_records_present(records) + records->piggyback;
	struct ycsb_client *first = run->cluster->client[0];
	struct smart_verify_report report;
	char message[256] = "";
	smart_status status = run->cluster->apply_all == NULL ? SMART_OK : run->cluster->apply_all(first);

	if (status == SMART_OK)
		status = verify(run->cluster, &report, message, sizeof(message));

	if (status != SMART_OK)
		fprintf(stderr, "ycsb: the tree: %s: %s\n", smart_status_text(status), message);
	else if (report.entries != entries)
		fprintf(stderr, "ycsb: the tree has %llu entries instead of %llu\n", (unsigned long long) report.entries,
				(unsigned long long) entries);
	else
	{
		printf("the tree: %llu entries, %.2f bytes each in its leaves and nodes\n", (unsigned long long) entries,
			   (double) report.bytes_blocks / (double) (entries > 0 ? entries : 1));
		return true;
	}
	return false;
}

/* From a sorted run, which nobody measures. */
static bool
load_sorted(struct run *run)
{
	struct ycsb_client *first = run->cluster->client[0];
	smart_status status = first->index->load(first, run->options);

	smart_assert(run->common->records.next == 0);
	if (status != SMART_OK)
		return ycsb_complain("loading", status);
	run->common->records.next = run->options->keys;
	run->common->records.present = run->options->keys;
	return true;
}

static bool
load(struct run *run)
{
	struct ycsb_result loaded;
	bool done;

	if (run->options->sorted)
		return load_sorted(run);
	done = run_workload(run, YCSB_LOAD, run->cluster->clients, run->options->keys, &loaded);
	if (done && run->options->wanted[YCSB_LOAD])
		keep(run, &loaded);
	else
		free(loaded.measure);
	return done;
}

static void
tell_moves(struct run *run)
{
	const struct ycsb_moves *moves = run->cluster->moves;

	smart_assert(moves != NULL);
	run->results->moved = moves->count;
	run->results->longest_ns = moves->longest_ns;
	printf("ranges: %u changed hands, each in %.1f us at most\n", moves->count, (double) moves->longest_ns / 1000);
}

static bool
run_all(struct run *run)
{
	if (!load(run))
		return false;
	for (int workload = YCSB_A; workload < YCSB_WORKLOADS; workload++)
	{
		if (run->options->wanted[workload] && !measure_curve(run, (enum ycsb_workload) workload))
			return false;
	}
	if (run->options->move)
		tell_moves(run);
	return !run->options->check || check(run);
}

static bool
open_shared(struct run *run)
{
	const struct ycsb_options *options = run->options;
	size_t clients = (size_t) options->clients * options->compute_nodes;
	size_t bytes = sizeof(*run->common) + clients * (sizeof(*run->measure) + sizeof(*run->ended_ns));

	if (!ycsb_shared_open(&run->shared, bytes + ycsb_real_bytes(options) + SHARED_MORE))
	{
		perror("ycsb: shared memory");
		return false;
	}
	run->common = ycsb_shared_allocate(&run->shared, sizeof(*run->common));
	run->measure = ycsb_shared_allocate(&run->shared, clients * sizeof(*run->measure));
	run->ended_ns = ycsb_shared_allocate(&run->shared, clients * sizeof(*run->ended_ns));
	smart_assert(run->common != NULL && run->measure != NULL && run->ended_ns != NULL);
	return true;
}

bool
ycsb_run(const struct ycsb_options *options, ycsb_report report, struct ycsb_results *results)
{
	struct run run = {
		.options = options,
		.results = results,
		.report = report,
	};
	bool done = false;

	results->count = 0;
	if (!open_shared(&run))
		return false;
	if (options->index != YCSB_TREE)
		run.cluster = ycsb_peer_open(options);
	else if (options->provider == YCSB_SIM)
		run.cluster = ycsb_sim_open(options);
	else
		run.cluster = ycsb_real_open(options, &run.shared);
	if (run.cluster != NULL)
	{
		done = run_all(&run);
		run.cluster->close(run.cluster);
	}
	ycsb_shared_close(&run.shared);
	return done;
}

void
ycsb_results_free(struct ycsb_results *results)
{
	for (unsigned int i = 0; i < results->count; i++)
		free(results->result[i].measure);
	results->count = 0;
}

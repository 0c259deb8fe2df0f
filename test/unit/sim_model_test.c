/*
 * sim_model_test.c
 *	  The simulated cluster's clock against closed formulas: what one client waits
 *	  for is the sum of its parts, and many clients come up to the limit of whatever
 *	  is scarce, and no further.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/sim/timed.h"
#include "support/check.h"

#define BYTES        (1 << 20)
#define CLIENTS      128
#define OPERATIONS   400      /* of each client */
#define READ_HEADERS (16 + 4) /* RETH of the request, AETH of the answer */

/* What a run is like: compute nodes, memory nodes, and the request that every client repeats. */
struct setting
{
	struct sim_model model;
	unsigned int compute_nodes;
	unsigned int memory_nodes;
	unsigned int clients;
	bool colocated;
	enum fabric_verb verb;
	uint32_t length;
	bool same_word;   /* atomics on one word, or each client on one of its own */
	uint64_t work_ns; /* messages instead, on which a core works so long; 0: requests */
};

struct bench
{
	struct setting setting;
	struct sim_timed cluster;
	struct sim_timed_client client[CLIENTS];
	uint8_t *memory[SIM_TIMED_NODES_MAX];
	unsigned int served;
};

static struct bench bench;

static void
serve(void *argument)
{
	bench.served++;
}

static void
repeat(void *argument)
{
	struct sim_timed_client *client = argument;
	unsigned int number = (unsigned int) (client - bench.client);
	const struct setting *setting = &bench.setting;
	uint8_t buffer[4096];

	for (unsigned int i = 0; i < OPERATIONS; i++)
	{
		unsigned int node = (number + i) % setting->memory_nodes;
		struct fabric_request request = {.verb = setting->verb,
										 .length = setting->length,
										 .remote = fabric_make_address(node, setting->same_word ? 0 : 4096 * number),
										 .local = buffer};
		struct sim_timed_message message = {.node = node, .work_ns = setting->work_ns, .serve = serve};

		if (setting->work_ns > 0)
			sim_timed_call(client, &message);
		else
			CHECK(fabric_execute(&client->fabric, &request, 1) == SMART_OK);
	}
}

/* Operations a second; with one client also *latency_ns. */
static double
run(const struct setting *setting, uint64_t *latency_ns)
{
	struct sim_timed_options options = {.memory_nodes = setting->memory_nodes,
										.compute_nodes = setting->compute_nodes,
										.bytes = BYTES,
										.colocated = setting->colocated,
										.model = setting->model};
	uint64_t elapsed_ns;

	bench.setting = *setting;
	bench.served = 0;
	for (unsigned int i = 0; i < setting->memory_nodes; i++)
	{
		bench.memory[i] = calloc(1, BYTES);
		options.base[i] = bench.memory[i];
	}
	CHECK(sim_timed_init(&bench.cluster, &options));
	for (unsigned int i = 0; i < setting->clients; i++)
	{
		sim_timed_client_init(&bench.client[i], &bench.cluster, i % setting->compute_nodes);
		sim_timed_start(&bench.client[i], repeat, &bench.client[i]);
	}
	sim_timed_run(&bench.cluster);
	elapsed_ns = sim_timed_now_ns(&bench.cluster);
	for (unsigned int i = 0; i < setting->clients; i++)
		sim_timed_client_close(&bench.client[i]);
	for (unsigned int i = 0; i < setting->memory_nodes; i++)
		free(bench.memory[i]);
	sim_timed_close(&bench.cluster);
	CHECK(setting->work_ns == 0 || bench.served == setting->clients * OPERATIONS);
	if (latency_ns != NULL)
		*latency_ns = elapsed_ns / OPERATIONS;
	return (double) setting->clients * OPERATIONS * 1e9 / (double) elapsed_ns;
}

/* Many clients on many compute nodes, each with cores enough; READs of 8 bytes from one memory node. */
static struct setting
plenty(void)
{
	struct setting setting = {.compute_nodes = 16,
							  .memory_nodes = 1,
							  .clients = CLIENTS,
							  .verb = FABRIC_READ,
							  .length = 8};

	sim_model_default(&setting.model);
	return setting;
}

/* Within two parts of a hundred: the first requests and the last ones find the queues empty. */
static bool
near(double value, double expected)
{
	return value > 0.98 * expected && value < 1.02 * expected;
}

/* ---- one client ---- */

static void
check_latency(void)
{
	struct setting setting = plenty();
	struct sim_model *model = &setting.model;
	uint64_t latency_ns;
	uint64_t cpu_ns = model->doorbell_ns + model->request_ns + model->poll_ns;

	setting.clients = 1;
	for (setting.length = 8; setting.length <= 4096; setting.length *= 8)
	{
		uint64_t wire = setting.length + 2 * model->packet_bytes + READ_HEADERS;

		run(&setting, &latency_ns);
		CHECK(latency_ns == cpu_ns + model->round_trip_ns + wire * 8 / model->gbits);
		setting.verb = FABRIC_WRITE;
		run(&setting, &latency_ns);
		CHECK(latency_ns == cpu_ns + model->round_trip_ns + wire * 8 / model->gbits);
		setting.verb = FABRIC_READ;
	}
	setting.verb = FABRIC_CAS;
	run(&setting, &latency_ns);
	CHECK(latency_ns == cpu_ns + model->round_trip_ns + (2 * model->packet_bytes + 28 + 4 + 8) * 8 / model->gbits);
	setting.work_ns = 700;
	run(&setting, &latency_ns);
	CHECK(latency_ns ==
		  cpu_ns + model->round_trip_ns + model->message_ns + 700 + 2 * model->packet_bytes * 8 / model->gbits);
}

/* A fenced request waits for the atomic before it: two round trips, and two are counted. */
static void
check_fence(void)
{
	static uint64_t memory[16];
	struct sim_timed_options options = {.memory_nodes = 1,
										.compute_nodes = 1,
										.bytes = sizeof(memory),
										.base = {(uint8_t *) memory}};
	uint64_t word = 7;
	struct fabric_request requests[] = {
		{.verb = FABRIC_CAS, .remote = 0, .operand = 1},
		{.verb = FABRIC_WRITE, .length = 8, .remote = 8, .local = &word},
		{.verb = FABRIC_WRITE, .fence = true, .length = 8, .remote = 16, .local = &word},
	};
	struct fabric *fabric = &bench.client[0].fabric;

	sim_model_default(&options.model);
	CHECK(sim_timed_init(&bench.cluster, &options));
	sim_timed_client_init(&bench.client[0], &bench.cluster, 0);
	CHECK(fabric_execute(fabric, requests, 2) == SMART_OK && fabric->counters.round_trips == 1);
	CHECK(fabric_execute(fabric, requests, 3) == SMART_OK && fabric->counters.round_trips == 3);
	CHECK(fabric->counters.doorbells == 2 && sim_timed_now_ns(&bench.cluster) > 3 * options.model.round_trip_ns);
	sim_timed_client_close(&bench.client[0]);
	sim_timed_close(&bench.cluster);
}

/* ---- limits ---- */

static void
check_links(void)
{
	struct setting setting = plenty();

	setting.length = 1024;
	CHECK(near(run(&setting, NULL), 100e9 / 8 / (1024 + 26 + 4)));
	setting.verb = FABRIC_WRITE;
	CHECK(near(run(&setting, NULL), 100e9 / 8 / (1024 + 26 + 16)));
	/* One compute node's link carries what two memory nodes send; two of a compute node's do not help one memory node. */
	setting.verb = FABRIC_READ;
	setting.compute_nodes = 1;
	setting.memory_nodes = 2;
	CHECK(near(run(&setting, NULL), 100e9 / 8 / (1024 + 26 + 4)));
	setting.compute_nodes = 16;
	CHECK(near(run(&setting, NULL), 2 * 100e9 / 8 / (1024 + 26 + 4)));
}

static void
check_nics(void)
{
	struct setting setting = plenty();

	setting.model.nic_rate = 20000000;
	CHECK(near(run(&setting, NULL), 20e6));
	setting.memory_nodes = 2;
	CHECK(near(run(&setting, NULL), 40e6));
	setting.compute_nodes = 1;
	CHECK(near(run(&setting, NULL), 20e6));
	/* Every NIC is both ends' of as many requests. */
	setting.compute_nodes = 2;
	setting.colocated = true;
	CHECK(near(run(&setting, NULL), 20e6));
}

static void
check_atomics(void)
{
	struct setting setting = plenty();

	setting.verb = FABRIC_FAA;
	CHECK(near(run(&setting, NULL), 20e6));
	setting.memory_nodes = 2;
	CHECK(near(run(&setting, NULL), 40e6));
	setting.same_word = true;
	CHECK(near(run(&setting, NULL), 2 * 1e9 / 400));
	setting.memory_nodes = 1;
	CHECK(near(run(&setting, NULL), 1e9 / 400));
}

static void
check_cores(void)
{
	struct setting setting = plenty();
	const struct sim_model *model = &setting.model;
	double cpu_ns = (double) (model->doorbell_ns + model->request_ns + model->poll_ns);

	setting.compute_nodes = 1;
	setting.model.compute_cores = 2;
	CHECK(near(run(&setting, NULL), 2e9 / cpu_ns));
	setting.model.compute_cores = 64;
	setting.work_ns = 1000;
	CHECK(near(run(&setting, NULL), 1e9 / (double) (model->message_ns + 1000)));
	setting.model.memory_cores = 3;
	CHECK(near(run(&setting, NULL), 3e9 / (double) (model->message_ns + 1000)));
}

/* The documentation has the table as it is. */
static void
check_documentation(void)
{
	static char text[1 << 16];
	FILE *file = fopen("doc/evidence.md", "r");

	CHECK(file != NULL && fread(text, 1, sizeof(text) - 1, file) > 0);
	for (int i = 0; i < SIM_PARAMETERS; i++)
	{
		const struct sim_parameter *parameter = &sim_parameters[i];
		char row[1024];

		snprintf(row, sizeof(row), "| `--%s` | %llu %s | %s | %s |\n", parameter->name,
				 (unsigned long long) parameter->value, parameter->unit, parameter->meaning, parameter->source);
		CHECK(strstr(text, row) != NULL);
	}
	if (file != NULL)
		fclose(file);
}

int
main(void)
{
	check_documentation();
	check_latency();
	check_fence();
	check_links();
	check_nics();
	check_atomics();
	check_cores();
	return check_finish();
}

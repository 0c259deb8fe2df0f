/*
 * ycsb_timed_test.c
 *	  The simulated fabric in virtual time: what verbs do, and when it says that
 *	  they have been done.  The clock is virtual, so its times are exact.
 */
#include <stdlib.h>
#include <string.h>

#include "rdma/sim/timed.h"
#include "support/check.h"

#define ROUND_TRIP 2000
#define BYTES      4096
#define CLIENTS    4

struct bench
{
	struct sim_timed cluster;
	struct sim_timed_client client[CLIENTS];
	struct sim_timed_lock lock;
	unsigned int turn; /* clients that have had the lock */
};

static uint64_t memory[2][BYTES / 8];

/* A round trip, and nothing else takes time. */
static void
model_of_nothing(struct sim_model *model)
{
	*model = (struct sim_model){.round_trip_ns = ROUND_TRIP,
								.nic_rate = 1000000000,
								.gbits = 10000,
								.mtu_bytes = 4096,
								.atomic_rate = 1000000000,
								.compute_cores = CLIENTS,
								.memory_cores = 1};
}

/* Clients 0 and 1 on one compute node, 2 and 3 on another. */
static struct bench *
open_bench(uint64_t nic_rate, uint64_t gbits)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	struct sim_timed_options options = {
		.memory_nodes = 2,
		.compute_nodes = 2,
		.bytes = BYTES,
		.base = {(uint8_t *) memory[0], (uint8_t *) memory[1]},
	};

	if (bench == NULL)
		abort();
	memset(memory, 0, sizeof(memory));
	model_of_nothing(&options.model);
	options.model.nic_rate = nic_rate;
	options.model.gbits = gbits;
	CHECK(sim_timed_init(&bench->cluster, &options));
	for (unsigned int i = 0; i < CLIENTS; i++)
		sim_timed_client_init(&bench->client[i], &bench->cluster, i / 2);
	return bench;
}

static void
close_bench(struct bench *bench)
{
	for (unsigned int i = 0; i < CLIENTS; i++)
		sim_timed_client_close(&bench->client[i]);
	sim_timed_close(&bench->cluster);
	free(bench);
}

static uint64_t
now(const struct bench *bench)
{
	return sim_timed_now_ns(&bench->cluster);
}

/* ---- verbs ---- */

static void
check_verbs(void)
{
	struct bench *bench = open_bench(1000000000, 10000);
	struct fabric *fabric = &bench->client[0].fabric;
	uint64_t wrote[2] = {7, 8};
	uint64_t read[2] = {0, 0};
	struct fabric_request requests[] = {
		{.verb = FABRIC_WRITE, .length = 16, .remote = fabric_make_address(1, 64), .local = wrote},
		{.verb = FABRIC_CAS, .remote = fabric_make_address(1, 64), .compare = 7, .operand = 9},
		{.verb = FABRIC_CAS, .remote = fabric_make_address(1, 64), .compare = 7, .operand = 10},
		{.verb = FABRIC_FAA, .remote = fabric_make_address(1, 72), .operand = 5},
		{.verb = FABRIC_READ, .length = 16, .remote = fabric_make_address(1, 64), .local = read},
	};
	struct fabric_request outside = {.verb = FABRIC_READ, .length = 16, .remote = BYTES - 8, .local = read};
	struct fabric_request nowhere = {.verb = FABRIC_READ,
									 .length = 8,
									 .remote = fabric_make_address(2, 0),
									 .local = read};
	struct fabric_request skew = {.verb = FABRIC_CAS, .remote = 4};

	CHECK(fabric_execute(fabric, requests, 5) == SMART_OK);
	CHECK(requests[1].result == 7 && requests[2].result == 9 && requests[3].result == 8);
	CHECK(read[0] == 9 && read[1] == 13);
	CHECK(memory[1][8] == 9 && memory[1][9] == 13 && memory[0][8] == 0);
	CHECK(fabric->counters.round_trips == 1 && fabric->counters.doorbells == 1);
	CHECK(fabric->counters.requests[FABRIC_CAS] == 2 && fabric->counters.bytes[FABRIC_READ] == 16);
	CHECK(fabric_execute(fabric, &outside, 1) == SMART_CORRUPT);
	CHECK(fabric_execute(fabric, &nowhere, 1) == SMART_CORRUPT);
	CHECK(fabric_execute(fabric, &skew, 1) == SMART_CORRUPT);
	CHECK(fabric->counters.round_trips == 1);
	close_bench(bench);
}

/* ---- time ---- */

/* One READ of so many bytes from each of two memory nodes; the time it takes. */
static uint64_t
time_of_read(struct bench *bench, uint32_t bytes)
{
	uint64_t begin = now(bench);
	uint8_t buffer[2][1024];
	struct fabric_request requests[2];

	for (unsigned int i = 0; i < 2; i++)
		requests[i] = (struct fabric_request){.verb = FABRIC_READ,
											  .length = bytes,
											  .remote = fabric_make_address(i, 0),
											  .local = buffer[i]};
	CHECK(fabric_execute(&bench->client[0].fabric, requests, 2) == SMART_OK);
	CHECK(bench->client[0].fabric.counters.doorbells == 2 * bench->client[0].fabric.counters.round_trips);
	return now(bench) - begin;
}

/* A CAS, and another request behind it; the time they take. */
static uint64_t
time_behind_atomic(struct bench *bench, bool fence, unsigned int node)
{
	uint64_t begin = now(bench);
	uint64_t word = 1;
	struct fabric_request requests[] = {
		{.verb = FABRIC_CAS, .remote = fabric_make_address(0, 0)},
		{.verb = FABRIC_WRITE, .fence = fence, .length = 8, .remote = fabric_make_address(node, 8), .local = &word},
	};

	CHECK(fabric_execute(&bench->client[0].fabric, requests, 2) == SMART_OK);
	return now(bench) - begin;
}

static void
check_time(void)
{
	struct bench *bench = open_bench(1000000000, 1);

	/* At one bit a nanosecond the link of the compute node carries both requests of 16 bytes, and both replies. */
	CHECK(time_of_read(bench, 8) == ROUND_TRIP + 8 * (2 * 16 + (8 + 4)));
	CHECK(time_of_read(bench, 1000) == ROUND_TRIP + 8 * (16 + 2 * (1000 + 4)));
	close_bench(bench);

	bench = open_bench(1000000000, 10000);
	CHECK(time_behind_atomic(bench, false, 0) < ROUND_TRIP + 10);
	CHECK(time_behind_atomic(bench, true, 1) < ROUND_TRIP + 10);
	CHECK(time_behind_atomic(bench, true, 0) >= 2 * ROUND_TRIP);
	sim_timed_pass(&bench->client[0], 12345);
	CHECK(now(bench) >= 3 * ROUND_TRIP + 12345);
	close_bench(bench);
}

/* ---- copies ---- */

/* A change is sent to two nodes in one round trip; a READ, and an atomic's result, are the first node's. */
static void
check_copies(void)
{
	struct bench *bench = open_bench(1000000000, 1);
	struct fabric *fabric = &bench->client[0].fabric;
	uint8_t bytes[1000];
	struct fabric_request write = {.verb = FABRIC_WRITE, .length = sizeof(bytes), .remote = 8, .local = bytes};
	struct fabric_request cas = {.verb = FABRIC_CAS, .remote = 8, .operand = 3};
	struct fabric_request read = {.verb = FABRIC_READ, .length = 8, .remote = 8, .local = bytes};
	uint64_t alone;
	uint64_t begin;

	memset(bytes, 0, sizeof(bytes));
	CHECK(fabric_execute(fabric, &write, 1) == SMART_OK);
	alone = now(bench);
	bench->cluster.options.copies = 2;
	begin = now(bench);
	CHECK(fabric_execute(fabric, &write, 1) == SMART_OK);
	/* The client's link carries both, one after the other. */
	CHECK(now(bench) - begin >= alone + 8 * sizeof(bytes) &&
		  now(bench) - begin < alone + ROUND_TRIP + 8 * 2 * sizeof(bytes));
	CHECK(fabric->counters.round_trips == 2 && fabric->counters.requests[FABRIC_WRITE] == 3);
	CHECK(fabric->counters.bytes[FABRIC_WRITE] == 3 * sizeof(bytes) && fabric->counters.doorbells == 3);
	CHECK(fabric_execute(fabric, &cas, 1) == SMART_OK && cas.result == 0 && memory[0][1] == 3 && memory[1][1] == 0);
	CHECK(fabric->counters.requests[FABRIC_CAS] == 1 && fabric->counters.requests[FABRIC_WRITE] == 4);
	CHECK(fabric_execute(fabric, &read, 1) == SMART_OK && bytes[0] == 3);
	CHECK(fabric->counters.requests[FABRIC_READ] == 1 && fabric->counters.requests[FABRIC_WRITE] == 4);
	/* What waits for an atomic waits once. */
	begin = now(bench);
	CHECK(time_behind_atomic(bench, true, 0) < 2 * ROUND_TRIP + 1000);
	close_bench(bench);
}

/* ---- clients ---- */

static void
read_word(void *argument)
{
	struct sim_timed_client *client = argument;
	uint64_t word;
	struct fabric_request request = {.verb = FABRIC_READ, .length = 8, .remote = 0, .local = &word};

	CHECK(fabric_execute(&client->fabric, &request, 1) == SMART_OK);
}

/* One request a microsecond: the last of four clients waits for the three before it. */
static void
check_queue(void)
{
	struct bench *bench = open_bench(1000000, 10000);

	for (unsigned int i = 0; i < CLIENTS; i++)
		sim_timed_start(&bench->client[i], read_word, &bench->client[i]);
	sim_timed_run(&bench->cluster);
	CHECK(now(bench) == ROUND_TRIP + 3000);
	close_bench(bench);
}

static struct bench *locking;

static void
hold_lock(void *argument)
{
	struct sim_timed_client *client = argument;
	unsigned int number = (unsigned int) (client - locking->client);

	sim_timed_pass(client, number);
	sim_timed_acquire(client, &locking->lock);
	CHECK(locking->turn == number);
	sim_timed_pass(client, 100);
	locking->turn++;
	sim_timed_release(client, &locking->lock);
}

/* The first to come has the lock first, and no two have it at the same time; started in any order. */
static void
check_lock(void)
{
	struct bench *bench = open_bench(1000000, 10000);

	locking = bench;
	for (unsigned int i = CLIENTS; i-- > 0;)
		sim_timed_start(&bench->client[i], hold_lock, &bench->client[i]);
	sim_timed_run(&bench->cluster);
	CHECK(bench->turn == CLIENTS && bench->lock.holder == NULL);
	CHECK(now(bench) == 100 * CLIENTS);
	close_bench(bench);
}

static void
wait_for_ever(void *argument)
{
	struct sim_timed_client *client = argument;

	for (;;)
	{
		sim_timed_pass(client, 10);
		locking->turn++;
	}
}

/* Who waits again and again is left behind, also if it is the only one; so is who waits for its lock. */
static void
check_patience(unsigned int others)
{
	struct bench *bench = open_bench(1000000, 10000);

	locking = bench;
	bench->lock.holder = &bench->client[0];
	sim_timed_have_patience(&bench->cluster, 1000);
	sim_timed_start(&bench->client[0], wait_for_ever, &bench->client[0]);
	for (unsigned int i = 1; i <= others; i++)
		sim_timed_start(&bench->client[i], hold_lock, &bench->client[i]);
	sim_timed_run(&bench->cluster);
	CHECK(bench->turn == 999 - others && now(bench) == 10 * bench->turn);
	close_bench(bench);
}

int
main(void)
{
	check_verbs();
	check_time();
	check_copies();
	check_queue();
	check_lock();
	check_patience(0);
	check_patience(2);
	return check_finish();
}

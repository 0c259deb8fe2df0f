/*
 * tcp_test.c
 *	  The remote provider over TCP, plain and with TLS: what every provider must do, on
 *	  two real memory nodes, and the requests of a compute node at the same time.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/call.h"
#include "support/check.h"
#include "support/memnodes.h"

#define NODES      2
#define TIMEOUT_MS 20000

#define FLOOD       64
#define FLOOD_BYTES (511u << 10)

static struct test_memnodes *nodes;

/* Far more than all buffers hold goes both ways in one batch: neither side waits for the other to read first. */
static void
test_flood(void)
{
	static uint8_t written[FLOOD_BYTES];
	static uint8_t found[FLOOD][FLOOD_BYTES];
	struct fabric_request batch[2 * FLOOD];
	struct test_remote mine;
	struct call call;
	uint64_t random = 1;
	unsigned int wrong = 0;

	for (size_t i = 0; i < sizeof(written); i++)
		written[i] = (uint8_t) test_random(&random);
	memset(found, 0, sizeof(found));
	for (unsigned int i = 0; i < FLOOD; i++)
	{
		fabric_address place = fabric_make_address(i % NODES, nodes->offset + i);

		batch[2 * i] =
			(struct fabric_request){.verb = FABRIC_WRITE, .remote = place, .local = written, .length = FLOOD_BYTES};
		batch[2 * i + 1] =
			(struct fabric_request){.verb = FABRIC_READ, .remote = place, .local = found[i], .length = FLOOD_BYTES};
	}
	test_remote_open(nodes, &mine, 1, TIMEOUT_MS);
	CHECK(fabric_execute(mine.fabric, batch, 2) == SMART_OK);
	/* Nodes that stand still for a while let all buffers fill up. */
	for (unsigned int i = 0; i < NODES; i++)
		test_memnode_freeze(nodes, i);
	call_start(&call, mine.fabric, batch, 2 * FLOOD);
	usleep(100000);
	for (unsigned int i = 0; i < NODES; i++)
		test_memnode_thaw(nodes, i);
	CHECK(call_finish(&call) == SMART_OK);
	for (unsigned int i = 0; i < FLOOD; i++)
		wrong += memcmp(found[i], written, FLOOD_BYTES) != 0;
	CHECK(wrong == 0);
	test_remote_close(&mine);
}

/* An address outside is refused in words, and the verbs of its batch on other nodes are done. */
static void
test_outside(void)
{
	struct test_remote mine;
	uint64_t word = 7;
	struct fabric_request batch[2] = {
		{.verb = FABRIC_FAA, .remote = fabric_make_address(0, nodes->offset + WIRE_CHUNK_BYTES), .operand = 1},
		{.verb = FABRIC_WRITE, .remote = fabric_make_address(1, nodes->offset), .local = &word, .length = 8},
	};
	struct fabric_request read = batch[1];
	uint64_t found = 0;

	test_remote_open(nodes, &mine, 1, TIMEOUT_MS);
	CHECK(fabric_execute(mine.fabric, batch, 2) == SMART_CORRUPT);
	CHECK(strstr(mine.fabric->problem, nodes->node[0].port) != NULL);
	read.verb = FABRIC_READ;
	read.local = &found;
	CHECK(fabric_execute(mine.fabric, &read, 1) == SMART_OK && found == 7 && mine.fabric->problem[0] == '\0');
	batch[0].remote = fabric_make_address(NODES, 0);
	CHECK(fabric_execute(mine.fabric, batch, 2) == SMART_CORRUPT);
	CHECK(strstr(mine.fabric->problem, "no memory node 2") != NULL);
	test_remote_close(&mine);
}

/* A READ outside one's own chunks brings zeros: a cache may lead to a chunk that was given back and is another's now. */
static void
test_foreign_read(void)
{
	struct test_remote mine;
	uint8_t found[64];
	uint8_t nothing[sizeof(found)] = {0};
	uint64_t word = UINT64_MAX;
	uint64_t own = 0;
	struct fabric_request batch[3] = {
		{.verb = FABRIC_WRITE,
		 .remote = fabric_make_address(0, nodes->offset + WIRE_CHUNK_BYTES - 8),
		 .local = &word,
		 .length = 8},
		{.verb = FABRIC_READ,
		 .remote = fabric_make_address(0, nodes->offset + WIRE_CHUNK_BYTES - 8),
		 .local = found,
		 .length = sizeof(found)},
		{.verb = FABRIC_READ,
		 .remote = fabric_make_address(0, nodes->offset + WIRE_CHUNK_BYTES - 8),
		 .local = &own,
		 .length = 8},
	};

	memset(found, 1, sizeof(found));
	test_remote_open(nodes, &mine, 1, TIMEOUT_MS);
	CHECK(fabric_execute(mine.fabric, batch, 3) == SMART_OK);
	/* All or nothing, where a READ begins in a chunk of one's own. */
	CHECK(memcmp(found, nothing, sizeof(found)) == 0);
	CHECK(own == word);
	CHECK(mine.fabric->counters.failures == 0);
	test_remote_close(&mine);
}

static void
test_chunks(struct session *session, uint64_t deadline_ns)
{
	uint32_t taken[WIRE_LIST_MAX];
	uint32_t listed[WIRE_LIST_MAX];
	uint32_t foreign = 1 << 18;
	uint32_t count = 0;
	uint32_t known = 0;
	uint32_t all = 0;
	smart_status status;

	CHECK(session_take_chunks(session, 3, deadline_ns, taken, &count) == SMART_OK && count >= 1 && count <= 3);
	CHECK(session_list_chunks(session, taken[0], deadline_ns, listed, &known) == SMART_OK);
	CHECK(known >= count && memcmp(listed, taken, count * sizeof(taken[0])) == 0);
	CHECK(session_give_chunks(session, taken, count, deadline_ns) == SMART_OK);
	CHECK(session_list_chunks(session, taken[0], deadline_ns, listed, &known) == SMART_OK && known == 0);
	/* What is not the owner's is passed over: a request that was given up may have been done. */
	CHECK(session_give_chunks(session, &foreign, 1, deadline_ns) == SMART_OK);
	while ((status = session_take_chunks(session, WIRE_LIST_MAX, deadline_ns, taken, &count)) == SMART_OK)
		all += count;
	CHECK(status == SMART_NO_SPACE && strstr(session_problem(session), "full") != NULL && all > 3);
	CHECK(session_list_chunks(session, 0, deadline_ns, listed, &known) == SMART_OK && known == all + 1);
	CHECK(session_give_chunks(session, listed + 1, known - 1, deadline_ns) == SMART_OK);
}

static void
test_trees(struct session *session, uint64_t deadline_ns)
{
	struct wire_tree tree = {.id = 17, .description = "what the node does not look at"};
	struct wire_tree again = {.id = 17};
	static struct wire_tree listed[WIRE_LIST_MAX];
	struct wire_node_status status;
	uint64_t cursor = 0;
	uint32_t count = 0;

	CHECK(session_make_tree(session, &tree, deadline_ns) == SMART_OK && tree.root != 0);
	CHECK(session_make_tree(session, &again, deadline_ns) == SMART_OK && again.root == tree.root);
	CHECK(session_list_trees(session, &cursor, deadline_ns, listed, &count) == SMART_OK && count == 1 && cursor == 0);
	CHECK(listed[0].id == 17 && listed[0].root == tree.root);
	CHECK(memcmp(listed[0].description, tree.description, WIRE_OWNER_BYTES) == 0);
	CHECK(session_node_status(session, deadline_ns, &status) == SMART_OK && status.own_trees == 1);
	CHECK(status.own_chunks >= 1 && status.allocated >= WIRE_CHUNK_BYTES && status.capacity > status.allocated);
	CHECK(session_drop_tree(session, 17, deadline_ns) == SMART_OK);
	CHECK(session_drop_tree(session, 17, deadline_ns) == SMART_OK);
	CHECK(session_list_trees(session, &cursor, deadline_ns, listed, &count) == SMART_OK && count == 0);
}

/* The session of a client carries requests and verbs in turn. */
static void
test_requests(void)
{
	struct test_remote mine;
	struct session *session = NULL;
	uint64_t deadline_ns = nodes->thread.env.now_ns(&nodes->thread.env) + UINT64_C(60000000000);
	struct fabric_request add = {.verb = FABRIC_FAA, .remote = fabric_make_address(0, nodes->offset), .operand = 1};

	test_remote_open(nodes, &mine, 1, TIMEOUT_MS);
	CHECK(fabric_remote_session(mine.fabric, 0, &session) == SMART_OK);
	CHECK(session_welcome(session)->node == nodes->node[0].incarnation && session_round_trip_ns(session) > 0);
	test_chunks(session, deadline_ns);
	CHECK(fabric_execute(mine.fabric, &add, 1) == SMART_OK);
	CHECK(fabric_remote_session(mine.fabric, 0, &session) == SMART_OK && !session_is_lost(session));
	test_trees(session, deadline_ns);
	CHECK(mine.fabric->counters.connections == 1);
	CHECK(fabric_remote_session(mine.fabric, NODES, &session) == SMART_CORRUPT);
	test_remote_close(&mine);
}

/* Wherever memory runs out, the call says so, nothing leaks, and later ones work. */
static void
test_no_memory(void)
{
	struct test_remote mine;
	struct fabric_request add = {.verb = FABRIC_FAA, .remote = fabric_make_address(0, nodes->offset), .operand = 1};
	unsigned int failures = 0;

	for (uint64_t seed = 1; seed < 20; seed++)
	{
		smart_status status;

		test_remote_open(nodes, &mine, 1, TIMEOUT_MS);
		mine.thread.random_state = seed;
		mine.thread.fail_one_in = 2;
		status = fabric_execute(mine.fabric, &add, 1);
		failures += status == SMART_NO_MEMORY;
		CHECK(status == SMART_OK || status == SMART_NO_MEMORY);
		mine.thread.fail_one_in = 0;
		CHECK(fabric_execute(mine.fabric, &add, 1) == SMART_OK);
		test_remote_close(&mine);
	}
	CHECK(failures > 0);
}

int
main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int with_secret = 0; with_secret < 2; with_secret++)
	{
		nodes = test_memnodes_open(NODES, with_secret == 1);
		test_memnodes_conformance(nodes, 2000, TIMEOUT_MS);
		test_flood();
		test_outside();
		test_foreign_read();
		test_requests();
		test_no_memory();
		test_memnodes_close(nodes);
	}
	return check_finish();
}

/*
 * remote_test.c
 *	  The remote provider over RDMA and real memory nodes: needs an RDMA device
 *	  (test/vm has a soft one).
 */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/memnodes.h"

#define NODES      2
#define TIMEOUT_MS 60000 /* nothing here takes that long */

static struct test_memnodes *nodes;

static struct fabric_request
addition(unsigned int node)
{
	return (
		struct fabric_request){.verb = FABRIC_FAA, .remote = fabric_make_address(node, nodes->offset), .operand = 1};
}

/* Adds to a word of a node. */
static smart_status
add(struct test_remote *remote, unsigned int node, uint64_t *found)
{
	struct fabric_request request = addition(node);
	smart_status status = fabric_execute(remote->fabric, &request, 1);

	*found = request.result;
	return status;
}

/* A memory node's process takes no part in verbs: they go on while it is frozen. */
static void
test_passive(struct test_remote *mine)
{
	uint64_t before = 0;
	uint64_t found = 0;

	CHECK(add(mine, 0, &before) == SMART_OK);
	test_memnode_freeze(nodes, 0);
	for (uint64_t i = 1; i <= 10; i++)
		CHECK(add(mine, 0, &found) == SMART_OK && found == before + i);
	test_memnode_thaw(nodes, 0);
}

/* The part of the region that is the node's own: refused by its card, and the next batch works again. */
static void
test_refused(struct test_remote *mine)
{
	uint64_t word;
	struct fabric_request request = {.verb = FABRIC_READ,
									 .remote = fabric_make_address(1, 64),
									 .local = &word,
									 .length = sizeof(word)};

	CHECK(fabric_execute(mine->fabric, &request, 1) == SMART_CORRUPT);
	CHECK(strstr(mine->fabric->problem, nodes->node[1].port) != NULL);
	CHECK(strstr(mine->fabric->problem, "remote access error") != NULL);
	CHECK(add(mine, 1, &word) == SMART_OK && nodes->generation[1] == 0);
}

/* A higher generation: the node destroys the queue pairs of lower ones before it says welcome. */
static void
test_generations(struct test_remote *mine)
{
	struct env_thread thread;
	struct smart_env *env = &thread.env;
	struct session_options options = test_session_options(nodes, env, true);
	uint64_t limit_ns;
	struct fabric_link *link = NULL;
	struct session *old = NULL;
	struct session *new = NULL;
	struct fabric_request request = addition(0);
	uint64_t connections = mine->fabric->counters.connections;
	uint64_t found = 0;
	char problem[SESSION_PROBLEM_MAX] = "";

	env_thread_init(&thread, 1);
	limit_ns = env->now_ns(env) + TIMEOUT_MS * UINT64_C(1000000);
	options.hello.client = TEST_CONFORMANCE_CLIENTS + 1;
	CHECK(session_open(&options, "127.0.0.1", nodes->node[0].port, &old, problem) == SMART_OK);
	CHECK(verbs_link_open(old, env, 0, limit_ns, &link, problem) == SMART_OK);
	CHECK(link->kind->post(link, &request, 1) == SMART_OK && link->kind->finish(link, limit_ns) == SMART_OK);
	options.hello.generation = ++nodes->generation[0];
	options.hello.client = TEST_CONFORMANCE_CLIENTS + 2;
	CHECK(session_open(&options, "127.0.0.1", nodes->node[0].port, &new, problem) == SMART_OK);
	CHECK(link->kind->post(link, &request, 1) == SMART_OK);
	CHECK(link->kind->finish(link, limit_ns) == SMART_UNREACHABLE);
	CHECK(strstr(link->problem, nodes->node[0].port) != NULL);
	/* The second addition has not taken effect.  A client that looks at the generation has a new connection. */
	CHECK(add(mine, 0, &found) == SMART_OK && found == request.result + 1);
	CHECK(mine->fabric->counters.connections == connections + 1);
	link->kind->close(link);
	session_close(old);
	session_close(new);
	CHECK(thread.allocations == 0);
}

/* Death of a memory node is an error well before the time limit, and over when the node is back with its memory. */
static void
test_death(struct test_remote *mine)
{
	uint64_t before = 0;
	uint64_t found = 0;

	CHECK(add(mine, 0, &before) == SMART_OK && add(mine, 1, &found) == SMART_OK);
	test_memnode_kill(nodes, 0);
	CHECK(add(mine, 0, &found) == SMART_UNREACHABLE && mine->fabric->problem[0] != '\0');
	CHECK(add(mine, 1, &found) == SMART_OK);
	test_memnode_start(nodes, 0, false);
	CHECK(add(mine, 0, &found) == SMART_OK && found == before + 1);
}

int
main(void)
{
	struct test_remote mine;

	nodes = test_memnodes_open_rdma(NODES, true);
	test_memnodes_conformance(nodes, 1000, TIMEOUT_MS);
	test_remote_open(nodes, &mine, 1, TIMEOUT_MS);
	test_passive(&mine);
	test_refused(&mine);
	test_generations(&mine);
	test_death(&mine);
	test_remote_close(&mine);
	test_memnodes_close(nodes);
	return check_finish();
}

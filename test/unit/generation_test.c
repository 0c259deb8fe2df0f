/*
 * generation_test.c
 *	  Verbs that were given up do not take effect after another session of the same
 *	  compute node could have seen the place (remote.h, wire.h).
 *
 * A network that holds back what a client has sent (relay.h) makes such verbs
 * late for certain.  To show that the test would notice, it is run once with
 * the raised generation put back to what it was: there the late verb has to win.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/call.h"
#include "support/check.h"
#include "support/memnodes.h"
#include "support/relay.h"

#define PATIENT_MS 30000
#define SHORT_MS   150
#define LOOKS      200           /* how often a value that must not change is looked at */
#define LOOKS_MAX  20000         /* and one that has to change */
#define LONG_BYTES (1200u << 10) /* of a WRITE that takes two messages */

static struct test_memnodes *nodes;

static fabric_address
place(void)
{
	return fabric_make_address(0, nodes->offset);
}

static void
put(struct test_remote *remote, uint64_t word, smart_status expected)
{
	struct fabric_request write = {.verb = FABRIC_WRITE, .remote = place(), .local = &word, .length = sizeof(word)};

	CHECK(fabric_execute(remote->fabric, &write, 1) == expected);
}

static uint64_t
look(struct test_remote *remote)
{
	uint64_t word = UINT64_MAX;
	struct fabric_request read = {.verb = FABRIC_READ, .remote = place(), .local = &word, .length = sizeof(word)};

	CHECK(fabric_execute(remote->fabric, &read, 1) == SMART_OK);
	return word;
}

/* A client whose way leads through a relay, with its link made. */
static struct relay *
open_through_relay(struct test_remote *remote, uint32_t client)
{
	struct relay *relay = relay_open(nodes->node[0].port);

	memcpy(nodes->node[0].via, relay->port, sizeof(relay->port));
	test_remote_open(nodes, remote, client, PATIENT_MS);
	look(remote);
	memcpy(nodes->node[0].via, nodes->node[0].port, sizeof(nodes->node[0].via));
	return relay;
}

/*
 * One client's WRITE stays in the network, the client gives it up, and then
 * another one writes.  Returns whether the late WRITE was seen after that.
 */
static bool
late_write_wins(bool raised)
{
	struct test_remote late;
	struct test_remote other;
	struct relay *relay;
	uint32_t before = nodes->generation[0];
	unsigned int looks = 0;
	bool seen = false;

	test_remote_open(nodes, &other, 2, PATIENT_MS);
	put(&other, 0, SMART_OK);
	relay = open_through_relay(&late, 1);
	relay_hold_back(relay, true);
	fabric_remote_set_timeout(late.fabric, SHORT_MS);
	put(&late, 1, SMART_TIMEOUT);
	relay_await(relay, sizeof(uint64_t));
	CHECK(nodes->generation[0] == before + 1);
	if (!raised)
		nodes->generation[0] = before;

	put(&other, 2, SMART_OK);
	relay_hold_back(relay, false);
	relay_drain(relay);
	while (!seen && looks++ < (raised ? LOOKS : LOOKS_MAX))
		seen = look(&other) == 1;
	/* The other client has paid for it with a connection. */
	CHECK(other.fabric->counters.connections == (raised ? 2 : 1));
	relay_close(relay);
	test_remote_close(&late);
	test_remote_close(&other);
	return seen;
}

/* Many verbs of several messages, given up by a node that stands still and then goes on with another client there. */
static void
test_frozen(void)
{
	static uint8_t mine[LONG_BYTES];
	static uint8_t theirs[LONG_BYTES];
	static uint8_t found[LONG_BYTES];
	struct test_remote late;
	struct test_remote other;
	struct call call;
	struct fabric_request write = {.verb = FABRIC_WRITE, .remote = place(), .length = LONG_BYTES};
	struct fabric_request others = write;
	struct fabric_request read = write;

	memset(mine, 1, sizeof(mine));
	memset(theirs, 2, sizeof(theirs));
	write.local = mine;
	others.local = theirs;
	read.verb = FABRIC_READ;
	read.local = found;
	test_remote_open(nodes, &late, 1, PATIENT_MS);
	test_remote_open(nodes, &other, 2, PATIENT_MS);
	look(&late);
	look(&other);
	test_memnode_freeze(nodes, 0);
	fabric_remote_set_timeout(late.fabric, SHORT_MS);
	CHECK(fabric_execute(late.fabric, &write, 1) == SMART_TIMEOUT);
	call_start(&call, other.fabric, &others, 1);
	test_memnode_thaw(nodes, 0);
	CHECK(call_finish(&call) == SMART_OK);
	for (int i = 0; i < 20; i++)
	{
		CHECK(fabric_execute(other.fabric, &read, 1) == SMART_OK);
		CHECK(memcmp(found, theirs, sizeof(found)) == 0);
	}
	test_remote_close(&late);
	test_remote_close(&other);
}

/* A client that is not to blame loses its connection while its verb is on its way: READs do not notice. */
static void
test_bystander(enum fabric_verb verb)
{
	struct test_remote bystander;
	struct test_remote other;
	struct relay *relay;
	struct call call;
	uint64_t word = UINT64_MAX;
	struct fabric_request request = {.verb = verb, .remote = place(), .local = &word, .length = sizeof(word)};
	uint32_t raised = nodes->generation[0] + 1;

	relay = open_through_relay(&bystander, 1);
	relay_hold_back(relay, true);
	call_start(&call, bystander.fabric, &request, 1);
	relay_await(relay, 1);
	nodes->generation[0] = raised;
	test_remote_open(nodes, &other, 2, PATIENT_MS);
	put(&other, 3, SMART_OK);
	if (verb == FABRIC_READ)
	{
		CHECK(call_finish(&call) == SMART_OK && word == 3);
		CHECK(bystander.fabric->counters.failures == 0 && bystander.fabric->counters.connections == 2);
	}
	else
		CHECK(call_finish(&call) == SMART_UNREACHABLE && bystander.fabric->counters.failures == 1);
	/* The generation that closed the connection is enough for what it carried. */
	CHECK(nodes->generation[0] == raised && other.fabric->counters.connections == 1);
	relay_close(relay);
	test_remote_close(&bystander);
	test_remote_close(&other);
}

/* ---- a generation that rises while a client connects ---- */

static struct test_remote racer;

/* The first wait of a client that connects: the generation rises, and a third client connects with it. */
static bool
rise_then_wait(struct smart_env *env, int descriptor, bool to_write, uint32_t timeout_ms)
{
	struct env_thread usual;

	env_thread_init(&usual, 1);
	env->wait_descriptor = usual.env.wait_descriptor;
	nodes->generation[0]++;
	put(&racer, 4, SMART_OK);
	return env->wait_descriptor(env, descriptor, to_write, timeout_ms);
}

static void
test_stale(void)
{
	struct test_remote mine;
	struct session_options options;
	struct session *session;
	char problem[SESSION_PROBLEM_MAX] = "";
	uint32_t before = nodes->generation[0];

	test_remote_open(nodes, &racer, 2, PATIENT_MS);
	test_remote_open(nodes, &mine, 1, PATIENT_MS);
	mine.thread.env.wait_descriptor = rise_then_wait;
	CHECK(look(&mine) == 4 && mine.fabric->counters.connections == 1 && nodes->generation[0] == before + 1);
	test_remote_close(&racer);
	test_remote_close(&mine);
	/* A session by itself is told; and a compute node whose generations fell cannot go on. */
	options = test_session_options(nodes, &nodes->thread.env, true);
	options.hello.generation = before;
	CHECK(session_open(&options, "127.0.0.1", nodes->node[0].port, &session, problem) == SMART_STALE);
	CHECK(strstr(problem, "older generation") != NULL);
	nodes->generation[0] = before;
	test_remote_open(nodes, &mine, 1, PATIENT_MS);
	put(&mine, 5, SMART_UNREACHABLE);
	nodes->generation[0] = before + 1;
	put(&mine, 5, SMART_OK);
	test_remote_close(&mine);
}

int
main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int with_secret = 0; with_secret < 2; with_secret++)
	{
		nodes = test_memnodes_open(1, with_secret == 1);
		CHECK(late_write_wins(false));
		for (int i = 0; i < 5; i++)
		{
			CHECK(!late_write_wins(true));
			test_frozen();
		}
		test_bystander(FABRIC_READ);
		test_bystander(FABRIC_WRITE);
		test_stale();
		test_memnodes_close(nodes);
	}
	return check_finish();
}

/*
 * remote_test.c
 *	  The remote provider when memory nodes do not answer: limits, interrupts, nodes
 *	  that end, come back or are others, keys that differ.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/call.h"
#include "support/check.h"
#include "support/memnodes.h"
#include "support/relay.h"

#define PATIENT_MS 30000 /* a call that should come back by itself */
#define SHORT_MS   150   /* a call that should not */

static struct test_memnodes *nodes;

static struct fabric_request
adds(unsigned int node, uint64_t operand)
{
	return (struct fabric_request){.verb = FABRIC_FAA,
								   .remote = fabric_make_address(node, nodes->offset),
								   .operand = operand};
}

static struct fabric_request
reads(unsigned int node, uint64_t *word)
{
	return (struct fabric_request){.verb = FABRIC_READ,
								   .remote = fabric_make_address(node, nodes->offset),
								   .local = word,
								   .length = sizeof(*word)};
}

/* The value of a node's word. */
static uint64_t
value_of(struct test_remote *remote, unsigned int node)
{
	uint64_t word = UINT64_MAX;
	struct fabric_request read = reads(node, &word);

	CHECK(fabric_execute(remote->fabric, &read, 1) == SMART_OK);
	return word;
}

static bool
says(const struct test_remote *remote, const char *phrase)
{
	if (strstr(remote->fabric->problem, phrase) != NULL)
		return true;
	printf("problem: %s\n", remote->fabric->problem);
	return false;
}

/* ---- limits and interrupts ---- */

/* A node that does not go on costs the limit, its generation and its link, and nothing else. */
static void
test_timeout(void)
{
	struct test_remote mine;
	struct fabric_request batch[2] = {adds(0, 1), adds(1, 1)};
	uint64_t zero;
	uint64_t one;

	test_remote_open(nodes, &mine, 1, PATIENT_MS);
	zero = value_of(&mine, 0);
	one = value_of(&mine, 1);
	test_memnode_freeze(nodes, 1);
	fabric_remote_set_timeout(mine.fabric, SHORT_MS);
	CHECK(fabric_execute(mine.fabric, batch, 2) == SMART_TIMEOUT);
	CHECK(says(&mine, "time limit") && says(&mine, nodes->node[1].port));
	CHECK(mine.fabric->counters.timeouts == 1 && mine.fabric->counters.failures == 0);
	/* The other node's verb was waited for. */
	CHECK(nodes->generation[0] == 0 && nodes->generation[1] == 1 && value_of(&mine, 0) == zero + 1);
	/* Connecting counts as well. */
	CHECK(fabric_execute(mine.fabric, batch + 1, 1) == SMART_TIMEOUT && mine.fabric->counters.timeouts == 2);
	CHECK(nodes->generation[1] == 1 && mine.fabric->counters.connections == 2);
	test_memnode_thaw(nodes, 1);
	fabric_remote_set_timeout(mine.fabric, PATIENT_MS);
	CHECK(fabric_execute(mine.fabric, batch + 1, 1) == SMART_OK && mine.fabric->problem[0] == '\0');
	/* What was given up was done once, or never. */
	CHECK(batch[1].result == one || batch[1].result == one + 1);
	CHECK(mine.fabric->counters.connections == 3);
	test_remote_close(&mine);
}

/* READs that are given up change nothing, so no other client has to connect again. */
static void
test_timeout_of_reads(void)
{
	struct test_remote mine;
	uint32_t before = nodes->generation[1];
	uint64_t word;
	struct fabric_request read = reads(1, &word);

	test_remote_open(nodes, &mine, 1, PATIENT_MS);
	value_of(&mine, 1);
	test_memnode_freeze(nodes, 1);
	fabric_remote_set_timeout(mine.fabric, SHORT_MS);
	CHECK(fabric_execute(mine.fabric, &read, 1) == SMART_TIMEOUT && nodes->generation[1] == before);
	test_memnode_thaw(nodes, 1);
	fabric_remote_set_timeout(mine.fabric, PATIENT_MS);
	CHECK(fabric_execute(mine.fabric, &read, 1) == SMART_OK);
	test_remote_close(&mine);
}

/* The time as a client sees it while it stands still, so that nothing that happens takes longer than a grace. */
static uint64_t standing_ns;

static uint64_t
standing_now_ns(struct smart_env *env)
{
	(void) env;
	return standing_ns;
}

static void
test_interrupt(void)
{
	struct test_remote mine;
	struct fabric_request add = adds(0, 1);
	struct call call;
	uint32_t before = nodes->generation[0];
	uint64_t (*now_ns)(struct smart_env * env);

	test_remote_open(nodes, &mine, 1, PATIENT_MS);
	value_of(&mine, 0);
	/* A node that is well answers before the grace is over; no client pays for the interrupt. */
	now_ns = mine.thread.env.now_ns;
	standing_ns = now_ns(&mine.thread.env);
	mine.thread.env.now_ns = standing_now_ns;
	mine.thread.stop = true;
	for (int i = 0; i < 4; i++)
	{
		CHECK(fabric_execute(mine.fabric, &add, 1) == SMART_OK);
		/* Each batch has a grace of its own. */
		standing_ns += 30000000;
	}
	CHECK(mine.fabric->counters.connections == 1 && nodes->generation[0] == before);
	mine.thread.env.now_ns = now_ns;
	mine.thread.stop = false;
	test_memnode_freeze(nodes, 0);
	call_start(&call, mine.fabric, &add, 1);
	__atomic_store_n(&mine.thread.stop, true, __ATOMIC_RELAXED);
	CHECK(call_finish(&call) == SMART_INTERRUPTED && says(&mine, "interrupted"));
	CHECK(nodes->generation[0] == before + 1 && mine.fabric->counters.failures == 1);
	/* While connecting, too. */
	CHECK(fabric_execute(mine.fabric, &add, 1) == SMART_INTERRUPTED && nodes->generation[0] == before + 1);
	test_memnode_thaw(nodes, 0);
	mine.thread.stop = false;
	CHECK(fabric_execute(mine.fabric, &add, 1) == SMART_OK);
	test_remote_close(&mine);
}

/* ---- nodes that end ---- */

static void
test_killed(void)
{
	struct test_remote mine;
	struct fabric_request batch[2] = {adds(0, 1), adds(1, 1)};
	uint64_t zero;
	uint64_t one;

	test_remote_open(nodes, &mine, 1, PATIENT_MS);
	CHECK(fabric_execute(mine.fabric, batch, 2) == SMART_OK);
	zero = value_of(&mine, 0);
	one = value_of(&mine, 1);
	test_memnode_kill(nodes, 1);
	CHECK(fabric_execute(mine.fabric, batch, 2) == SMART_UNREACHABLE && mine.fabric->counters.failures == 1);
	/* Whether the end was noticed before the verbs were sent or after, the next call only finds no peer there. */
	CHECK(fabric_execute(mine.fabric, batch, 2) == SMART_UNREACHABLE && says(&mine, "could not connect"));
	CHECK(value_of(&mine, 0) <= zero + 1);
	zero = value_of(&mine, 0);
	/* A batch for several nodes starts nowhere as long as one of them has no connection. */
	CHECK(fabric_execute(mine.fabric, batch, 2) == SMART_UNREACHABLE && value_of(&mine, 0) == zero);
	test_memnode_start(nodes, 1, false);
	CHECK(fabric_execute(mine.fabric, batch, 2) == SMART_OK && batch[1].result == one);
	/* A restart between two calls is not even noticed. */
	test_memnode_kill(nodes, 1);
	test_memnode_start(nodes, 1, false);
	usleep(20000);
	CHECK(fabric_execute(mine.fabric, batch, 2) == SMART_OK && batch[1].result == one + 1);
	/* With another memory it is another node. */
	test_memnode_kill(nodes, 1);
	test_memnode_start(nodes, 1, true);
	CHECK(fabric_execute(mine.fabric, batch, 2) == SMART_UNREACHABLE && says(&mine, "not the one that was there"));
	nodes->node[1].incarnation = session_welcome(nodes->node[1].control)->node;
	CHECK(fabric_execute(mine.fabric, batch, 2) == SMART_OK && batch[1].result == 0);
	test_remote_close(&mine);
}

/* The node ends while a verb is on its way. */
static void
test_killed_meanwhile(void)
{
	struct test_remote mine;
	struct relay *relay = relay_open(nodes->node[1].port);
	struct fabric_request add = adds(1, 1);
	struct call call;
	uint32_t before = nodes->generation[1];

	memcpy(nodes->node[1].via, relay->port, sizeof(relay->port));
	test_remote_open(nodes, &mine, 1, PATIENT_MS);
	value_of(&mine, 1);
	relay_hold_back(relay, true);
	call_start(&call, mine.fabric, &add, 1);
	relay_await(relay, 1);
	test_memnode_kill(nodes, 1);
	CHECK(call_finish(&call) == SMART_UNREACHABLE && says(&mine, "closed the connection"));
	CHECK(nodes->generation[1] == before + 1);
	relay_close(relay);
	test_memnode_start(nodes, 1, false);
	CHECK(fabric_execute(mine.fabric, &add, 1) == SMART_OK);
	test_remote_close(&mine);
}

/* ---- flights ---- */

/* A node that does not go on, or ends, costs a flight, and no other client anything.  How long its owner was busy counts for nothing. */
static void
test_flights(void)
{
	struct test_remote mine;
	uint32_t before = nodes->generation[1];
	uint64_t words[2];
	struct fabric_request batch[2] = {reads(0, &words[0]), reads(1, &words[1])};
	struct fabric_flight flight = {.reads = batch, .count = 2};
	uint64_t one;

	test_remote_open(nodes, &mine, 1, PATIENT_MS);
	one = value_of(&mine, 1);
	fabric_remote_set_timeout(mine.fabric, SHORT_MS);
	words[1] = UINT64_MAX;
	CHECK(fabric_depart(mine.fabric, &flight) == SMART_OK);
	usleep(3 * SHORT_MS * 1000);
	fabric_land(mine.fabric);
	CHECK(flight.status == SMART_OK && words[1] == one && mine.fabric->counters.connections == 2);

	test_memnode_freeze(nodes, 1);
	CHECK(fabric_depart(mine.fabric, &flight) == SMART_OK);
	CHECK(value_of(&mine, 0) == words[0] && flight.status == SMART_TIMEOUT && mine.fabric->counters.timeouts == 1);
	test_memnode_thaw(nodes, 1);
	fabric_remote_set_timeout(mine.fabric, PATIENT_MS);
	CHECK(value_of(&mine, 1) == one && mine.fabric->counters.connections == 3);

	test_memnode_freeze(nodes, 1);
	CHECK(fabric_depart(mine.fabric, &flight) == SMART_OK);
	test_memnode_kill(nodes, 1);
	CHECK(value_of(&mine, 0) == words[0] && flight.status == SMART_UNREACHABLE);
	test_memnode_start(nodes, 1, false);
	CHECK(fabric_depart(mine.fabric, &flight) == SMART_OK && nodes->generation[1] == before);
	/* Nobody waits for it. */
	test_remote_close(&mine);
	CHECK(!flight.under_way && flight.status == SMART_UNREACHABLE);
}

/* ---- others that listen ---- */

static int
listen_somewhere(char port[SESSION_PORT_MAX])
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(bind(listener, (struct sockaddr *) &address, length) == 0 && listen(listener, 4) == 0);
	CHECK(getsockname(listener, (struct sockaddr *) &address, &length) == 0);
	snprintf(port, SESSION_PORT_MAX, "%u", ntohs(address.sin_port));
	return listener;
}

/* Connects as a client of these nodes does, with another key perhaps; what came of it. */
static smart_status
try_session(const char *port, const struct stream_secret *secret, uint32_t timeout_ms, const char *phrase)
{
	struct env_thread thread;
	struct session_options options;
	struct session *session = NULL;
	char problem[SESSION_PROBLEM_MAX] = "";
	smart_status status;

	env_thread_init(&thread, 1);
	options = test_session_options(nodes, &thread.env, false);
	options.secret = secret;
	options.timeout_ms = timeout_ms;
	status = session_open(&options, "127.0.0.1", port, &session, problem);
	if (status == SMART_OK)
		session_close(session);
	else if (!CHECK(strstr(problem, phrase) != NULL && strstr(problem, port) != NULL))
		printf("problem: %s\n", problem);
	CHECK(thread.allocations == 0);
	return status;
}

/* Another kind of server: greets its clients, and hangs up. */
struct stranger
{
	int listener;
	const void *greeting;
	size_t length;
};

static void *
greet(void *argument)
{
	const struct stranger *stranger = argument;
	char bytes[256];
	int connection = accept(stranger->listener, NULL, NULL);

	CHECK(send(connection, stranger->greeting, stranger->length, MSG_NOSIGNAL) == (ssize_t) stranger->length);
	/* Not before the client has said something: bytes that were not read turn an end into a reset. */
	CHECK(recv(connection, bytes, sizeof(bytes), 0) > 0);
	close(connection);
	return NULL;
}

static smart_status
try_stranger(const void *greeting, size_t length, const char *phrase)
{
	char port[SESSION_PORT_MAX];
	struct stranger stranger = {.listener = listen_somewhere(port), .greeting = greeting, .length = length};
	pthread_t thread;
	smart_status status;

	CHECK(pthread_create(&thread, NULL, greet, &stranger) == 0);
	status = try_session(port, &nodes->secret, PATIENT_MS, phrase);
	CHECK(pthread_join(thread, NULL) == 0);
	close(stranger.listener);
	return status;
}

/* A memory node's reply to HELLO is believed if every part of it can be. */
static void
test_answers(void)
{
	static const struct
	{
		size_t byte;
		uint8_t value;
		const char *phrase;
	} faults[] = {
		{0, 39, "makes no sense"},                        /* a payload too short for what it is */
		{2, 0x20, "this protocol"},                       /* longer than any */
		{4, 1, "this protocol"},                          /* a request */
		{4, 0x82, "this protocol"},                       /* the reply to another one */
		{5, 1, "this protocol"},                          /* bits that are never set */
		{6, 1, "this protocol"},                          /* a refusal with a payload */
		{8, 2, "this protocol"},                          /* a number that was not asked for */
		{16 + 24, 1, "makes no sense"},                   /* chunks of another size */
		{16 + 32, WIRE_VERSION_BEFORE, "makes no sense"}, /* another version than was asked in */
	};
	struct wire_header header = {.type = WIRE_REPLY | WIRE_HELLO, .number = 1};
	struct wire_welcome welcome = {.node = 1,
								   .capacity = WIRE_CHUNK_BYTES,
								   .transports = WIRE_TCP,
								   .version = WIRE_VERSION};
	uint8_t reply[128];

	header.length = wire_put_welcome(reply + WIRE_HEADER_BYTES, &welcome);
	wire_put_header(reply, &header);
	CHECK(try_stranger(reply, WIRE_HEADER_BYTES + header.length, "") == SMART_OK);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
	{
		uint8_t kept = reply[faults[i].byte];

		reply[faults[i].byte] = faults[i].value;
		CHECK(try_stranger(reply, WIRE_HEADER_BYTES + header.length, faults[i].phrase) == SMART_UNREACHABLE);
		reply[faults[i].byte] = kept;
	}
	/* Refusals without a payload: their own words, and what a session makes of them.  (A version: version_test.c.) */
	for (uint16_t status = WIRE_BAD; status < WIRE_STATUS_COUNT; status++)
	{
		if (status == WIRE_UNSUPPORTED)
			continue;
		header = (struct wire_header){.type = WIRE_REPLY | WIRE_HELLO, .status = status, .number = 1};
		wire_put_header(reply, &header);
		CHECK(try_stranger(reply, WIRE_HEADER_BYTES, wire_status_text(status)) ==
			  (status == WIRE_STALE || status == WIRE_FOREIGN ? SMART_STALE : SMART_UNREACHABLE));
	}
}

static void
test_strangers(void)
{
	static const char banner[] = "SSH-2.0-OpenSSH_9.2p1\r\n";
	bool plain = nodes->secret.length == 0;
	char port[SESSION_PORT_MAX];
	int listener = listen_somewhere(port);

	CHECK(try_session(port, &nodes->secret, SHORT_MS, plain ? "no reply within" : "no TLS handshake within") ==
		  SMART_TIMEOUT);
	close(listener);
	CHECK(try_session(port, &nodes->secret, PATIENT_MS, "refused") == SMART_UNREACHABLE);
	CHECK(try_stranger(banner, sizeof(banner), plain ? "does not speak this protocol" : "does not use TLS") ==
		  SMART_UNREACHABLE);
	/* Too short to be judged. */
	CHECK(try_stranger(banner, 6, plain ? "closed the connection" : "does not use TLS") == SMART_UNREACHABLE);
	if (plain)
		test_answers();
}

/* Keys that differ, or that one side does not have: a text for the operator, and no wait. */
static void
test_keys(void)
{
	struct stream_secret other = {.key = {1}, .length = STREAM_SECRET_MAX};
	struct stream_secret none = {.length = 0};
	const char *port = nodes->node[0].port;

	CHECK(try_session(port, &nodes->secret, PATIENT_MS, "") == SMART_OK);
	if (nodes->secret.length > 0)
	{
		CHECK(try_session(port, &other, PATIENT_MS, "same secret key") == SMART_UNREACHABLE);
		CHECK(try_session(port, &none, PATIENT_MS, "wants a secret key") == SMART_UNREACHABLE);
	}
	else
		CHECK(try_session(port, &other, PATIENT_MS, "no secret key") == SMART_UNREACHABLE);
}

/* Names are looked up, and a later address is tried when an earlier one does not answer. */
static void
test_names(void)
{
	struct env_thread thread;
	struct session_options options;
	struct session *session;
	char problem[SESSION_PROBLEM_MAX] = "";

	env_thread_init(&thread, 1);
	options = test_session_options(nodes, &thread.env, false);
	CHECK(session_open(&options, "localhost", nodes->node[0].port, &session, problem) == SMART_OK);
	session_close(session);
	CHECK(session_open(&options, "::1", nodes->node[0].port, &session, problem) == SMART_UNREACHABLE);
	CHECK(strstr(problem, "[::1]:") != NULL);
	CHECK(session_open(&options, "127.0.0.1", "no-port", &session, problem) == SMART_UNREACHABLE);
	CHECK(strstr(problem, "could not find its address") != NULL);
}

/* A failed request that is no verb gives its link up, with the generation. */
static void
test_drop(void)
{
	struct test_remote mine;
	struct session *session;
	uint32_t before = nodes->generation[0];

	test_remote_open(nodes, &mine, 1, PATIENT_MS);
	fabric_remote_drop(mine.fabric, 0);
	CHECK(nodes->generation[0] == before);
	CHECK(fabric_remote_session(mine.fabric, 0, &session) == SMART_OK);
	fabric_remote_drop(mine.fabric, 0);
	CHECK(nodes->generation[0] == before + 1);
	CHECK(fabric_remote_session(mine.fabric, 0, &session) == SMART_OK);
	CHECK(mine.fabric->counters.connections == 2);
	test_remote_close(&mine);
}

int
main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int with_secret = 0; with_secret < 2; with_secret++)
	{
		nodes = test_memnodes_open(2, with_secret == 1);
		test_timeout();
		test_timeout_of_reads();
		test_interrupt();
		test_killed();
		test_killed_meanwhile();
		test_flights();
		test_strangers();
		test_keys();
		test_names();
		test_drop();
		test_memnodes_close(nodes);
	}
	return check_finish();
}

/*
 * ping_pong.c
 *	  What READs of a memory node over TCP cost beside a bare exchange of as many bytes.
 *
 *	  ping_pong HOST:PORT EXCHANGES [SECRET_FILE]
 *
 * The bare exchange is between two processes on this host: send(), a recv() that blocks, and the same on the other
 * side.  A READ is the same number of bytes each way, by the client that smart uses, to the memory node at HOST:PORT, whose
 * chunks it takes one of for as long as it runs.  In turns, so many exchanges of each at a time, so that both meet the same
 * machine; medians of rounds.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/thread_env.h"
#include "bench/network/must.h"
#include "rdma/remote/remote.h"

#define ROUNDS     7
#define READS_MAX  64
#define BYTES_MAX  (READS_MAX * 1024)
#define TIMEOUT_MS 10000

/* The lengths that a tree READs: a word, a small leaf, a leaf, a window of leaves. */
static const struct
{
	int reads;
	uint32_t bytes; /* of each */
} shapes[] = {{1, 8}, {1, 256}, {1, 1024}, {16, 1024}, {64, 1024}};

#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

/* What a bare exchange begins with, both ways. */
struct lengths
{
	uint32_t request;
	uint32_t answer;
};

struct node
{
	struct fabric_nodes shared; /* first */
	uint32_t generation[FABRIC_NODES_MAX];
	struct fabric_location location;
	struct session *control;
	uint32_t chunk;
};

static void
must_be_ok(smart_status status, const char *problem)
{
	if (status == SMART_OK)
		return;
	fprintf(stderr, "ping_pong: %s: %s\n", smart_status_text(status), problem);
	exit(1);
}

/* ---- the bare exchange ---- */

static void
send_all(int descriptor, const uint8_t *bytes, size_t length)
{
	must(send(descriptor, bytes, length, MSG_NOSIGNAL) == (ssize_t) length, "send");
}

/* Receives until there are so many bytes.  False: the other side has gone. */
static bool
receive_until(int descriptor, uint8_t *bytes, size_t *got, size_t length)
{
	smart_assert(*got <= BYTES_MAX + WIRE_PAYLOAD_MAX);
	while (*got < length)
	{
		ssize_t more = recv(descriptor, bytes + *got, BYTES_MAX + WIRE_PAYLOAD_MAX - *got, 0);

		if (more <= 0)
			return false;
		*got += (size_t) more;
	}
	return true;
}

/* The other side's process. */
static void
answer_all(int descriptor)
{
	static uint8_t bytes[BYTES_MAX + WIRE_PAYLOAD_MAX];
	struct lengths lengths;
	size_t got = 0;

	while (receive_until(descriptor, bytes, &got, sizeof(lengths)))
	{
		memcpy(&lengths, bytes, sizeof(lengths));
		if (!receive_until(descriptor, bytes, &got, lengths.request))
			break;
		send_all(descriptor, bytes, lengths.answer);
		got = 0;
	}
	_exit(0);
}

static int
start_other_side(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	int mine = socket(AF_INET, SOCK_STREAM, 0);
	int theirs;
	int one = 1;

	must(bind(listener, (struct sockaddr *) &address, length) == 0 && listen(listener, 1) == 0, "listen");
	must(getsockname(listener, (struct sockaddr *) &address, &length) == 0, "getsockname");
	must(connect(mine, (struct sockaddr *) &address, length) == 0, "connect");
	theirs = accept(listener, NULL, NULL);
	must(theirs >= 0, "accept");
	setsockopt(mine, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(theirs, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (fork() == 0)
	{
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(mine);
		answer_all(theirs);
	}
	close(theirs);
	close(listener);
	return mine;
}

/* Nanoseconds of an exchange. */
static uint64_t
measure_bare(int descriptor, struct lengths lengths, unsigned int exchanges)
{
	static uint8_t bytes[BYTES_MAX + WIRE_PAYLOAD_MAX];
	uint64_t start = smart_clock_ns();

	smart_assert(exchanges > 0);
	smart_assert(lengths.request >= sizeof(lengths) && lengths.request <= sizeof(bytes) &&
				 lengths.answer <= sizeof(bytes));
	for (unsigned int i = 0; i < exchanges; i++)
	{
		size_t got = 0;

		memcpy(bytes, &lengths, sizeof(lengths));
		send_all(descriptor, bytes, lengths.request);
		must(receive_until(descriptor, bytes, &got, lengths.answer), "recv");
	}
	return (smart_clock_ns() - start) / exchanges;
}

/* ---- READs ---- */

static smart_status
locate(struct fabric_nodes *nodes, unsigned int number, struct fabric_location *location,
	   char problem[SESSION_PROBLEM_MAX])
{
	*location = ((struct node *) nodes)->location;
	return SMART_OK;
}

/* Takes the lease of an owner of its own, and a chunk.  The same owner, by its options, makes the READs. */
static void
take_chunk(struct node *node, const struct session_options *options)
{
	const struct wire_lease lease = {.extents = options->hello.owner, .transport = WIRE_TCP};
	uint64_t deadline_ns = smart_deadline_ns(options->env, TIMEOUT_MS);
	char problem[SESSION_PROBLEM_MAX] = "";
	uint32_t count;

	must_be_ok(session_open(options, node->location.host, node->location.port, &node->control, problem), problem);
	must_be_ok(session_lease(node->control, &lease, deadline_ns), session_problem(node->control));
	must_be_ok(session_take_chunks(node->control, 1, deadline_ns, &node->chunk, &count),
			   session_problem(node->control));
	node->location.incarnation = session_welcome(node->control)->node;
}

static struct fabric *
open_fabric(struct node *node, struct smart_env *env, const struct stream_secret *secret)
{
	struct session_options session = {.env = env,
									  .secret = secret,
									  .timeout_ms = TIMEOUT_MS,
									  .hello.pid = (uint32_t) getpid()};
	struct fabric_remote_options options = {.env = session.env,
											.nodes = &node->shared,
											.secret = secret,
											.client = 1,
											.pid = session.hello.pid,
											.timeout_ms = TIMEOUT_MS};
	struct fabric *fabric;

	must(getrandom(&session.hello.owner, sizeof(session.hello.owner), 0) == sizeof(session.hello.owner), "getrandom");
	session.hello.incarnation = 1;
	take_chunk(node, &session);
	node->shared.locate = locate;
	node->shared.generation = node->generation;
	options.owner = session.hello.owner;
	options.incarnation = session.hello.incarnation;
	must_be_ok(fabric_remote_open(&options, &fabric), "no fabric");
	return fabric;
}

/* Nanoseconds of a batch. */
static uint64_t
measure_reads(struct fabric *fabric, uint32_t chunk, int reads, uint32_t bytes, unsigned int exchanges)
{
	static uint8_t target[BYTES_MAX];
	struct fabric_request batch[READS_MAX];
	uint64_t start;

	smart_assert(exchanges > 0);
	smart_assert(reads >= 1 && reads <= READS_MAX && (size_t) reads * bytes <= sizeof(target));
	for (int i = 0; i < reads; i++)
		batch[i] = (struct fabric_request){
			.verb = FABRIC_READ,
			.length = bytes,
			.remote = fabric_make_address(0, (uint64_t) chunk * WIRE_CHUNK_BYTES + (uint64_t) i * bytes),
			.local = target + (size_t) i * bytes,
		};
	start = smart_clock_ns();
	for (unsigned int i = 0; i < exchanges; i++)
		must_be_ok(fabric_execute(fabric, batch, reads), fabric->problem);
	return (smart_clock_ns() - start) / exchanges;
}

/* The bytes of the messages that such a batch takes. */
static struct lengths
message_bytes(int reads, uint32_t bytes)
{
	smart_assert(reads >= 1 && reads <= READS_MAX);
	return (struct lengths){
		.request = WIRE_HEADER_BYTES + 8 + (uint32_t) reads * WIRE_VERB_BYTES,
		.answer = WIRE_HEADER_BYTES + (uint32_t) reads * bytes,
	};
}

/* ---- both ---- */

static int
compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *) left;
	uint64_t b = *(const uint64_t *) right;

	return a < b ? -1 : a > b;
}

static double
median_us(uint64_t *ns)
{
	qsort(ns, ROUNDS, sizeof(ns[0]), compare);
	return (double) ns[ROUNDS / 2] / 1000.0;
}

static void
run(struct fabric *fabric, const struct node *node, unsigned int exchanges)
{
	int other_side = start_other_side();
	uint64_t bare[SHAPES][ROUNDS];
	uint64_t read[SHAPES][ROUNDS];

	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < SHAPES; i++)
		{
			bare[i][round] = measure_bare(other_side, message_bytes(shapes[i].reads, shapes[i].bytes), exchanges);
			read[i][round] = measure_reads(fabric, node->chunk, shapes[i].reads, shapes[i].bytes, exchanges);
		}
	printf("| READs of a batch | bytes of each | bare, us | READs, us | ratio |\n|---|---|---|---|---|\n");
	for (size_t i = 0; i < SHAPES; i++)
	{
		double bare_us = median_us(bare[i]);
		double read_us = median_us(read[i]);

		printf("| %d | %u | %.1f | %.1f | %.2f |\n", shapes[i].reads, shapes[i].bytes, bare_us, read_us,
			   read_us / bare_us);
	}
}

int
main(int argc, char **argv)
{
	static struct node node;
	struct smart_env env = smart_thread_env;
	struct stream_secret secret = {0};
	struct fabric *fabric;
	char problem[SESSION_PROBLEM_MAX] = "";
	unsigned int exchanges = argc > 2 ? (unsigned int) atoi(argv[2]) : 0;
	char *port = argc == 3 || argc == 4 ? strrchr(argv[1], ':') : NULL;

	if (port == NULL || exchanges == 0)
	{
		fprintf(stderr, "usage: ping_pong HOST:PORT EXCHANGES [SECRET_FILE]\n");
		return 2;
	}
	*port++ = '\0';
	snprintf(node.location.host, sizeof(node.location.host), "%s", argv[1]);
	snprintf(node.location.port, sizeof(node.location.port), "%s", port);
	node.location.transport = WIRE_TCP;
	if (argc == 4)
		must_be_ok(stream_secret_read(argv[3], &secret, problem, sizeof(problem)), problem);
	fabric = open_fabric(&node, &env, &secret);
	run(fabric, &node, exchanges);
	fabric->provider->close(fabric);
	must_be_ok(session_give_chunks(node.control, &node.chunk, 1, smart_deadline_ns(&env, TIMEOUT_MS)),
			   session_problem(node.control));
	session_close(node.control);
	return 0;
}

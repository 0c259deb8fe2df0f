/*
 * memnodes.c
 *	  Real memory nodes on this host, for tests.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/conformance.h"
#include "support/memnodes.h"
#include "support/must.h"

#define OWNER      UINT64_C(0x0123456789abcdef)
#define EXTENT_MAP UINT64_C(0xb00c)
#define LIMIT_MS   20000
#define SECRET_HEX "00112233445566778899aabbccddeeff"

static void
must_be_ok(smart_status status, const char *problem)
{
	if (status == SMART_OK)
		return;
	fprintf(stderr, "%s: %s\n", smart_status_text(status), problem);
	abort();
}

/* ---- the daemons ---- */

/* Becomes the daemon.  SMART_MEMNODE names its program where it does not lie where make puts it. */
static void
become_daemon(const struct test_memnodes *nodes, unsigned int number, int output)
{
	const char *program = getenv("SMART_MEMNODE");
	char memory[64];
	char secret[64];
	char log[64];
	int error;

	if (program == NULL)
		program = "build/memnode/smart-memnode";
	snprintf(memory, sizeof(memory), "--memory=%s/region.%u", nodes->directory, number);
	snprintf(secret, sizeof(secret), "--secret-file=%s/secret", nodes->directory);
	snprintf(log, sizeof(log), "%s/log.%u", nodes->directory, number);
	error = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	/* Not even a test that crashes leaves it behind. */
	must(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, "prctl");
	must(error >= 0 && dup2(error, STDERR_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0, log);
	execl(program, program, "--listen=127.0.0.1:0", "--size=32M",
		  nodes->transport == WIRE_RDMA ? "--transport=verbs" : "--transport=tcp", memory,
		  nodes->secret.length > 0 ? secret : NULL, NULL);
	perror(program);
	_exit(127);
}

/* Reads the line that says where the daemon listens. */
static void
read_port(int input, char port[SESSION_PORT_MAX])
{
	char line[256] = "";
	FILE *file = fdopen(input, "r");
	const char *place;

	must(file != NULL, "fdopen");
	if (fgets(line, sizeof(line), file) == NULL || (place = strstr(line, "ready on 127.0.0.1:")) == NULL)
	{
		fprintf(stderr, "smart-memnode is not ready, it said: %s\n", line);
		abort();
	}
	snprintf(port, SESSION_PORT_MAX, "%u", (unsigned int) atoi(place + strlen("ready on 127.0.0.1:")));
	fclose(file);
}

static void
start_daemon(struct test_memnodes *nodes, unsigned int number)
{
	struct test_memnode *node = &nodes->node[number];
	int ends[2];

	must(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
	node->pid = fork();
	must(node->pid >= 0, "fork");
	if (node->pid == 0)
		become_daemon(nodes, number, ends[1]);
	close(ends[1]);
	read_port(ends[0], node->port);
	memcpy(node->via, node->port, sizeof(node->via));
}

void
test_memnode_kill(struct test_memnodes *nodes, unsigned int number)
{
	struct test_memnode *node = &nodes->node[number];

	if (node->control != NULL)
		session_close(node->control);
	node->control = NULL;
	if (node->pid == 0)
		return;
	must(kill(node->pid, SIGKILL) == 0 && waitpid(node->pid, NULL, 0) == node->pid, "kill");
	node->pid = 0;
}

/* Waits until the process has changed its state. */
static void
signal_daemon(const struct test_memnode *node, int signal_number, int options)
{
	must(kill(node->pid, signal_number) == 0 && waitpid(node->pid, NULL, options) == node->pid, "kill");
}

void
test_memnode_freeze(struct test_memnodes *nodes, unsigned int node)
{
	signal_daemon(&nodes->node[node], SIGSTOP, WUNTRACED);
}

void
test_memnode_thaw(struct test_memnodes *nodes, unsigned int node)
{
	signal_daemon(&nodes->node[node], SIGCONT, WCONTINUED);
}

/* ---- the compute node ---- */

struct session_options
test_session_options(struct test_memnodes *nodes, struct smart_env *env, bool verbs)
{
	return (struct session_options){
		.env = env,
		.secret = &nodes->secret,
		.hello = {.owner = OWNER, .incarnation = nodes->incarnation, .pid = (uint32_t) getpid(), .verbs = verbs},
		.timeout_ms = LIMIT_MS,
	};
}

/* A session that has the lease, and a chunk if there is none yet. */
static void
take_lease(struct test_memnodes *nodes, struct test_memnode *node)
{
	const struct wire_lease lease = {.extents = EXTENT_MAP, .transport = nodes->transport};
	struct smart_env *env = &nodes->thread.env;
	struct session_options options = test_session_options(nodes, env, false);
	uint64_t deadline_ns = env->now_ns(env) + (uint64_t) LIMIT_MS * 1000000;
	char problem[SESSION_PROBLEM_MAX] = "";
	uint32_t chunks[WIRE_LIST_MAX];
	uint32_t count = 0;

	must_be_ok(session_open(&options, "127.0.0.1", node->port, &node->control, problem), problem);
	must_be_ok(session_lease(node->control, &lease, deadline_ns), session_problem(node->control));
	must_be_ok(session_list_chunks(node->control, 0, deadline_ns, chunks, &count), session_problem(node->control));
	if (count == 0)
		must_be_ok(session_take_chunks(node->control, 1, deadline_ns, chunks, &count), session_problem(node->control));
	if (nodes->offset == 0)
		nodes->offset = (uint64_t) chunks[0] * WIRE_CHUNK_BYTES;
	must(nodes->offset == (uint64_t) chunks[0] * WIRE_CHUNK_BYTES, "the same chunk on all nodes");
	if (node->incarnation == 0)
		node->incarnation = session_welcome(node->control)->node;
}

void
test_memnode_start(struct test_memnodes *nodes, unsigned int number, bool empty)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/region.%u", nodes->directory, number);
	must(!empty || unlink(path) == 0, path);
	start_daemon(nodes, number);
	take_lease(nodes, &nodes->node[number]);
}

static smart_status
locate(struct fabric_nodes *shared, unsigned int number, struct fabric_location *location,
	   char problem[SESSION_PROBLEM_MAX])
{
	const struct test_memnodes *nodes = (const struct test_memnodes *) shared;

	if (number >= nodes->count)
	{
		snprintf(problem, SESSION_PROBLEM_MAX, "there is no memory node %u", number);
		return SMART_CORRUPT;
	}
	*location = (struct fabric_location){.host = "127.0.0.1", .transport = nodes->transport};
	memcpy(location->port, nodes->node[number].via, sizeof(location->port));
	location->incarnation = nodes->node[number].incarnation;
	return SMART_OK;
}

static void
write_secret(struct test_memnodes *nodes)
{
	char path[64];
	char problem[256] = "";
	FILE *file;

	snprintf(path, sizeof(path), "%s/secret", nodes->directory);
	file = fopen(path, "w");
	must(file != NULL && fputs(SECRET_HEX "\n", file) >= 0 && fclose(file) == 0 && chmod(path, 0600) == 0, path);
	must_be_ok(stream_secret_read(path, &nodes->secret, problem, sizeof(problem)), problem);
}

static struct test_memnodes *
open_nodes(unsigned int count, bool with_secret, enum wire_transport transport)
{
	struct test_memnodes *nodes = calloc(1, sizeof(*nodes));

	must(nodes != NULL && count <= TEST_MEMNODES_MAX, "calloc");
	/* In memory: files of other kinds cannot be registered with an RDMA device everywhere. */
	strcpy(nodes->directory, "/dev/shm/smart-memnodes-XXXXXX");
	must(mkdtemp(nodes->directory) != NULL, nodes->directory);
	env_thread_init(&nodes->thread, 1);
	nodes->shared.locate = locate;
	nodes->shared.generation = nodes->generation;
	nodes->transport = transport;
	nodes->incarnation = 1;
	nodes->count = count;
	if (with_secret)
		write_secret(nodes);
	for (unsigned int i = 0; i < count; i++)
	{
		start_daemon(nodes, i);
		take_lease(nodes, &nodes->node[i]);
	}
	return nodes;
}

struct test_memnodes *
test_memnodes_open(unsigned int count, bool with_secret)
{
	return open_nodes(count, with_secret, WIRE_TCP);
}

struct test_memnodes *
test_memnodes_open_rdma(unsigned int count, bool with_secret)
{
	return open_nodes(count, with_secret, WIRE_RDMA);
}

static void
remove_files(const struct test_memnodes *nodes)
{
	char path[64];

	for (unsigned int i = 0; i < nodes->count; i++)
	{
		snprintf(path, sizeof(path), "%s/region.%u", nodes->directory, i);
		unlink(path);
		snprintf(path, sizeof(path), "%s/log.%u", nodes->directory, i);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/secret", nodes->directory);
	unlink(path);
	must(rmdir(nodes->directory) == 0, nodes->directory);
}

void
test_memnodes_close(struct test_memnodes *nodes)
{
	for (unsigned int i = 0; i < nodes->count; i++)
		test_memnode_kill(nodes, i);
	must(nodes->thread.allocations == 0, "a control session leaked memory");
	remove_files(nodes);
	free(nodes);
}

void
test_remote_open(struct test_memnodes *nodes, struct test_remote *remote, uint32_t client, uint32_t timeout_ms)
{
	struct fabric_remote_options options = {
		.nodes = &nodes->shared,
		.secret = nodes->secret.length > 0 ? &nodes->secret : NULL,
		.owner = OWNER,
		.incarnation = nodes->incarnation,
		.client = client,
		.pid = (uint32_t) getpid(),
		.timeout_ms = timeout_ms,
	};

	env_thread_init(&remote->thread, client);
	options.env = &remote->thread.env;
	must_be_ok(fabric_remote_open(&options, &remote->fabric), "a fabric");
}

void
test_remote_close(struct test_remote *remote)
{
	remote->fabric->provider->close(remote->fabric);
	must(remote->thread.allocations == 0, "a client leaked memory");
}

/* ---- conformance ---- */

struct remote_conformance
{
	struct conformance conformance; /* first */
	struct test_memnodes *nodes;
	uint32_t timeout_ms;
	unsigned int opened;
	struct test_remote client[TEST_CONFORMANCE_CLIENTS];
};

/* The check that opens a fabric closes it; the clients' environments are looked at in the end. */
static struct fabric *
open_another(struct conformance *conformance)
{
	struct remote_conformance *remote = (struct remote_conformance *) conformance;
	unsigned int number = __atomic_fetch_add(&remote->opened, 1, __ATOMIC_RELAXED);

	must(number < TEST_CONFORMANCE_CLIENTS, "clients of the conformance checks");
	test_remote_open(remote->nodes, &remote->client[number], number + 1, remote->timeout_ms);
	return remote->client[number].fabric;
}

void
test_memnodes_conformance(struct test_memnodes *nodes, unsigned int additions, uint32_t timeout_ms)
{
	struct remote_conformance remote = {
		.conformance =
			{
				.nodes = nodes->count,
				.offset = nodes->offset,
				.bytes = WIRE_CHUNK_BYTES,
				/* The chunk is the first one of a new region. */
				.outside = nodes->offset + session_welcome(nodes->node[0].control)->capacity,
				.open = open_another,
				.additions = additions,
			},
		.nodes = nodes,
		.timeout_ms = timeout_ms,
	};
	struct fabric *fabric = open_another(&remote.conformance);

	remote.conformance.fabric = fabric;
	conformance_check(&remote.conformance);
	CHECK(fabric->counters.connections == nodes->count);
	CHECK(fabric->counters.timeouts == 0 && fabric->counters.failures == 0);
	fabric->provider->close(fabric);
	CHECK(remote.opened > 1);
	for (unsigned int i = 0; i < remote.opened; i++)
		CHECK(remote.client[i].thread.allocations == 0);
	for (unsigned int i = 0; i < nodes->count; i++)
		CHECK(nodes->generation[i] == 0);
}

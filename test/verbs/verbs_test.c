/*
 * verbs_test.c
 *	  The RDMA link and its other side, the memory node's target, in one process:
 *	  needs an RDMA device (test/vm has a soft one).
 *
 * Queue pairs are handed over directly, so there are no sessions here.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdma/verbs/link.h"
#include "rdma/verbs/target.h"
#include "rdma/verbs/verbs.h"
#include "support/check.h"
#include "support/conformance.h"
#include "support/env_thread.h"

#define NODES       2
#define REGION_SIZE ((uint64_t) 4 << 20)
#define FROM        4096 /* what lies before is not registered */
#define SECOND_NS   UINT64_C(1000000000)
#define LARGE       ((uint32_t) 700 << 10) /* more than a round takes */
#define MANY        1000                   /* likewise */

struct client
{
	struct fabric fabric; /* first */
	struct env_thread thread;
	bool (*sleep)(struct smart_env *env, int descriptor, bool to_write, uint32_t timeout_ms);
	unsigned int woken; /* times that a completion ended its sleep */
	struct fabric_link *link[NODES];
	struct verbs_target_pair *pair[NODES];
};

static struct verbs_target *targets[NODES];
static uint8_t *regions[NODES];
static pthread_mutex_t targets_lock = PTHREAD_MUTEX_INITIALIZER; /* a memory node has one thread */

/* The environment's, counted. */
static bool
wait_descriptor(struct smart_env *env, int descriptor, bool to_write, uint32_t timeout_ms)
{
	struct client *client = (struct client *) ((char *) env - offsetof(struct client, thread));
	bool woken = client->sleep(env, descriptor, to_write, timeout_ms);

	client->woken += woken;
	return woken;
}

/* ---- a client: a link to each memory node, and a fabric over them ---- */

static void
connect_node(struct client *client, unsigned int node)
{
	struct wire_queue_pair mine;
	struct wire_queue_pair theirs;
	char problem[FABRIC_PROBLEM_MAX] = "";

	if (!CHECK(verbs_link_prepare(&client->thread.env, node, &mine, &client->link[node], problem) == SMART_OK))
		fprintf(stderr, "%s\n", problem);
	pthread_mutex_lock(&targets_lock);
	CHECK(verbs_target_connect(targets[node], &mine, &theirs, &client->pair[node], problem) == SMART_OK);
	pthread_mutex_unlock(&targets_lock);
	CHECK(verbs_link_connect(client->link[node], &theirs) == SMART_OK);
}

static void
disconnect_target(struct client *client, unsigned int node)
{
	pthread_mutex_lock(&targets_lock);
	if (client->pair[node] != NULL)
		verbs_target_disconnect(client->pair[node]);
	pthread_mutex_unlock(&targets_lock);
	client->pair[node] = NULL;
}

static void
disconnect_node(struct client *client, unsigned int node)
{
	client->link[node]->kind->close(client->link[node]);
	disconnect_target(client, node);
}

static smart_status
client_execute(struct fabric *fabric, struct fabric_request *requests, int count)
{
	struct client *client = (struct client *) fabric;
	struct smart_env *env = &client->thread.env;
	bool concerned[NODES] = {false};

	for (int i = 0; i < count; i++)
	{
		if (fabric_node(requests[i].remote) >= NODES)
			return SMART_CORRUPT;
		concerned[fabric_node(requests[i].remote)] = true;
	}
	fabric->counters.round_trips++;
	for (int pass = 0; pass < 2; pass++)
		for (unsigned int node = 0; node < NODES; node++)
		{
			struct fabric_link *link = client->link[node];
			smart_status status;

			if (!concerned[node])
				continue;
			fabric->counters.doorbells += pass == 0;
			status = pass == 0 ? link->kind->post(link, requests, count)
							   : link->kind->finish(link, env->now_ns(env) + 60 * SECOND_NS);
			if (status != SMART_OK)
				return status;
		}
	for (int i = 0; i < count; i++)
	{
		bool atomic = requests[i].verb == FABRIC_CAS || requests[i].verb == FABRIC_FAA;

		fabric->counters.requests[requests[i].verb]++;
		fabric->counters.bytes[requests[i].verb] += atomic ? 8 : requests[i].length;
	}
	return SMART_OK;
}

static void
client_close(struct fabric *fabric)
{
	struct client *client = (struct client *) fabric;

	for (unsigned int node = 0; node < NODES; node++)
		disconnect_node(client, node);
	CHECK(client->thread.allocations == 0);
	free(client);
}

static const struct fabric_provider client_provider = {
	.execute = client_execute,
	.close = client_close,
};

static struct client *
client_open(void)
{
	struct client *client = calloc(1, sizeof(*client));

	client->fabric.provider = &client_provider;
	env_thread_init(&client->thread, 1);
	client->sleep = client->thread.env.wait_descriptor;
	client->thread.env.wait_descriptor = wait_descriptor;
	for (unsigned int node = 0; node < NODES; node++)
		connect_node(client, node);
	return client;
}

static struct fabric *
open_other(struct conformance *conformance)
{
	return &client_open()->fabric;
}

static struct fabric_request
moves(enum fabric_verb verb, unsigned int node, uint64_t offset, void *local, size_t length)
{
	return (struct fabric_request){
		.verb = verb,
		.remote = fabric_make_address(node, offset),
		.local = local,
		.length = (uint32_t) length,
	};
}

static struct fabric_request
adds(unsigned int node, uint64_t offset, uint64_t operand)
{
	return (struct fabric_request){.verb = FABRIC_FAA, .remote = fabric_make_address(node, offset), .operand = operand};
}

/* ---- batches that are larger than a round ---- */

static void
test_many(struct client *client)
{
	static struct fabric_request batch[2 * MANY];
	static uint64_t words[MANY];
	unsigned int wrong = 0;

	memset(regions[0] + FROM, 0, MANY * sizeof(uint64_t));
	for (int i = 0; i < MANY; i++)
	{
		words[i] = UINT64_C(1000000) * (uint64_t) i;
		batch[2 * i] = moves(FABRIC_WRITE, 0, FROM + 8 * (uint64_t) i, &words[i], 8);
		batch[2 * i + 1] = adds(0, FROM + 8 * (uint64_t) i, 7);
	}
	CHECK(fabric_execute(&client->fabric, batch, 2 * MANY) == SMART_OK);
	for (int i = 0; i < MANY; i++)
	{
		wrong += batch[2 * i + 1].result != words[i];
		batch[i] = moves(FABRIC_READ, 0, FROM + 8 * (uint64_t) (MANY - 1 - i), &words[i], 8);
	}
	CHECK(wrong == 0);
	CHECK(fabric_execute(&client->fabric, batch, MANY) == SMART_OK);
	for (int i = 0; i < MANY; i++)
		wrong += words[i] != UINT64_C(1000000) * (uint64_t) (MANY - 1 - i) + 7;
	CHECK(wrong == 0);
}

/* Pieces of what exceeds the buffer, between verbs of both nodes that fit. */
static void
test_large(struct client *client)
{
	uint8_t *written = malloc(LARGE);
	uint8_t *found = malloc(LARGE);
	uint64_t random = 1;
	uint64_t word = 5;
	struct fabric_request batch[6];

	for (uint32_t i = 0; i < LARGE; i++)
		written[i] = (uint8_t) test_random(&random);
	batch[0] = moves(FABRIC_WRITE, 1, FROM, &word, 8);
	batch[1] = moves(FABRIC_WRITE, 0, FROM + 3, written, LARGE);
	batch[2] = adds(1, FROM, 1);
	batch[3] = moves(FABRIC_READ, 0, FROM + 3, found, LARGE);
	batch[4] = moves(FABRIC_WRITE, 0, FROM + 2 * LARGE, written, 600);
	batch[5] = adds(1, FROM, 1);
	CHECK(fabric_execute(&client->fabric, batch, 6) == SMART_OK);
	CHECK(memcmp(written, found, LARGE) == 0 && memcmp(written, regions[0] + FROM + 3, LARGE) == 0);
	CHECK(memcmp(written, regions[0] + FROM + 2 * LARGE, 600) == 0);
	CHECK(batch[2].result == 5 && batch[5].result == 6);
	free(written);
	free(found);
}

/* ---- waiting ---- */

struct late
{
	struct wire_queue_pair mine;
	struct wire_queue_pair reply;
	struct verbs_target_pair *pair;
};

static void *
connect_late(void *argument)
{
	struct late *late = argument;
	char problem[FABRIC_PROBLEM_MAX];

	usleep(300000); /* longer than a round waits before it sends a nudge */
	CHECK(verbs_target_connect(targets[0], &late->mine, &late->reply, &late->pair, problem) == SMART_OK);
	return NULL;
}

/*
 * A completion that takes its time wakes the sleeper: what the verb is sent to is not
 * there yet when it is sent, and is repeated.  Soft-RoCE numbers queue pairs
 * one after the other, so that the number of one to come is known.  The queue is
 * full, and the nudges find room, then and in the rounds that follow.  False: on a machine
 * with other work the client did not come to sleep, or to wait for long enough, before it was there.
 */
static bool
try_late(struct client *client)
{
	struct smart_env *env = &client->thread.env;
	struct wire_queue_pair theirs;
	struct late late = {.pair = NULL};
	struct fabric_link *link;
	uint64_t word[VERBS_QUEUE_MAX] = {0};
	struct fabric_request requests[VERBS_QUEUE_MAX];
	char problem[FABRIC_PROBLEM_MAX];
	pthread_t thread;
	bool waited;

	CHECK(verbs_link_prepare(env, 0, &late.mine, &link, problem) == SMART_OK);
	CHECK(verbs_target_connect(targets[0], &late.mine, &theirs, &late.pair, problem) == SMART_OK);
	verbs_target_disconnect(late.pair);
	theirs.number++;
	CHECK(verbs_link_connect(link, &theirs) == SMART_OK);
	memset(regions[0] + FROM, 0x11, sizeof(word));
	for (unsigned int i = 0; i < VERBS_QUEUE_MAX; i++)
		requests[i] = moves(FABRIC_READ, 0, FROM + 8 * i, &word[i], 8);
	client->woken = 0;
	CHECK(link->kind->post(link, requests, VERBS_QUEUE_MAX) == SMART_OK);
	CHECK(pthread_create(&thread, NULL, connect_late, &late) == 0);
	CHECK(link->kind->finish(link, env->now_ns(env) + 60 * SECOND_NS) == SMART_OK);
	CHECK(pthread_join(thread, NULL) == 0 && late.reply.number == theirs.number);
	CHECK(memcmp(word, regions[0] + FROM, sizeof(word)) == 0 && word[0] != 0);
	waited = client->woken > 0 && ((struct verbs_link *) link)->nudges > 0;
	for (unsigned int i = 0; i < 20; i++)
	{
		CHECK(link->kind->post(link, requests, VERBS_QUEUE_MAX) == SMART_OK);
		CHECK(link->kind->finish(link, env->now_ns(env) + 60 * SECOND_NS) == SMART_OK);
	}
	link->kind->close(link);
	verbs_target_disconnect(late.pair);
	return waited;
}

static void
test_late(struct client *client)
{
	bool waited = false;

	for (int i = 0; i < 5 && !waited; i++)
		waited = try_late(client);
	CHECK(waited);
}

/* ---- failures ---- */

/* An address that the node did not register, and that the client cannot know: its card refuses. */
static void
test_unregistered(struct client *client)
{
	uint64_t word = 1;
	struct fabric_request batch[2] = {
		moves(FABRIC_WRITE, 0, FROM, &word, 8),
		moves(FABRIC_READ, 0, FROM - 4, &word, 8),
	};

	CHECK(fabric_execute(&client->fabric, batch, 2) == SMART_CORRUPT);
	CHECK(strstr(client->link[0]->problem, "memory node 0: RDMA READ of 8 bytes at offset 4092: remote access error") !=
		  NULL);
	disconnect_node(client, 0);
	connect_node(client, 0);
	CHECK(fabric_execute(&client->fabric, batch, 1) == SMART_OK);
}

/* The peer is gone: noticed long before the time limit (60 s), if there is time; else the limit, or an interrupt, ends it. */
static void
test_gone(struct client *client)
{
	struct smart_env *env = &client->thread.env;
	uint64_t word = 1;
	struct fabric_request request = moves(FABRIC_READ, 1, FROM, &word, 8);

	client->woken = 0;
	disconnect_target(client, 1);
	CHECK(fabric_execute(&client->fabric, &request, 1) == SMART_UNREACHABLE && client->woken > 0);
	CHECK(strstr(client->link[1]->problem, "transport retry counter exceeded") != NULL);
	disconnect_node(client, 1);

	connect_node(client, 1);
	disconnect_target(client, 1);
	CHECK(client->link[1]->kind->post(client->link[1], &request, 1) == SMART_OK);
	CHECK(client->link[1]->kind->finish(client->link[1], env->now_ns(env)) == SMART_TIMEOUT);
	disconnect_node(client, 1);

	connect_node(client, 1);
	disconnect_target(client, 1);
	__atomic_store_n(&client->thread.stop, true, __ATOMIC_RELAXED);
	CHECK(fabric_execute(&client->fabric, &request, 1) == SMART_INTERRUPTED);
	__atomic_store_n(&client->thread.stop, false, __ATOMIC_RELAXED);
	disconnect_node(client, 1);

	connect_node(client, 1);
	CHECK(fabric_execute(&client->fabric, &request, 1) == SMART_OK);
}

/* Writes ever greater numbers all over a node's memory until it is told to stop. */
static void *
write_on(void *argument)
{
	static uint8_t block[2048];
	static struct fabric_request batch[100];
	struct client *client = argument;

	do
	{
		memset(block, block[0] + 1, sizeof(block));
		for (unsigned int i = 0; i < 100; i++)
			batch[i] = moves(FABRIC_WRITE, 1, FROM + i * sizeof(block), block, sizeof(block));
	} while (fabric_execute(&client->fabric, batch, 100) == SMART_OK);
	return NULL;
}

/* Once the memory node has destroyed the queue pair, nothing of what was under way takes effect any more. */
static void
test_ghosts(struct client *client)
{
	static uint8_t before[100 * 2048];
	unsigned int late = 0;

	for (unsigned int try = 0; try < 10; try++)
	{
		uint8_t first = __atomic_load_n(&regions[1][FROM], __ATOMIC_ACQUIRE);
		pthread_t writer;

		CHECK(pthread_create(&writer, NULL, write_on, client) == 0);
		while (__atomic_load_n(&regions[1][FROM], __ATOMIC_ACQUIRE) == first)
			usleep(1000);
		disconnect_target(client, 1);
		memcpy(before, regions[1] + FROM, sizeof(before));
		usleep(50000);
		late += memcmp(before, regions[1] + FROM, sizeof(before)) != 0;
		__atomic_store_n(&client->thread.stop, true, __ATOMIC_RELAXED);
		CHECK(pthread_join(writer, NULL) == 0);
		__atomic_store_n(&client->thread.stop, false, __ATOMIC_RELAXED);
		disconnect_node(client, 1);
		connect_node(client, 1);
	}
	CHECK(late == 0);
}

/* A client that starts a program meanwhile still finds in its buffer what the card puts there. */
static void
test_fork(struct client *client)
{
	uint64_t word = 4711;
	uint64_t found = 0;
	struct fabric_request request = moves(FABRIC_WRITE, 0, FROM, &word, 8);
	int ends[2];
	pid_t child;
	uint8_t byte;

	CHECK(pipe(ends) == 0);
	child = fork();
	if (child == 0)
	{
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) != 0);
	}
	close(ends[0]);
	CHECK(fabric_execute(&client->fabric, &request, 1) == SMART_OK);
	for (word = 1; word <= 10; word++)
	{
		CHECK(fabric_execute(&client->fabric, &request, 1) == SMART_OK);
		request = moves(FABRIC_READ, 0, FROM, &found, 8);
		CHECK(fabric_execute(&client->fabric, &request, 1) == SMART_OK && found == word);
		request = moves(FABRIC_WRITE, 0, FROM, &word, 8);
	}
	close(ends[1]);
	CHECK(waitpid(child, NULL, 0) == child);
}

/* ---- what cannot be opened ---- */

static void
expect_refused(struct client *client, const char *text)
{
	struct wire_queue_pair mine;
	struct fabric_link *link = NULL;
	char problem[FABRIC_PROBLEM_MAX] = "";
	uint64_t allocations = client->thread.allocations;

	CHECK(verbs_link_prepare(&client->thread.env, 0, &mine, &link, problem) == SMART_UNREACHABLE && link == NULL);
	if (!CHECK(strstr(problem, text) != NULL))
		fprintf(stderr, "\"%s\" instead of \"%s\"\n", problem, text);
	CHECK(client->thread.allocations == allocations);
}

static void
test_choice(struct client *client)
{
	struct verbs_target_options options = {"none0", 0, -1, regions[0], FROM, REGION_SIZE};
	struct verbs_target *target = NULL;
	char problem[FABRIC_PROBLEM_MAX] = "";
	uint64_t word;
	struct fabric_request request = moves(FABRIC_READ, 0, FROM, &word, 8);

	CHECK(verbs_target_available());
	CHECK(verbs_target_open(&options, &target, problem) == SMART_UNREACHABLE && target == NULL);
	CHECK(strstr(problem, "no RDMA device \"none0\"") != NULL);
	verbs_set_device("none0", 0, -1);
	expect_refused(client, "no RDMA device \"none0\"");
	verbs_set_device("rxe0", 9, -1);
	expect_refused(client, "rxe0 has no port 9");
	verbs_set_device(NULL, 0, 200);
	expect_refused(client, "no address (GID) with index 200");
	verbs_set_device("", 1, 257);
	expect_refused(client, "no address (GID) with index 257");
	verbs_set_device("rxe0", 1, 1);
	disconnect_node(client, 0);
	connect_node(client, 0);
	CHECK(fabric_execute(&client->fabric, &request, 1) == SMART_OK);
	verbs_set_device(NULL, 0, -1);
}

static void
test_nonsense(struct client *client)
{
	struct wire_queue_pair mine;
	struct wire_queue_pair theirs;
	struct verbs_target_pair *pair = NULL;
	struct fabric_link *link;
	char problem[FABRIC_PROBLEM_MAX] = "";

	CHECK(verbs_link_prepare(&client->thread.env, 0, &mine, &link, problem) == SMART_OK);
	theirs = mine;
	theirs.limit = FABRIC_OFFSET_MASK + 2;
	CHECK(verbs_link_connect(link, &theirs) == SMART_UNREACHABLE);
	theirs.limit = REGION_SIZE;
	theirs.base = UINT64_MAX - REGION_SIZE + 1;
	CHECK(verbs_link_connect(link, &theirs) == SMART_UNREACHABLE);
	memset(mine.gid, 0, sizeof(mine.gid));
	CHECK(verbs_target_connect(targets[0], &mine, &theirs, &pair, problem) == SMART_UNREACHABLE && pair == NULL);
	CHECK(strstr(problem, "different networks") != NULL);
	link->kind->close(link);
}

/* Memory: none at all, and none that may be locked (that limit holds for ordinary users only). */
static void
test_no_memory(struct client *client)
{
	struct rlimit none = {0, 0};
	struct wire_queue_pair mine;
	struct fabric_link *link = NULL;
	char problem[FABRIC_PROBLEM_MAX];
	int status = 0;
	pid_t child;

	client->thread.fail_one_in = 1;
	CHECK(verbs_link_prepare(&client->thread.env, 0, &mine, &link, problem) == SMART_NO_MEMORY && link == NULL);
	client->thread.fail_one_in = 0;
	child = fork();
	if (child == 0)
	{
		if (setrlimit(RLIMIT_MEMLOCK, &none) != 0 || setgid(65534) != 0 || setuid(65534) != 0)
			_exit(1);
		if (verbs_link_prepare(&client->thread.env, 0, &mine, &link, problem) != SMART_UNREACHABLE)
			_exit(2);
		_exit(strstr(problem, "limit of locked memory") == NULL ? 3 : 0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void
open_targets(void)
{
	for (unsigned int node = 0; node < NODES; node++)
	{
		char problem[FABRIC_PROBLEM_MAX] = "";
		struct verbs_target_options options = {.gid_index = -1, .from = FROM, .limit = REGION_SIZE};

		regions[node] = mmap(NULL, REGION_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		CHECK(regions[node] != MAP_FAILED);
		options.base = regions[node];
		if (CHECK(verbs_target_open(&options, &targets[node], problem) == SMART_OK))
			continue;
		fprintf(stderr, "%s\n", problem);
		exit(check_finish());
	}
}

int
main(void)
{
	struct conformance conformance = {
		.nodes = NODES,
		.offset = REGION_SIZE / 2,
		.bytes = REGION_SIZE / 2,
		.outside = REGION_SIZE,
		.open = open_other,
		.additions = 5000,
	};
	struct client *client;

	open_targets();
	client = client_open();
	test_choice(client);
	test_nonsense(client);
	test_no_memory(client);
	test_many(client);
	test_large(client);
	test_late(client);
	test_unregistered(client);
	test_gone(client);
	test_ghosts(client);
	test_fork(client);
	conformance.fabric = &client->fabric;
	conformance_check(&conformance);
	client->fabric.provider->close(&client->fabric);
	for (unsigned int node = 0; node < NODES; node++)
	{
		verbs_target_close(targets[node]);
		munmap(regions[node], REGION_SIZE);
	}
	return check_finish();
}

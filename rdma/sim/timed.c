/*
 * timed.c
 *	  The simulated fabric in virtual time.
 *
 * One process, one thread.  Every client is a coroutine that runs until it
 * waits for a time; then the client runs whose time comes next.  So everything
 * happens in the order of virtual time, and clients that wake at the same
 * moment run in the order in which they went to sleep.
 */
#include <string.h>

#include "rdma/sim/memory.h"
#include "rdma/sim/timed.h"

#define PS_A_NS     UINT64_C(1000)
#define PS_A_SECOND UINT64_C(1000000000000)

/* ---- the clock ---- */

static bool
wakes_before(const struct sim_timed_client *a, const struct sim_timed_client *b)
{
	return a->wakes_ps != b->wakes_ps ? a->wakes_ps < b->wakes_ps : a->order < b->order;
}

static void
push(struct sim_timed *cluster, struct sim_timed_client *client, uint64_t wakes_ps)
{
	unsigned int place = cluster->waiting++;

	smart_assert(place < SIM_TIMED_CLIENTS_MAX && wakes_ps >= cluster->now_ps);
	client->wakes_ps = wakes_ps;
	client->order = cluster->order++;
	while (place > 0 && wakes_before(client, cluster->heap[(place - 1) / 2]))
	{
		cluster->heap[place] = cluster->heap[(place - 1) / 2];
		place = (place - 1) / 2;
	}
	cluster->heap[place] = client;
}

static struct sim_timed_client *
pop(struct sim_timed *cluster)
{
	struct sim_timed_client *first = cluster->heap[0];
	struct sim_timed_client *moved = cluster->heap[--cluster->waiting];
	unsigned int place = 0;

	for (unsigned int child = 1; child < cluster->waiting; child = 2 * place + 1)
	{
		if (child + 1 < cluster->waiting && wakes_before(cluster->heap[child + 1], cluster->heap[child]))
			child++;
		if (wakes_before(moved, cluster->heap[child]))
			break;
		cluster->heap[place] = cluster->heap[child];
		place = child;
	}
	cluster->heap[place] = moved;
	return first;
}

/* Gives the processor to the client that wakes next, or to the program when none does. */
static void
hand_over(struct sim_timed *cluster, struct coroutine *from)
{
	struct sim_timed_client *next = cluster->waiting > 0 ? pop(cluster) : NULL;
	struct coroutine *to = next != NULL ? &next->coroutine : &cluster->main;

	cluster->running = next;
	if (next != NULL)
	{
		smart_assert(next->wakes_ps >= cluster->now_ps);
		cluster->now_ps = next->wakes_ps;
	}
	if (to != from)
		coroutine_switch(from, to);
}

static void
wait_until(struct sim_timed_client *client, uint64_t time_ps)
{
	struct sim_timed *cluster = client->cluster;

	smart_assert(time_ps >= cluster->now_ps);
	/* Alone, or first anyway: no need to change stacks. */
	if (cluster->running == NULL || cluster->waiting == 0 || time_ps < cluster->heap[0]->wakes_ps)
	{
		cluster->now_ps = time_ps;
		return;
	}
	smart_assert(cluster->running == client);
	push(cluster, client, time_ps);
	hand_over(cluster, &client->coroutine);
}

uint64_t
sim_timed_now_ns(const struct sim_timed *cluster)
{
	return cluster->now_ps / PS_A_NS;
}

void
sim_timed_pass(struct sim_timed_client *client, uint64_t ns)
{
	wait_until(client, client->cluster->now_ps + ns * PS_A_NS);
}

/* ---- locks ---- */

void
sim_timed_acquire(struct sim_timed_client *client, struct sim_timed_lock *lock)
{
	smart_assert(lock->holder != client);
	if (lock->holder == NULL)
	{
		lock->holder = client;
		return;
	}
	smart_assert(client->cluster->running == client);
	client->next_waiter = NULL;
	if (lock->first == NULL)
		lock->first = client;
	else
		lock->last->next_waiter = client;
	lock->last = client;
	/* The holder makes this client the next one when it releases the lock, and wakes it. */
	hand_over(client->cluster, &client->coroutine);
	smart_assert(lock->holder == client);
}

void
sim_timed_release(struct sim_timed_client *client, struct sim_timed_lock *lock)
{
	struct sim_timed_client *next = lock->first;

	smart_assert(lock->holder == client && next != client);
	lock->holder = next;
	if (next == NULL)
		return;
	lock->first = next->next_waiter;
	push(client->cluster, next, client->cluster->now_ps);
}

/* ---- verbs ---- */

static uint8_t *
find(const struct sim_timed *cluster, const struct fabric_request *request)
{
	const struct sim_timed_options *options = &cluster->options;

	return sim_find(options->base, options->memory_nodes, options->bytes, request->remote, fabric_bytes(request));
}

/* Bytes pass a link of the sender and one of the receiver, at the pace of the busier one; when they have. */
static uint64_t
pass_links(uint64_t *sender_free_ps, uint64_t *receiver_free_ps, uint64_t start_ps, uint64_t takes_ps)
{
	*sender_free_ps = (*sender_free_ps > start_ps ? *sender_free_ps : start_ps) + takes_ps;
	*receiver_free_ps = (*receiver_free_ps > start_ps ? *receiver_free_ps : start_ps) + takes_ps;
	return *sender_free_ps > *receiver_free_ps ? *sender_free_ps : *receiver_free_ps;
}

/* The requests of a batch that go to one memory node. */
struct lane
{
	unsigned int node;
	int next;            /* request of the batch, or count: all have arrived */
	uint64_t arrives_ps; /* when the next one does */
	uint64_t fetched_ps; /* when the last READ or atomic so far has come back; 0: there was none */
};

/* One request arrives; when its completion reaches the client. */
static uint64_t
arrive(struct sim_timed_client *client, const struct lane *lane, struct fabric_request *request)
{
	struct sim_timed *cluster = client->cluster;
	struct sim_timed_nic *theirs = &cluster->memory_nic[lane->node];
	struct sim_timed_nic *mine = &cluster->compute_nic[client->compute_node];
	uint64_t start_ps = lane->arrives_ps > theirs->next_request_ps ? lane->arrives_ps : theirs->next_request_ps;
	uint64_t takes_ps = fabric_bytes(request) * 8 * PS_A_NS / cluster->options.gbits;
	uint64_t end_ps;

	theirs->next_request_ps = start_ps + PS_A_SECOND / cluster->options.nic_rate;
	if (request->verb == FABRIC_WRITE)
		end_ps = pass_links(&mine->out_free_ps, &theirs->in_free_ps, start_ps, takes_ps);
	else
		end_ps = pass_links(&theirs->out_free_ps, &mine->in_free_ps, start_ps, takes_ps);
	if (request->verb == FABRIC_READ)
		memcpy(request->local, find(cluster, request), request->length);
	else if (request->verb == FABRIC_WRITE)
		memcpy(find(cluster, request), request->local, request->length);
	else
		sim_atomic(request, find(cluster, request));
	fabric_count(&client->fabric, request);
	return end_ps + cluster->options.round_trip_ns * PS_A_NS / 2;
}

/*
 * The lane's next requests arrive, as far as no fence holds them back.  Returns
 * when the last of them has completed.
 */
static uint64_t
advance(struct sim_timed_client *client, struct lane *lane, struct fabric_request *requests, int count)
{
	uint64_t completed_ps = 0;
	int i = lane->next;

	for (; i < count; i++)
	{
		struct fabric_request *request = &requests[i];
		uint64_t end_ps;

		if (fabric_node(request->remote) != lane->node)
			continue;
		if (request->fence && lane->fetched_ps > lane->arrives_ps)
		{
			lane->arrives_ps = lane->fetched_ps + client->cluster->options.round_trip_ns * PS_A_NS / 2;
			break;
		}
		end_ps = arrive(client, lane, request);
		if (request->verb != FABRIC_WRITE && end_ps > lane->fetched_ps)
			lane->fetched_ps = end_ps;
		if (end_ps > completed_ps)
			completed_ps = end_ps;
	}
	lane->next = i;
	return completed_ps;
}

static smart_status
timed_execute(struct fabric *fabric, struct fabric_request *requests, int count)
{
	struct sim_timed_client *client = (struct sim_timed_client *) fabric;
	struct lane lanes[SIM_TIMED_NODES_MAX]; /* one for each memory node of the batch, which leaves now */
	uint64_t arrives_ps = client->cluster->now_ps + client->cluster->options.round_trip_ns * PS_A_NS / 2;
	uint64_t completed_ps = 0;
	unsigned int number = 0;

	for (int i = 0; i < count; i++)
	{
		if (find(client->cluster, &requests[i]) == NULL ||
			(fabric_is_atomic(&requests[i]) && requests[i].remote % 8 != 0))
			return SMART_CORRUPT;
	}
	for (int i = 0; i < count; i++)
	{
		unsigned int node = fabric_node(requests[i].remote);
		unsigned int known = 0;

		while (known < number && lanes[known].node != node)
			known++;
		if (known == number)
			lanes[number++] = (struct lane){.node = node, .next = i, .arrives_ps = arrives_ps};
	}
	smart_assert(number >= 1 && number <= SIM_TIMED_NODES_MAX);
	fabric->counters.doorbells += number;
	fabric->counters.round_trips++;
	for (;;)
	{
		struct lane *first = NULL;
		uint64_t end_ps;

		for (unsigned int i = 0; i < number; i++)
		{
			if (lanes[i].next < count && (first == NULL || lanes[i].arrives_ps < first->arrives_ps))
				first = &lanes[i];
		}
		if (first == NULL)
			break;
		wait_until(client, first->arrives_ps);
		end_ps = advance(client, first, requests, count);
		if (end_ps > completed_ps)
			completed_ps = end_ps;
	}
	wait_until(client, completed_ps);
	return SMART_OK;
}

static void
timed_close(struct fabric *fabric)
{
}

static const struct fabric_provider timed_provider = {
	.execute = timed_execute,
	.close = timed_close,
};

/* ---- clusters and clients ---- */

void
sim_timed_init(struct sim_timed *cluster, const struct sim_timed_options *options)
{
	smart_assert(options->memory_nodes >= 1 && options->memory_nodes <= SIM_TIMED_NODES_MAX);
	smart_assert(options->compute_nodes >= 1 && options->compute_nodes <= SIM_TIMED_NODES_MAX);
	smart_assert(options->nic_rate > 0 && options->gbits > 0);
	memset(cluster, 0, sizeof(*cluster));
	cluster->options = *options;
}

void
sim_timed_client_init(struct sim_timed_client *client, struct sim_timed *cluster, unsigned int compute_node)
{
	smart_assert(compute_node < cluster->options.compute_nodes);
	memset(client, 0, sizeof(*client));
	client->fabric.provider = &timed_provider;
	client->cluster = cluster;
	client->compute_node = compute_node;
}

void
sim_timed_client_close(struct sim_timed_client *client)
{
	smart_assert(client->cluster->running == NULL);
	coroutine_release(&client->coroutine);
}

/* A coroutine begins without an argument: this is how it finds its client. */
static struct sim_timed *active;

static void
coroutine_main(void)
{
	struct sim_timed_client *client = active->running;

	client->body(client->argument);
	hand_over(client->cluster, &client->coroutine);
	smart_assert(!"a client that has ended was resumed");
}

void
sim_timed_start(struct sim_timed_client *client, void (*body)(void *argument), void *argument)
{
	client->body = body;
	client->argument = argument;
	coroutine_prepare(&client->coroutine, coroutine_main);
	push(client->cluster, client, client->cluster->now_ps);
}

void
sim_timed_run(struct sim_timed *cluster)
{
	smart_assert(cluster->running == NULL);
	active = cluster;
	hand_over(cluster, &cluster->main);
	smart_assert(cluster->running == NULL && cluster->waiting == 0);
}

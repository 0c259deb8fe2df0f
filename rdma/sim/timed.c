/*
 * timed.c
 *	  The simulated fabric in virtual time.
 *
 * One process, one thread.  Every client is a coroutine that runs until it
 * waits for a time; then the client runs whose time comes next.  So everything
 * happens in the order of virtual time, and clients that wake at the same
 * moment run in the order in which they went to sleep.
 */
#include <stdlib.h>
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

	smart_assert(cluster->waiting < SIM_TIMED_CLIENTS_MAX);
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
	if (cluster->running != NULL && cluster->patience > 0 && --cluster->patience == 0)
	{
		cluster->waiting = 0;
		hand_over(cluster, &client->coroutine);
	}
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

void
sim_timed_compute(struct sim_timed_client *client, uint64_t ns)
{
	struct sim_timed *cluster = client->cluster;
	uint64_t *free_ps =
		&cluster->core_free_ps[client->compute_node * cluster->options.model.compute_cores + client->core];

	smart_assert(client->core < cluster->options.model.compute_cores);
	if (ns == 0)
		return;
	*free_ps = (*free_ps > cluster->now_ps ? *free_ps : cluster->now_ps) + ns * PS_A_NS;
	wait_until(client, *free_ps);
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

static inline uint64_t
later(uint64_t a_ps, uint64_t b_ps)
{
	return a_ps > b_ps ? a_ps : b_ps;
}

/* The NICs of the two ends. */
static struct sim_timed_nic *
compute_nic(struct sim_timed_client *client)
{
	return &client->cluster->compute_nic[client->compute_node];
}

static struct sim_timed_nic *
memory_nic(struct sim_timed *cluster, unsigned int node)
{
	return cluster->options.colocated ? &cluster->compute_nic[node] : &cluster->memory_nic[node];
}

/* A NIC takes so many requests on, one after the other, from a time on; when it has the first one. */
static uint64_t
take_on(const struct sim_timed *cluster, struct sim_timed_nic *nic, uint64_t from_ps, unsigned int requests)
{
	uint64_t start_ps = later(from_ps, nic->next_request_ps);

	nic->next_request_ps = start_ps + requests * (PS_A_SECOND / cluster->options.model.nic_rate);
	return start_ps;
}

/* Bytes pass a link of the sender and one of the receiver, at the pace of the busier one; when they have. */
static uint64_t
pass_links(const struct sim_timed *cluster, struct sim_timed_nic *sender, struct sim_timed_nic *receiver,
		   uint64_t start_ps, uint64_t bytes)
{
	uint64_t takes_ps = bytes * 8 * PS_A_NS / cluster->options.model.gbits;

	sender->out_free_ps = later(sender->out_free_ps, start_ps) + takes_ps;
	receiver->in_free_ps = later(receiver->in_free_ps, start_ps) + takes_ps;
	return later(sender->out_free_ps, receiver->in_free_ps);
}

static uint64_t
half_way_ps(const struct sim_timed *cluster)
{
	return cluster->options.model.round_trip_ns * PS_A_NS / 2;
}

/*
 * The place of a word among those that were the target of an atomic lately.  A word whose time has passed is as
 * good as none; where all places are taken, two words share one.
 */
static struct sim_timed_word *
find_word(struct sim_timed_memory *memory, uint64_t offset, uint64_t now_ps)
{
	uint64_t hash = (offset / 8 * UINT64_C(0x9e3779b97f4a7c15)) >> 40;
	struct sim_timed_word *free_word = NULL;

	for (unsigned int probe = 0; probe < 8; probe++)
	{
		struct sim_timed_word *word = &memory->word[(hash + probe) % SIM_TIMED_WORDS];

		if (word->offset == offset)
			return word;
		if (free_word == NULL && word->free_ps <= now_ps)
			free_word = word;
	}
	if (free_word == NULL)
		return &memory->word[hash % SIM_TIMED_WORDS];
	free_word->offset = offset;
	return free_word;
}

/* When a memory node's NIC executes an atomic that it could begin with at start. */
static uint64_t
execute_atomic(struct sim_timed *cluster, const struct fabric_request *request, uint64_t start_ps)
{
	const struct sim_model *model = &cluster->options.model;
	struct sim_timed_memory *memory = &cluster->memory[fabric_node(request->remote)];
	struct sim_timed_word *word = find_word(memory, fabric_offset(request->remote), cluster->now_ps);
	bool in_nic = fabric_offset(request->remote) < cluster->options.chip_bytes;
	uint64_t unit_ps = later(start_ps, memory->next_atomic_ps);
	uint64_t turn_ps = later(unit_ps, word->free_ps);

	memory->next_atomic_ps = unit_ps + PS_A_SECOND / model->atomic_rate;
	word->free_ps = turn_ps + (in_nic ? model->chip_gap_ns : model->atomic_gap_ns) * PS_A_NS;
	return turn_ps;
}

/* The requests of a batch that go to one memory node. */
struct lane
{
	unsigned int node;
	unsigned int fences; /* that had to wait */
	int next;            /* request of the batch, or count: all have arrived */
	uint64_t arrives_ps; /* when the next one does, at the earliest */
	uint64_t fetched_ps; /* when the last READ or atomic so far has come back; 0: there was none */
};

/* One request arrives; when its completion reaches the client.  An atomic that has to wait holds up what follows. */
static uint64_t
arrive(struct sim_timed_client *client, struct lane *lane, struct fabric_request *request)
{
	struct sim_timed *cluster = client->cluster;
	const struct sim_model *model = &cluster->options.model;
	struct sim_timed_nic *theirs = memory_nic(cluster, lane->node);
	struct sim_timed_nic *mine = compute_nic(client);
	uint64_t start_ps = take_on(cluster, theirs, lane->arrives_ps, 1);
	uint64_t end_ps = pass_links(cluster, mine, theirs, start_ps, sim_request_wire_bytes(model, request));

	smart_assert(fabric_node(request->remote) == lane->node);
	if (fabric_is_atomic(request))
	{
		end_ps = execute_atomic(cluster, request, end_ps);
		lane->arrives_ps = end_ps;
		sim_atomic(request, find(cluster, request));
	}
	else if (request->verb == FABRIC_READ)
		memcpy(request->local, find(cluster, request), request->length);
	else
		memcpy(find(cluster, request), request->local, request->length);
	fabric_count(&client->fabric, request);
	return pass_links(cluster, theirs, mine, end_ps, sim_answer_wire_bytes(model, request)) + half_way_ps(cluster);
}

/* What a request of a batch is to a memory node. */
enum share
{
	SHARE_NONE,
	SHARE_OWN, /* it goes there */
	SHARE_COPY /* what it changes has its copy there */
};

static bool
is_copied(const struct sim_timed *cluster, const struct fabric_request *request)
{
	return cluster->options.copies > 1 && request->verb != FABRIC_READ;
}

/* The memory node that has the copy of what a request changes. */
static unsigned int
copy_node(const struct sim_timed *cluster, const struct fabric_request *request)
{
	return (fabric_node(request->remote) + 1) % cluster->options.memory_nodes;
}

static enum share
share_of(const struct sim_timed *cluster, const struct fabric_request *request, unsigned int node)
{
	if (fabric_node(request->remote) == node)
		return SHARE_OWN;
	return is_copied(cluster, request) && copy_node(cluster, request) == node ? SHARE_COPY : SHARE_NONE;
}

/* The copy of a change arrives, as a WRITE that holds nothing up; when its completion reaches the client. */
static uint64_t
arrive_copy(struct sim_timed_client *client, const struct lane *lane, const struct fabric_request *request)
{
	struct sim_timed *cluster = client->cluster;
	const struct sim_model *model = &cluster->options.model;
	struct fabric_request copy = {.verb = FABRIC_WRITE, .length = (uint32_t) fabric_bytes(request)};
	struct sim_timed_nic *theirs = memory_nic(cluster, lane->node);
	struct sim_timed_nic *mine = compute_nic(client);
	uint64_t at_ps = take_on(cluster, theirs, lane->arrives_ps, 1);

	at_ps = pass_links(cluster, mine, theirs, at_ps, sim_request_wire_bytes(model, &copy));
	fabric_count(&client->fabric, &copy);
	return pass_links(cluster, theirs, mine, at_ps, sim_answer_wire_bytes(model, &copy)) + half_way_ps(cluster);
}

/*
 * The lane's next requests arrive, as far as neither a fence nor an atomic holds
 * them back.  Returns when the last of them has completed.
 */
static uint64_t
advance(struct sim_timed_client *client, struct lane *lane, struct fabric_request *requests, int count)
{
	uint64_t completed_ps = 0;
	int i = lane->next;

	for (; i < count; i++)
	{
		struct fabric_request *request = &requests[i];
		enum share share = share_of(client->cluster, request, lane->node);
		uint64_t end_ps;

		if (share == SHARE_NONE)
			continue;
		if (share == SHARE_OWN && request->fence && lane->fetched_ps > lane->arrives_ps)
		{
			lane->arrives_ps = lane->fetched_ps + half_way_ps(client->cluster);
			lane->fetched_ps = 0;
			lane->fences++;
			break;
		}
		if (lane->arrives_ps > client->cluster->now_ps)
			break;
		end_ps = share == SHARE_OWN ? arrive(client, lane, request) : arrive_copy(client, lane, request);
		if (share == SHARE_OWN && request->verb != FABRIC_WRITE)
			lane->fetched_ps = later(lane->fetched_ps, end_ps);
		completed_ps = later(completed_ps, end_ps);
	}
	lane->next = i;
	return completed_ps;
}

/* The client's core writes the requests and tells the NIC of them, which sends them; when the first one arrives. */
static uint64_t
post(struct sim_timed_client *client, unsigned int doorbells, unsigned int requests)
{
	const struct sim_model *model = &client->cluster->options.model;

	smart_assert(doorbells >= 1 && requests >= doorbells);
	sim_timed_compute(client, doorbells * model->doorbell_ns + requests * model->request_ns);
	client->fabric.counters.doorbells += doorbells;
	return take_on(client->cluster, compute_nic(client), client->cluster->now_ps, requests) +
		   half_way_ps(client->cluster);
}

static bool
is_possible(const struct sim_timed *cluster, const struct fabric_request *requests, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (find(cluster, &requests[i]) == NULL || (fabric_is_atomic(&requests[i]) && requests[i].remote % 8 != 0))
			return false;
	}
	return true;
}

/* The lanes of a batch so far, with one for this memory node, to which its request i is the first. */
static unsigned int
add_lane(struct lane lanes[SIM_TIMED_NODES_MAX], unsigned int number, unsigned int node, int i)
{
	unsigned int known = 0;

	while (known < number && lanes[known].node != node)
		known++;
	if (known < number)
		return number;
	smart_assert(number < SIM_TIMED_NODES_MAX);
	lanes[number] = (struct lane){.node = node, .next = i};
	return number + 1;
}

/* One lane for each memory node of the batch; how many.  *copies: requests that are sent besides those of the batch. */
static unsigned int
make_lanes(const struct sim_timed *cluster, struct lane lanes[SIM_TIMED_NODES_MAX],
		   const struct fabric_request *requests, int count, unsigned int *copies)
{
	unsigned int number = 0;

	*copies = 0;
	for (int i = 0; i < count; i++)
	{
		number = add_lane(lanes, number, fabric_node(requests[i].remote), i);
		if (!is_copied(cluster, &requests[i]))
			continue;
		number = add_lane(lanes, number, copy_node(cluster, &requests[i]), i);
		++*copies;
	}
	smart_assert(number >= 1 && number <= SIM_TIMED_NODES_MAX);
	return number;
}

/* The lane whose next request arrives first, or NULL: all have arrived. */
static struct lane *
first_lane(struct lane *lanes, unsigned int number, int count)
{
	struct lane *first = NULL;

	for (unsigned int i = 0; i < number; i++)
	{
		if (lanes[i].next < count && (first == NULL || lanes[i].arrives_ps < first->arrives_ps))
			first = &lanes[i];
	}
	return first;
}

static smart_status
timed_execute(struct fabric *fabric, struct fabric_request *requests, int count)
{
	struct sim_timed_client *client = (struct sim_timed_client *) fabric;
	struct lane lanes[SIM_TIMED_NODES_MAX];
	struct lane *first;
	unsigned int number;
	unsigned int copies;
	unsigned int fences = 0;
	uint64_t arrives_ps;
	uint64_t completed_ps = 0;

	if (!is_possible(client->cluster, requests, count))
		return SMART_CORRUPT;
	number = make_lanes(client->cluster, lanes, requests, count, &copies);
	arrives_ps = post(client, number, (unsigned int) count + copies);
	for (unsigned int i = 0; i < number; i++)
		lanes[i].arrives_ps =
			arrives_ps + (uint64_t) lanes[i].next * PS_A_SECOND / client->cluster->options.model.nic_rate;
	while ((first = first_lane(lanes, number, count)) != NULL)
	{
		wait_until(client, later(first->arrives_ps, client->cluster->now_ps));
		completed_ps = later(completed_ps, advance(client, first, requests, count));
		fences = first->fences > fences ? first->fences : fences;
	}
	wait_until(client, completed_ps);
	sim_timed_compute(client, client->cluster->options.model.poll_ns);
	fabric->counters.round_trips += 1 + fences;
	return SMART_OK;
}

/* ---- messages ---- */

/* A memory node's first free core works for so long from a time on; when it has ended. */
static uint64_t
work_there(struct sim_timed *cluster, unsigned int node, uint64_t from_ps, uint64_t ns)
{
	uint64_t *core_free_ps = cluster->memory[node].core_free_ps;
	unsigned int first = 0;

	for (unsigned int i = 1; i < cluster->options.model.memory_cores; i++)
		first = core_free_ps[i] < core_free_ps[first] ? i : first;
	core_free_ps[first] = later(core_free_ps[first], from_ps) + ns * PS_A_NS;
	return core_free_ps[first];
}

void
sim_timed_call(struct sim_timed_client *client, const struct sim_timed_message *message)
{
	struct sim_timed *cluster = client->cluster;
	const struct sim_model *model = &cluster->options.model;
	struct sim_timed_nic *mine = compute_nic(client);
	struct sim_timed_nic *theirs = memory_nic(cluster, message->node);
	uint64_t at_ps;

	smart_assert(message->node < cluster->options.memory_nodes);
	wait_until(client, post(client, 1, 1));
	at_ps = take_on(cluster, theirs, cluster->now_ps, 1);
	at_ps = pass_links(cluster, mine, theirs, at_ps, sim_message_wire_bytes(model, message->bytes));
	wait_until(client, at_ps);
	wait_until(client, work_there(cluster, message->node, at_ps, model->message_ns + message->work_ns));
	message->serve(message->argument);
	at_ps = take_on(cluster, theirs, cluster->now_ps, 1);
	at_ps = pass_links(cluster, theirs, mine, at_ps, sim_message_wire_bytes(model, message->answer_bytes));
	wait_until(client, at_ps + half_way_ps(cluster));
	sim_timed_compute(client, model->poll_ns);
	client->fabric.counters.round_trips++;
	client->fabric.counters.descents++;
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

bool
sim_timed_init(struct sim_timed *cluster, const struct sim_timed_options *options)
{
	smart_assert(options->memory_nodes >= 1 && options->memory_nodes <= SIM_TIMED_NODES_MAX);
	smart_assert(options->compute_nodes >= 1 && options->compute_nodes <= SIM_TIMED_NODES_MAX);
	smart_assert(options->copies <= 1 || options->memory_nodes > 1);
	smart_assert(!options->colocated || options->memory_nodes <= options->compute_nodes);
	smart_assert(options->model.memory_cores >= 1 && options->model.memory_cores <= SIM_TIMED_NODES_MAX);
	memset(cluster, 0, sizeof(*cluster));
	cluster->options = *options;
	cluster->core_free_ps = calloc(options->compute_nodes * options->model.compute_cores, sizeof(uint64_t));
	cluster->memory = calloc(options->memory_nodes, sizeof(*cluster->memory));
	if (cluster->core_free_ps != NULL && cluster->memory != NULL)
		return true;
	sim_timed_close(cluster);
	return false;
}

void
sim_timed_close(struct sim_timed *cluster)
{
	free(cluster->core_free_ps);
	free(cluster->memory);
	cluster->core_free_ps = NULL;
	cluster->memory = NULL;
}

void
sim_timed_client_init(struct sim_timed_client *client, struct sim_timed *cluster, unsigned int compute_node)
{
	smart_assert(compute_node < cluster->options.compute_nodes);
	memset(client, 0, sizeof(*client));
	client->fabric.provider = &timed_provider;
	client->cluster = cluster;
	client->compute_node = compute_node;
	client->core = (unsigned int) (cluster->compute_clients[compute_node]++ % cluster->options.model.compute_cores);
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

void
sim_timed_have_patience(struct sim_timed *cluster, uint64_t waits)
{
	cluster->patience = waits;
}

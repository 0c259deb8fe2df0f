/*
 * sim_fabric.c
 *	  The simulated fabric: verbs in 8-byte pieces under a seeded scheduler.
 *
 * One process, one thread: what looks like concurrency are coroutines that
 * change places in control->yield() only, so that plain loads and stores do.
 */
#include <string.h>

#include "base/bytes.h"
#include "rdma/sim/memory.h"
#include "support/sim_fabric.h"

#define PIECE     8
#define BATCH_MAX 512

static uint32_t
greatest_divisor(uint32_t a, uint32_t b)
{
	while (b != 0)
	{
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Chooses the order of the pieces: half of all requests go up, as most hardware does. */
static void
choose_order(const struct sim_control *control, struct progress *progress)
{
	uint64_t dice = control->random(control->argument);
	uint32_t n = progress->pieces;

	progress->first = (dice & 3) == 2 ? n - 1 : 0;
	progress->stride = (dice & 3) == 2 ? n - 1 : 1;
	if (n <= SIM_SHUFFLE_MAX)
	{
		for (uint32_t i = 0; i < n; i++)
			progress->order[i] = (uint8_t) ((progress->first + i * progress->stride) % n);
		for (uint32_t i = n; (dice & 3) == 3 && i > 1; i--)
		{
			uint32_t other = (uint32_t) (control->random(control->argument) % i);
			uint8_t kept = progress->order[i - 1];

			progress->order[i - 1] = progress->order[other];
			progress->order[other] = kept;
		}
	}
	else if ((dice & 3) == 3)
	{
		progress->first = (uint32_t) ((dice >> 8) % n);
		progress->stride = (uint32_t) ((dice >> 32) % n);
		while (greatest_divisor(n, progress->stride) != 1)
			progress->stride = (progress->stride + 1) % n;
	}
}

static uint8_t *
resolve(const struct sim_memory *memory, fabric_address address, uint64_t length)
{
	return sim_find(memory->base, memory->nodes, memory->bytes, address, length);
}

static smart_status
start(const struct sim_fabric *sim, struct fabric_request *request, struct progress *progress)
{
	uint32_t length = fabric_bytes(request);
	uint32_t skew = (uint32_t) (request->remote % PIECE);

	smart_assert(length > 0 && (!fabric_is_atomic(request) || skew == 0));
	progress->request = request;
	progress->memory = resolve(sim->memory, request->remote, length);
	progress->done = 0;
	progress->pieces = (skew + length + PIECE - 1) / PIECE;
	if (progress->memory == NULL)
		return SMART_CORRUPT;
	if (progress->pieces > 1)
		choose_order(sim->control, progress);
	else
		progress->order[0] = 0;
	return SMART_OK;
}

static void
step_copy(struct progress *progress)
{
	struct fabric_request *request = progress->request;
	uint32_t skew = (uint32_t) (request->remote % PIECE);
	uint32_t n = progress->pieces;
	uint32_t piece = n <= SIM_SHUFFLE_MAX
						 ? progress->order[progress->done]
						 : (uint32_t) ((progress->first + (uint64_t) progress->done * progress->stride) % n);
	uint32_t from = piece == 0 ? 0 : piece * PIECE - skew;
	uint32_t to = piece == n - 1 ? request->length : (piece + 1) * PIECE - skew;

	smart_assert(piece < n && from < to && to <= request->length);
	if (request->verb == FABRIC_READ)
		memcpy((uint8_t *) request->local + from, progress->memory + from, to - from);
	else
		memcpy(progress->memory + from, (const uint8_t *) request->local + from, to - from);
}

static void
step(const struct sim_fabric *sim, struct progress *progress)
{
	const struct sim_control *control = sim->control;

	smart_assert(progress->done < progress->pieces);
	control->yield(control->argument);
	if (fabric_is_atomic(progress->request))
		sim_atomic(progress->request, progress->memory);
	else
		step_copy(progress);
	progress->done++;
	if (progress->done == progress->pieces && control->observe != NULL)
		control->observe(control->argument, progress->request);
}

/* Which request goes on: any that nothing before it holds back. */
static struct progress *
choose(const struct sim_fabric *sim, struct progress *batch, int count)
{
	int ready[BATCH_MAX];
	int n = 0;
	uint64_t dice;

	for (int i = 0; i < count; i++)
	{
		bool held = batch[i].done == batch[i].pieces;

		/* A WRITE or an atomic without a fence overtakes an earlier READ or atomic. */
		for (int j = 0; j < i && !held; j++)
			held = batch[j].done < batch[j].pieces &&
				   fabric_node(batch[j].request->remote) == fabric_node(batch[i].request->remote) &&
				   (batch[j].request->verb == FABRIC_WRITE || batch[i].request->verb == FABRIC_READ ||
					batch[i].request->fence);
		if (!held)
			ready[n++] = i;
	}
	if (n == 0)
		return NULL;
	dice = sim->control->random(sim->control->argument);
	return &batch[ready[(dice & 1) != 0 ? 0 : (dice >> 1) % (uint64_t) n]];
}

static smart_status
start_batch(struct sim_fabric *sim, struct fabric_request *requests, int count, struct progress *batch)
{
	for (int i = 0; i < count; i++)
	{
		smart_status status = start(sim, &requests[i], &batch[i]);

		if (status != SMART_OK)
			return status;
		fabric_count(&sim->fabric, &requests[i]);
	}
	return SMART_OK;
}

static smart_status
execute_batch(struct sim_fabric *sim, struct fabric_request *requests, int count, bool fails)
{
	struct progress batch[BATCH_MAX];
	struct progress *next;
	smart_status status = start_batch(sim, requests, count, batch);

	if (status != SMART_OK)
		return status;
	while ((next = choose(sim, batch, count)) != NULL)
	{
		/* A lost completion: whatever has happened up to here stays. */
		if (fails && sim->control->random(sim->control->argument) % 8 == 0)
			return SMART_UNREACHABLE;
		step(sim, next);
	}
	return fails ? SMART_UNREACHABLE : SMART_OK;
}

static smart_status
sim_execute(struct fabric *fabric, struct fabric_request *requests, int count)
{
	struct sim_fabric *sim = (struct sim_fabric *) fabric;
	const struct sim_control *control = sim->control;
	struct progress single;
	smart_status status;

	smart_assert(count <= BATCH_MAX);
	fabric->counters.doorbells++;
	fabric->counters.round_trips++;
	if (control->fails != NULL && control->fails(control->argument))
		return execute_batch(sim, requests, count, true);
	if (count > 1)
		return execute_batch(sim, requests, count, false);
	status = start(sim, requests, &single);
	if (status != SMART_OK)
		return status;
	fabric_count(fabric, requests);
	while (single.done < single.pieces)
		step(sim, &single);
	return SMART_OK;
}

/* Of a flight's pieces none come with the departure, or some, or all: between two of them its client goes on. */
static smart_status
sim_depart(struct fabric *fabric, struct fabric_request *reads, int count)
{
	struct sim_fabric *sim = (struct sim_fabric *) fabric;
	struct progress *next;
	smart_status status;
	uint64_t dice;

	smart_assert(count <= SIM_FLIGHT_MAX);
	fabric->counters.doorbells++;
	fabric->counters.round_trips++;
	status = start_batch(sim, reads, count, sim->flight);
	if (status != SMART_OK)
		return status;
	dice = sim->control->random(sim->control->argument);
	for (uint64_t steps = dice % 3 == 0   ? 0
						  : dice % 3 == 1 ? (dice >> 8) % 64
										  : UINT64_MAX;
		 steps > 0 && (next = choose(sim, sim->flight, count)) != NULL; steps--)
		step(sim, next);
	return SMART_OK;
}

static smart_status
sim_land(struct fabric *fabric, struct fabric_request *reads, int count)
{
	struct sim_fabric *sim = (struct sim_fabric *) fabric;
	const struct sim_control *control = sim->control;
	struct progress *next;

	if (control->fails != NULL && control->fails(control->argument))
		return SMART_UNREACHABLE;
	while ((next = choose(sim, sim->flight, count)) != NULL)
		step(sim, next);
	return SMART_OK;
}

/* The reply may get lost as well; whatever is asked of, the memory is at hand. */
static smart_status
sim_descend(struct fabric *fabric, unsigned int node, const struct fabric_descent *descent, struct fabric_path *path)
{
	const struct sim_control *control = ((struct sim_fabric *) fabric)->control;
	smart_status status;

	if (control->descend == NULL)
		return SMART_UNREACHABLE;
	status = control->descend(control->argument, descent, path);
	if (control->fails != NULL && control->fails(control->argument))
		return SMART_UNREACHABLE;
	return status;
}

/* The windows stay empty, so that every pointer is asked for here. */
static void *
sim_extend(struct fabric *fabric, fabric_address address, size_t length)
{
	struct sim_fabric *sim = (struct sim_fabric *) fabric;

	if (!fabric->direct)
		return NULL;
	sim->control->yield(sim->control->argument);
	return resolve(sim->memory, address, length);
}

static void
sim_close(struct fabric *fabric)
{
}

static const struct fabric_provider sim_provider = {
	.execute = sim_execute,
	.depart = sim_depart,
	.land = sim_land,
	.extend = sim_extend,
	.descend = sim_descend,
	.close = sim_close,
};

struct fabric *
sim_fabric_init(struct sim_fabric *sim, const struct sim_memory *memory, const struct sim_control *control, bool direct)
{
	smart_assert(memory->nodes >= 1 && memory->nodes <= SIM_NODES_MAX && memory->bytes % PIECE == 0);
	sim->fabric.provider = &sim_provider;
	sim->fabric.direct = direct;
	sim->fabric.flight = NULL;
	memset(&sim->fabric.counters, 0, sizeof(sim->fabric.counters));
	sim->fabric.problem[0] = '\0';
	memset(sim->fabric.window, 0, sizeof(sim->fabric.window));
	sim->memory = memory;
	sim->control = control;
	return &sim->fabric;
}

/*
 * schedule.c
 *	  Which client runs: coroutines that change places at steps which the dice choose.
 *
 * A client runs on until the next event: a switch, a stall, a death, the step
 * limit.  A stalled client is passed over until its time has come or no
 * other can run; a dead one is never resumed.
 */
#include <stdlib.h>

#include "sim/history.h"
#include "sim/world.h"

static void (*client_main)(struct client *client);

void
schedule_reset(void)
{
	world.now = 0;
	world.running = SOLO;
	world.next_event = 0;
	for (int i = 0; i <= CLIENTS_MAX; i++)
		world.clients[i].state = CLIENT_ABSENT;
}

static void
plan_next_event(void)
{
	uint64_t next = world.now + dice_between(&world.dice, 1, 2 * world.plan.switch_one_in - 1);

	if (world.plan.death != DEATH_NONE && world.plan.death_at < next)
		next = world.plan.death_at;
	if (world.step_limit < next)
		next = world.step_limit;
	if (world.stall_at < next)
		next = world.stall_at;
	world.next_event = next;
}

/* From 10 to 1000 steps, short ones as often as long ones. */
static void
stall(struct client *client)
{
	uint64_t steps = 10;

	for (int i = 0; i < 6 && dice_one_in(&world.dice, 2) == false; i++)
		steps *= 2;
	client->stalled_until = world.now + steps + dice_below(&world.dice, (unsigned int) steps);
	world_trace("client %d stalls until %llu", client->number, (unsigned long long) client->stalled_until);
}

/* The client that runs next; NULL: none can. */
static struct client *
choose(void)
{
	struct client *ready[CLIENTS_MAX] = {NULL};
	struct client *first = NULL;
	unsigned int count = 0;

	for (int i = 0; i < CLIENTS_MAX; i++)
	{
		struct client *client = &world.clients[i];

		if (client->state != CLIENT_READY)
			continue;
		if (client->stalled_until <= world.now)
			ready[count++] = client;
		else if (first == NULL || client->stalled_until < first->stalled_until)
			first = client;
	}
	return count > 0 ? ready[dice_below(&world.dice, count)] : first;
}

static void
kill_client(struct client *client)
{
	if (client->state != CLIENT_READY && client->state != CLIENT_BLOCKED)
		return;
	world_trace("client %d dies", client->number);
	world.died = true;
	client->state = CLIENT_DEAD;
	client->pin = NEVER;
	history_died(client->number);
}

/* A compute node dies as a whole: its clients share the locks. */
static void
bring_death(void)
{
	struct client *victim = choose();

	for (int i = 0; i < CLIENTS_MAX; i++)
	{
		if (victim != NULL && (world.plan.death == DEATH_ALL || world.clients[i].compute == victim->compute))
			kill_client(&world.clients[i]);
	}
	world.plan.death = DEATH_NONE;
}

/* Gives the processor to the client that the dice name; back to the main program if none is left. */
static void
hand_over(struct coroutine *from)
{
	struct client *next = choose();

	if (next == NULL)
	{
		for (int i = 0; i < CLIENTS_MAX; i++)
		{
			if (world.clients[i].state == CLIENT_BLOCKED)
				world_violation("client %d waits for a local lock for ever", i);
		}
		world.running = SOLO;
		coroutine_switch(from, &world.main);
		return;
	}
	plan_next_event();
	world.running = next->number;
	if (&next->coroutine != from)
		coroutine_switch(from, &next->coroutine);
}

/* The history has failed: back to the main program, for good. */
void
schedule_give_up(void)
{
	int running = world.running;

	world.running = SOLO;
	if (running == SOLO)
		longjmp(world.alone, 1);
	coroutine_switch(&world.clients[running].coroutine, &world.main);
	abort(); /* no client comes back here */
}

/* An assertion that fails in a history fails that history, which can be replayed. */
void
smart_assert_failed(const char *condition, const char *file, int line)
{
	world.asserted = !world_failed();
	world_violation("assertion failed at %s:%d: %s", file, line, condition);
	schedule_give_up();
}

static void
event(struct client *client)
{
	if (world.now >= world.step_limit)
	{
		world_violation("no progress within %d steps", STEPS_MAX);
		schedule_give_up();
	}
	if (world.now >= world.stall_at)
	{
		stall(client);
		world.plan.stalls--;
		world.stall_at = world.plan.stalls == 0 ? NEVER : world.now + dice_between(&world.dice, 1, 400);
	}
	if (world.plan.death != DEATH_NONE && world.now >= world.plan.death_at)
		bring_death();
	hand_over(&client->coroutine);
}

void
schedule_yield(void *argument)
{
	struct client *client = argument;

	world.now++;
	if (smart_likely(world.now < world.next_event))
		return;
	if (client->number != SOLO)
		event(client);
	else if (world.now > world.step_limit)
	{
		world_violation("a client that is alone makes no progress");
		schedule_give_up();
	}
}

void
schedule_maybe_stall(struct client *client, unsigned int one_in)
{
	if (client->number == SOLO || !dice_one_in(&world.dice, one_in))
		return;
	stall(client);
	hand_over(&client->coroutine);
}

/* Who waits longer sleeps longer: without that, helpers could undo each other's work for ever. */
void
schedule_pause(struct client *client, unsigned int attempt)
{
	schedule_yield(client);
	if (client->number == SOLO || attempt < 4)
		return;
	client->stalled_until = world.now + dice_below(&world.dice, attempt < 200 ? 4 * attempt : 800);
	hand_over(&client->coroutine);
}

void
schedule_wait(struct client *client, struct local_lock *lock)
{
	if (client->number == SOLO)
	{
		world_violation("a local lock was left held");
		lock->holder = -1;
		return;
	}
	client->state = CLIENT_BLOCKED;
	client->waits_for = lock;
	hand_over(&client->coroutine);
}

void
schedule_wake(struct local_lock *lock)
{
	for (int i = 0; i < CLIENTS_MAX; i++)
	{
		if (world.clients[i].state == CLIENT_BLOCKED && world.clients[i].waits_for == lock)
			world.clients[i].state = CLIENT_READY;
	}
}

/* Where every coroutine begins. */
static void
coroutine_main(void)
{
	struct client *client = &world.clients[world.running];

	client_main(client);
	client->state = CLIENT_DONE;
	hand_over(&client->coroutine);
	smart_assert(!"a finished client was resumed");
}

/* Runs all clients that are ready, until each is done or dead. */
void
schedule_run(void (*body)(struct client *client))
{
	client_main = body;
	for (int i = 0; i < CLIENTS_MAX; i++)
	{
		if (world.clients[i].state == CLIENT_READY)
			coroutine_prepare(&world.clients[i].coroutine, coroutine_main);
	}
	world.stall_at = world.plan.stalls == 0 ? NEVER : world.now + dice_below(&world.dice, 300);
	hand_over(&world.main);
	/* A client that is alone is watched too. */
	world.next_event = 0;
	world.running = SOLO;
}

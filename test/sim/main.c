/*
 * main.c
 *	  The simulator: histories of the tree, one seed each.
 *
 * usage: sim [--seed N] [--runs M] [--shared | --exclusive] [--direct | --remote]
 *            [--bias merge|fill|pool|repeat|share|crash|full|value|many|promise] [--owners] [--log | --no-log]
 *            [--real-cache | --plain-cache] [--rdwc | --no-rdwc] [--descents | --no-descents] [--values | --no-values]
 *            [--any-length] [--fault NAME] [--trace] [--counters] [--coverage]
 *
 * --counters prints how often each kind of change came about, and --coverage
 * fails if one never did.  Remote fabrics only: a CAS by pointers is not seen.
 *
 * The last line is `sim: M histories, F violations, seeds a..b, K ops, L steps`.
 * Exit status: 0 all histories are right, 1 a violation was found, 2 usage.
 * The same seed with the same options is the same history: replay it with
 * --runs 1 --trace.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/history.h"
#include "sim/watch.h"
#include "sim/world.h"

#define VIOLATIONS_MAX 3 /* a run ends after so many; with a fault after the first */

struct world world;

struct run
{
	uint64_t seed;
	uint64_t runs;
	const char *fault;
	bool counters;
	bool coverage;
	uint64_t histories;
	uint64_t violations;
	uint64_t operations;
	uint64_t steps;
};

void
world_violation(const char *format, ...)
{
	va_list arguments;

	if (world_failed())
		return;
	va_start(arguments, format);
	vsnprintf(world.message, sizeof(world.message), format, arguments);
	va_end(arguments);
	world_trace("VIOLATION: %s", world.message);
}

void
world_trace(const char *format, ...)
{
	va_list arguments;

	if (smart_likely(!world.settings.trace))
		return;
	printf("%8" PRIu64 " c%d  ", world.now, world.running);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
}

/* Did every client end its operations in good order, so that every block is either in the tree or retired? */
bool
world_keeps_count(void)
{
	return !world.mishap && world.plan.lost_one_in == 0 && world.plan.interrupt_one_in == 0;
}

static void
open_compute(struct compute_node *compute)
{
	for (int i = 0; i < LOCKS_MAX; i++)
		compute->locks[i].holder = -1;
	if (world.plan.rdwc)
		rdwc_open(compute);
}

static uint64_t
steps_max(void)
{
	return STEPS_MAX * (world.plan.full || world.plan.wide_nodes || world.plan.long_keys ? 8 : 1);
}

/* One generation of clients, from start to end. */
static void
run_clients(void)
{
	for (unsigned int i = 0; i < world.plan.compute_nodes; i++)
		open_compute(&world.compute[i]);
	for (unsigned int i = 0; i < world.plan.clients; i++)
		client_open(&world.clients[i], (int) i, &world.compute[i % world.plan.compute_nodes], false);
	owners_open(&world.clients[SOLO]);
	world.step_limit = world.now + steps_max();
	schedule_run(client_body);
	rdwc_add_up();
}

static void
begin_history(uint64_t seed)
{
	world.seed = seed;
	world.dice.state = seed * UINT64_C(0xd1342543de82ef95) + 1;
	world.message[0] = '\0';
	world.asserted = false;
	world.mishap = world.died = world.retracted = false;
	world.value = 0;
	plan_make(&world.plan);
	keys_make(&world.keys);
	arena_reset();
	history_reset();
	schedule_reset();
	store_reset();
	results_open();
	world.step_limit = 10 * steps_max();
	open_compute(&world.compute[COMPUTE_MAX]);
}

/* Everybody has died: the next generation, which dies, too, unless it is the last. */
static void
live_again(bool last)
{
	struct client *solo = &world.clients[SOLO];

	results_open();
	world.plan.death = last ? DEATH_NONE : DEATH_ALL;
	world.plan.death_at = last ? NEVER : world.now + dice_below(&world.dice, 300);
	if (world.plan.recovers)
	{
		world.step_limit = world.now + steps_max();
		client_open(solo, SOLO, &world.compute[COMPUTE_MAX], false);
		recovery_run(solo);
		world.mishap = !last;
	}
	if (!world_failed())
		run_clients();
}

/* Setup, clients, a last look; returns early when a client that is alone is stuck. */
static void
live(void)
{
	struct client *solo = &world.clients[SOLO];

	if (setjmp(world.alone) != 0)
		return;
	client_open(solo, SOLO, &world.compute[COMPUTE_MAX], false);
	owners_reset(solo);
	client_setup(solo);
	world.mishap = world.plan.death != DEATH_NONE;
	if (world.plan.death != DEATH_NONE)
		world.plan.death_at += world.now;
	if (!world_failed())
		run_clients();
	/* After all clients have died, others go on with what was left; at the end one looks at it all. */
	for (unsigned int life = 2; life <= world.plan.lives && !world_failed(); life++)
		live_again(life == world.plan.lives);
	if (!world_failed())
	{
		world.step_limit = world.now + 10 * steps_max();
		client_open(solo, SOLO, &world.compute[COMPUTE_MAX], dice_one_in(&world.dice, 2));
		owners_finish(solo);
		client_finish(solo);
	}
}

static void
run_history(uint64_t seed)
{
	begin_history(seed);
	live();
	if (!world_failed())
		store_check_locks();
	if (!world_failed())
		history_check();
}

static void
run_all(struct run *run)
{
	uint64_t enough = run->fault != NULL ? 1 : VIOLATIONS_MAX;

	for (uint64_t i = 0; i < run->runs && run->violations < enough; i++)
	{
		run_history(run->seed + i);
		run->histories++;
		run->operations += history_count();
		run->steps += world.now;
		/* A fault has to be found by what it does, not by an assertion, which a production build does not have. */
		if (world_failed() && !(run->fault != NULL && world.asserted))
		{
			run->violations++;
			printf("seed %" PRIu64 ": %s\n", world.seed, world.message);
		}
	}
}

static bool
choose_fault(const char *name)
{
#define FAULT_NAME(name, text) #name,
	static const char *const names[] = {"none", SMART_FAULTS_LIST(FAULT_NAME)};
#undef FAULT_NAME

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
	{
		if (strcmp(name, names[i]) == 0)
		{
			smart_fault_active = (enum smart_fault) i;
			return true;
		}
	}
	return false;
}

static bool
take_flag(struct run *run, const char *flag)
{
	if (strcmp(flag, "--shared") == 0)
		world.settings.shared = 1;
	else if (strcmp(flag, "--exclusive") == 0)
		world.settings.shared = 0;
	else if (strcmp(flag, "--direct") == 0)
		world.settings.direct = 1;
	else if (strcmp(flag, "--remote") == 0)
		world.settings.direct = 0;
	else if (strcmp(flag, "--real-cache") == 0)
		world.settings.real_cache = 1;
	else if (strcmp(flag, "--plain-cache") == 0)
		world.settings.real_cache = 0;
	else if (strcmp(flag, "--rdwc") == 0)
		world.settings.rdwc = 1;
	else if (strcmp(flag, "--no-rdwc") == 0)
		world.settings.rdwc = 0;
	else if (strcmp(flag, "--descents") == 0)
		world.settings.descents = 1;
	else if (strcmp(flag, "--no-descents") == 0)
		world.settings.descents = 0;
	else if (strcmp(flag, "--values") == 0)
		world.settings.values = 1;
	else if (strcmp(flag, "--no-values") == 0)
		world.settings.values = 0;
	else if (strcmp(flag, "--owners") == 0)
		world.settings.owners = 1;
	else if (strcmp(flag, "--log") == 0)
		world.settings.log = 1;
	else if (strcmp(flag, "--no-log") == 0)
		world.settings.log = 0;
	else if (strcmp(flag, "--any-length") == 0)
		world.settings.any_length = true;
	else if (strcmp(flag, "--trace") == 0)
		world.settings.trace = true;
	else if (strcmp(flag, "--counters") == 0)
		run->counters = true;
	else if (strcmp(flag, "--coverage") == 0)
		run->coverage = true;
	else
		return false;
	return true;
}

static bool
take_option(struct run *run, const char *option, const char *value)
{
	if (strcmp(option, "--seed") == 0)
		run->seed = strtoull(value, NULL, 10);
	else if (strcmp(option, "--runs") == 0)
		run->runs = strtoull(value, NULL, 10);
	else if (strcmp(option, "--bias") == 0 && strcmp(value, "merge") == 0)
		world.settings.bias = BIAS_MERGE;
	else if (strcmp(option, "--bias") == 0 && strcmp(value, "fill") == 0)
		world.settings.bias = BIAS_FILL;
	else if (strcmp(option, "--bias") == 0 && strcmp(value, "pool") == 0)
		world.settings.bias = BIAS_POOL;
	else if (strcmp(option, "--bias") == 0 && strcmp(value, "repeat") == 0)
		world.settings.bias = BIAS_REPEAT;
	else if (strcmp(option, "--bias") == 0 && strcmp(value, "share") == 0)
		world.settings.bias = BIAS_SHARE;
	else if (strcmp(option, "--bias") == 0 && strcmp(value, "crash") == 0)
		world.settings.bias = BIAS_CRASH;
	else if (strcmp(option, "--bias") == 0 && strcmp(value, "full") == 0)
		world.settings.bias = BIAS_FULL;
	else if (strcmp(option, "--bias") == 0 && strcmp(value, "value") == 0)
		world.settings.bias = BIAS_VALUE;
	else if (strcmp(option, "--bias") == 0 && strcmp(value, "promise") == 0)
		world.settings.bias = BIAS_PROMISE;
	else if (strcmp(option, "--bias") == 0 && strcmp(value, "many") == 0)
		world.settings.bias = BIAS_MANY;
	else if (strcmp(option, "--fault") == 0 && choose_fault(value))
		run->fault = value;
	else
		return false;
	return true;
}

int
main(int argc, char **argv)
{
	struct run run = {.seed = 1, .runs = 1000};

	setvbuf(stdout, NULL, _IOLBF, 0);
	world.settings = (struct settings){.shared = -1,
									   .direct = -1,
									   .real_cache = -1,
									   .rdwc = -1,
									   .descents = -1,
									   .values = -1,
									   .owners = -1,
									   .log = -1};
	for (int i = 1; i < argc; i++)
	{
		if (take_flag(&run, argv[i]))
			continue;
		if (i + 1 == argc || !take_option(&run, argv[i], argv[i + 1]))
		{
			fprintf(stderr, "sim: '%s' is not an option, or its value is wrong\n", argv[i]);
			return 2;
		}
		i++;
	}
	/* As run_all does: not by its CAS being known as wrong. */
	world.settings.watch = run.fault == NULL;
	run_all(&run);
	for (int i = 0; i < WATCH_COUNT; i++)
	{
		if (run.counters)
			printf("%14" PRIu64 " %s\n", watch_counts[i], watch_names[i]);
		if (run.coverage && watch_counts[i] == 0)
		{
			printf("no %s in the whole run\n", watch_names[i]);
			run.violations++;
		}
	}
	printf("sim: %" PRIu64 " histories, %" PRIu64 " violations, seeds %" PRIu64 "..%" PRIu64 ", %" PRIu64
		   " ops, %" PRIu64 " steps\n",
		   run.histories, run.violations, run.seed, run.seed + run.histories - 1, run.operations, run.steps);
	return run.violations > 0;
}

/*
 * simulated.c
 *	  Clients on the simulated cluster.
 */
#include <stdio.h>

#include "base/assert.h"
#include "random.h"
#include "simulated.h"

#define PAUSE_NS       200
#define PAUSE_ATTEMPTS 100
#define PATIENCE       50000000u /* waits since an operation began: some seconds of ours */

/* ---- the environment ---- */

static struct ycsb_simulated *
env_client(struct smart_env *env)
{
	return (struct ycsb_simulated *) (void *) ((char *) env - offsetof(struct ycsb_simulated, env.env));
}

static uint64_t
env_now_ns(struct smart_env *env)
{
	return sim_timed_now_ns(env_client(env)->timed.cluster);
}

/* Longer with every attempt, and never the same for two. */
static void
env_pause(struct smart_env *env, unsigned int attempt)
{
	struct ycsb_simulated *mine = env_client(env);
	uint64_t longest = PAUSE_NS * (uint64_t) ((attempt < PAUSE_ATTEMPTS ? attempt : PAUSE_ATTEMPTS) + 1);

	sim_timed_pass(&mine->timed, 1 + ycsb_random_below(&mine->env.random, longest));
}

void
ycsb_simulated_init(struct ycsb_simulated *mine, struct ycsb_cluster *cluster, struct sim_timed *clock,
					const struct ycsb_options *options, unsigned int number)
{
	smart_assert(number < cluster->clients);
	ycsb_env_init(&mine->env, ycsb_mix(options->seed) ^ ycsb_mix(number + 1));
	mine->env.env.now_ns = env_now_ns;
	mine->env.env.pause = env_pause;
	mine->env.env.wait_descriptor = NULL;
	sim_timed_client_init(&mine->timed, clock, number % options->compute_nodes);
	mine->client = (struct ycsb_client){
		.cluster = cluster,
		.number = number,
		.env = &mine->env.env,
		.fabric = &mine->timed.fabric,
	};
}

void
ycsb_simulated_close(struct ycsb_simulated *mine)
{
	sim_timed_client_close(&mine->timed);
}

/* ---- running ---- */

static void
client_main(void *argument)
{
	struct ycsb_simulated *mine = argument;

	smart_assert(!mine->ended);
	mine->body(&mine->client, mine->argument);
	mine->ended = true;
}

/* Those that have not are told of. */
static bool
all_ended(struct ycsb_cluster *cluster, unsigned int clients)
{
	unsigned int missing = 0;

	for (unsigned int i = 0; i < clients; i++)
		missing += !ycsb_simulated_of(cluster->client[i])->ended;
	if (missing > 0)
		fprintf(stderr,
				"ycsb: %u of %u clients never end: each waits for another, or %u waits have passed since an operation "
				"began\n",
				missing, clients, PATIENCE);
	return missing == 0;
}

bool
ycsb_simulated_run(struct ycsb_cluster *cluster, unsigned int clients, ycsb_body body, void *argument)
{
	struct sim_timed *clock = ycsb_simulated_of(cluster->client[0])->timed.cluster;

	smart_assert(clients >= 1 && clients <= cluster->clients);
	for (unsigned int i = 0; i < clients; i++)
	{
		struct ycsb_simulated *mine = ycsb_simulated_of(cluster->client[i]);

		smart_assert(mine->timed.cluster == clock);
		mine->body = body;
		mine->argument = argument;
		mine->ended = false;
		sim_timed_start(&mine->timed, client_main, mine);
	}
	sim_timed_have_patience(clock, PATIENCE);
	sim_timed_run(clock);
	return all_ended(cluster, clients);
}

void
ycsb_simulated_work(struct ycsb_client *client)
{
	struct sim_timed_client *timed = &ycsb_simulated_of(client)->timed;

	smart_assert(timed->cluster->running == timed);
	sim_timed_have_patience(timed->cluster, PATIENCE);
	sim_timed_compute(timed, timed->cluster->options.model.operation_ns);
}

/*
 * peer.c
 *	  The simulated cluster of a peer, and what peers share.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "peer.h"
#include "random.h"

#define ALIGNMENT      64
#define BYTES_A_KEY    2600 /* of the region, at most; what is not used takes no memory */
#define BYTES_MORE     (UINT64_C(1) << 30)
#define PAUSE_NS       200
#define PAUSE_ATTEMPTS 100

/* ---- memory ---- */

fabric_address
peer_allocate(struct peer_cluster *cluster, uint64_t bytes)
{
	unsigned int node = cluster->turn;
	uint64_t offset = cluster->used[node];

	smart_assert(bytes > 0);
	bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (bytes > cluster->bytes - offset)
		return 0;
	cluster->used[node] += bytes;
	cluster->turn = (node + 1) % cluster->options->memory_nodes;
	return fabric_make_address(node, offset);
}

static bool
open_memory(struct peer_cluster *cluster)
{
	cluster->bytes = (cluster->options->keys + cluster->options->operations) * BYTES_A_KEY + BYTES_MORE;
	for (unsigned int node = 0; node < cluster->options->memory_nodes; node++)
	{
		void *base =
			mmap(NULL, cluster->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (base == MAP_FAILED)
			return false;
		cluster->base[node] = base;
		cluster->used[node] = PEER_FIRST_BYTE;
	}
	return true;
}

/* ---- read delegation and write combining ---- */

/*
 * A place serves one key at a time, whose first client leads.  Others of the same kind join until the leader closes
 * the window; those of the other kind, and who comes too late, wait for its end and begin again.
 */
struct place
{
	uint64_t hash; /* of the key; 0: nobody leads */
	bool writes;
	bool closed;
	uint64_t value; /* read by the last leader, or the newest one handed in */
	struct sim_timed_lock lock;
};

struct peer_delegation
{
	struct place place[PEER_PLACES];
};

static struct place *
find_place(struct peer_client *client, uint64_t hash)
{
	return &client->compute->delegation->place[hash % PEER_PLACES];
}

static uint64_t
key_hash(const uint8_t *key, size_t length)
{
	return peer_hash(key, length) | 1;
}

static void
lock_work(struct peer_client *client)
{
	sim_timed_compute(&client->timed, client->cluster->options->model.lock_ns);
}

enum peer_role
peer_delegate(struct peer_client *client, const uint8_t *key, size_t length, bool writes, uint64_t *value)
{
	uint64_t hash = key_hash(key, length);
	struct place *place = find_place(client, hash);

	for (;;)
	{
		bool joined;

		lock_work(client);
		/* Who holds the lock of a place without a key is about to take what the last leader left there. */
		if (place->hash == 0 && place->lock.holder == NULL)
		{
			place->hash = hash;
			place->writes = writes;
			place->closed = false;
			place->value = *value;
			sim_timed_acquire(&client->timed, &place->lock);
			return PEER_LEADS;
		}
		if (place->hash != 0 && place->hash != hash)
			return PEER_ALONE;
		joined = place->hash != 0 && place->writes == writes && !place->closed;
		if (joined && writes)
			place->value = *value;
		/* The leader has the lock until the end of its window. */
		sim_timed_acquire(&client->timed, &place->lock);
		if (joined)
			*value = place->value;
		sim_timed_release(&client->timed, &place->lock);
		if (joined)
			return PEER_DELIVERED;
	}
}

void
peer_delegate_close(struct peer_client *client, const uint8_t *key, size_t length, uint64_t *value)
{
	struct place *place = find_place(client, key_hash(key, length));

	smart_assert(place->writes && !place->closed);
	place->closed = true;
	*value = place->value;
}

void
peer_delegate_end(struct peer_client *client, const uint8_t *key, size_t length, uint64_t value)
{
	struct place *place = find_place(client, key_hash(key, length));

	smart_assert(place->hash == key_hash(key, length));
	lock_work(client);
	place->hash = 0;
	place->value = value;
	sim_timed_release(&client->timed, &place->lock);
}

/* ---- the environment ---- */

static struct peer_client *
env_client(struct smart_env *env)
{
	return (struct peer_client *) (void *) ((char *) env - offsetof(struct peer_client, env.env));
}

static uint64_t
env_now_ns(struct smart_env *env)
{
	return sim_timed_now_ns(&env_client(env)->cluster->timed);
}

/* Longer with every attempt, and never the same for two. */
static void
env_pause(struct smart_env *env, unsigned int attempt)
{
	struct peer_client *client = env_client(env);
	uint64_t longest = PAUSE_NS * (uint64_t) ((attempt < PAUSE_ATTEMPTS ? attempt : PAUSE_ATTEMPTS) + 1);

	sim_timed_pass(&client->timed, 1 + ycsb_random_below(&client->env.random, longest));
}

/* ---- running clients ---- */

static void
client_main(void *argument)
{
	struct peer_client *client = argument;

	client->body(&client->client, client->argument);
	client->ended = true;
}

static void
peer_run(struct ycsb_cluster *cluster, unsigned int clients, ycsb_body body, void *argument)
{
	for (unsigned int i = 0; i < clients; i++)
	{
		struct peer_client *client = peer_client_of(cluster->client[i]);

		client->body = body;
		client->argument = argument;
		client->ended = false;
		sim_timed_start(&client->timed, client_main, client);
	}
	sim_timed_run(&((struct peer_cluster *) cluster)->timed);
	for (unsigned int i = 0; i < clients; i++)
		smart_assert(peer_client_of(cluster->client[i])->ended);
}

static void
peer_work(struct ycsb_client *client)
{
	struct peer_client *mine = peer_client_of(client);

	sim_timed_compute(&mine->timed, mine->cluster->options->model.operation_ns);
}

static void
peer_cache_use(struct ycsb_cluster *cluster, struct ycsb_cache_use *use)
{
	struct peer_cluster *mine = (struct peer_cluster *) cluster;

	*use = (struct ycsb_cache_use){.hits = 0};
	for (unsigned int i = 0; i < mine->options->compute_nodes; i++)
		mine->peer->cache_use(&mine->compute[i], use);
}

/* ---- opening and closing ---- */

static void
peer_close(struct ycsb_cluster *cluster)
{
	struct peer_cluster *mine = (struct peer_cluster *) cluster;

	for (unsigned int i = 0; i < cluster->clients; i++)
	{
		sim_timed_client_close(&peer_client_of(cluster->client[i])->timed);
		free(peer_client_of(cluster->client[i])->state);
		free(cluster->client[i]);
	}
	free(cluster->client);
	for (unsigned int i = 0; i < mine->options->compute_nodes; i++)
	{
		if (mine->compute[i].state != NULL)
			mine->peer->close_compute(&mine->compute[i]);
		free(mine->compute[i].state);
		free(mine->compute[i].delegation);
	}
	for (unsigned int node = 0; node < mine->options->memory_nodes && mine->base[node] != NULL; node++)
		munmap(mine->base[node], mine->bytes);
	sim_timed_close(&mine->timed);
	free(mine->state);
	free(mine);
}

static bool
open_client(struct peer_cluster *cluster, unsigned int number)
{
	struct peer_client *client = calloc(1, sizeof(*client));
	unsigned int compute = number % cluster->options->compute_nodes;

	if (client == NULL)
		return false;
	cluster->cluster.client[cluster->cluster.clients++] = &client->client;
	client->cluster = cluster;
	client->compute = &cluster->compute[compute];
	ycsb_env_init(&client->env, ycsb_mix(cluster->options->seed) ^ ycsb_mix(number + 1));
	client->env.env.now_ns = env_now_ns;
	client->env.env.pause = env_pause;
	client->env.env.wait_descriptor = NULL;
	sim_timed_client_init(&client->timed, &cluster->timed, compute);
	client->client = (struct ycsb_client){.index = &cluster->peer->index,
										  .cluster = &cluster->cluster,
										  .number = number,
										  .env = &client->env.env,
										  .fabric = &client->timed.fabric};
	client->state = calloc(1, cluster->peer->client_bytes);
	return client->state != NULL;
}

static bool
open_compute(struct peer_cluster *cluster, unsigned int number)
{
	struct peer_compute *compute = &cluster->compute[number];

	compute->cluster = cluster;
	compute->number = number;
	if (cluster->peer->delegates && cluster->options->rdwc)
	{
		compute->delegation = calloc(1, sizeof(*compute->delegation));
		if (compute->delegation == NULL)
			return false;
	}
	compute->state = calloc(1, cluster->peer->compute_bytes);
	return compute->state != NULL && cluster->peer->open_compute(compute);
}

static bool
open_all(struct peer_cluster *cluster)
{
	const struct ycsb_options *options = cluster->options;
	unsigned int clients = options->clients * options->compute_nodes;
	struct sim_timed_options timed = {.memory_nodes = options->memory_nodes,
									  .compute_nodes = options->compute_nodes,
									  .chip_bytes = cluster->peer->chip_bytes,
									  .colocated = options->colocated,
									  .model = options->model};

	if (!open_memory(cluster))
		return false;
	timed.bytes = cluster->bytes;
	memcpy(timed.base, cluster->base, sizeof(timed.base));
	if (!sim_timed_init(&cluster->timed, &timed))
		return false;
	cluster->cluster.client = calloc(clients, sizeof(*cluster->cluster.client));
	cluster->state = calloc(1, cluster->peer->cluster_bytes);
	if (cluster->cluster.client == NULL || cluster->state == NULL || !cluster->peer->open(cluster))
		return false;
	for (unsigned int i = 0; i < options->compute_nodes; i++)
	{
		if (!open_compute(cluster, i))
			return false;
	}
	for (unsigned int i = 0; i < clients; i++)
	{
		if (!open_client(cluster, i))
			return false;
	}
	return true;
}

struct ycsb_cluster *
peer_cluster_open(const struct ycsb_options *options, const struct peer *peer)
{
	struct peer_cluster *cluster = calloc(1, sizeof(*cluster));

	if (cluster != NULL)
	{
		cluster->options = options;
		cluster->peer = peer;
		cluster->cluster.run = peer_run;
		cluster->cluster.work = peer_work;
		cluster->cluster.cache_use = peer_cache_use;
		cluster->cluster.close = peer_close;
		if (open_all(cluster))
			return &cluster->cluster;
		peer_close(&cluster->cluster);
	}
	fprintf(stderr, "ycsb: there is not enough memory for this cluster\n");
	return NULL;
}

/*
 * peer.c
 *	  The simulated cluster of a peer, and what peers share.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "peer.h"
#include "sorted.h"

#define ALIGNMENT   64
#define BYTES_A_KEY 2600 /* of the region, at most; what is not used takes no memory */
#define BYTES_MORE  (UINT64_C(1) << 30)

/* ---- memory ---- */

fabric_address
peer_allocate_at(struct peer_cluster *cluster, unsigned int node, uint64_t bytes)
{
	uint64_t offset = cluster->used[node];

	smart_assert(bytes > 0 && node < cluster->options->memory_nodes);
	smart_assert(offset % ALIGNMENT == 0 && offset <= cluster->bytes);
	bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (bytes > cluster->bytes - offset)
		return 0;
	cluster->used[node] += bytes;
	smart_assert(cluster->used[node] <= cluster->bytes);
	return fabric_make_address(node, offset);
}

fabric_address
peer_allocate(struct peer_cluster *cluster, uint64_t bytes)
{
	unsigned int node = cluster->turn;

	cluster->turn = (node + 1) % cluster->options->memory_nodes;
	return peer_allocate_at(cluster, node, bytes);
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
		cluster->used[node] = PEER_FIRST_BYTE + (cluster->peer->locks ? PEER_LOCKS * sizeof(uint64_t) : 0);
		smart_assert(cluster->used[node] <= cluster->bytes);
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
	smart_assert(client->compute->delegation != NULL);
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
	sim_timed_compute(&client->simulated.timed, client->cluster->options->model.lock_ns);
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
			sim_timed_acquire(&client->simulated.timed, &place->lock);
			return PEER_LEADS;
		}
		if (place->hash != 0 && place->hash != hash)
			return PEER_ALONE;
		joined = place->hash != 0 && place->writes == writes && !place->closed;
		if (joined && writes)
			place->value = *value;
		/* The leader has the lock until the end of its window. */
		smart_assert(place->lock.holder != NULL);
		sim_timed_acquire(&client->simulated.timed, &place->lock);
		if (joined)
			*value = place->value;
		sim_timed_release(&client->simulated.timed, &place->lock);
		if (joined)
			return PEER_DELIVERED;
	}
}

void
peer_delegate_close(struct peer_client *client, const uint8_t *key, size_t length, uint64_t *value)
{
	struct place *place = find_place(client, key_hash(key, length));

	smart_assert(place->writes && !place->closed);
	smart_assert(place->hash == key_hash(key, length) && place->lock.holder == &client->simulated.timed);
	place->closed = true;
	*value = place->value;
}

void
peer_delegate_end(struct peer_client *client, const uint8_t *key, size_t length, uint64_t value)
{
	struct place *place = find_place(client, key_hash(key, length));

	smart_assert(place->hash == key_hash(key, length));
	smart_assert(place->lock.holder == &client->simulated.timed);
	lock_work(client);
	place->hash = 0;
	place->value = value;
	sim_timed_release(&client->simulated.timed, &place->lock);
}

/* ---- locks ---- */

#define HANDOVERS_MAX 4

struct peer_local_lock
{
	struct sim_timed_lock lock;
	bool remote;            /* the holder, or the next one, has the remote lock */
	unsigned int handovers; /* of that one */
};

static bool
queues(const struct peer_cluster *cluster)
{
	return cluster->peer->locks && cluster->variant != PEER_LOCKED;
}

static uint64_t
lock_number(fabric_address block)
{
	return (block >> 6) % PEER_LOCKS;
}

fabric_address
peer_lock_word(const struct peer_cluster *cluster, fabric_address block)
{
	smart_assert(cluster->peer->locks);
	return fabric_make_address(fabric_node(block), PEER_FIRST_BYTE + lock_number(block) * sizeof(uint64_t));
}

static struct peer_local_lock *
local_lock_of(struct peer_client *client, fabric_address block)
{
	smart_assert(client->compute->locks != NULL && fabric_node(block) < client->cluster->options->memory_nodes);
	return &client->compute->locks[fabric_node(block) * PEER_LOCKS + lock_number(block)];
}

smart_status
peer_lock(struct peer_client *client, fabric_address block, const struct fabric_request *reads, int count)
{
	struct fabric *fabric = client->simulated.client.fabric;
	struct peer_local_lock *local = client->compute->locks != NULL ? local_lock_of(client, block) : NULL;
	struct fabric_request requests[1 + PEER_LOCK_READS] = {{
		.verb = FABRIC_CAS,
		.remote = peer_lock_word(client->cluster, block),
		.operand = client->simulated.client.number + 1,
	}};
	smart_status status;

	smart_assert(count >= 0 && count <= PEER_LOCK_READS);
	smart_assert(block != 0);
	if (count > 0)
		memcpy(requests + 1, reads, (size_t) count * sizeof(*reads));
	if (local != NULL)
	{
		lock_work(client);
		sim_timed_acquire(&client->simulated.timed, &local->lock);
		smart_assert(local->handovers <= HANDOVERS_MAX && local->remote == (local->handovers > 0));
		if (local->remote)
			return count > 0 ? fabric_execute(fabric, requests + 1, count) : SMART_OK;
	}
	do
		status = fabric_execute(fabric, requests, 1 + count);
	while (status == SMART_OK && requests[0].result != 0);
	if (local != NULL)
		local->remote = status == SMART_OK;
	return status;
}

smart_status
peer_lock_locally(struct peer_client *client, fabric_address block, const struct fabric_request *reads, int count)
{
	smart_assert(client->compute->locks != NULL);
	smart_assert(block != 0 && count >= 0 && count <= PEER_LOCK_READS);
	lock_work(client);
	sim_timed_acquire(&client->simulated.timed, &local_lock_of(client, block)->lock);
	return count > 0
			   ? fabric_execute(client->simulated.client.fabric, (struct fabric_request *) (uintptr_t) reads, count)
			   : SMART_OK;
}

smart_status
peer_write_and_unlock(struct peer_client *client, fabric_address block, struct fabric_request *requests, int count)
{
	static const uint64_t unlocked = 0;
	struct peer_local_lock *local = client->compute->locks != NULL ? local_lock_of(client, block) : NULL;
	bool has_remote = local == NULL || local->remote;
	bool hands_over = local != NULL && has_remote && local->lock.first != NULL && local->handovers < HANDOVERS_MAX;
	smart_status status = SMART_OK;

	smart_assert(count >= 0);
	smart_assert(local == NULL || local->lock.holder == &client->simulated.timed);
	if (has_remote && !hands_over)
		requests[count++] = peer_write_of(peer_lock_word(client->cluster, block), &unlocked, sizeof(unlocked));
	if (count > 0)
		status = fabric_execute(client->simulated.client.fabric, requests, count);
	if (local == NULL)
		return status;
	local->remote = hands_over;
	local->handovers = hands_over ? local->handovers + 1 : 0;
	smart_assert(local->handovers <= HANDOVERS_MAX);
	lock_work(client);
	sim_timed_release(&client->simulated.timed, &local->lock);
	return status;
}

/* ---- partitions ---- */

uint64_t
peer_partition_keys(const struct peer_cluster *cluster)
{
	uint64_t last = cluster->options->key_type == YCSB_RANDINT ? UINT64_MAX / 2 : UINT64_MAX;

	return cluster->options->compute_nodes == 1 ? last : last / cluster->options->compute_nodes + 1;
}

/* ---- loading ---- */

static smart_status
collect_key(void *argument, const uint8_t *key, size_t key_length, uint64_t record)
{
	struct peer_keys *keys = argument;

	smart_assert(key_length > 0 && key_length <= YCSB_KEY_MAX);
	memcpy(keys->bytes + keys->begin[keys->count], key, key_length);
	keys->value[keys->count++] = record;
	keys->begin[keys->count] = keys->begin[keys->count - 1] + key_length;
	return SMART_OK;
}

smart_status
peer_keys_collect(struct peer_keys *keys, struct peer_client *client, const struct ycsb_options *options)
{
	*keys = (struct peer_keys){
		.cluster = client->cluster,
		.bytes = malloc(options->keys * YCSB_KEY_MAX),
		.begin = malloc((options->keys + 1) * sizeof(*keys->begin)),
		.value = malloc(options->keys * sizeof(*keys->value)),
	};
	if (keys->bytes == NULL || keys->begin == NULL || keys->value == NULL)
		return SMART_NO_MEMORY;
	keys->begin[0] = 0;
	return ycsb_sorted(options->key_type, options->keys, client->simulated.client.env, collect_key, keys);
}

void
peer_keys_free(struct peer_keys *keys)
{
	free(keys->bytes);
	free(keys->begin);
	free(keys->value);
}

/* ---- opening and closing ---- */

static void
peer_cache_use(struct ycsb_cluster *cluster, struct ycsb_cache_use *use)
{
	struct peer_cluster *mine = (struct peer_cluster *) cluster;

	*use = (struct ycsb_cache_use){.hits = 0};
	for (unsigned int i = 0; i < mine->options->compute_nodes; i++)
		mine->peer->cache_use(&mine->compute[i], use);
	for (unsigned int i = 0; i < mine->options->memory_nodes; i++)
		use->memory_bytes += mine->used[i];
}

static void
peer_close(struct ycsb_cluster *cluster)
{
	struct peer_cluster *mine = (struct peer_cluster *) cluster;

	smart_assert(mine->timed.running == NULL);
	for (unsigned int i = 0; i < cluster->clients; i++)
	{
		ycsb_simulated_close(ycsb_simulated_of(cluster->client[i]));
		if (peer_client_of(cluster->client[i])->state != NULL && mine->peer->close_client != NULL)
			mine->peer->close_client(peer_client_of(cluster->client[i]));
		free(peer_client_of(cluster->client[i])->state);
		free(cluster->client[i]);
	}
	free(cluster->client);
	for (unsigned int i = 0; i < mine->options->compute_nodes; i++)
	{
		if (mine->compute[i].state != NULL && mine->peer->close_compute != NULL)
			mine->peer->close_compute(&mine->compute[i]);
		free(mine->compute[i].state);
		free(mine->compute[i].delegation);
		free(mine->compute[i].locks);
	}
	for (unsigned int node = 0; node < mine->options->memory_nodes && mine->base[node] != NULL; node++)
		munmap(mine->base[node], mine->bytes);
	sim_timed_close(&mine->timed);
	if (mine->state != NULL && mine->peer->close != NULL)
		mine->peer->close(mine);
	free(mine->state);
	free(mine);
}

static bool
open_client(struct peer_cluster *cluster, unsigned int number)
{
	struct peer_client *client = calloc(1, sizeof(*client));

	smart_assert(cluster->cluster.clients == number);
	if (client == NULL)
		return false;
	cluster->cluster.client[cluster->cluster.clients++] = &client->simulated.client;
	client->cluster = cluster;
	client->compute = &cluster->compute[number % cluster->options->compute_nodes];
	ycsb_simulated_init(&client->simulated, &cluster->cluster, &cluster->timed, cluster->options, number);
	client->simulated.client.index = &cluster->peer->index;
	client->state = calloc(1, cluster->peer->client_bytes);
	return client->state != NULL;
}

static bool
open_compute(struct peer_cluster *cluster, unsigned int number)
{
	struct peer_compute *compute = &cluster->compute[number];

	smart_assert(number < cluster->options->compute_nodes && number < SIM_TIMED_NODES_MAX);
	compute->cluster = cluster;
	compute->number = number;
	if (cluster->peer->delegates && cluster->options->rdwc)
	{
		compute->delegation = calloc(1, sizeof(*compute->delegation));
		if (compute->delegation == NULL)
			return false;
	}
	if (queues(cluster))
	{
		compute->locks = calloc(cluster->options->memory_nodes * (size_t) PEER_LOCKS, sizeof(*compute->locks));
		if (compute->locks == NULL)
			return false;
	}
	compute->state = calloc(1, cluster->peer->compute_bytes);
	return compute->state != NULL && (cluster->peer->open_compute == NULL || cluster->peer->open_compute(compute));
}

static bool
open_all(struct peer_cluster *cluster)
{
	const struct ycsb_options *options = cluster->options;
	unsigned int clients = options->clients * options->compute_nodes;
	struct sim_timed_options timed = {.memory_nodes = options->memory_nodes,
									  .compute_nodes = options->compute_nodes,
									  .colocated = options->colocated,
									  .model = options->model};

	smart_assert(clients >= 1 && clients <= SIM_TIMED_CLIENTS_MAX);
	if (!open_memory(cluster))
		return false;
	timed.bytes = cluster->bytes;
	timed.chip_bytes = queues(cluster) ? cluster->used[0] : 0;
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
peer_cluster_open(const struct ycsb_options *options, const struct peer *peer, enum peer_variant variant)
{
	struct peer_cluster *cluster = calloc(1, sizeof(*cluster));

	smart_assert(options->memory_nodes >= 1 && options->memory_nodes <= SIM_TIMED_NODES_MAX);
	smart_assert(options->compute_nodes >= 1 && options->compute_nodes <= SIM_TIMED_NODES_MAX);
	if (cluster != NULL)
	{
		cluster->options = options;
		cluster->peer = peer;
		cluster->variant = variant;
		cluster->cluster.run = ycsb_simulated_run;
		cluster->cluster.work = ycsb_simulated_work;
		cluster->cluster.cache_use = peer_cache_use;
		cluster->cluster.close = peer_close;
		if (open_all(cluster))
			return &cluster->cluster;
		peer_close(&cluster->cluster);
	}
	fprintf(stderr, "ycsb: there is not enough memory for this cluster\n");
	return NULL;
}

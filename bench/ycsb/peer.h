/*
 * peer.h
 *	  Other papers' indexes on the simulated cluster: what each of them is told of
 *	  it, and what they share.
 *
 * A peer is a model in one file: its layout and its verbs, which are executed on the
 * memory of simulated memory nodes, so that what it READs is what it wrote.  It has
 * none of what a paper says nothing measured about: no recovery, no reuse of memory.
 * Allocation takes no time, since real ones ask a memory node for many megabytes.
 */
#ifndef YCSB_PEER_H
#define YCSB_PEER_H

#include <string.h>

#include "base/assert.h"
#include "simulated.h"

struct peer_cluster;

/* A compute node. */
struct peer_compute
{
	struct peer_cluster *cluster;
	unsigned int number;
	struct peer_delegation *delegation; /* NULL: none */
	struct peer_local_lock *locks;      /* NULL: nobody queues */
	void *state;                        /* the peer's */
};

struct peer_client
{
	struct ycsb_simulated simulated; /* first */
	struct peer_cluster *cluster;
	struct peer_compute *compute;
	void *state; /* the peer's */
};

/* What papers measure beside the whole of an index. */
enum peer_variant
{
	PEER_WHOLE,
	PEER_OPTIMISTIC,  /* Sherman: with DEX's optimistic locks */
	PEER_PARTITIONED, /* Sherman, SMART: with DEX's partitions */
	PEER_EAGER,       /* DEX: all leaves are admitted, and nothing is offloaded */
	PEER_ONESIDED,    /* DEX: nothing is offloaded */
	PEER_UNSKIPPED,   /* DART: without its skip table */
	PEER_LOCKED,      /* ART: updates lock, and nobody queues for a lock */
};

struct peer
{
	struct ycsb_index index;
	bool delegates; /* its compute nodes have a delegation table */
	bool locks;     /* it has a lock table in each memory node, in the NIC */

	/* State of the cluster, of a compute node and of a client: so many bytes, zeroed. */
	size_t cluster_bytes;
	size_t compute_bytes;
	size_t client_bytes;
	bool (*open)(struct peer_cluster *cluster);
	void (*close)(struct peer_cluster *cluster); /* NULL, as the next three: there is nothing to do */
	bool (*open_compute)(struct peer_compute *compute);
	void (*close_compute)(struct peer_compute *compute);
	void (*close_client)(struct peer_client *client);
	void (*cache_use)(struct peer_compute *compute, struct ycsb_cache_use *use);
};

struct peer_cluster
{
	struct ycsb_cluster cluster; /* first */
	const struct ycsb_options *options;
	const struct peer *peer;
	enum peer_variant variant;
	struct sim_timed timed;
	uint8_t *base[SIM_TIMED_NODES_MAX];
	uint64_t used[SIM_TIMED_NODES_MAX];
	uint64_t bytes; /* of each region */
	unsigned int turn;
	struct peer_compute compute[SIM_TIMED_NODES_MAX];
	void *state; /* the peer's */
};

extern const struct peer peer_smart;
extern const struct peer peer_sherman;
extern const struct peer peer_art;
extern const struct peer peer_dart;
extern const struct peer peer_dex;
extern const struct peer peer_canrt;
extern const struct peer peer_wort;
extern const struct peer peer_chime;

/* Of a core of a memory node, to write a line back and to wait for that: assumed, as Optane takes it when it is idle. */
#define PEER_PERSIST_NS 100

/* The simulated cluster of options with this peer's index.  NULL: what failed is told on stderr. */
extern struct ycsb_cluster *
peer_cluster_open(const struct ycsb_options *options, const struct peer *peer, enum peer_variant variant);

static inline struct peer_client *
peer_client_of(struct ycsb_client *client)
{
	return (struct peer_client *) client;
}

/* ---- memory ---- */

/* What is handed out begins here. */
#define PEER_FIRST_BYTE 4096

/* A block on the next memory node, aligned to 64, of zeros.  0: no space. */
extern fabric_address peer_allocate(struct peer_cluster *cluster, uint64_t bytes);

/* The same on a memory node that the caller names. */
extern fabric_address peer_allocate_at(struct peer_cluster *cluster, unsigned int node, uint64_t bytes);

/* Where a block lies, for loading. */
static inline void *
peer_memory(const struct peer_cluster *cluster, fabric_address address)
{
	smart_assert(fabric_node(address) < cluster->options->memory_nodes);
	smart_assert(fabric_offset(address) < cluster->used[fabric_node(address)]);
	return cluster->base[fabric_node(address)] + fabric_offset(address);
}

/* ---- verbs, one at a time ---- */

static inline smart_status
peer_read(struct peer_client *client, fabric_address remote, void *local, uint64_t bytes)
{
	struct fabric_request request = {.verb = FABRIC_READ, .length = (uint32_t) bytes, .remote = remote, .local = local};

	smart_assert(bytes > 0 && bytes <= UINT32_MAX);
	return fabric_execute(client->simulated.client.fabric, &request, 1);
}

static inline struct fabric_request
peer_write_of(fabric_address remote, const void *local, uint64_t bytes)
{
	smart_assert(bytes > 0 && bytes <= UINT32_MAX);
	return (struct fabric_request){.verb = FABRIC_WRITE,
								   .length = (uint32_t) bytes,
								   .remote = remote,
								   .local = (void *) (uintptr_t) local};
}

static inline smart_status
peer_write(struct peer_client *client, fabric_address remote, const void *local, uint64_t bytes)
{
	struct fabric_request request = peer_write_of(remote, local, bytes);

	return fabric_execute(client->simulated.client.fabric, &request, 1);
}

/* *found: the word that was there. */
static inline smart_status
peer_cas(struct peer_client *client, fabric_address remote, uint64_t compare, uint64_t store, uint64_t *found)
{
	struct fabric_request request = {.verb = FABRIC_CAS, .remote = remote, .compare = compare, .operand = store};
	smart_status status = fabric_execute(client->simulated.client.fabric, &request, 1);

	smart_assert(remote % sizeof(uint64_t) == 0);
	*found = request.result;
	return status;
}

static inline void
peer_cache_work(struct peer_client *client)
{
	sim_timed_compute(&client->simulated.timed, client->cluster->options->model.cache_ns);
}

/* ---- read delegation and write combining (SMART 4.2) ---- */

enum peer_role
{
	PEER_ALONE,    /* do it yourself: another key has the place */
	PEER_LEADS,    /* do it, then peer_delegate_end */
	PEER_DELIVERED /* another client has done it since the call began */
};

#define PEER_PLACES 65536 /* of a compute node; SMART's has 4 M */

/* Waits while another client of the compute node reads or writes the key, and shares what that one did. */
extern enum peer_role
peer_delegate(struct peer_client *client, const uint8_t *key, size_t length, bool writes, uint64_t *value);

/* A writer that leads takes the newest value handed in, and no more are taken. */
extern void peer_delegate_close(struct peer_client *client, const uint8_t *key, size_t length, uint64_t *value);
extern void peer_delegate_end(struct peer_client *client, const uint8_t *key, size_t length, uint64_t value);

/* ---- logical partitions (DEX 4): of integers, equal shares, one for each compute node ---- */

extern uint64_t peer_partition_keys(const struct peer_cluster *cluster);

static inline unsigned int
peer_partition_of(const struct peer_cluster *cluster, uint64_t key)
{
	smart_assert(cluster->options->compute_nodes == 1 ||
				 key / peer_partition_keys(cluster) < cluster->options->compute_nodes);
	return cluster->options->compute_nodes == 1 ? 0 : (unsigned int) (key / peer_partition_keys(cluster));
}

/* Does a range of keys belong to more than one compute node?  high: of the first key behind it, 0: there is no end. */
static inline bool
peer_crosses_partitions(const struct peer_cluster *cluster, uint64_t low, uint64_t high)
{
	unsigned int last = high == 0 ? cluster->options->compute_nodes - 1 : peer_partition_of(cluster, high - 1);

	smart_assert(high == 0 || low < high);
	return peer_partition_of(cluster, low) != last;
}

/*
 * PEER_PARTITIONED: from now on the client has the cache and the local locks of the compute node whose the key is, and
 * its own cores and NIC.
 */
static inline void
peer_go_to_owner(struct peer_client *client, uint64_t key)
{
	if (client->cluster->variant == PEER_PARTITIONED)
		client->compute = &client->cluster->compute[peer_partition_of(client->cluster, key)];
}

/* ---- locks of pages or nodes (Sherman's, as SMART 2.2 tells of them) ---- */

#define PEER_LOCKS 32768 /* of a memory node, in 256 KB of its NIC's memory */

/* The word in a block's memory node that stands for the block's lock. */
extern fabric_address peer_lock_word(const struct peer_cluster *cluster, fabric_address block);

/*
 * Locks a block: the clients of a compute node queue for a local lock, and hand the remote one on, four times at most
 * (HOCL).  CASes until it has it; READs of the block's memory node go in one batch with the CAS, behind it.
 * PEER_LOCKED: clients do not queue, and the locks lie in the memory node's memory.
 */
#define PEER_LOCK_READS 2
extern smart_status
peer_lock(struct peer_client *client, fabric_address block, const struct fabric_request *reads, int count);

/* The same for a block that no other compute node changes: the local lock alone. */
extern smart_status
peer_lock_locally(struct peer_client *client, fabric_address block, const struct fabric_request *reads, int count);

/*
 * Executes the WRITEs of a change, in whose array is room for one more, and gives the lock back with them, or to the
 * next client of the compute node.
 */
extern smart_status
peer_write_and_unlock(struct peer_client *client, fabric_address block, struct fabric_request *requests, int count);

/* ---- loading ---- */

/* The keys of a load in order, one behind the other. */
struct peer_keys
{
	struct peer_cluster *cluster;
	uint8_t *bytes;
	uint64_t *begin; /* of each key, and of none behind the last one */
	uint64_t *value;
	uint64_t count;
};

/* To be freed, whatever it returns: SMART_NO_MEMORY or SMART_OK. */
extern smart_status
peer_keys_collect(struct peer_keys *keys, struct peer_client *client, const struct ycsb_options *options);
extern void peer_keys_free(struct peer_keys *keys);

static inline const uint8_t *
peer_key_at(const struct peer_keys *keys, uint64_t number)
{
	smart_assert(number < keys->count);
	return keys->bytes + keys->begin[number];
}

static inline size_t
peer_key_length(const struct peer_keys *keys, uint64_t number)
{
	smart_assert(number < keys->count && keys->begin[number] < keys->begin[number + 1]);
	return keys->begin[number + 1] - keys->begin[number];
}

/* ---- hashes and values ---- */

/* What an entry has behind its key, as a word. */
static inline uint64_t
peer_value_of(const uint8_t *entry, size_t key_length, size_t length)
{
	uint64_t value = 0;

	smart_assert(length >= key_length);
	memcpy(&value, entry + key_length, length - key_length < sizeof(value) ? length - key_length : sizeof(value));
	return value;
}

/* Of keys and prefixes. */
static inline uint64_t
peer_hash(const uint8_t *bytes, size_t length)
{
	uint64_t hash = length * UINT64_C(0x9e3779b97f4a7c15);

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash ^ (hash >> 29);
}

#endif /* YCSB_PEER_H */

/*
 * real.c
 *	  Compute nodes that are processes: on memory of this program, or on running
 *	  memory nodes.
 *
 * The first process leads: it makes the tree, tells the others when to open it
 * and what to run, and waits until they have.
 *
 * A compute node is made as a server makes it, of src/compute's region or extent
 * map, epochs, space, and cache; the locks are mutexes.  Several of them share the
 * extent map, the epochs and the lease, since a memory node lets one owner in at a
 * time; what belongs to a compute node on the paths that are measured is its
 * own: cache, local leaf locks, connections.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "compute/allocate/extents.h"
#include "compute/client.h"
#include "cluster.h"
#include "nodes.h"
#include "random.h"
#include "team.h"

#define BYTES_A_KEY 128 /* at most, with what waits for its next use */
#define BYTES_MORE  (UINT64_C(1) << 30)
#define ALIGNMENT   128

/* What one process has: a compute node, and the clients that are its threads. */
struct member
{
	const struct ycsb_options *options;
	struct ycsb_shared *shared;
	unsigned int self;           /* the process's number */
	unsigned int clients;        /* in all */
	struct ycsb_client **client; /* by number; NULL: another process's */
	struct ycsb_cluster *cluster;
	struct ycsb_env env; /* the process's own */
	struct smart_compute compute;
	struct smart_region region; /* max_size 0: not yet mapped */
	struct smart_lock_table locks;
	pthread_mutex_t *mutex;   /* SMART_LOCK_COUNT, shared; NULL: not yet made */
	struct ycsb_nodes *nodes; /* shared; NULL: this program's memory */
};

struct real_client
{
	struct ycsb_client client; /* first */
	struct ycsb_env env;
	struct smart_client *smart;
	pthread_t thread;
	ycsb_body body;
	void *argument;
};

/* ---- locks ---- */

static pthread_mutex_t *
mutex_of(struct smart_lock_table *table, unsigned int lock)
{
	smart_assert(lock < SMART_LOCK_COUNT);
	return &((struct member *) (void *) ((char *) table - offsetof(struct member, locks)))->mutex[lock];
}

static void
mutex_acquire(struct smart_lock_table *table, unsigned int lock)
{
	pthread_mutex_lock(mutex_of(table, lock));
}

static void
mutex_release(struct smart_lock_table *table, unsigned int lock)
{
	pthread_mutex_unlock(mutex_of(table, lock));
}

/* ---- running clients ---- */

static void *
thread_main(void *argument)
{
	struct real_client *client = argument;

	client->body(&client->client, client->argument);
	return NULL;
}

/* Clients are numbered in turn over the processes. */
static bool
is_mine(const struct member *member, unsigned int client)
{
	smart_assert(client < member->clients);
	return client % member->options->compute_nodes == member->self;
}

/* Runs body in those of the first so many clients that are this process's. */
static void
member_run(struct member *member, unsigned int clients, ycsb_body body, void *argument)
{
	smart_assert(clients <= member->clients);
	for (unsigned int i = 0; i < clients; i++)
	{
		struct real_client *client = (struct real_client *) member->client[i];

		if (!is_mine(member, i))
			continue;
		smart_assert(client->client.tree != NULL);
		client->body = body;
		client->argument = argument;
		if (pthread_create(&client->thread, NULL, thread_main, client) != 0)
		{
			perror("ycsb: a thread");
			exit(1);
		}
	}
	for (unsigned int i = 0; i < clients; i++)
	{
		if (is_mine(member, i))
			pthread_join(((struct real_client *) member->client[i])->thread, NULL);
	}
}

static void
member_cache_use(struct member *member, struct ycsb_cache_use *use)
{
	struct smart_cache_stat stat = {0};

	if (member->compute.cache != NULL)
		smart_cache_stat(member->compute.cache, &stat);
	*use = (struct ycsb_cache_use){.hits = 0};
	ycsb_cache_use_add(use, &stat);
}

/* ---- closing a process ---- */

/* Of the process's first client. */
static struct smart_space *
member_space(struct member *member)
{
	return &((struct real_client *) member->client[member->self])->smart->space;
}

static void
member_close(struct member *member)
{
	for (unsigned int i = 0; member->client != NULL && i < member->clients; i++)
	{
		struct real_client *client = (struct real_client *) member->client[i];

		if (client == NULL)
			continue;
		if (client->client.tree != NULL)
			smart_tree_close(client->client.tree);
		if (client->smart != NULL)
			smart_client_close(client->smart);
		free(client);
	}
	free(member->client);
	free(member->compute.leaf_locks);
	free(member->compute.cache);
	free(member->compute.rdwc);
}

/* What prepare made, in the process that is left. */
static void
member_release(struct member *member)
{
	if (member->nodes != NULL)
		ycsb_nodes_close(member->nodes);
	if (member->region.mapped > 0)
	{
		smart_region_unmap(&member->region);
		close(member->region.fd);
	}
	for (unsigned int i = 0; member->mutex != NULL && i < SMART_LOCK_COUNT; i++)
		pthread_mutex_destroy(&member->mutex[i]);
}

/* ---- opening a process ---- */

/* A region for the tree's blocks, or an extent map of those that are elsewhere. */
static bool
open_region(struct member *member, uint64_t incarnation)
{
	const struct ycsb_options *options = member->options;
	bool extents = options->nodes != NULL;
	uint64_t bytes = (options->keys + options->operations) * BYTES_A_KEY + BYTES_MORE;
	int fd = memfd_create("ycsb", MFD_CLOEXEC);
	smart_status status;

	if (fd < 0)
	{
		perror("ycsb: memfd_create");
		return false;
	}
	status = extents ? smart_extent_map(&member->region, fd) : smart_region_map(&member->region, fd, bytes);
	if (status != SMART_OK)
	{
		close(fd);
		return ycsb_complain("mapping memory", status);
	}
	status = smart_region_format(&member->region, incarnation);
	return status == SMART_OK || ycsb_complain("making a region", status);
}

static bool
open_locks(struct member *member)
{
	pthread_mutexattr_t attributes;

	smart_assert(member->mutex == NULL);
	member->mutex = ycsb_shared_allocate(member->shared, SMART_LOCK_COUNT * sizeof(*member->mutex));
	if (member->mutex == NULL)
		return ycsb_complain("locks", SMART_NO_MEMORY);
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	for (unsigned int i = 0; i < SMART_LOCK_COUNT; i++)
		pthread_mutex_init(&member->mutex[i], &attributes);
	pthread_mutexattr_destroy(&attributes);
	member->locks = (struct smart_lock_table){.acquire = mutex_acquire, .release = mutex_release};
	return true;
}

/* What all compute nodes share. */
static bool
open_compute_nodes(struct member *member)
{
	struct smart_compute *compute = &member->compute;
	unsigned int clients = member->clients;

	compute->region = &member->region;
	compute->locks = &member->locks;
	if (member->nodes != NULL)
		compute->remote = &member->nodes->remote;
	compute->epoch = ycsb_shared_allocate(member->shared, smart_epoch_size(clients));
	compute->pins = ycsb_shared_allocate(member->shared, smart_pins_size(clients));
	if (compute->epoch == NULL || compute->pins == NULL)
		return ycsb_complain("shared memory", SMART_NO_MEMORY);
	smart_epoch_init(compute->epoch, clients, 0);
	smart_pins_init(compute->pins, clients);
	return true;
}

/* What each has for itself. */
static bool
open_compute_node(struct member *member)
{
	struct smart_compute *compute = &member->compute;

	if (member->nodes == NULL)
		return true;
	compute->leaf_locks = calloc(1, sizeof(*compute->leaf_locks));
	if (compute->leaf_locks != NULL &&
		ycsb_open_tables(member->options, member->clients, member->options->seed + member->self, &compute->cache,
						 &compute->rdwc))
		return true;
	return ycsb_complain("a compute node", SMART_NO_MEMORY);
}

static bool
open_client(struct member *member, unsigned int number)
{
	struct real_client *client = calloc(1, sizeof(*client));
	smart_status status;

	if (client == NULL)
		return ycsb_complain("a client", SMART_NO_MEMORY);
	smart_assert(is_mine(member, number) && member->client[number] == NULL);
	member->client[number] = &client->client;
	ycsb_env_init(&client->env, ycsb_mix(member->options->seed) ^ ycsb_mix(number + 1));
	status = smart_client_open(&member->compute, &client->env.env, number + 1, &client->smart);
	if (status != SMART_OK)
		return ycsb_complain("a client", status);
	smart_client_set_offload(client->smart, member->options->offload);
	client->client = (struct ycsb_client){.index = &ycsb_tree_index,
										  .cluster = member->cluster,
										  .number = number,
										  .env = &client->env.env,
										  .fabric = client->smart->fabric};
	return true;
}

/* Makes the process's own: cache, local leaf locks, clients.  self is set. */
static bool
member_open(struct member *member)
{
	smart_assert(member->self < member->options->compute_nodes);
	if (!open_compute_node(member))
		return false;
	for (unsigned int i = 0; i < member->clients; i++)
	{
		if (is_mine(member, i) && !open_client(member, i))
			return false;
	}
	return true;
}

/* Opens the tree in all clients of the process. */
static bool
member_open_tree(struct member *member, uint64_t tree, fabric_address root)
{
	for (unsigned int i = 0; i < member->clients; i++)
	{
		struct real_client *client = (struct real_client *) member->client[i];
		struct smart_tree_options options = ycsb_tree_options(member->options);
		smart_status status;

		if (client == NULL)
			continue;
		smart_assert(client->client.tree == NULL && tree != 0);
		options.id = tree;
		options.root = root;
		status = smart_tree_open(client->client.fabric, &client->env.env, &client->smart->services, &options,
								 &client->client.tree);
		if (status != SMART_OK)
			return ycsb_complain("opening a tree", status);
	}
	return true;
}

size_t
ycsb_real_bytes(const struct ycsb_options *options)
{
	unsigned int clients = options->clients * options->compute_nodes;

	return smart_epoch_size(clients) + smart_pins_size(clients) + SMART_LOCK_COUNT * sizeof(pthread_mutex_t) +
		   sizeof(struct ycsb_nodes) + 4 * ALIGNMENT;
}

/*
 * Makes what the processes of a cluster share, before they part: locks, region or extent map, leases, epochs.
 */
static bool
member_prepare(struct member *member)
{
	uint64_t incarnation; /* the extent map's, which no other run may have */

	smart_assert(member->client == NULL);
	/* Not by --seed: two runs are not one incarnation. */
	ycsb_env_init(&member->env, 0);
	member->env.random = member->env.env.now_ns(&member->env.env) ^ ((uint64_t) getpid() << 48);
	incarnation = member->env.env.random(&member->env.env) | 1;
	member->clients = member->options->clients * member->options->compute_nodes;
	member->client = calloc(member->clients, sizeof(*member->client));
	if (member->client == NULL)
		return ycsb_complain("clients", SMART_NO_MEMORY);
	if (!open_locks(member) || !open_region(member, incarnation))
		return false;
	if (member->options->nodes != NULL)
	{
		member->nodes = ycsb_shared_allocate(member->shared, sizeof(*member->nodes));
		if (member->nodes == NULL)
			return ycsb_complain("memory nodes", SMART_NO_MEMORY);
		if (!ycsb_nodes_open(member->nodes, member->options, &member->env.env, incarnation))
			return false;
	}
	return open_compute_nodes(member);
}

/* ---- the team of processes ---- */

struct real_cluster
{
	struct ycsb_cluster cluster; /* first */
	struct member member;
	struct ycsb_team team;
	uint64_t tree;               /* id, 0: not yet made */
	struct ycsb_cache_use cache; /* of the other processes' caches, as they told last */
};

enum order_kind
{
	ORDER_OPEN, /* the tree is there */
	ORDER_RUN
};

/* What the first process tells the others, and what they answer when it is done. */
struct order
{
	enum order_kind kind;
	uint64_t tree;
	fabric_address root;
	unsigned int clients;
	ycsb_body body;
	void *argument;
};

struct answer
{
	bool done;
	struct ycsb_cache_use cache;
};

/* ---- the leader ---- */

static void
tell_all(struct real_cluster *real, const struct order *order)
{
	if (!ycsb_team_tell(&real->team, order, sizeof(*order)))
	{
		fprintf(stderr, "ycsb: a compute node's process has ended\n");
		exit(1);
	}
}

/* All have done what they were told; false: one could not, and has said why. */
static bool
await_all(struct real_cluster *real)
{
	real->cache = (struct ycsb_cache_use){.hits = 0};
	for (unsigned int i = 1; i < real->team.size; i++)
	{
		struct answer answer;

		if (!ycsb_team_answer(&real->team, i, &answer, sizeof(answer)))
		{
			fprintf(stderr, "ycsb: a compute node's process has ended\n");
			exit(1);
		}
		if (!answer.done)
			return false;
		ycsb_add(&real->cache, &answer.cache, sizeof(answer.cache));
	}
	return true;
}

static bool
real_run(struct ycsb_cluster *cluster, unsigned int clients, ycsb_body body, void *argument)
{
	struct real_cluster *real = (struct real_cluster *) cluster;
	const struct order order = {.kind = ORDER_RUN, .clients = clients, .body = body, .argument = argument};

	smart_assert(real->team.self == 0 && clients >= 1 && clients <= cluster->clients);
	tell_all(real, &order);
	member_run(&real->member, clients, body, argument);
	(void) await_all(real); /* running is always done; what failed is in the argument */
	return true;
}

/* The other processes' as they were after the last run. */
static void
real_cache_use(struct ycsb_cluster *cluster, struct ycsb_cache_use *use)
{
	struct real_cluster *real = (struct real_cluster *) cluster;

	member_cache_use(&real->member, use);
	ycsb_add(use, &real->cache, sizeof(*use));
}

/* The first process makes the tree, and all open it. */
static bool
make_tree(struct real_cluster *real)
{
	static const struct smart_tree_owner owner = {.backend = -1};
	struct order order = {.kind = ORDER_OPEN};
	smart_status status = smart_space_create_tree(member_space(&real->member), &owner, &real->tree, &order.root);

	if (status != SMART_OK)
		return ycsb_complain("making a tree", status);
	smart_assert(real->team.self == 0 && real->tree != 0);
	order.tree = real->tree;
	tell_all(real, &order);
	return member_open_tree(&real->member, order.tree, order.root) && await_all(real);
}

static void
real_close(struct ycsb_cluster *cluster)
{
	struct real_cluster *real = (struct real_cluster *) cluster;

	ycsb_team_dismiss(&real->team);
	if (real->tree != 0)
		smart_space_drop_tree(member_space(&real->member), real->tree);
	if (real->tree != 0 && real->member.nodes != NULL)
		ycsb_nodes_settle(real->member.nodes, member_space(&real->member));
	member_close(&real->member);
	member_release(&real->member);
	free(real);
}

/* ---- the other processes ---- */

static _Noreturn void
serve(struct real_cluster *real)
{
	struct order order;
	struct answer answer = {.done = member_open(&real->member)};

	smart_assert(real->team.self != 0);
	while (answer.done && ycsb_team_listen(&real->team, &order, sizeof(order)))
	{
		if (order.kind == ORDER_OPEN)
			answer.done = member_open_tree(&real->member, order.tree, order.root);
		else
			member_run(&real->member, order.clients, order.body, order.argument);
		real_cache_use(&real->cluster, &answer.cache);
		if (!ycsb_team_reply(&real->team, &answer, sizeof(answer)))
			break;
	}
	member_close(&real->member);
	fflush(NULL);
	_exit(answer.done ? 0 : 1);
}

/* ---- opening ---- */

static bool
open_all(struct real_cluster *real)
{
	struct member *member = &real->member;

	if (!member_prepare(member) || !ycsb_team_part(&real->team, member->options->compute_nodes))
		return false;
	member->self = real->team.self;
	if (member->self != 0)
		serve(real);
	if (!member_open(member))
		return false;
	if (member->nodes != NULL && !ycsb_nodes_add(member->nodes, member_space(member)))
		return false;
	real->cluster.client = member->client;
	return make_tree(real);
}

struct ycsb_cluster *
ycsb_real_open(const struct ycsb_options *options, struct ycsb_shared *shared)
{
	struct real_cluster *real = calloc(1, sizeof(*real));

	if (real == NULL)
	{
		ycsb_complain("the compute node", SMART_NO_MEMORY);
		return NULL;
	}
	real->cluster = (struct ycsb_cluster){
		.clients = options->clients * options->compute_nodes,
		.run = real_run,
		.cache_use = real_cache_use,
		.close = real_close,
	};
	real->member = (struct member){.options = options, .shared = shared, .cluster = &real->cluster};
	if (open_all(real))
		return &real->cluster;
	real_close(&real->cluster);
	return NULL;
}

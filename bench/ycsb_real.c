/*
 * ycsb_real.c
 *	  Compute nodes that are processes, and their clients threads: on memory of
 *	  this program, or on running memory nodes.
 *
 * A compute node is made as a server makes it, of src/compute's region or book,
 * epochs, space, and cache; the locks are mutexes.  Several of them share the
 * book, the epochs and the lease, since a memory node lets one owner in at a
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
#include "compute/book.h"
#include "compute/client.h"
#include "ycsb_cluster.h"
#include "ycsb_env.h"
#include "ycsb_nodes.h"
#include "ycsb_random.h"
#include "ycsb_team.h"

#define BYTES_A_KEY 128 /* at most, with what waits for its next use */
#define BYTES_MORE  (UINT64_C(1) << 30)
#define ALIGNMENT   128

struct real_client
{
	struct ycsb_client client; /* first */
	struct ycsb_env env;
	struct smart_client *smart;
	pthread_t thread;
	ycsb_body body;
	void *argument;
};

/* What a process has. */
struct real_cluster
{
	struct ycsb_cluster cluster; /* first; of clients of other processes it has none */
	const struct ycsb_options *options;
	struct ycsb_shared *shared;
	struct ycsb_team team;
	struct ycsb_env env; /* the process's own */
	struct smart_compute compute;
	struct smart_region region; /* max_size 0: not yet mapped */
	struct smart_lock_table locks;
	pthread_mutex_t *mutex;   /* SMART_LOCK_COUNT, shared; NULL: not yet made */
	struct ycsb_nodes *nodes; /* shared; NULL: this program's memory */
	uint64_t tree;            /* id, 0: not yet made */
	uint64_t hits;            /* of the other processes' caches, as they told last */
	uint64_t misses;
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
	uint64_t hits;
	uint64_t misses;
};

/* ---- locks ---- */

static pthread_mutex_t *
mutex_of(struct smart_lock_table *table, unsigned int lock)
{
	smart_assert(lock < SMART_LOCK_COUNT);
	return &((struct real_cluster *) (void *) ((char *) table - offsetof(struct real_cluster, locks)))->mutex[lock];
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
is_mine(const struct real_cluster *real, unsigned int client)
{
	return client % real->options->compute_nodes == real->team.self;
}

static void
run_mine(struct real_cluster *real, unsigned int clients, ycsb_body body, void *argument)
{
	for (unsigned int i = 0; i < clients; i++)
	{
		struct real_client *client = (struct real_client *) real->cluster.client[i];

		if (!is_mine(real, i))
			continue;
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
		if (is_mine(real, i))
			pthread_join(((struct real_client *) real->cluster.client[i])->thread, NULL);
	}
}

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
	real->hits = real->misses = 0;
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
		real->hits += answer.hits;
		real->misses += answer.misses;
	}
	return true;
}

static void
real_run(struct ycsb_cluster *cluster, unsigned int clients, ycsb_body body, void *argument)
{
	struct real_cluster *real = (struct real_cluster *) cluster;
	const struct order order = {.kind = ORDER_RUN, .clients = clients, .body = body, .argument = argument};

	tell_all(real, &order);
	run_mine(real, clients, body, argument);
	(void) await_all(real); /* running is always done; what failed is in the argument */
}

/* Of this process's cache, and of the others as they were after the last run. */
static void
real_cache_use(struct ycsb_cluster *cluster, uint64_t *hits, uint64_t *misses)
{
	struct real_cluster *real = (struct real_cluster *) cluster;
	struct smart_cache_stat stat = {0};

	if (real->compute.cache != NULL)
		smart_cache_stat(real->compute.cache, &stat);
	*hits = stat.hits + real->hits;
	*misses = stat.misses + real->misses;
}

/* ---- closing ---- */

/* Of the process's first client. */
static struct smart_space *
space_of(struct real_cluster *real)
{
	return &((struct real_client *) real->cluster.client[real->team.self])->smart->space;
}

static void
close_client(struct real_client *client)
{
	if (client == NULL)
		return;
	if (client->client.tree != NULL)
		smart_tree_close(client->client.tree);
	if (client->smart != NULL)
		smart_client_close(client->smart);
	free(client);
}

static void
close_clients(struct real_cluster *real)
{
	for (unsigned int i = 0; i < real->cluster.clients; i++)
		close_client((struct real_client *) real->cluster.client[i]);
	free(real->cluster.client);
}

static void
real_close(struct ycsb_cluster *cluster)
{
	struct real_cluster *real = (struct real_cluster *) cluster;

	ycsb_team_dismiss(&real->team);
	if (real->tree != 0)
		smart_space_drop_tree(space_of(real), real->tree);
	if (real->tree != 0 && real->nodes != NULL)
		ycsb_nodes_settle(real->nodes, space_of(real));
	close_clients(real);
	if (real->nodes != NULL)
		ycsb_nodes_close(real->nodes);
	if (real->region.mapped > 0)
	{
		smart_region_unmap(&real->region);
		close(real->region.fd);
	}
	for (unsigned int i = 0; real->mutex != NULL && i < SMART_LOCK_COUNT; i++)
		pthread_mutex_destroy(&real->mutex[i]);
	free(real->compute.leaf_locks);
	free(real->compute.cache);
	free(real);
}

/* ---- opening ---- */

static bool
complain(const char *what, smart_status status)
{
	fprintf(stderr, "ycsb: %s: %s\n", what, smart_status_text(status));
	return false;
}

/* A region for the tree's blocks, or a book of those that are elsewhere. */
static bool
open_region(struct real_cluster *real, uint64_t incarnation)
{
	const struct ycsb_options *options = real->options;
	bool book = options->nodes != NULL;
	uint64_t bytes = (options->keys + options->operations) * BYTES_A_KEY + BYTES_MORE;
	int fd = memfd_create("ycsb", MFD_CLOEXEC);
	smart_status status;

	if (fd < 0)
	{
		perror("ycsb: memfd_create");
		return false;
	}
	status = book ? smart_book_map(&real->region, fd) : smart_region_map(&real->region, fd, bytes);
	if (status != SMART_OK)
	{
		close(fd);
		return complain("mapping memory", status);
	}
	status = smart_region_format(&real->region, incarnation);
	return status == SMART_OK || complain("making a region", status);
}

static bool
open_locks(struct real_cluster *real)
{
	pthread_mutexattr_t attributes;

	real->mutex = ycsb_shared_allocate(real->shared, SMART_LOCK_COUNT * sizeof(*real->mutex));
	if (real->mutex == NULL)
		return complain("locks", SMART_NO_MEMORY);
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	for (unsigned int i = 0; i < SMART_LOCK_COUNT; i++)
		pthread_mutex_init(&real->mutex[i], &attributes);
	pthread_mutexattr_destroy(&attributes);
	real->locks = (struct smart_lock_table){.acquire = mutex_acquire, .release = mutex_release};
	return true;
}

/* What all compute nodes share. */
static bool
open_compute_nodes(struct real_cluster *real)
{
	struct smart_compute *compute = &real->compute;
	unsigned int clients = real->cluster.clients;

	compute->region = &real->region;
	compute->locks = &real->locks;
	if (real->nodes != NULL)
		compute->remote = &real->nodes->remote;
	compute->epoch = ycsb_shared_allocate(real->shared, smart_epoch_size(clients));
	compute->interlock = ycsb_shared_allocate(real->shared, smart_interlock_size(clients));
	if (compute->epoch == NULL || compute->interlock == NULL)
		return complain("shared memory", SMART_NO_MEMORY);
	smart_epoch_init(compute->epoch, clients, 0);
	smart_interlock_init(compute->interlock, clients);
	return true;
}

/* What one has for itself. */
static bool
open_compute_node(struct real_cluster *real)
{
	const struct ycsb_options *options = real->options;
	struct smart_compute *compute = &real->compute;
	unsigned int clients = real->cluster.clients;
	size_t cache_bytes = options->cache_bytes > 0 ? smart_cache_size(options->cache_bytes, clients) : 0;

	if (real->nodes == NULL)
		return true;
	compute->leaf_locks = calloc(1, sizeof(*compute->leaf_locks));
	if (cache_bytes > 0)
		compute->cache = aligned_alloc(ALIGNMENT, (cache_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
	if (compute->leaf_locks == NULL || (cache_bytes > 0 && compute->cache == NULL))
		return complain("a compute node", SMART_NO_MEMORY);
	if (cache_bytes > 0)
		smart_cache_init(compute->cache, options->cache_bytes, clients, options->seed + real->team.self);
	return true;
}

static bool
open_client(struct real_cluster *real, unsigned int number)
{
	struct real_client *client = calloc(1, sizeof(*client));
	smart_status status;

	if (client == NULL)
		return complain("a client", SMART_NO_MEMORY);
	real->cluster.client[number] = &client->client;
	ycsb_env_init(&client->env, ycsb_mix(real->options->seed) ^ ycsb_mix(number + 1));
	status = smart_client_open(&real->compute, &client->env.env, number + 1, &client->smart);
	if (status != SMART_OK)
		return complain("a client", status);
	client->client = (struct ycsb_client){.cluster = &real->cluster,
										  .number = number,
										  .env = &client->env.env,
										  .fabric = client->smart->fabric};
	return true;
}

static bool
open_mine(struct real_cluster *real)
{
	if (!open_compute_node(real))
		return false;
	for (unsigned int i = 0; i < real->cluster.clients; i++)
	{
		if (is_mine(real, i) && !open_client(real, i))
			return false;
	}
	return true;
}

static bool
open_tree(struct real_cluster *real, uint64_t tree, fabric_address root)
{
	for (unsigned int i = 0; i < real->cluster.clients; i++)
	{
		struct real_client *client = (struct real_client *) real->cluster.client[i];
		struct smart_tree_options options = ycsb_tree_options(real->options, real->team.self + 1, i);
		smart_status status;

		if (client == NULL)
			continue;
		options.id = tree;
		options.root = root;
		status = smart_tree_open(client->client.fabric, &client->env.env, &client->smart->services, &options,
								 &client->client.tree);
		if (status != SMART_OK)
			return complain("opening a tree", status);
	}
	return true;
}

/* The first process makes the tree, and all open it. */
static bool
make_tree(struct real_cluster *real)
{
	static const struct smart_tree_owner owner = {.backend = -1};
	struct order order = {.kind = ORDER_OPEN};
	smart_status status = smart_space_create_tree(space_of(real), &owner, &real->tree, &order.root);

	if (status != SMART_OK)
		return complain("making a tree", status);
	order.tree = real->tree;
	tell_all(real, &order);
	return open_tree(real, order.tree, order.root) && await_all(real);
}

/* ---- the other processes ---- */

static bool
obey(struct real_cluster *real, const struct order *order)
{
	if (order->kind == ORDER_OPEN)
		return open_tree(real, order->tree, order->root);
	run_mine(real, order->clients, order->body, order->argument);
	return true;
}

static _Noreturn void
serve(struct real_cluster *real)
{
	struct order order;
	struct answer answer = {.done = open_mine(real)};

	while (answer.done && ycsb_team_listen(&real->team, &order, sizeof(order)))
	{
		answer.done = obey(real, &order);
		real_cache_use(&real->cluster, &answer.hits, &answer.misses);
		if (!ycsb_team_reply(&real->team, &answer, sizeof(answer)))
			break;
	}
	close_clients(real);
	fflush(NULL);
	_exit(answer.done ? 0 : 1);
}

/* ---- all of it ---- */

static bool
open_nodes(struct real_cluster *real, uint64_t incarnation)
{
	real->nodes = ycsb_shared_allocate(real->shared, sizeof(*real->nodes));
	if (real->nodes == NULL)
		return complain("memory nodes", SMART_NO_MEMORY);
	return ycsb_nodes_open(real->nodes, real->options, &real->env.env, incarnation);
}

static bool
open_all(struct real_cluster *real)
{
	/* The book's, which no other run may have. */
	uint64_t incarnation = real->env.env.random(&real->env.env) | 1;
	bool remote = real->options->nodes != NULL;

	real->cluster.client = calloc(real->cluster.clients, sizeof(*real->cluster.client));
	if (real->cluster.client == NULL)
		return complain("clients", SMART_NO_MEMORY);
	if (!open_locks(real) || !open_region(real, incarnation) || (remote && !open_nodes(real, incarnation)) ||
		!open_compute_nodes(real) || !ycsb_team_part(&real->team, real->options->compute_nodes))
		return false;
	if (real->team.self != 0)
		serve(real);
	if (!open_mine(real) || (remote && !ycsb_nodes_add(real->nodes, space_of(real))))
		return false;
	return make_tree(real);
}

size_t
ycsb_real_bytes(const struct ycsb_options *options)
{
	unsigned int clients = options->clients * options->compute_nodes;

	return smart_epoch_size(clients) + smart_interlock_size(clients) + SMART_LOCK_COUNT * sizeof(pthread_mutex_t) +
		   sizeof(struct ycsb_nodes) + 4 * ALIGNMENT;
}

struct ycsb_cluster *
ycsb_real_open(const struct ycsb_options *options, struct ycsb_shared *shared)
{
	struct real_cluster *real = calloc(1, sizeof(*real));

	if (real == NULL)
	{
		complain("the compute node", SMART_NO_MEMORY);
		return NULL;
	}
	real->options = options;
	real->shared = shared;
	real->cluster = (struct ycsb_cluster){
		.clients = options->clients * options->compute_nodes,
		.run = real_run,
		.cache_use = real_cache_use,
		.close = real_close,
	};
	/* Not by --seed: two runs are not one incarnation. */
	ycsb_env_init(&real->env, 0);
	real->env.random = real->env.env.now_ns(&real->env.env) ^ ((uint64_t) getpid() << 48);
	if (open_all(real))
		return &real->cluster;
	real_close(&real->cluster);
	return NULL;
}

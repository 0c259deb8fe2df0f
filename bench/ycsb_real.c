/*
 * ycsb_real.c
 *	  One compute node whose clients are threads: on memory of this process, or
 *	  on running memory nodes.
 *
 * It is made as a server makes it, of src/compute's region or book, epochs,
 * space, and cache; the locks are mutexes.
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

struct real_cluster
{
	struct ycsb_cluster cluster; /* first */
	const struct ycsb_options *options;
	struct ycsb_env env; /* the program's own */
	struct smart_compute compute;
	struct smart_region region; /* max_size 0: not yet mapped */
	struct smart_lock_table locks;
	pthread_mutex_t mutex[SMART_LOCK_COUNT];
	struct ycsb_nodes *nodes; /* NULL: this process's memory */
	uint64_t tree;            /* id, 0: not yet made */
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

static void
real_run(struct ycsb_cluster *cluster, unsigned int clients, ycsb_body body, void *argument)
{
	for (unsigned int i = 0; i < clients; i++)
	{
		struct real_client *client = (struct real_client *) cluster->client[i];

		client->body = body;
		client->argument = argument;
		if (pthread_create(&client->thread, NULL, thread_main, client) != 0)
		{
			perror("ycsb: a thread");
			exit(1);
		}
	}
	for (unsigned int i = 0; i < clients; i++)
		pthread_join(((struct real_client *) cluster->client[i])->thread, NULL);
}

static void
real_cache_use(struct ycsb_cluster *cluster, uint64_t *hits, uint64_t *misses)
{
	struct real_cluster *real = (struct real_cluster *) cluster;
	struct smart_cache_stat stat = {0};

	if (real->compute.cache != NULL)
		smart_cache_stat(real->compute.cache, &stat);
	*hits = stat.hits;
	*misses = stat.misses;
}

/* ---- closing ---- */

static struct smart_space *
space_of(struct real_cluster *real)
{
	return &((struct real_client *) real->cluster.client[0])->smart->space;
}

static void
close_client(struct real_client *client)
{
	if (client->client.tree != NULL)
		smart_tree_close(client->client.tree);
	if (client->smart != NULL)
		smart_client_close(client->smart);
	free(client);
}

static void
real_close(struct ycsb_cluster *cluster)
{
	struct real_cluster *real = (struct real_cluster *) cluster;

	if (real->tree != 0)
		smart_space_drop_tree(space_of(real), real->tree);
	if (real->tree != 0 && real->nodes != NULL)
		ycsb_nodes_settle(real->nodes, space_of(real));
	for (unsigned int i = 0; i < cluster->clients; i++)
		close_client((struct real_client *) cluster->client[i]);
	free(cluster->client);
	if (real->nodes != NULL)
		ycsb_nodes_close(real->nodes);
	free(real->nodes);
	if (real->region.mapped > 0)
	{
		smart_region_unmap(&real->region);
		close(real->region.fd);
	}
	for (unsigned int i = 0; i < SMART_LOCK_COUNT; i++)
		pthread_mutex_destroy(&real->mutex[i]);
	free(real->compute.epoch);
	free(real->compute.interlock);
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

static void *
allocate_shared(size_t bytes)
{
	return aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
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
open_compute_node(struct real_cluster *real)
{
	const struct ycsb_options *options = real->options;
	struct smart_compute *compute = &real->compute;
	bool remote = real->nodes != NULL;
	bool caches = remote && options->cache_bytes > 0;

	compute->region = &real->region;
	compute->locks = &real->locks;
	if (remote)
		compute->remote = &real->nodes->remote;
	compute->epoch = allocate_shared(smart_epoch_size(options->clients));
	compute->interlock = allocate_shared(smart_interlock_size(options->clients));
	if (caches)
		compute->cache = allocate_shared(smart_cache_size(options->cache_bytes, options->clients));
	if (remote)
		compute->leaf_locks = calloc(1, sizeof(*compute->leaf_locks));
	if (compute->epoch == NULL || compute->interlock == NULL || (caches && compute->cache == NULL) ||
		(remote && compute->leaf_locks == NULL))
		return complain("shared memory", SMART_NO_MEMORY);
	smart_epoch_init(compute->epoch, options->clients, 0);
	smart_interlock_init(compute->interlock, options->clients);
	if (caches)
		smart_cache_init(compute->cache, options->cache_bytes, options->clients, options->seed);
	return true;
}

static bool
open_client(struct real_cluster *real, unsigned int number)
{
	struct real_client *client = calloc(1, sizeof(*client));
	smart_status status;

	if (client == NULL)
		return complain("a client", SMART_NO_MEMORY);
	real->cluster.client[real->cluster.clients++] = &client->client;
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

/* The first client makes the tree, and all open it. */
static bool
open_tree(struct real_cluster *real)
{
	static const struct smart_tree_owner owner = {.backend = -1};
	fabric_address root;
	smart_status status = smart_space_create_tree(space_of(real), &owner, &real->tree, &root);

	if (status != SMART_OK)
		return complain("making a tree", status);
	for (unsigned int i = 0; i < real->cluster.clients; i++)
	{
		struct real_client *client = (struct real_client *) real->cluster.client[i];
		struct smart_tree_options options = ycsb_tree_options(real->options, 1, i);

		options.id = real->tree;
		options.root = root;
		status = smart_tree_open(client->client.fabric, &client->env.env, &client->smart->services, &options,
								 &client->client.tree);
		if (status != SMART_OK)
			return complain("opening a tree", status);
	}
	return true;
}

static bool
open_nodes(struct real_cluster *real, uint64_t incarnation)
{
	real->nodes = calloc(1, sizeof(*real->nodes));
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

	real->cluster.client = calloc(real->options->clients, sizeof(*real->cluster.client));
	if (real->cluster.client == NULL)
		return complain("clients", SMART_NO_MEMORY);
	if (!open_region(real, incarnation) || (remote && !open_nodes(real, incarnation)) || !open_compute_node(real))
		return false;
	for (unsigned int i = 0; i < real->options->clients; i++)
	{
		if (!open_client(real, i))
			return false;
	}
	if (remote && !ycsb_nodes_add(real->nodes, space_of(real)))
		return false;
	return open_tree(real);
}

struct ycsb_cluster *
ycsb_real_open(const struct ycsb_options *options)
{
	struct real_cluster *real = calloc(1, sizeof(*real));

	if (real == NULL)
	{
		complain("the compute node", SMART_NO_MEMORY);
		return NULL;
	}
	real->options = options;
	real->cluster.run = real_run;
	real->cluster.cache_use = real_cache_use;
	real->cluster.close = real_close;
	real->locks = (struct smart_lock_table){.acquire = mutex_acquire, .release = mutex_release};
	for (unsigned int i = 0; i < SMART_LOCK_COUNT; i++)
		pthread_mutex_init(&real->mutex[i], NULL);
	/* Not by --seed: two runs are not one incarnation. */
	ycsb_env_init(&real->env, 0);
	real->env.random = real->env.env.now_ns(&real->env.env) ^ ((uint64_t) getpid() << 48);
	if (open_all(real))
		return &real->cluster;
	real_close(&real->cluster);
	return NULL;
}

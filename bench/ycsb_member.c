/*
 * ycsb_member.c
 *	  One process of a real cluster.
 *
 * A compute node is made as a server makes it, of src/compute's region or book,
 * epochs, space, and cache; the locks are mutexes.  Several of them share the
 * book, the epochs and the lease, since a memory node lets one owner in at a
 * time; what belongs to a compute node on the paths that are measured is its
 * own: cache, local leaf locks, connections.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "compute/book.h"
#include "ycsb_member.h"
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

/* ---- locks ---- */

static pthread_mutex_t *
mutex_of(struct smart_lock_table *table, unsigned int lock)
{
	smart_assert(lock < SMART_LOCK_COUNT);
	return &((struct ycsb_member *) (void *) ((char *) table - offsetof(struct ycsb_member, locks)))->mutex[lock];
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
is_mine(const struct ycsb_member *member, unsigned int client)
{
	return client % member->options->compute_nodes == member->self;
}

void
ycsb_member_run(struct ycsb_member *member, unsigned int clients, ycsb_body body, void *argument)
{
	for (unsigned int i = 0; i < clients; i++)
	{
		struct real_client *client = (struct real_client *) member->client[i];

		if (!is_mine(member, i))
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
		if (is_mine(member, i))
			pthread_join(((struct real_client *) member->client[i])->thread, NULL);
	}
}

void
ycsb_member_cache_use(struct ycsb_member *member, struct ycsb_cache_use *use)
{
	struct smart_cache_stat stat = {0};

	if (member->compute.cache != NULL)
		smart_cache_stat(member->compute.cache, &stat);
	*use = (struct ycsb_cache_use){.hits = 0};
	ycsb_cache_use_add(use, &stat);
}

/* ---- closing ---- */

/* Of the process's first client. */
struct smart_space *
ycsb_member_space(struct ycsb_member *member)
{
	return &((struct real_client *) member->client[member->self])->smart->space;
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

void
ycsb_member_close(struct ycsb_member *member)
{
	for (unsigned int i = 0; member->client != NULL && i < member->clients; i++)
		close_client((struct real_client *) member->client[i]);
	free(member->client);
	free(member->compute.leaf_locks);
	free(member->compute.cache);
	free(member->compute.rdwc);
}

void
ycsb_member_release(struct ycsb_member *member)
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

/* ---- opening ---- */

bool
ycsb_complain(const char *what, smart_status status)
{
	fprintf(stderr, "ycsb: %s: %s\n", what, smart_status_text(status));
	return false;
}

/* A region for the tree's blocks, or a book of those that are elsewhere. */
static bool
open_region(struct ycsb_member *member, uint64_t incarnation)
{
	const struct ycsb_options *options = member->options;
	bool book = options->nodes != NULL;
	uint64_t bytes = (options->keys + options->operations) * BYTES_A_KEY + BYTES_MORE;
	int fd = memfd_create("ycsb", MFD_CLOEXEC);
	smart_status status;

	if (fd < 0)
	{
		perror("ycsb: memfd_create");
		return false;
	}
	status = book ? smart_book_map(&member->region, fd) : smart_region_map(&member->region, fd, bytes);
	if (status != SMART_OK)
	{
		close(fd);
		return ycsb_complain("mapping memory", status);
	}
	status = smart_region_format(&member->region, incarnation);
	return status == SMART_OK || ycsb_complain("making a region", status);
}

static bool
open_locks(struct ycsb_member *member)
{
	pthread_mutexattr_t attributes;

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

static bool
open_nodes(struct ycsb_member *member, uint64_t incarnation)
{
	member->nodes = ycsb_shared_allocate(member->shared, sizeof(*member->nodes));
	if (member->nodes == NULL)
		return ycsb_complain("memory nodes", SMART_NO_MEMORY);
	return ycsb_nodes_open(member->nodes, member->options, &member->env.env, incarnation);
}

/* What all compute nodes share. */
static bool
open_compute_nodes(struct ycsb_member *member)
{
	struct smart_compute *compute = &member->compute;
	unsigned int clients = member->clients;

	compute->region = &member->region;
	compute->locks = &member->locks;
	if (member->nodes != NULL)
		compute->remote = &member->nodes->remote;
	compute->epoch = ycsb_shared_allocate(member->shared, smart_epoch_size(clients));
	compute->interlock = ycsb_shared_allocate(member->shared, smart_interlock_size(clients));
	if (compute->epoch == NULL || compute->interlock == NULL)
		return ycsb_complain("shared memory", SMART_NO_MEMORY);
	smart_epoch_init(compute->epoch, clients, 0);
	smart_interlock_init(compute->interlock, clients);
	return true;
}

static void *
allocate_table(size_t bytes)
{
	return aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

/* What one has for itself. */
static bool
open_compute_node(struct ycsb_member *member)
{
	const struct ycsb_options *options = member->options;
	struct smart_compute *compute = &member->compute;
	unsigned int clients = member->clients;
	bool caches = options->cache_bytes > 0;

	if (member->nodes == NULL)
		return true;
	compute->leaf_locks = calloc(1, sizeof(*compute->leaf_locks));
	if (caches)
		compute->cache = allocate_table(smart_cache_size(options->cache_bytes, clients));
	if (options->rdwc)
		compute->rdwc = allocate_table(smart_rdwc_size(SMART_RDWC_PLACES, clients));
	if (compute->leaf_locks == NULL || (caches && compute->cache == NULL) || (options->rdwc && compute->rdwc == NULL))
		return ycsb_complain("a compute node", SMART_NO_MEMORY);
	if (caches)
		smart_cache_init(compute->cache, options->cache_bytes, clients, options->seed + member->self);
	if (options->rdwc)
		smart_rdwc_init(compute->rdwc, SMART_RDWC_PLACES, clients);
	return true;
}

static bool
open_client(struct ycsb_member *member, unsigned int number)
{
	struct real_client *client = calloc(1, sizeof(*client));
	smart_status status;

	if (client == NULL)
		return ycsb_complain("a client", SMART_NO_MEMORY);
	member->client[number] = &client->client;
	ycsb_env_init(&client->env, ycsb_mix(member->options->seed) ^ ycsb_mix(number + 1));
	status = smart_client_open(&member->compute, &client->env.env, number + 1, &client->smart);
	if (status != SMART_OK)
		return ycsb_complain("a client", status);
	smart_client_set_offload(client->smart, member->options->offload);
	client->client = (struct ycsb_client){.cluster = member->cluster,
										  .number = number,
										  .env = &client->env.env,
										  .fabric = client->smart->fabric};
	return true;
}

bool
ycsb_member_open(struct ycsb_member *member)
{
	if (!open_compute_node(member))
		return false;
	for (unsigned int i = 0; i < member->clients; i++)
	{
		if (is_mine(member, i) && !open_client(member, i))
			return false;
	}
	return true;
}

bool
ycsb_member_open_tree(struct ycsb_member *member, uint64_t tree, fabric_address root)
{
	for (unsigned int i = 0; i < member->clients; i++)
	{
		struct real_client *client = (struct real_client *) member->client[i];
		struct smart_tree_options options = ycsb_tree_options(member->options, member->self + 1, i);
		smart_status status;

		if (client == NULL)
			continue;
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
ycsb_member_bytes(const struct ycsb_options *options)
{
	unsigned int clients = options->clients * options->compute_nodes;

	return smart_epoch_size(clients) + smart_interlock_size(clients) + SMART_LOCK_COUNT * sizeof(pthread_mutex_t) +
		   sizeof(struct ycsb_nodes) + 4 * ALIGNMENT;
}

bool
ycsb_member_prepare(struct ycsb_member *member)
{
	uint64_t incarnation; /* the book's, which no other run may have */

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
	if (member->options->nodes != NULL && !open_nodes(member, incarnation))
		return false;
	return open_compute_nodes(member);
}

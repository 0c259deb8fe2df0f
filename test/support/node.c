/*
 * node.c
 *	  A compute node on a region in memory, for tests.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/node.h"

static void
must(bool condition, const char *what)
{
	if (condition)
		return;
	perror(what);
	abort();
}

static void *
must_allocate(size_t bytes)
{
	void *memory = aligned_alloc(128, (bytes + 127) / 128 * 128);

	must(memory != NULL, "aligned_alloc");
	memset(memory, 0, bytes);
	return memory;
}

static struct test_node *
node_of(struct smart_lock_table *table)
{
	return (struct test_node *) ((char *) table - offsetof(struct test_node, locks));
}

static void
mutex_acquire(struct smart_lock_table *table, unsigned int lock)
{
	must(lock < SMART_LOCK_COUNT && pthread_mutex_lock(&node_of(table)->mutex[lock]) == 0, "pthread_mutex_lock");
}

static void
mutex_release(struct smart_lock_table *table, unsigned int lock)
{
	must(pthread_mutex_unlock(&node_of(table)->mutex[lock]) == 0, "pthread_mutex_unlock");
}

struct test_node *
test_node_open(unsigned int clients, uint64_t max_size)
{
	struct test_node *node = must_allocate(sizeof(*node));
	pthread_mutexattr_t checked;
	int fd = memfd_create("region", MFD_CLOEXEC);

	must(fd >= 0, "memfd_create");
	must(smart_region_map(&node->region, fd, max_size) == SMART_OK, "smart_region_map");
	must(smart_region_format(&node->region, UINT64_C(0x5eed5eed5eed5eed)) == SMART_OK, "smart_region_format");
	pthread_mutexattr_init(&checked);
	pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
	for (unsigned int i = 0; i < SMART_LOCK_COUNT; i++)
		pthread_mutex_init(&node->mutex[i], &checked);
	node->locks.acquire = mutex_acquire;
	node->locks.release = mutex_release;
	node->compute.region = &node->region;
	node->compute.locks = &node->locks;
	node->compute.epoch = must_allocate(smart_epoch_size(clients));
	smart_epoch_init(node->compute.epoch, clients, 0);
	node->compute.interlock = must_allocate(smart_interlock_size(clients));
	smart_interlock_init(node->compute.interlock, clients);
	return node;
}

void
test_node_close(struct test_node *node)
{
	for (unsigned int i = 0; i < SMART_LOCK_COUNT; i++)
		pthread_mutex_destroy(&node->mutex[i]);
	smart_region_unmap(&node->region);
	close(node->region.fd);
	free(node->compute.epoch);
	free(node->compute.interlock);
	free(node);
}

struct test_client *
test_client_open(struct test_node *node, uint64_t seed)
{
	static uint64_t owners;
	struct test_client *client = must_allocate(sizeof(*client));

	env_thread_init(&client->thread, seed);
	must(smart_client_open(&node->compute, &client->thread.env, __atomic_add_fetch(&owners, 1, __ATOMIC_RELAXED),
						   &client->client) == SMART_OK,
		 "smart_client_open");
	return client;
}

void
test_client_close(struct test_client *client)
{
	smart_client_close(client->client);
	must(client->thread.allocations == 0, "a client leaked memory");
	free(client);
}

uint64_t
test_tree_create(struct test_client *client, fabric_address *root)
{
	static const struct smart_tree_owner owner = {.backend = -1};
	uint64_t id;

	must(smart_space_create_tree(&client->client->space, &owner, &id, root) == SMART_OK, "smart_space_create_tree");
	return id;
}

/*
 * node.c
 *	  A compute node on a region, or with an extent map, in memory, for tests.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "compute/allocate/extents.h"
#include "support/node.h"
#include "support/must.h"

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

/* All but the region. */
static struct test_node *
open_shared(unsigned int clients)
{
	struct test_node *node = must_allocate(sizeof(*node));
	pthread_mutexattr_t checked;

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
	node->compute.pins = must_allocate(smart_pins_size(clients));
	smart_pins_init(node->compute.pins, clients);
	return node;
}

static int
memory_file(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	must(fd >= 0, "memfd_create");
	return fd;
}

struct test_node *
test_node_open(unsigned int clients, uint64_t max_size)
{
	struct test_node *node = open_shared(clients);

	must(smart_region_map(&node->region, memory_file("region"), max_size) == SMART_OK, "smart_region_map");
	must(smart_region_format(&node->region, UINT64_C(0x5eed5eed5eed5eed)) == SMART_OK, "smart_region_format");
	return node;
}

struct test_node *
test_book_open(unsigned int clients, unsigned int nodes, uint32_t chunks)
{
	struct test_node *node = open_shared(clients);
	struct test_client *client;
	unsigned int number;

	must(smart_extent_map(&node->region, memory_file("extent map")) == SMART_OK, "smart_extent_map");
	must(smart_region_format(&node->region, UINT64_C(0x5eed5eed5eed5eed)) == SMART_OK, "smart_region_format");
	node->memory = test_memory_open(nodes, chunks);
	client = test_client_open(node, 1);
	for (unsigned int i = 0; i < nodes; i++)
	{
		must(smart_extents_add_node(&client->client->space, node->memory->node[i].incarnation, &number) == SMART_OK &&
				 number == i,
			 "smart_extents_add_node");
		smart_extents_set_room(&client->client->space, i, chunks - 1, chunks - 1);
	}
	test_client_close(client);
	return node;
}

void
test_node_close(struct test_node *node)
{
	for (unsigned int i = 0; i < SMART_LOCK_COUNT; i++)
		pthread_mutex_destroy(&node->mutex[i]);
	smart_region_unmap(&node->region);
	close(node->region.fd);
	if (node->memory != NULL)
		test_memory_close(node->memory);
	free(node->compute.epoch);
	free(node->compute.pins);
	free(node);
}

/* As smart_client_open, on memory nodes of this process. */
static struct smart_client *
open_on_memory(struct test_node *node, struct smart_env *env, uint64_t owner)
{
	struct smart_client *client = env->allocate(env, sizeof(*client));

	must(client != NULL, "allocate");
	memset(client, 0, sizeof(*client));
	client->env = env;
	client->compute = &node->compute;
	smart_services_init(&client->services);
	client->number = smart_epoch_claim(node->compute.epoch, owner);
	must(client->number != SMART_CLIENT_NONE, "smart_epoch_claim");
	client->fabric = test_memory_fabric(node->memory, env);
	test_memory_supply(node->memory, env, client->fabric, &client->supply);
	smart_space_open(&client->space, &node->region, node->compute.epoch, &node->locks, &client->supply);
	return client;
}

struct test_client *
test_client_open(struct test_node *node, uint64_t seed)
{
	static uint64_t owners;
	struct test_client *client = must_allocate(sizeof(*client));
	uint64_t owner = __atomic_add_fetch(&owners, 1, __ATOMIC_RELAXED);

	client->node = node;
	env_thread_init(&client->thread, seed);
	if (node->memory != NULL)
		client->client = open_on_memory(node, &client->thread.env, owner);
	else
		must(smart_client_open(&node->compute, &client->thread.env, owner, &client->client) == SMART_OK,
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

void *
test_node_at(const struct test_node *node, fabric_address address)
{
	return node->memory != NULL ? test_memory_at(node->memory, address) : node->region.base + fabric_offset(address);
}

unsigned int
test_work_off_duties(struct test_client *client)
{
	struct smart_space *space = &client->client->space;
	struct test_memory *memory = client->node->memory;
	struct smart_pending_free pending;
	unsigned int left = 0;

	for (unsigned int i = 0; i < memory->count; i++)
	{
		bool told = true;

		while (told && smart_pending_next(space, i, &pending))
		{
			must(pending.node == i && pending.incarnation == memory->node[i].incarnation,
				 "a pending free of another node");
			told = pending.kind == SMART_PENDING_GIVE_CHUNK ? test_memory_give_chunk(memory, i, pending.chunk)
															: test_memory_drop_tree(memory, i, pending.tree);
			if (told)
				smart_pending_done(space, &pending);
		}
		left += !told;
	}
	return left;
}

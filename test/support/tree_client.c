/*
 * tree_client.c
 *	  A handle on a tree, for tests.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/tree_client.h"

static struct tree_client *
client_of(struct smart_services *services)
{
	return (struct tree_client *) services;
}

static struct smart_services *
real_of(struct smart_services *services)
{
	return &client_of(services)->client->client->services;
}

static smart_status
hand_on_allocate(struct smart_services *services, uint64_t tree, smart_class class, fabric_address *block)
{
	struct tree_client *client = client_of(services);

	if (client->fail_one_in != 0 && test_random(&client->random_state) % client->fail_one_in == 0)
		return SMART_NO_SPACE;
	return real_of(services)->allocate(real_of(services), tree, class, block);
}

static void
hand_on_retire(struct smart_services *services, uint64_t tree, smart_class class, fabric_address block)
{
	real_of(services)->retire(real_of(services), tree, class, block);
}

static void
hand_on_enter(struct smart_services *services)
{
	real_of(services)->enter(real_of(services));
}

static void
hand_on_leave(struct smart_services *services)
{
	real_of(services)->leave(real_of(services));
}

static uint64_t
hand_on_moment(struct smart_services *services)
{
	return real_of(services)->moment(real_of(services));
}

static smart_status
hand_on_lock(struct smart_services *services, fabric_address leaf)
{
	return client_of(services)->no_local_locks ? SMART_OK : real_of(services)->lock_leaf(real_of(services), leaf);
}

static void
hand_on_unlock(struct smart_services *services, fabric_address leaf)
{
	if (!client_of(services)->no_local_locks)
		real_of(services)->unlock_leaf(real_of(services), leaf);
}

static bool
hand_on_try_lock(struct smart_services *services, fabric_address leaf)
{
	return client_of(services)->no_local_locks || real_of(services)->try_lock_leaf(real_of(services), leaf);
}

/* Over verbs the client has what its compute node has. */
static void
init_services(struct tree_client *client, bool verbs)
{
	struct smart_client *real = client->client->client;

	if (verbs && real->compute->cache != NULL)
		smart_cache_services_init(&client->services, real->compute->cache, real->number);
	if (verbs && real->compute->rdwc != NULL)
		smart_rdwc_services_init(&client->services, &real->member);
	client->services.allocate = hand_on_allocate;
	client->services.retire = hand_on_retire;
	client->services.enter = hand_on_enter;
	client->services.leave = hand_on_leave;
	client->services.moment = hand_on_moment;
	client->services.lock_leaf = hand_on_lock;
	client->services.unlock_leaf = hand_on_unlock;
	client->services.try_lock_leaf = real->services.try_lock_leaf == NULL ? NULL : hand_on_try_lock;
}

/* The simulated fabric takes no time. */
static uint64_t
standing_now_ns(struct smart_env *env)
{
	return 1;
}

static void
never_yield(void *argument)
{
}

static uint64_t
next_random(void *argument)
{
	return test_random(argument);
}

static struct fabric *
open_verbs(struct tree_client *client, const struct smart_region *region)
{
	client->memory = (struct sim_memory){.nodes = 1,
										 .bytes = smart_region_size((void *) (uintptr_t) region),
										 .base = {region->base}};
	client->control =
		(struct sim_control){.yield = never_yield, .random = next_random, .argument = &client->random_state};
	return sim_fabric_init(&client->sim, &client->memory, &client->control, false);
}

struct tree_client *
tree_client_open(struct test_node *node, const struct smart_tree_options *options, bool verbs, uint64_t seed)
{
	struct tree_client *client = calloc(1, sizeof(*client));
	struct fabric *fabric;

	if (client == NULL)
		abort();
	client->client = test_client_open(node, seed);
	client->random_state = seed;
	init_services(client, verbs);
	fabric = verbs ? open_verbs(client, &node->region) : client->client->client->fabric;
	if (verbs)
		client->client->thread.env.now_ns = standing_now_ns;
	if (smart_tree_open(fabric, &client->client->thread.env, &client->services, options, &client->tree) != SMART_OK)
	{
		fprintf(stderr, "a handle could not be opened\n");
		abort();
	}
	return client;
}

void
tree_client_close(struct tree_client *client)
{
	smart_tree_close(client->tree);
	test_client_close(client->client);
	free(client);
}

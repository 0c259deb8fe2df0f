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
hand_on_find(struct smart_services *services, uint64_t tree, smart_slot slot, uint64_t *words)
{
	return real_of(services)->cache_find(real_of(services), tree, slot, words);
}

static void
hand_on_store(struct smart_services *services, uint64_t tree, smart_slot slot, const uint64_t *words)
{
	real_of(services)->cache_store(real_of(services), tree, slot, words);
}

static void
hand_on_update(struct smart_services *services, uint64_t tree, smart_slot slot, unsigned int index, uint64_t from,
			   uint64_t to)
{
	real_of(services)->cache_update(real_of(services), tree, slot, index, from, to);
}

static void
hand_on_drop(struct smart_services *services, uint64_t tree, smart_slot slot)
{
	real_of(services)->cache_drop(real_of(services), tree, slot);
}

static smart_status
hand_on_begin(struct smart_services *services, fabric_address leaf, uint8_t *buffer, uint32_t length,
			  enum smart_delegation *delegation)
{
	return real_of(services)->read_begin(real_of(services), leaf, buffer, length, delegation);
}

static void
hand_on_end(struct smart_services *services, const uint8_t *copy, uint32_t length)
{
	real_of(services)->read_end(real_of(services), copy, length);
}

static smart_status
hand_on_combine(struct smart_services *services, fabric_address leaf, const struct smart_handed *entry,
				enum smart_combined *combined)
{
	return real_of(services)->lock_or_combine(real_of(services), leaf, entry, combined);
}

static unsigned int
hand_on_take(struct smart_services *services, fabric_address leaf, uint64_t tree, struct smart_handed *entries,
			 unsigned int most)
{
	return real_of(services)->take_handed(real_of(services), leaf, tree, entries, most);
}

static void
hand_on_settle(struct smart_services *services, const struct smart_handed *entry, enum smart_combined combined)
{
	real_of(services)->tell_handed(real_of(services), entry, combined);
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

static bool
hand_on_find_answer(struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length,
					struct smart_result *cached)
{
	return real_of(services)->find_result(real_of(services), tree, point, length, cached);
}

static void
hand_on_keep_answer(struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length,
					const struct smart_result *cached)
{
	real_of(services)->keep_result(real_of(services), tree, point, length, cached);
}

static struct smart_blocked
hand_on_block(struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length)
{
	return real_of(services)->block_point(real_of(services), tree, point, length);
}

static uint64_t
hand_on_unblock(struct smart_services *services, const struct smart_blocked *blocked)
{
	return real_of(services)->unblock_point(real_of(services), blocked);
}

static bool
hand_on_find_hint(struct smart_services *services, smart_slot leaf, struct smart_leaf_hint *hint)
{
	return real_of(services)->find_hint(real_of(services), leaf, hint);
}

static void
hand_on_keep_hint(struct smart_services *services, smart_slot leaf, const struct smart_leaf_hint *hint, uint64_t ticket,
				  bool hot)
{
	real_of(services)->keep_hint(real_of(services), leaf, hint, ticket, hot);
}

static struct smart_blocked
hand_on_block_hint(struct smart_services *services, smart_slot leaf)
{
	return real_of(services)->block_hint(real_of(services), leaf);
}

static struct fabric *
open_verbs(struct tree_client *client, const struct smart_region *region)
{
	client->memory = (struct sim_memory){.nodes = 1,
										 .bytes = smart_region_size((void *) (uintptr_t) region),
										 .base = {region->base}};
	client->control =
		(struct sim_control){.yield = never_yield, .random = next_random, .argument = &client->random_state};
	if (client->client->node->compute.cache != NULL)
	{
		client->services.cache_find = hand_on_find;
		client->services.cache_store = hand_on_store;
		client->services.cache_update = hand_on_update;
		client->services.cache_drop = hand_on_drop;
		client->services.find_result = hand_on_find_answer;
		client->services.keep_result = hand_on_keep_answer;
		client->services.block_point = hand_on_block;
		client->services.unblock_point = hand_on_unblock;
		client->services.find_hint = hand_on_find_hint;
		client->services.keep_hint = hand_on_keep_hint;
		client->services.block_hint = hand_on_block_hint;
	}
	if (client->client->node->compute.rdwc != NULL)
	{
		client->services.read_begin = hand_on_begin;
		client->services.read_end = hand_on_end;
		client->services.lock_or_combine = hand_on_combine;
		client->services.take_handed = hand_on_take;
		client->services.tell_handed = hand_on_settle;
	}
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
	client->services = (struct smart_services){
		.allocate = hand_on_allocate,
		.retire = hand_on_retire,
		.enter = hand_on_enter,
		.leave = hand_on_leave,
		.moment = hand_on_moment,
		.lock_leaf = hand_on_lock,
		.unlock_leaf = hand_on_unlock,
	};
	fabric = verbs ? open_verbs(client, &node->region) : client->client->client->fabric;
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

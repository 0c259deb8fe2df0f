/*
 * services.c
 *	  What the tree asks of its compute node, for a client of this one.
 */
#include "base/assert.h"
#include "compute/client.h"

static inline struct smart_client *
client_of(struct smart_services *services)
{
	return (struct smart_client *) services;
}

static smart_status
service_allocate(struct smart_services *services, uint64_t tree, smart_class class, fabric_address *block)
{
	return smart_space_allocate(&client_of(services)->space, tree, class, block);
}

static void
service_retire(struct smart_services *services, uint64_t tree, smart_class class, fabric_address block)
{
	smart_space_retire(&client_of(services)->space, tree, class, block);
}

static void
service_enter(struct smart_services *services)
{
	smart_epoch_enter(client_of(services)->compute->epoch, client_of(services)->number);
}

static void
service_leave(struct smart_services *services)
{
	smart_epoch_leave(client_of(services)->compute->epoch, client_of(services)->number);
}

static inline unsigned int
leaf_lock(fabric_address leaf)
{
	smart_assert(leaf != 0 && leaf % SMART_UNIT == 0);
	/* Leaves that lie side by side are written by one bulk of inserts: spread them. */
	return (unsigned int) ((leaf / SMART_UNIT * UINT64_C(0x9e3779b97f4a7c15)) >> 54);
}

_Static_assert(SMART_LOCK_LEAVES == 1u << 10, "a leaf's lock is chosen by 10 bits of its hash");

/* Where the tree is at hand, the holder appends to one leaf and lets go: the wait is short and needs no interrupt. */
static smart_status
service_lock_leaf(struct smart_services *services, fabric_address leaf)
{
	struct smart_lock_table *locks = client_of(services)->compute->locks;

	locks->acquire(locks, SMART_LOCK_LEAF(leaf_lock(leaf)));
	return SMART_OK;
}

static void
service_unlock_leaf(struct smart_services *services, fabric_address leaf)
{
	struct smart_lock_table *locks = client_of(services)->compute->locks;

	locks->release(locks, SMART_LOCK_LEAF(leaf_lock(leaf)));
}

/* A holder reads the leaf and publishes, and each may take its whole time limit. */
static smart_status
service_lock_remote_leaf(struct smart_services *services, fabric_address leaf)
{
	struct smart_client *client = client_of(services);

	return smart_leaf_lock_take(client->compute->leaf_locks, leaf_lock(leaf), client->number, client->env,
								2 * client->supply.supply.timeout_ms);
}

static void
service_unlock_remote_leaf(struct smart_services *services, fabric_address leaf)
{
	struct smart_client *client = client_of(services);

	smart_leaf_lock_drop(client->compute->leaf_locks, leaf_lock(leaf), client->number);
}

static bool
service_cache_find(struct smart_services *services, uint64_t tree, smart_slot slot, uint64_t *words)
{
	return smart_cache_find(client_of(services)->compute->cache, client_of(services)->number, tree, slot, words);
}

static void
service_cache_store(struct smart_services *services, uint64_t tree, smart_slot slot, const uint64_t *words)
{
	smart_cache_store(client_of(services)->compute->cache, client_of(services)->number, tree, slot, words);
}

static void
service_cache_update(struct smart_services *services, uint64_t tree, smart_slot slot, unsigned int index, uint64_t from,
					 uint64_t to)
{
	smart_cache_update(client_of(services)->compute->cache, client_of(services)->number, tree, slot, index, from, to);
}

static void
service_cache_drop(struct smart_services *services, uint64_t tree, smart_slot slot)
{
	smart_cache_drop(client_of(services)->compute->cache, client_of(services)->number, tree, slot);
}

void
smart_services_init(struct smart_services *services)
{
	*services = (struct smart_services){
		.allocate = service_allocate,
		.retire = service_retire,
		.enter = service_enter,
		.leave = service_leave,
		.lock_leaf = service_lock_leaf,
		.unlock_leaf = service_unlock_leaf,
	};
	if (client_of(services)->compute->leaf_locks != NULL)
	{
		services->lock_leaf = service_lock_remote_leaf;
		services->unlock_leaf = service_unlock_remote_leaf;
	}
	if (client_of(services)->compute->cache == NULL)
		return;
	services->cache_find = service_cache_find;
	services->cache_store = service_cache_store;
	services->cache_update = service_cache_update;
	services->cache_drop = service_cache_drop;
}

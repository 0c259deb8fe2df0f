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
	/* Leaves that lie side by side are written by one bulk of inserts: spread them. */
	return SMART_LOCK_LEAF((leaf / SMART_UNIT * UINT64_C(0x9e3779b97f4a7c15)) >> 54);
}

_Static_assert(SMART_LOCK_LEAVES == 1u << 10, "a leaf's lock is chosen by 10 bits of its hash");

/* The holder appends to one leaf and lets go, so the wait is short and needs no interrupt. */
static smart_status
service_lock_leaf(struct smart_services *services, fabric_address leaf)
{
	struct smart_lock_table *locks = client_of(services)->compute->locks;

	smart_assert(leaf != 0 && leaf % SMART_UNIT == 0);
	locks->acquire(locks, leaf_lock(leaf));
	return SMART_OK;
}

static void
service_unlock_leaf(struct smart_services *services, fabric_address leaf)
{
	struct smart_lock_table *locks = client_of(services)->compute->locks;

	locks->release(locks, leaf_lock(leaf));
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
	if (client_of(services)->compute->cache == NULL)
		return;
	services->cache_find = service_cache_find;
	services->cache_store = service_cache_store;
	services->cache_drop = service_cache_drop;
}

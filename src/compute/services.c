/*
 * services.c
 *	  What the tree asks of its compute node, for a client of this one.
 */
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

/*
 * E of epoch.c.  What was reachable at E is stamped with E or more when it is retired;
 * and while a client is inside that has found E after it entered, E rises by one at most.
 */
static uint64_t
service_moment(struct smart_services *services)
{
	return smart_epoch_now(client_of(services)->compute->epoch);
}

/* Where the tree is at hand, the holder appends to one leaf and lets go: the wait is short and needs no interrupt. */
static smart_status
service_lock_leaf(struct smart_services *services, fabric_address leaf)
{
	struct smart_lock_table *locks = client_of(services)->compute->locks;

	locks->acquire(locks, SMART_LOCK_LEAF(smart_leaf_lock_of(leaf)));
	return SMART_OK;
}

static void
service_unlock_leaf(struct smart_services *services, fabric_address leaf)
{
	struct smart_lock_table *locks = client_of(services)->compute->locks;

	locks->release(locks, SMART_LOCK_LEAF(smart_leaf_lock_of(leaf)));
}

/* ---- the cache ---- */

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

static bool
service_find_answer(struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length,
					struct smart_answer *answer)
{
	return smart_cache_answer(client_of(services)->compute->cache, client_of(services)->number, tree, point, length,
							  answer);
}

static void
service_keep_answer(struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length,
					const struct smart_answer *answer)
{
	smart_cache_keep_answer(client_of(services)->compute->cache, client_of(services)->number, tree, point, length,
							answer);
}

static struct smart_blocked
service_block_point(struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length)
{
	return smart_cache_block(client_of(services)->compute->cache, client_of(services)->number, tree, point, length);
}

static uint64_t
service_unblock_point(struct smart_services *services, const struct smart_blocked *blocked)
{
	return smart_cache_unblock(client_of(services)->compute->cache, blocked);
}

/* Leaves on memory nodes of other hosts have locks that can be waited for as long as such a node may take. */
static void
init_member(struct smart_client *client)
{
	client->member = (struct smart_rdwc_member){
		.caller = {.rdwc = client->compute->rdwc, .env = client->env, .client = client->number},
		.locks = client->compute->leaf_locks,
		.lock_of = smart_leaf_lock_of,
	};
	smart_rdwc_services_init(&client->services, &client->member);
}

static bool
service_find_stub(struct smart_services *services, smart_slot leaf, struct smart_stub *stub)
{
	return smart_cache_stub(client_of(services)->compute->cache, client_of(services)->number, leaf, stub);
}

static void
service_keep_stub(struct smart_services *services, smart_slot leaf, const struct smart_stub *stub, uint64_t ticket,
				  bool hot)
{
	smart_cache_keep_stub(client_of(services)->compute->cache, client_of(services)->number, leaf, stub, ticket, hot);
}

static struct smart_blocked
service_block_stub(struct smart_services *services, smart_slot leaf)
{
	return smart_cache_block_stub(client_of(services)->compute->cache, client_of(services)->number, leaf);
}

void
smart_services_init(struct smart_services *services)
{
	*services = (struct smart_services){
		.allocate = service_allocate,
		.retire = service_retire,
		.enter = service_enter,
		.leave = service_leave,
		.moment = service_moment,
		.lock_leaf = service_lock_leaf,
		.unlock_leaf = service_unlock_leaf,
	};
	if (client_of(services)->compute->leaf_locks != NULL)
		init_member(client_of(services));
	if (client_of(services)->compute->cache == NULL)
		return;
	services->cache_find = service_cache_find;
	services->cache_store = service_cache_store;
	services->cache_update = service_cache_update;
	services->cache_drop = service_cache_drop;
	services->find_answer = service_find_answer;
	services->keep_answer = service_keep_answer;
	services->block_point = service_block_point;
	services->unblock_point = service_unblock_point;
	services->find_stub = service_find_stub;
	services->keep_stub = service_keep_stub;
	services->block_stub = service_block_stub;
}

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

/*
 * E of epoch.c.  What was reachable at E is stamped with E or more when it is retired;
 * and while a client is inside that has found E after it entered, E rises by one at most.
 */
static uint64_t
service_moment(struct smart_services *services)
{
	return smart_epoch_now(client_of(services)->compute->epoch);
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

/* ---- read delegation and write combining ---- */

static struct smart_rdwc_caller
rdwc_caller(struct smart_client *client)
{
	/* Whom one waits for reads or appends, and may take its whole time limit. */
	return (struct smart_rdwc_caller){.rdwc = client->compute->rdwc,
									  .env = client->env,
									  .client = client->number,
									  .timeout_ms = 2 * client->supply.supply.timeout_ms};
}

static smart_status
service_read_begin(struct smart_services *services, fabric_address leaf, uint8_t *buffer, uint32_t length,
				   enum smart_delegation *delegation)
{
	struct smart_rdwc_caller caller = rdwc_caller(client_of(services));

	*delegation = SMART_READ_ALONE;
	if (client_of(services)->alone)
		return SMART_OK;
	return smart_rdwc_read_begin(&caller, leaf, buffer, length, delegation);
}

static void
service_read_end(struct smart_services *services, const uint8_t *copy, uint32_t length)
{
	struct smart_rdwc_caller caller = rdwc_caller(client_of(services));

	smart_rdwc_read_end(&caller, copy, length);
}

static smart_status
service_lock_or_combine(struct smart_services *services, fabric_address leaf, const struct smart_handed *entry,
						enum smart_combined *combined)
{
	struct smart_rdwc_caller caller = rdwc_caller(client_of(services));

	*combined = SMART_COMBINED_NOT;
	if (client_of(services)->alone)
		return service_lock_remote_leaf(services, leaf);
	return smart_rdwc_lock_or_combine(&caller, client_of(services)->compute->leaf_locks, leaf_lock(leaf), leaf, entry,
									  combined);
}

/* Also who takes no part takes what others have handed in: it costs little. */
static unsigned int
service_take_handed(struct smart_services *services, fabric_address leaf, uint64_t tree, struct smart_handed *entries,
					unsigned int most)
{
	struct smart_rdwc_caller caller = rdwc_caller(client_of(services));

	return smart_rdwc_take(&caller, leaf, tree, entries, most);
}

static void
service_settle_handed(struct smart_services *services, const struct smart_handed *entry, enum smart_combined combined)
{
	struct smart_rdwc_caller caller = rdwc_caller(client_of(services));

	smart_rdwc_settle(&caller, entry, combined);
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
	{
		services->lock_leaf = service_lock_remote_leaf;
		services->unlock_leaf = service_unlock_remote_leaf;
	}
	if (client_of(services)->compute->rdwc != NULL)
	{
		services->read_begin = service_read_begin;
		services->read_end = service_read_end;
		services->lock_or_combine = service_lock_or_combine;
		services->take_handed = service_take_handed;
		services->settle_handed = service_settle_handed;
	}
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
}

/*
 * client.c
 *	  A client of a compute node: opening, closing, and what the tree asks of it.
 */
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "compute/client.h"
#include "rdma/local.h"
#include "rdma/remote/remote.h"

_Static_assert(offsetof(struct smart_client, services) == 0, "client_of() finds the client by its services");

/* ---- what the tree asks of its compute node ---- */

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

static smart_status
service_allocate_spared(struct smart_services *services, uint64_t tree, smart_class class, bool standby,
						fabric_address *block)
{
	return smart_space_allocate_spared(&client_of(services)->space, tree, class,
									   standby ? SMART_SPACE_STANDBY : SMART_SPACE_MEND, block);
}

static smart_status
service_reuse(struct smart_services *services, smart_class class, fabric_address block)
{
	struct smart_client *client = client_of(services);

	smart_assert(class < SMART_CLASSES && block != 0);
	return smart_epoch_await(client->compute->epoch, client->env);
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

/* Where the tree is at hand, the holder appends to one leaf and unlocks: the wait is short and needs no interrupt. */
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

static bool
service_await(struct smart_services *services, smart_status status, uint64_t *since_ns)
{
	return fabric_remote_await(client_of(services)->fabric, status, since_ns);
}

void
smart_services_init(struct smart_services *services)
{
	struct smart_client *client = client_of(services);

	smart_assert(client->compute != NULL && client->env != NULL && client->number != SMART_CLIENT_NONE);
	smart_assert(client->compute->rdwc == NULL || client->compute->leaf_locks != NULL);
	*services = (struct smart_services){
		.allocate = service_allocate,
		.allocate_spared = service_allocate_spared,
		.reuse = service_reuse,
		.retire = service_retire,
		.enter = service_enter,
		.leave = service_leave,
		.moment = service_moment,
		.lock_leaf = service_lock_leaf,
		.unlock_leaf = service_unlock_leaf,
	};
	/* Leaves on memory nodes of other hosts have locks that can be waited for as long as such a node may take. */
	if (client->compute->leaf_locks != NULL)
	{
		client->member = (struct smart_rdwc_member){
			.caller = {.rdwc = client->compute->rdwc, .env = client->env, .client = client->number},
			.locks = client->compute->leaf_locks,
			.lock_of = smart_leaf_lock_of,
		};
		smart_rdwc_services_init(services, &client->member);
	}
	if (client->compute->cache != NULL)
		smart_cache_services_init(services, client->compute->cache, client->number);
}

/* ---- opening and closing ---- */

static uint64_t
region_size(void *region)
{
	return smart_region_size(region);
}

static smart_status
open_embedded(struct smart_client *client)
{
	struct smart_compute *compute = client->compute;
	struct fabric_local_region mapped = {compute->region->base, region_size, compute->region};
	smart_status status = fabric_local_open(client->env, &mapped, 1, &client->fabric);

	if (status == SMART_OK)
		smart_space_open(&client->space, compute->region, compute->epoch, compute->locks, NULL);
	return status;
}

/* A client that has a leaf's lock, or READs for others, READs and then publishes; each may take its whole limit. */
static void
set_waits(struct smart_client *client, uint32_t timeout_ms)
{
	client->member.caller.timeout_ms = 2 * timeout_ms;
}

static smart_status
open_remote(struct smart_client *client)
{
	struct smart_compute *compute = client->compute;
	const struct smart_remote *remote = compute->remote;
	struct fabric_remote_options options = {
		.env = client->env,
		.nodes = remote->nodes,
		.secret = remote->secret,
		.owner = remote->owner,
		.system = remote->system,
		.incarnation = remote->incarnation,
		.client = client->number,
		.pid = (uint32_t) getpid(),
		.timeout_ms = remote->timeout_ms,
	};
	smart_status status = fabric_remote_open(&options, &client->fabric);

	if (status != SMART_OK)
		return status;
	client->services.await = service_await;
	smart_offload_init(&client->offload, SMART_OFFLOAD_AUTO);
	if (compute->cache != NULL)
		client->services.offload = &client->offload;
	smart_remote_supply_init(&client->supply, client->env, client->fabric, remote->timeout_ms);
	set_waits(client, remote->timeout_ms);
	smart_space_open(&client->space, compute->region, compute->epoch, compute->locks, &client->supply);
	return SMART_OK;
}

smart_status
smart_client_open(struct smart_compute *compute, struct smart_env *env, uint64_t owner, struct smart_client **result)
{
	struct smart_client *client = env->allocate(env, sizeof(*client));
	smart_status status = SMART_NO_SPACE;

	smart_assert(owner != 0 && (compute->remote != NULL) == compute->region->extents);
	if (client == NULL)
		return SMART_NO_MEMORY;
	memset(client, 0, sizeof(*client));
	client->env = env;
	client->compute = compute;
	/* The line first: its number is the client's name at the memory nodes. */
	client->number = smart_epoch_claim(compute->epoch, owner);
	if (client->number != SMART_CLIENT_NONE)
	{
		smart_assert(smart_epoch_owner(compute->epoch, client->number) == owner);
		smart_services_init(&client->services);
		status = compute->remote != NULL ? open_remote(client) : open_embedded(client);
		if (status == SMART_OK)
		{
			*result = client;
			return SMART_OK;
		}
		smart_epoch_unclaim(compute->epoch, client->number);
	}
	env->release(env, client);
	return status;
}

void
smart_client_close(struct smart_client *client)
{
	struct smart_env *env = client->env;

	smart_assert(client->number < client->compute->epoch->clients);
	smart_assert(smart_epoch_owner(client->compute->epoch, client->number) != 0);
	(void) smart_pins_leave_all(client->compute->pins, client->number);
	/* The line last: it may be another client's at once, of the same number. */
	client->fabric->provider->close(client->fabric);
	smart_epoch_unclaim(client->compute->epoch, client->number);
	env->release(env, client);
}

void
smart_client_set_offload(struct smart_client *client, enum smart_offload_mode mode)
{
	client->offload.mode = mode;
}

void
smart_client_set_timeout(struct smart_client *client, uint32_t timeout_ms)
{
	if (client->compute->remote == NULL)
		return;
	client->supply.timeout_ms = timeout_ms;
	set_waits(client, timeout_ms);
	fabric_remote_set_timeout(client->fabric, timeout_ms);
}

void
smart_client_set_spread(struct smart_client *client, uint32_t small_pages)
{
	client->space.small_pages = small_pages;
}

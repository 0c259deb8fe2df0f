/*
 * client.c
 *	  Opening and closing a client of a compute node.
 */
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "compute/client.h"
#include "rdma/local.h"
#include "rdma/remote.h"

_Static_assert(offsetof(struct smart_client, services) == 0, "services.c finds the client by its services");

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
		smart_space_open(&client->space, compute->region, 0, compute->epoch, compute->locks);
	return status;
}

/* Who has a leaf's lock, or reads for others, reads the leaf and publishes, and each may take its whole time limit. */
static void
set_waits(struct smart_client *client, uint32_t timeout_ms)
{
	client->member.caller.timeout_ms = 2 * timeout_ms;
}

static bool
await_node(struct smart_services *services, smart_status status, uint64_t *since_ns)
{
	return fabric_remote_await(((struct smart_client *) services)->fabric, status, since_ns);
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
		.incarnation = remote->incarnation,
		.client = client->number,
		.pid = (uint32_t) getpid(),
		.timeout_ms = remote->timeout_ms,
	};
	smart_status status = fabric_remote_open(&options, &client->fabric);

	if (status != SMART_OK)
		return status;
	client->services.await = await_node;
	smart_offload_init(&client->offload, SMART_OFFLOAD_AUTO);
	if (compute->cache != NULL)
		client->services.offload = &client->offload;
	smart_remote_supply_init(&client->supply, client->env, client->fabric, remote->timeout_ms);
	set_waits(client, remote->timeout_ms);
	smart_space_open_book(&client->space, compute->region, compute->epoch, compute->locks, &client->supply);
	return SMART_OK;
}

smart_status
smart_client_open(struct smart_compute *compute, struct smart_env *env, uint64_t owner, struct smart_client **result)
{
	struct smart_client *client = env->allocate(env, sizeof(*client));
	smart_status status = SMART_NO_SPACE;

	smart_assert(owner != 0 && (compute->remote != NULL) == compute->region->book);
	if (client == NULL)
		return SMART_NO_MEMORY;
	memset(client, 0, sizeof(*client));
	client->env = env;
	client->compute = compute;
	/* The line first: its number is the client's name at the memory nodes. */
	client->number = smart_epoch_claim(compute->epoch, owner);
	if (client->number != SMART_CLIENT_NONE)
	{
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
	(void) smart_interlock_leave_all(client->compute->interlock, client->number);
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
smart_client_set_rdwc(struct smart_client *client, bool takes_part)
{
	client->member.alone = !takes_part;
}

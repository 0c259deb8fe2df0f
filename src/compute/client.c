/*
 * client.c
 *	  Opening and closing a client of a compute node.
 */
#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "compute/client.h"
#include "rdma/local.h"

_Static_assert(offsetof(struct smart_client, services) == 0, "services.c finds the client by its services");

static uint64_t
region_size(void *region)
{
	return smart_region_size(region);
}

smart_status
smart_client_open(struct smart_compute *compute, struct smart_env *env, uint64_t owner, struct smart_client **result)
{
	struct fabric_local_region mapped = {compute->region->base, region_size, compute->region};
	struct smart_client *client = env->allocate(env, sizeof(*client));
	smart_status status;

	smart_assert(owner != 0);
	if (client == NULL)
		return SMART_NO_MEMORY;
	memset(client, 0, sizeof(*client));
	client->env = env;
	client->compute = compute;
	smart_services_init(&client->services);
	smart_space_open(&client->space, compute->region, 0, compute->epoch, compute->locks);
	status = fabric_local_open(env, &mapped, 1, &client->fabric);
	if (status == SMART_OK)
	{
		client->number = smart_epoch_claim(compute->epoch, owner);
		if (client->number != SMART_CLIENT_NONE)
		{
			*result = client;
			return SMART_OK;
		}
		client->fabric->provider->close(client->fabric);
		status = SMART_NO_SPACE;
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
	smart_epoch_unclaim(client->compute->epoch, client->number);
	client->fabric->provider->close(client->fabric);
	env->release(env, client);
}

/*
 * node.c
 *	  Opening and closing a memory node on its region.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client.h"
#include "lease.h"
#include "node.h"
#include "rdma/local.h"

uint64_t
memnode_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * UINT64_C(1000000000) + (uint64_t) now.tv_nsec;
}

static void *
env_allocate(struct smart_env *env, size_t bytes)
{
	return malloc(bytes);
}

static void
env_release(struct smart_env *env, void *memory)
{
	free(memory);
}

static uint64_t
region_size(void *argument)
{
	return ((struct memnode *) argument)->region.size;
}

smart_status
memnode_open(struct memnode *node, const struct memnode_region *region, uint32_t transports)
{
	struct fabric_local_region local = {region->base, region_size, node};
	smart_status status;

	memset(node, 0, sizeof(*node));
	node->region = *region;
	node->transports = transports;
	node->started_ns = memnode_now_ns();
	node->env.allocate = env_allocate;
	node->env.release = env_release;
	memnode_chunks_open(&node->chunks, &node->region);
	status = memnode_trees_open(&node->trees, &node->region, &node->chunks);
	if (status != SMART_OK)
		return status;
	status = fabric_local_open(&node->env, &local, 1, &node->fabric);
	if (status != SMART_OK)
	{
		memnode_trees_close(&node->trees);
		return status;
	}
	memnode_lease_recover(node);
	return SMART_OK;
}

void
memnode_close(struct memnode *node)
{
	while (node->clients != NULL)
		memnode_client_end(node->clients, "the node stops");
	node->fabric->provider->close(node->fabric);
	memnode_trees_close(&node->trees);
}

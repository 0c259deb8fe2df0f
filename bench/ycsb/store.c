/*
 * store.c
 *	  Blocks of a simulated cluster's memory nodes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "compute/coordinate/epoch.h"
#include "tree/tree.h"
#include "store.h"

#define PAGE_BYTES 4096
#define SLAB_BYTES (16 * PAGE_BYTES)
#define RING_FIRST 64

bool
ycsb_store_open(struct ycsb_store *store, unsigned int nodes, uint64_t bytes)
{
	smart_slot root = smart_tree_empty_root();

	smart_assert(nodes >= 1 && nodes <= SIM_TIMED_NODES_MAX && bytes > PAGE_BYTES);
	memset(store, 0, sizeof(*store));
	store->bytes = bytes;
	for (; store->nodes < nodes; store->nodes++)
	{
		void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (base == MAP_FAILED)
		{
			ycsb_store_close(store);
			return false;
		}
		store->base[store->nodes] = base;
		store->used[store->nodes] = PAGE_BYTES;
	}
	memcpy(store->base[0] + YCSB_ROOT_OFFSET, &root, sizeof(root));
	return true;
}

void
ycsb_store_close(struct ycsb_store *store)
{
	for (unsigned int node = 0; node < store->nodes; node++)
		munmap(store->base[node], store->bytes);
	for (int class = 0; class < SMART_CLASSES; class ++)
		free(store->pool[class].ring);
}

static void
put(struct ycsb_pool *pool, fabric_address block, uint64_t at)
{
	if (pool->count == pool->size)
	{
		size_t size = pool->size == 0 ? RING_FIRST : 2 * pool->size;
		struct ycsb_retired *ring = malloc(size * sizeof(*ring));

		/* Retiring cannot fail; a benchmark without memory for 16 bytes ends. */
		if (ring == NULL)
		{
			perror("ycsb");
			exit(1);
		}
		for (size_t i = 0; i < pool->count; i++)
			ring[i] = pool->ring[(pool->head + i) % pool->size];
		free(pool->ring);
		pool->ring = ring;
		pool->size = size;
		pool->head = 0;
	}
	smart_assert(pool->count < pool->size && pool->head < pool->size);
	pool->ring[(pool->head + pool->count++) % pool->size] = (struct ycsb_retired){block, at};
}

static bool
take_retired(struct ycsb_store *store, smart_class class, uint64_t epoch, fabric_address *block)
{
	struct ycsb_pool *pool = &store->pool[class];
	struct ycsb_retired first;

	if (pool->count == 0 || pool->ring[pool->head].at + SMART_EPOCH_GRACE > epoch)
		return false;
	first = pool->ring[pool->head];
	smart_assert(first.at <= epoch);
	pool->head = (pool->head + 1) % pool->size;
	pool->count--;
	*block = first.block;
	return true;
}

static bool
make_slab(struct ycsb_store *store, struct ycsb_pool *pool, uint32_t block_bytes)
{
	uint32_t bytes = SLAB_BYTES / block_bytes * block_bytes;

	smart_assert(pool->slab_left == 0 && block_bytes > 0 && block_bytes <= SLAB_BYTES);
	for (unsigned int i = 0; i < store->nodes; i++)
	{
		unsigned int node = store->turn++ % store->nodes;

		if (store->used[node] + SLAB_BYTES > store->bytes)
			continue;
		pool->slab = fabric_make_address(node, store->used[node]);
		pool->slab_left = bytes;
		store->used[node] += SLAB_BYTES;
		smart_assert(store->used[node] <= store->bytes && bytes > 0);
		return true;
	}
	return false;
}

fabric_address
ycsb_store_reserve(struct ycsb_store *store, unsigned int node, uint64_t bytes)
{
	uint64_t offset = store->used[node];

	smart_assert(node < store->nodes && offset % PAGE_BYTES == 0);
	bytes = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	if (bytes > store->bytes - offset)
		return 0;
	store->used[node] += bytes;
	smart_assert(store->used[node] <= store->bytes);
	return fabric_make_address(node, offset);
}

bool
ycsb_store_retired(const struct ycsb_store *store, smart_class class)
{
	smart_assert(class < SMART_CLASSES);
	return store->pool[class].count > 0;
}

smart_status
ycsb_store_allocate(struct ycsb_store *store, smart_class class, uint64_t epoch, fabric_address *block)
{
	struct ycsb_pool *pool = &store->pool[class];
	uint32_t bytes = smart_class_bytes(class);

	smart_assert(class < SMART_CLASSES);
	if (take_retired(store, class, epoch, block))
		return SMART_OK;
	if (pool->slab_left == 0 && !make_slab(store, pool, bytes))
		return SMART_NO_SPACE;
	smart_assert(pool->slab_left % bytes == 0);
	smart_assert(pool->slab_left >= bytes);
	*block = pool->slab;
	pool->slab += bytes;
	pool->slab_left -= bytes;
	return SMART_OK;
}

void
ycsb_store_retire(struct ycsb_store *store, smart_class class, uint64_t epoch, fabric_address block)
{
	smart_assert(fabric_node(block) < store->nodes && fabric_offset(block) < store->used[fabric_node(block)]);
	smart_assert(class < SMART_CLASSES);
	put(&store->pool[class], block, epoch);
}

/*
 * services.c
 *	  The cache as services of the tree: each leads to the function that does it, for the client of the services.
 */
#include "compute/cache/parts.h"

static bool
cache_find(struct smart_services *services, uint64_t tree, smart_slot slot, uint64_t *words)
{
	return smart_cache_find(services->cache, services->cache_client, tree, slot, words);
}

static void
cache_store(struct smart_services *services, uint64_t tree, smart_slot slot, const uint64_t *words)
{
	smart_cache_store(services->cache, services->cache_client, tree, slot, words);
}

static void
cache_update(struct smart_services *services, uint64_t tree, smart_slot slot, unsigned int index, uint64_t from,
			 uint64_t to)
{
	smart_cache_update(services->cache, services->cache_client, tree, slot, index, from, to);
}

static void
cache_drop(struct smart_services *services, uint64_t tree, smart_slot slot)
{
	smart_cache_drop(services->cache, services->cache_client, tree, slot);
}

static bool
find_result(struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length,
			struct smart_result *cached)
{
	return smart_cache_result(services->cache, services->cache_client, tree, point, length, cached);
}

static void
keep_result(struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length,
			const struct smart_result *cached)
{
	smart_cache_keep_result(services->cache, services->cache_client, tree, point, length, cached);
}

static struct smart_blocked
block_point(struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length)
{
	return smart_cache_block(services->cache, services->cache_client, tree, point, length);
}

static uint64_t
unblock_point(struct smart_services *services, const struct smart_blocked *blocked)
{
	return smart_cache_unblock(services->cache, blocked);
}

static bool
find_hint(struct smart_services *services, smart_slot leaf, struct smart_leaf_hint *hint)
{
	return smart_cache_leaf_hint(services->cache, services->cache_client, leaf, hint);
}

static void
keep_hint(struct smart_services *services, smart_slot leaf, const struct smart_leaf_hint *hint, uint64_t ticket,
		  bool hot)
{
	smart_cache_keep_leaf_hint(services->cache, services->cache_client, leaf, hint, ticket, hot);
}

static struct smart_blocked
block_hint(struct smart_services *services, smart_slot leaf)
{
	return smart_cache_block_leaf_hint(services->cache, services->cache_client, leaf);
}

void
smart_cache_services_init(struct smart_services *services, struct smart_cache *cache, unsigned int client)
{
	smart_assert(cache != NULL && client < cache->clients);
	smart_assert(services->cache_find == NULL && services->find_result == NULL);
	services->cache = cache;
	services->cache_client = client;
	services->cache_find = cache_find;
	services->cache_store = cache_store;
	services->cache_update = cache_update;
	services->cache_drop = cache_drop;
	services->find_result = find_result;
	services->keep_result = keep_result;
	services->block_point = block_point;
	services->unblock_point = unblock_point;
	services->find_hint = find_hint;
	services->keep_hint = keep_hint;
	services->block_hint = block_hint;
}

/*
 * services.c
 *	  The cache as services of the tree.
 */
#include "compute/cache/parts.h"

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
	services->cache_wants = cache_wants;
	services->find_result = cache_find_result;
	services->keep_result = cache_keep_result;
	services->block_point = cache_block_point;
	services->unblock_point = cache_unblock_point;
	services->find_hint = cache_find_hint;
	services->keep_hint = cache_keep_hint;
	services->block_hint = cache_block_hint;
	services->find_leaf = cache_find_leaf;
	services->keep_leaf = cache_keep_leaf;
	services->asks_leaves = cache_asks_leaves;
}

/*
 * cache.h
 *	  A cache for tests, of two clients, over memory that was something else before.
 */
#ifndef TEST_CACHE_H
#define TEST_CACHE_H

#include <stdlib.h>
#include <string.h>

#include "compute/cache/parts.h"
#include "support/check.h"

/* Of so many bytes; free() ends it. */
static inline struct smart_cache *
test_cache_open(size_t bytes)
{
	size_t rounded = (smart_cache_size(bytes, 2) + 127) / 128 * 128;
	struct smart_cache *cache = aligned_alloc(128, rounded);

	CHECK(cache != NULL);
	memset(cache, 0x5c, rounded);
	smart_cache_init(cache, bytes, 2, 42);
	return cache;
}

static inline struct smart_cache_stat
test_cache_stat(const struct smart_cache *cache)
{
	struct smart_cache_stat stat;

	smart_cache_stat(cache, &stat);
	return stat;
}

/* ---- the services of a client ---- */

static inline bool
test_cache_find_node(struct smart_cache *cache, unsigned int client, uint64_t tree, smart_slot slot, uint64_t *words,
					 uint64_t *moment)
{
	struct smart_services services = {.cache = cache, .cache_client = client};

	return cache_find(&services, tree, slot, words, moment);
}

static inline bool
test_cache_find(struct smart_cache *cache, unsigned int client, uint64_t tree, smart_slot slot, uint64_t *words)
{
	uint64_t moment;

	return test_cache_find_node(cache, client, tree, slot, words, &moment);
}

static inline void
test_cache_store_node(struct smart_cache *cache, unsigned int client, uint64_t tree, smart_slot slot,
					  const uint64_t *words, uint64_t moment)
{
	struct smart_services services = {.cache = cache, .cache_client = client};

	cache_store(&services, tree, slot, words, moment);
}

static inline void
test_cache_store(struct smart_cache *cache, unsigned int client, uint64_t tree, smart_slot slot, const uint64_t *words)
{
	test_cache_store_node(cache, client, tree, slot, words, 0);
}

static inline void
test_cache_update(struct smart_cache *cache, unsigned int client, uint64_t tree, smart_slot slot, unsigned int index,
				  uint64_t from, uint64_t to)
{
	struct smart_services services = {.cache = cache, .cache_client = client};

	cache_update(&services, tree, slot, index, from, to);
}

static inline void
test_cache_drop(struct smart_cache *cache, unsigned int client, uint64_t tree, smart_slot slot)
{
	struct smart_services services = {.cache = cache, .cache_client = client};

	cache_drop(&services, tree, slot);
}

static inline bool
test_cache_result(struct smart_cache *cache, unsigned int client, uint64_t tree, const uint8_t *point,
				  unsigned int length, struct smart_result *cached)
{
	struct smart_services services = {.cache = cache, .cache_client = client};

	return cache_find_result(&services, tree, point, length, cached);
}

static inline void
test_cache_keep_result(struct smart_cache *cache, unsigned int client, uint64_t tree, const uint8_t *point,
					   unsigned int length, const struct smart_result *cached)
{
	struct smart_services services = {.cache = cache, .cache_client = client};

	cache_keep_result(&services, tree, point, length, cached);
}

static inline struct smart_blocked
test_cache_block(struct smart_cache *cache, unsigned int client, uint64_t tree, const uint8_t *point,
				 unsigned int length)
{
	struct smart_services services = {.cache = cache, .cache_client = client};

	return cache_block_point(&services, tree, point, length);
}

static inline bool
test_cache_hint(struct smart_cache *cache, unsigned int client, smart_slot leaf, struct smart_leaf_hint *hint)
{
	struct smart_services services = {.cache = cache, .cache_client = client};

	return cache_find_hint(&services, leaf, hint);
}

static inline void
test_cache_keep_hint(struct smart_cache *cache, unsigned int client, smart_slot leaf,
					 const struct smart_leaf_hint *hint, uint64_t ticket, bool hot)
{
	struct smart_services services = {.cache = cache, .cache_client = client};

	cache_keep_hint(&services, leaf, hint, ticket, hot);
}

static inline struct smart_blocked
test_cache_block_hint(struct smart_cache *cache, unsigned int client, smart_slot leaf)
{
	struct smart_services services = {.cache = cache, .cache_client = client};

	return cache_block_hint(&services, leaf);
}

static inline uint64_t
test_cache_unblock(struct smart_cache *cache, const struct smart_blocked *blocked)
{
	struct smart_services services = {.cache = cache};

	return cache_unblock_point(&services, blocked);
}

static inline bool
test_cache_leaf(struct smart_cache *cache, unsigned int client, uint64_t tree, smart_slot leaf, bool ahead,
				uint8_t *copy, uint64_t *ticket)
{
	struct smart_services services = {.cache = cache, .cache_client = client};

	return cache_find_leaf(&services, tree, leaf, ahead, copy, ticket);
}

static inline void
test_cache_keep_leaf(struct smart_cache *cache, unsigned int client, uint64_t tree, smart_slot leaf,
					 const uint8_t *copy, uint64_t meta, uint64_t ticket, enum smart_keep how)
{
	struct smart_services services = {.cache = cache, .cache_client = client};

	cache_keep_leaf(&services, tree, leaf, copy, meta, ticket, how);
}

static inline bool
test_cache_asks(struct smart_cache *cache, unsigned int client)
{
	struct smart_services services = {.cache = cache, .cache_client = client};

	return cache_asks_leaves(&services);
}

static inline bool
test_cache_wants(struct smart_cache *cache, unsigned int client, uint64_t tree, smart_slot slot)
{
	struct smart_services services = {.cache = cache, .cache_client = client};

	return cache_wants(&services, tree, slot);
}

#endif /* TEST_CACHE_H */

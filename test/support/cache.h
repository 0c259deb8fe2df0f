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

#endif /* TEST_CACHE_H */

/*
 * cluster.c
 *	  What simulated and real clusters have in common.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/thread_env.h"
#include "cluster.h"
#include "keys.h"
#include "random.h"

#define ALIGNMENT 128

bool
ycsb_complain(const char *what, smart_status status)
{
	fprintf(stderr, "ycsb: %s: %s\n", what, smart_status_text(status));
	return false;
}

struct smart_tree_options
ycsb_tree_options(const struct ycsb_options *options)
{
	if (options->values)
		return (struct smart_tree_options){
			.leaf_size = options->leaf_size,
			.fixed_length = ycsb_is_integer(options->key_type) ? YCSB_INTEGER_BYTES : 0,
			.shared = options->shared,
			.value = true,
		};
	return (struct smart_tree_options){
		.leaf_size = options->leaf_size,
		.fixed_length = ycsb_is_integer(options->key_type) ? YCSB_INTEGER_BYTES + YCSB_PAYLOAD : 0,
		.shared = options->shared,
		.point = ycsb_point,
		.hints = true,
		.payload = YCSB_PAYLOAD,
		.point_argument = ycsb_is_integer(options->key_type) ? NULL : (void *) (uintptr_t) options,
	};
}

void *
ycsb_allocate_table(size_t bytes)
{
	smart_assert(bytes > 0);
	return aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

bool
ycsb_open_tables(const struct ycsb_options *options, unsigned int clients, uint64_t seed, struct smart_cache **cache,
				 struct smart_rdwc **rdwc)
{
	bool caches = options->cache_bytes > 0;

	smart_assert(*cache == NULL && *rdwc == NULL && clients > 0);
	if (caches)
		*cache = ycsb_allocate_table(smart_cache_size(options->cache_bytes, clients));
	if (options->rdwc)
		*rdwc = ycsb_allocate_table(smart_rdwc_size(SMART_RDWC_PLACES, clients));
	if ((caches && *cache == NULL) || (options->rdwc && *rdwc == NULL))
		return false;
	if (caches)
		smart_cache_init(*cache, options->cache_bytes, clients, seed);
	if (options->rdwc)
		smart_rdwc_init(*rdwc, SMART_RDWC_PLACES, clients);
	return true;
}

static uint64_t
env_random(struct smart_env *env)
{
	return ycsb_random(&((struct ycsb_env *) env)->random);
}

void
ycsb_env_init(struct ycsb_env *env, uint64_t seed)
{
	*env = (struct ycsb_env){.env = smart_thread_env, .random = seed};
	env->env.random = env_random;
}

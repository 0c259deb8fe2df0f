/*
 * cache.h
 *	  The ART cache: copies of internal nodes and root words that all clients of a compute node share, so that a
 *	  descent over verbs costs the leaf's READ only; and cached results, so that a hot lookup costs nothing.
 *
 * The cache lies in memory of a fixed size, holds offsets only, and needs no lock of its caller.  A copy of a node may
 * be stale in every way: the tree checks what it was led to (src/README, B1).  A cached result is true, as long as all
 * clients that change the tree share this cache and block what they change (A1-A3).
 *
 * Progress: find is wait-free.  store, update and drop try a lock word for a short time; if they do not get it they do
 * nothing, and the cache is a little emptier or older than it could be.  If a process is killed meanwhile, one
 * partition takes no changes until shared memory starts anew, and no client waits.
 */
#ifndef SMART_COMPUTE_CACHE_H
#define SMART_COMPUTE_CACHE_H

#include <stddef.h>

#include "tree/services.h"

#define SMART_CACHE_BYTES_MIN ((size_t) 16 << 10)
#define SMART_CACHE_BYTES_MAX ((size_t) 64 << 30)

struct smart_cache;

/* What clients have done since the start. */
struct smart_cache_counters
{
	uint64_t hits;
	uint64_t misses;
	uint64_t stores;
	uint64_t updates;   /* words of a cached node that were changed in place */
	uint64_t drops;     /* copies that had turned out to be stale */
	uint64_t evictions; /* copies that had to make room */
	uint64_t moves;     /* spans that went over to another kind */
	uint64_t skips;     /* stores, updates and drops that were left undone */
	uint64_t result_hits;
	uint64_t result_misses;
	uint64_t result_stores;
	uint64_t result_refusals; /* cached results that were not kept, since a writer had come */
	uint64_t result_drops;    /* by writers */
	uint64_t blocks;
	uint64_t voids;     /* blocks that made all cached results of their version void */
	uint64_t hint_hits; /* of leaf hints; the figures above are without them, but for refusals and voids */
	uint64_t hint_misses;
	uint64_t hint_stores;
	uint64_t hint_drops;
	uint64_t hint_blocks;
	uint64_t parts; /* misses of large nodes that were not worth a READ of all their bytes */
};

#define SMART_CACHE_COUNTERS (sizeof(struct smart_cache_counters) / sizeof(uint64_t))

/* Sums over all clients, and what there is now. */
struct smart_cache_stat
{
	struct smart_cache_counters counters;
	uint64_t size;                         /* bytes that there are for copies */
	uint64_t frames[SMART_NODE_KINDS + 1]; /* by kind; root words count as the smallest kind */
	uint64_t bytes[SMART_NODE_KINDS + 1];
	uint64_t results;
	uint64_t result_bytes;
	uint64_t hints;
	uint64_t hint_bytes;
};

/* Memory that a cache takes, in bytes; `bytes`, from MIN to MAX, are for copies. */
extern size_t smart_cache_size(size_t bytes, unsigned int clients);

/*
 * Makes an empty cache in memory of that size, aligned to 128, for clients
 * numbered from 0.  seed: for its random choices.
 */
extern void smart_cache_init(struct smart_cache *cache, size_t bytes, unsigned int clients, uint64_t seed);

extern void smart_cache_stat(const struct smart_cache *cache, struct smart_cache_stat *stat);

/* Sets the services of nodes, cached results and leaf hints, for this client of a cache, which outlives them. */
extern void smart_cache_services_init(struct smart_services *services, struct smart_cache *cache, unsigned int client);

#endif /* SMART_COMPUTE_CACHE_H */

/*
 * cache.h
 *	  The ART cache: copies of internal nodes and root words that all clients of a
 *	  compute node share, so that a descent over verbs costs the leaf's READ only.
 *
 * It lies in memory of a fixed size, holds offsets only, and needs no lock of
 * its caller.  What it returns may be stale in every way: the tree checks what
 * it was led to (src/README, B1).
 *
 * Progress: find is wait-free.  store, update and drop try a lock word for a
 * short time; when they do not get it they do nothing, and the cache is a little
 * emptier or older than it could be.  A process that is killed meanwhile stops
 * them in one partition until shared memory starts anew, and nobody waits.
 */
#ifndef SMART_COMPUTE_CACHE_H
#define SMART_COMPUTE_CACHE_H

#include <stddef.h>

#include "tree/layout.h"

#define SMART_CACHE_BYTES_MIN ((size_t) 16 << 10)
#define SMART_CACHE_BYTES_MAX ((size_t) 64 << 30)

struct smart_cache;

/* Sums over all clients since the start, but for frames and bytes, which are of now. */
struct smart_cache_stat
{
	uint64_t hits;
	uint64_t misses;
	uint64_t stores;
	uint64_t updates;                      /* words of a cached node that were changed in place */
	uint64_t drops;                        /* copies that had turned out to be stale */
	uint64_t evictions;                    /* copies that had to make room */
	uint64_t moves;                        /* spans that went over to another kind */
	uint64_t skips;                        /* stores, updates and drops that were left undone */
	uint64_t size;                         /* bytes that there are for copies */
	uint64_t frames[SMART_NODE_KINDS + 1]; /* by kind; root words count as the smallest kind */
	uint64_t bytes[SMART_NODE_KINDS + 1];
};

/* Memory that a cache takes, in bytes; `bytes`, from MIN to MAX, are for copies. */
extern size_t smart_cache_size(size_t bytes, unsigned int clients);

/*
 * Makes an empty cache in memory of that size, aligned to 128, for clients
 * numbered from 0.  seed: for its random choices.
 */
extern void smart_cache_init(struct smart_cache *cache, size_t bytes, unsigned int clients, uint64_t seed);

/*
 * A copy of the node that slot links to, into words[SMART_NODE_WORDS_MAX]; slot
 * 0: the tree's root slot, into words[0].  Result: was it there?
 */
extern bool
smart_cache_find(struct smart_cache *cache, unsigned int client, uint64_t tree, smart_slot slot, uint64_t *words);

/* Keeps a copy, in place of an older one; others may have to go for it. */
extern void smart_cache_store(struct smart_cache *cache, unsigned int client, uint64_t tree, smart_slot slot,
							  const uint64_t *words);

/*
 * words[index] of a copy becomes `to`; a copy that has not `from` there is
 * dropped, since it has missed a change.
 */
extern void smart_cache_update(struct smart_cache *cache, unsigned int client, uint64_t tree, smart_slot slot,
							   unsigned int index, uint64_t from, uint64_t to);

/* The copy is stale. */
extern void smart_cache_drop(struct smart_cache *cache, unsigned int client, uint64_t tree, smart_slot slot);

extern void smart_cache_stat(const struct smart_cache *cache, struct smart_cache_stat *stat);

#endif /* SMART_COMPUTE_CACHE_H */

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

/*
 * A copy of the node that slot links to, into words[SMART_NODE_WORDS_MAX]; slot
 * 0: the tree's root slot, into words[0].  Result: was it there?
 */
extern bool
smart_cache_find(struct smart_cache *cache, unsigned int client, uint64_t tree, smart_slot slot, uint64_t *words);

/* Keeps a copy in place of an older one; other copies may be evicted for it. */
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

/* ---- cached results ---- */

/*
 * The cached result for an equality prefix of length bytes, from 1.  True: cached->length and tails are set, and were
 * true within this call.  False: cached->ticket is set; what the caller READs after this call may be kept with it.
 */
extern bool smart_cache_result(struct smart_cache *cache, unsigned int client, uint64_t tree, const uint8_t *point,
							   unsigned int length, struct smart_result *cached);

/*
 * Keeps a cached result: its ticket is of a miss for this equality prefix, not 0; length and tails are what was there
 * at some moment since.  Not kept if too long, or if the equality prefix was blocked since the ticket was given; and
 * where there is no room left and cached results are hardly ever asked for again, only some of them are.
 */
extern void smart_cache_keep_result(struct smart_cache *cache, unsigned int client, uint64_t tree, const uint8_t *point,
									unsigned int length, const struct smart_result *cached);

/*
 * Around every change of an equality prefix's entries: it has no cached result from a block on, until as many unblocks
 * have followed.  Returns what unblock wants.  Unblock returns a ticket for what the caller knows to be there after its
 * change, or 0 if another client blocked the equality prefix at any time in between, or another one of its version.
 */
extern struct smart_blocked smart_cache_block(struct smart_cache *cache, unsigned int client, uint64_t tree,
											  const uint8_t *point, unsigned int length);
extern uint64_t smart_cache_unblock(struct smart_cache *cache, const struct smart_blocked *blocked);

/* ---- leaf hints ---- */

/* The leaf hint of the leaf that this slot leads to.  True: it was true within this call. */
extern bool
smart_cache_leaf_hint(struct smart_cache *cache, unsigned int client, smart_slot leaf, struct smart_leaf_hint *hint);

/*
 * Keeps a leaf hint: ticket is of the unblock that followed the change which left the leaf so, not 0.  hot: it was
 * found, and is kept anew; else, where there is no room left, only some are kept.
 */
extern void smart_cache_keep_leaf_hint(struct smart_cache *cache, unsigned int client, smart_slot leaf,
									   const struct smart_leaf_hint *hint, uint64_t ticket, bool hot);

/* The leaf has no hint from here on until smart_cache_unblock, as with smart_cache_block. */
extern struct smart_blocked
smart_cache_block_leaf_hint(struct smart_cache *cache, unsigned int client, smart_slot leaf);

extern void smart_cache_stat(const struct smart_cache *cache, struct smart_cache_stat *stat);

/* Sets the services that lead to the cache, which outlives them, for this client of it. */
extern void smart_cache_services_init(struct smart_services *services, struct smart_cache *cache, unsigned int client);

#endif /* SMART_COMPUTE_CACHE_H */

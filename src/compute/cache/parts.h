/*
 * parts.h
 *	  What lies in a cache, for its own files.
 *
 * A cache is cut into partitions by the hash of a copy's key, each with a lock word, a hash table, and spans.  A span
 * is cut into frames of one kind, each for one copy, so that no room is lost between copies; a span can go over to
 * another kind.  All offsets count from the cache's or the partition's start:
 *
 *	  cache       header | counters of each client | versions | partitions
 *	  partition   header | heads | spans | heat | frames
 *
 * Frames hold copies of nodes, cached results and leaf hints (results.c); their kinds are their lengths.  Of a
 * node only the slots up to the last one in use are kept, since many nodes have few: a node that grows goes over to a
 * longer frame.
 *
 * Everything is changed under the partition's lock, except counters, heat and versions.  Readers take no lock:
 *
 *	  span.identity   kind and generation.  A frame number from an earlier moment may lead into the middle of a
 *	                  larger frame: a reader takes the identity before it looks and compares it afterwards.  The
 *	                  kind is 0 while the span's frames are made.
 *	  frame.sequence  odd while the frame is being changed; a reader compares it likewise.
 *
 * Both are written with release ahead of what they announce (frames.c); the readers' partner is read_frame() in
 * cache.c.
 *
 *	  cache    where things lie, reading without a lock, figures
 *	  frames   where a copy finds room
 *	  nodes    copies of nodes and root words come, change and go
 *	  pack     a node's words in fewer bits
 *	  results  cached results, leaf hints, and the versions that keep them true
 */
#ifndef SMART_COMPUTE_CACHE_PARTS_H
#define SMART_COMPUTE_CACHE_PARTS_H

#include "base/assert.h"
#include "compute/cache/cache.h"

#define CACHE_NODES      11                             /* lengths of nodes, from kind 1 on */
#define CACHE_PACKS      16                             /* of packed nodes, behind them */
#define CACHE_RESULTS    5                              /* of cached results, behind those */
#define CACHE_HINTS      2                              /* of leaf hints, behind those */
#define CACHE_COPIES     8                              /* of leaf copies, behind those */
#define CACHE_PACK       (CACHE_NODES + 1)              /* the shortest one */
#define CACHE_RESULT     (CACHE_PACK + CACHE_PACKS)     /* the shortest one */
#define CACHE_HINT       (CACHE_RESULT + CACHE_RESULTS) /* the shorter one */
#define CACHE_COPY       (CACHE_HINT + CACHE_HINTS)     /* the shortest one */
#define CACHE_KINDS      (CACHE_COPY + CACHE_COPIES)    /* arrays by kind; kind 0: none */
#define CACHE_COPY_UNITS 16                             /* of the longest leaf that is kept */
#define CACHE_SORT       (SMART_NODE_KINDS + 1) /* what figures tell apart: nodes by their own kind, cached results */
#define CACHE_SORTS      (CACHE_SORT + 2)       /* and leaf hints */
#define CACHE_LINE       64
#define CACHE_ALIGNMENT  128
#define CACHE_MARK       32                /* bytes of frames that share a mark of heat */
#define CACHE_ROOT_KEY   SMART_SLOT_FROZEN /* the key of a root word: no node's */
#define CACHE_RESULT_KEY UINT64_C(2)       /* a bit of a cached result's key, and no node's */
#define CACHE_NUMBER     8                 /* frames are numbered by their offset in these units, from 1 */

/* A node's copy, or another one.  A span's frames follow one another without a gap. */
struct cache_frame
{
	uint32_t sequence;
	uint32_t next; /* in its bucket, or among the vacant frames of its span; 0: none */
	/* Node: address, kind, bits of the tree's id.  Result: hash of its equality prefix.  Hint, copy: leaf.  0: vacant. */
	uint64_t key;
	uint64_t body[]; /* but for leaves: the tree's id where the key does not stand for it, or a node's moment; words */
};

struct cache_span
{
	uint64_t identity; /* kind, and generation above it */
	uint32_t vacant;   /* first vacant frame, 0: none */
	uint32_t used;     /* frames that hold a copy */
};

struct cache_partition
{
	uint32_t lock;                /* 1: a client changes something */
	uint32_t spans_used;          /* the others were never used */
	uint32_t roomy[CACHE_KINDS];  /* where the last vacant frame of a kind was found */
	uint32_t vacant[CACHE_KINDS]; /* vacant frames of a kind */
	uint64_t frames[CACHE_SORTS]; /* that hold a copy, and their bytes */
	uint64_t bytes[CACHE_SORTS];
	uint64_t random;
	uint64_t unused;
};

/*
 * What keeps some cached results and leaf hints true (results.c).
 *
 *	  word    generation, which each writer that begins raises, above the number of
 *	          writers that have begun and not ended
 *	  floor   cached results of a lower generation are void
 */
#define CACHE_WRITERS    (CACHE_GENERATION - 1)
#define CACHE_GENERATION (UINT64_C(1) << 20)

struct cache_version
{
	uint64_t word;
	uint64_t floor;
};

#define CACHE_SHARE ((uint32_t) 1 << 16)

/* One client's counters and its dice: written by that client only. */
struct cache_line
{
	struct smart_cache_counters counters;
	uint32_t result_share; /* of questions that were answered of late, in parts of CACHE_SHARE */
	uint32_t hint_share;
	uint64_t random;
	uint64_t ahead_vain; /* of the questions for scans, those that found neither a copy nor room for one */
};

struct smart_cache
{
	uint32_t clients;
	uint32_t partitions; /* a power of two */
	uint32_t span_shift; /* bytes of a span, as a power of two */
	uint32_t spans;      /* of each partition */
	uint32_t head_bits;  /* heads of each partition, as a power of two */
	uint32_t versions;   /* a power of two */
	bool packs;          /* 1: nodes are packed even while there is room, which there will not be for long */
	uint64_t versions_at;
	uint64_t partition_bytes;
	uint64_t partitions_at;
	uint64_t heads_at; /* in a partition, as the next three */
	uint64_t spans_at;
	uint64_t heat_at;
	uint64_t frames_at;
};

/* A partition as one process sees it. */
struct cache_part
{
	const struct smart_cache *cache;
	struct cache_partition *shared;
	uint32_t *heads; /* first frames of buckets */
	struct cache_span *spans;
	uint8_t *heat; /* 1: hit since a client last thought of evicting the frame; by cache_heat_of() */
	uint8_t *frames;
	struct cache_line *line; /* the client's */
};

/* Slots of a node that a frame of this kind has room for: those of its own kinds are among them. */
static inline unsigned int
cache_kind_slots(unsigned int kind)
{
	static const uint16_t slots[CACHE_NODES] = {2, 3, 4, 6, 9, 12, 14, 30, 62, 126, 256};

	return slots[kind - 1];
}

/*
 * Words of a frame's copy; a cached result's have the tree's id in front, and one that tells what follows; a leaf's has
 * two, and 1, 2, 3, 4, 6, 8, 12 or 16 units.
 */
static inline unsigned int
cache_kind_words(unsigned int kind)
{
	static const uint8_t other_words[CACHE_PACKS + CACHE_RESULTS + CACHE_HINTS + CACHE_COPIES] = {
		4,  5,  6,  7,  8,  10, 12, 16, 22, 29, 39, 48, 61, 82, 125, 253, /* packed nodes */
		3,  5,  6,  9,  16,                                               /* results */
		3,  4,                                                            /* hints */
		10, 18, 26, 34, 50, 66, 98, 130                                   /* leaves */
	};

	return kind >= CACHE_PACK ? other_words[kind - CACHE_PACK] : SMART_NODE_HEAD_WORDS + cache_kind_slots(kind);
}

static inline bool
cache_is_packed(unsigned int kind)
{
	return kind >= CACHE_PACK && kind < CACHE_RESULT;
}

static inline size_t
cache_frame_bytes(unsigned int kind)
{
	return sizeof(struct cache_frame) + ((kind < CACHE_HINT ? 1 : 0) + cache_kind_words(kind)) * sizeof(uint64_t);
}

static inline unsigned int
cache_identity_kind(uint64_t identity)
{
	return (unsigned int) identity & 0xff;
}

static inline uint64_t
cache_offset(uint32_t number)
{
	return (uint64_t) (number - 1) * CACHE_NUMBER;
}

static inline uint32_t
cache_number(uint64_t offset)
{
	return (uint32_t) (offset / CACHE_NUMBER) + 1;
}

static inline struct cache_frame *
cache_frame_at(const struct cache_part *part, uint32_t number)
{
	return (struct cache_frame *) (void *) (part->frames + cache_offset(number));
}

static inline uint32_t
cache_span_of(const struct cache_part *part, uint32_t number)
{
	return (uint32_t) (cache_offset(number) >> part->cache->span_shift);
}

/* Frames are longer than what shares a mark, so that each has one of its own. */
static inline uint8_t *
cache_heat_of(const struct cache_part *part, uint32_t number)
{
	return &part->heat[cache_offset(number) / CACHE_MARK];
}

static inline bool
cache_is_result(uint64_t key)
{
	return (key & CACHE_RESULT_KEY) != 0;
}

/* A leaf's: no node's. */
static inline bool
cache_is_hint(uint64_t key)
{
	return !cache_is_result(key) && smart_slot_is_leaf(key);
}

/*
 * Does a key stand for copies of several trees, so that the frame has to tell whose it is?  A node or a
 * leaf has one tree at a time.  A copy of what lay at its address before, in another tree, is
 * as stale as any; some bits of the tree's id in a node's key see to it that there are few.
 */
static inline bool
cache_has_trees(uint64_t key)
{
	return cache_is_result(key) || key == CACHE_ROOT_KEY;
}

/* The copy's words in a frame that holds key. */
static inline uint64_t *
cache_words_of(struct cache_frame *frame, uint64_t key)
{
	return cache_is_hint(key) ? frame->body : frame->body + 1;
}

/* The tree whose copy this is, as it is given to the functions below: 0 where the key stands for it. */
static inline uint64_t
cache_tree_of(const struct cache_frame *frame)
{
	return cache_has_trees(frame->key) ? frame->body[0] : 0;
}

/* Slots of the node whose key it is. */
static inline unsigned int
cache_key_slots(uint64_t key)
{
	smart_assert(!cache_has_trees(key) && !cache_is_hint(key));
	return smart_kind_slots(smart_slot_size(key));
}

/* May a frame of this kind hold key? */
static inline bool
cache_key_fits(uint64_t key, unsigned int kind)
{
	if (cache_is_result(key))
		return kind >= CACHE_RESULT && kind < CACHE_HINT;
	if (cache_is_hint(key))
		return kind >= CACHE_HINT; /* or a copy */
	return kind < CACHE_RESULT &&
		   (key == CACHE_ROOT_KEY || cache_is_packed(kind) || cache_kind_slots(kind) <= cache_key_slots(key));
}

/* Words of a copy in a frame of this kind. */
static inline unsigned int
cache_words(uint64_t key, unsigned int kind)
{
	return key == CACHE_ROOT_KEY ? 1 : cache_kind_words(kind);
}

/* What a copy counts as. */
static inline unsigned int
cache_sort(uint64_t key)
{
	if (cache_is_result(key))
		return CACHE_SORT;
	if (cache_is_hint(key))
		return CACHE_SORT + 1;
	return key == CACHE_ROOT_KEY ? SMART_NODE_6 : smart_slot_size(key);
}

static inline struct cache_version *
cache_version_at(const struct smart_cache *cache, uint32_t version)
{
	return (struct cache_version *) (void *) ((uint8_t *) (uintptr_t) cache + cache->versions_at) + version;
}

/* One writer; atomic for smart_cache_stat(), which adds them up. */
static inline void
cache_count(uint64_t *counter)
{
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

/* The next number of a generator (xorshift64: Marsaglia 2003, 13, 7, 17) whose state is not 0. */
static inline uint64_t
cache_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static inline uint64_t
cache_hash(uint64_t tree, uint64_t key)
{
	uint64_t hash = tree * UINT64_C(0x9e3779b97f4a7c15) ^ key;

	hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
	hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return hash ^ hash >> 32;
}

/* The bucket of a key; tree, here and below: 0 where a key stands for its tree. */
static inline uint32_t *
cache_head(const struct cache_part *part, uint64_t tree, uint64_t key)
{
	return &part->heads[cache_hash(tree, key) >> (64 - part->cache->head_bits)];
}

/*
 * What a copy of a node or a root word is kept under: a slot without flags, and in place of its partial key some bits
 * of the tree's id (cache_has_trees).
 */
static inline uint64_t
cache_node_key(uint64_t tree, smart_slot slot)
{
	smart_assert(slot == 0 ||
				 (smart_slot_is_node(slot) && smart_slot_size(slot) >= 1 && smart_slot_size(slot) <= SMART_NODE_KINDS));
	return slot == 0 ? CACHE_ROOT_KEY : smart_slot_with_pk(slot & ~SMART_SLOT_FROZEN, (unsigned int) tree & 0xff);
}

/* The tree that goes with that key. */
static inline uint64_t
cache_node_tree(uint64_t tree, smart_slot slot)
{
	return slot == 0 ? tree : 0;
}

static inline unsigned int
cache_kind_of_frame(const struct cache_part *part, uint32_t number)
{
	return cache_identity_kind(part->spans[cache_span_of(part, number)].identity);
}

/* Is a span long enough for a frame of this kind?  In a small cache it is not for the longest nodes, unless they are packed. */
static inline bool
cache_has_frames(const struct cache_part *part, unsigned int kind)
{
	return cache_frame_bytes(kind) <= (size_t) 1 << part->cache->span_shift;
}

/* Marks a frame that was found as hot; it may hold another copy by now.  Stored only if it changes: the line stays shared. */
static inline void
cache_heat(const struct cache_part *part, uint32_t number)
{
	uint8_t *heat = cache_heat_of(part, number);

	if (__atomic_load_n(heat, __ATOMIC_RELAXED) == 0)
		__atomic_store_n(heat, 1, __ATOMIC_RELAXED);
}

/* Is there room that nothing has had yet? */
static inline bool
cache_has_spare_room(const struct cache_part *part)
{
	return __atomic_load_n(&part->shared->spans_used, __ATOMIC_RELAXED) < part->cache->spans;
}

/* For assertions. */
static inline bool
cache_is_locked(const struct cache_part *part)
{
	return __atomic_load_n(&part->shared->lock, __ATOMIC_RELAXED) == 1;
}

/* ---- the services of these names (tree/services.h) ---- */

/* cache.c and nodes.c.  A copy takes an older one's place; others may be evicted for it. */
extern bool
cache_find(struct smart_services *services, uint64_t tree, smart_slot slot, uint64_t *words, uint64_t *moment);
extern void
cache_store(struct smart_services *services, uint64_t tree, smart_slot slot, const uint64_t *words, uint64_t moment);
extern void cache_update(struct smart_services *services, uint64_t tree, smart_slot slot, unsigned int index,
						 uint64_t from, uint64_t to);
extern void cache_drop(struct smart_services *services, uint64_t tree, smart_slot slot);
extern bool cache_wants(struct smart_services *services, uint64_t tree, smart_slot slot);

/*
 * results.c.  A result is not kept if it is too long, or if its equality prefix was blocked since the ticket was given;
 * and where there is no room left and cached results are hardly ever asked for again, only some of them are, as of hints
 * that are not hot.  Unblock returns 0 also if another equality prefix of the same version was blocked in between.
 */
extern bool cache_find_result(struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length,
							  struct smart_result *cached);
extern void cache_keep_result(struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length,
							  const struct smart_result *cached);
extern struct smart_blocked
cache_block_point(struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length);
extern uint64_t cache_unblock_point(struct smart_services *services, const struct smart_blocked *blocked);
extern bool cache_find_hint(struct smart_services *services, smart_slot leaf, struct smart_leaf_hint *hint);
extern void cache_keep_hint(struct smart_services *services, smart_slot leaf, const struct smart_leaf_hint *hint,
							uint64_t ticket, bool hot);
extern struct smart_blocked cache_block_hint(struct smart_services *services, smart_slot leaf);
/* A leaf that is longer than any frame has no copy. */
extern bool cache_find_leaf(struct smart_services *services, uint64_t tree, smart_slot leaf, bool ahead, uint8_t *copy,
							uint64_t *ticket);
extern void cache_keep_leaf(struct smart_services *services, uint64_t tree, smart_slot leaf, const uint8_t *copy,
							uint64_t meta, uint64_t ticket, enum smart_keep how);
extern bool cache_asks_leaves(struct smart_services *services);

/* ---- cache.c ---- */

extern struct cache_part
cache_part_of(const struct smart_cache *cache, unsigned int client, uint64_t tree, uint64_t key);
/* The frame that holds key, with its words in words[] (not if NULL); 0: there is none, or it changes all the time. */
extern uint32_t cache_find_frame(const struct cache_part *part, uint64_t tree, uint64_t key, uint64_t *words);
/* The moment that a node was kept with, which goes with words of the same call. */
extern uint32_t cache_find_node(const struct cache_part *part, uint64_t key, uint64_t *words, uint64_t *moment);
extern bool cache_has(const struct smart_cache *cache, uint64_t tree, smart_slot slot);
/* false: another client has the lock for longer than what is done under it takes; then the caller does without. */
extern bool cache_try_lock(const struct cache_part *part);
extern void cache_unlock(const struct cache_part *part);

/* ---- frames.c; all under the partition's lock ---- */

/* Room for key: a frame of this kind that is in its bucket, with words yet to be set; its sequence is odd. */
extern uint32_t cache_make_frame(const struct cache_part *part, unsigned int kind, uint64_t tree, uint64_t key);
/* A root word fits into any node's frame: the shortest kind that others have, so that it takes no span of its own. */
extern unsigned int cache_root_kind(const struct cache_part *part);
/* Takes a frame out of its bucket and leaves it vacant. */
extern void cache_vacate(const struct cache_part *part, uint32_t number);
extern void cache_begin_change(struct cache_frame *frame);
extern void cache_end_change(struct cache_frame *frame);

_Static_assert(sizeof(struct cache_line) == 3 * CACHE_LINE, "a client's counters are cache lines");
_Static_assert(sizeof(struct cache_partition) == 8 * CACHE_LINE, "a partition's header is whole lines");
_Static_assert(sizeof(struct cache_frame) % CACHE_NUMBER == 0 &&
				   sizeof(struct cache_frame) + 3 * sizeof(uint64_t) >= CACHE_MARK,
			   "frames are numbered by eight bytes, and longer than what shares a mark");

#endif /* SMART_COMPUTE_CACHE_PARTS_H */

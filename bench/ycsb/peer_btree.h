/*
 * peer_btree.h
 *	  What B+ trees of the papers share: internal pages, the cache of them on a compute node, and how a page above learns
 *	  of a split (SMART 2.2, 3.1.1, of Sherman).
 *
 * Keys are integers.  Pages have fences and a sibling.  Who finds a page that does not cover the key goes on to its
 * sibling, and READs the page above anew.  A model whose cluster, compute nodes and clients have states that begin with
 * the structures below uses these functions; its leaves are its own.
 */
#ifndef YCSB_PEER_BTREE_H
#define YCSB_PEER_BTREE_H

#include "base/assert.h"
#include "base/bytes.h"
#include "peer.h"

#define PEER_PAGE_BYTES 1024
#define PEER_HEAD_BYTES 48 /* of a page of 1 KB */
#define PEER_INNER_SPAN 54
#define PEER_HEIGHT_MAX 12
#define PEER_FILL       69 /* percent of a page after inserts in random order: ln 2 */

struct peer_head
{
	uint64_t low;  /* keys from here .. */
	uint64_t high; /* .. to below there; 0: no end */
	uint64_t sibling;
	uint32_t count;
	uint32_t level; /* 0: a leaf */
};

struct peer_inner
{
	struct peer_head head;
	uint64_t key[PEER_INNER_SPAN]; /* ascending; of the child's low fence */
	uint64_t child[PEER_INNER_SPAN];
};

_Static_assert(sizeof(struct peer_head) <= PEER_HEAD_BYTES && sizeof(struct peer_inner) <= PEER_PAGE_BYTES,
			   "a page holds its entries");

/* Of the cluster. */
struct peer_btree
{
	fabric_address root;
	uint32_t height;          /* level of the root */
	fabric_address root_word; /* the word that names the root, in a memory node's memory */
};

/* Of a compute node: copies of internal pages. */
#define PEER_PAGE_BUCKETS 65536

struct peer_page_copy;

struct peer_pages
{
	struct peer_page_copy *bucket[PEER_PAGE_BUCKETS];
	uint64_t bytes;
	uint64_t random;
	uint64_t hits;
	uint64_t misses;
};

/* Of a client: what is too large for its stack. */
union peer_inner_page
{
	struct peer_inner inner;
	uint8_t bytes[PEER_PAGE_BYTES];
};

struct peer_inner_pages
{
	union peer_inner_page inner; /* the last one that was found */
	union peer_inner_page other;
};

static inline uint64_t
peer_key_of(const uint8_t *bytes)
{
	return smart_load_be64(bytes);
}

static inline bool
peer_covers(const struct peer_head *head, uint64_t key)
{
	smart_assert(head->high == 0 || head->low < head->high);
	return key >= head->low && (head->high == 0 || key < head->high);
}

/* A root with one empty leaf of so many bytes. */
extern void peer_btree_open(struct peer_cluster *cluster, uint64_t leaf_bytes);

/* True: as large as --cache says. */
extern bool peer_pages_open(struct peer_compute *node);
extern void peer_pages_close(struct peer_compute *node);
extern void peer_pages_use(struct peer_compute *node, struct ycsb_cache_use *use);

/* The leaf that the cache names for a key; *own: all keys that it may have are of the key's partition. */
extern smart_status peer_find_leaf(struct peer_client *client, uint64_t key, fabric_address *leaf, bool *own);

/* The leaf of a key and those behind it, below one internal page; *count: at most so many, and then how many. */
extern smart_status
peer_find_leaves(struct peer_client *client, uint64_t key, fabric_address *leaves, unsigned int *count);

/* READs the page above a leaf that does not cover the key any more. */
extern smart_status peer_refresh_above(struct peer_client *client, uint64_t key);

/* The pages from a level on learn of a new page below, up to the first one that has room. */
extern smart_status peer_link_page(struct peer_client *client, uint64_t key, fabric_address child, uint32_t level);

/* ---- loading in order, out of time ---- */

/* The first page of each level, and the rightmost one, which is being filled. */
struct peer_loading
{
	struct peer_cluster *cluster;
	uint64_t leaf_bytes;
	fabric_address first[PEER_HEIGHT_MAX];
	fabric_address right[PEER_HEIGHT_MAX]; /* [0]: the last leaf */
	uint32_t height;
	bool full; /* the memory nodes are */
};

/* Begins with the tree's one leaf. */
extern void peer_loading_begin(struct peer_loading *loading, struct peer_cluster *cluster, uint64_t leaf_bytes);

/* The next leaf, with keys from low on: a head and zeros; the one before has its end and its sibling now.  NULL: full. */
extern void *peer_loading_leaf(struct peer_loading *loading, uint64_t low);

/* What has been loaded is the tree. */
extern void peer_loading_end(const struct peer_loading *loading);

#endif /* YCSB_PEER_BTREE_H */

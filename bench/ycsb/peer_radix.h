/*
 * peer_radix.h
 *	  Scans of radix trees: READs of a level at a time (SMART 4.4, DART 4.1), then
 *	  of the leaves.
 *
 * What a tree is made of its model tells.  Words lead to nodes and leaves; what lies below one may begin with bytes
 * that the model does not know, where paths are compressed optimistically.
 */
#ifndef YCSB_PEER_RADIX_H
#define YCSB_PEER_RADIX_H

#include "keys.h"
#include "peer.h"

#define PEER_RADIX_NODE_MAX 2080 /* bytes */
#define PEER_RADIX_LEAF_MAX (YCSB_KEY_MAX + 1024 + 64)
#define PEER_RADIX_FANOUT   256
#define PEER_RADIX_BATCH    128  /* requests */
#define PEER_RADIX_ITEMS    1024 /* subtrees and leaves under way */

struct peer_subtree
{
	uint64_t word;
	uint8_t prefix[YCSB_KEY_MAX];
	uint16_t known; /* bytes of the prefix */
	uint16_t depth; /* bytes that what lies below has in common, known or not, without a node's path */
};

struct peer_radix
{
	bool (*is_leaf)(uint64_t word);

	/* What a READ fetches, at most PEER_RADIX_NODE_MAX or PEER_RADIX_LEAF_MAX; keys are as long as that of the scan. */
	uint64_t (*bytes)(const struct peer_cluster *cluster, uint64_t word, size_t key_length);
	fabric_address (*address)(uint64_t word);

	/* Bytes that a node has by now; NULL: no node grows where it is. */
	uint64_t (*bytes_now)(const void *node);

	/* Copies a node from the compute node's cache; NULL: there is none. */
	bool (*find_copy)(struct peer_client *client, const struct peer_subtree *subtree, void *node);

	/* The children by ascending bytes; -1: this node is not what the word said. */
	int (*children)(const void *node, const struct peer_subtree *subtree, struct peer_subtree *children);

	const uint8_t *(*leaf_key)(const void *leaf);
};

/* A client's; large. */
struct peer_radix_scratch
{
	struct peer_subtree item[PEER_RADIX_ITEMS]; /* in the order of keys */
	struct peer_subtree next[PEER_RADIX_ITEMS];
	struct peer_subtree child[PEER_RADIX_FANOUT];
	struct fabric_request request[PEER_RADIX_BATCH];
	_Alignas(8) uint8_t node[PEER_RADIX_BATCH][PEER_RADIX_NODE_MAX];
	_Alignas(8) uint8_t leaf[PEER_RADIX_BATCH][PEER_RADIX_LEAF_MAX];
};

/* As ycsb_index's scan, of what lies below a word; *seen: 0 to wanted. */
extern smart_status
peer_radix_scan(struct peer_client *client, const struct peer_radix *radix, struct peer_radix_scratch *scratch,
				uint64_t root, const uint8_t *key, size_t length, uint64_t wanted, uint64_t *seen);

#endif /* YCSB_PEER_RADIX_H */

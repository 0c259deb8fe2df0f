/*
 * handle.h
 *	  The handle of a tree, which the files of src/tree share.
 */
#ifndef SMART_TREE_HANDLE_H
#define SMART_TREE_HANDLE_H

#include <limits.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "tree/block/leaf_build.h"
#include "tree/block/node.h"
#include "tree/fault.h"
#include "tree/tree.h"

/* A node that a descent by pointers may start from again, and what it must still be. */
struct smart_ancestor
{
	const uint64_t *words; /* NULL: none */
	fabric_address address;
	uint64_t header;
	uint64_t identity;
};

/* A later descent may begin at the node with these words, which lies there, if it is live. */
static inline void
smart_remember_ancestor(struct smart_ancestor *ancestor, const uint64_t *words, fabric_address address)
{
	*ancestor = (struct smart_ancestor){.words = words,
										.address = address,
										.header = smart_load_acquire(&words[0]),
										.identity = smart_load_acquire(&words[1])};
	if (smart_node_state(ancestor->header) != SMART_LIVE)
		ancestor->words = NULL;
}

/* Remote: nodes that the cache did not have (offload.c). */
struct smart_offload_misses
{
	uint32_t count;    /* of the search in hand */
	uint32_t expected; /* of a search that misses any, as a moving average with a fraction of 8 bits; 0: none so far */
};

/* Nodes deeper than this are not remembered. */
#define SMART_RECENT_DEPTH_MAX 32

/* By pointers: where the last inserts went (search.c). */
struct smart_recent
{
	struct smart_ancestor node;
	uint8_t prefix[SMART_RECENT_DEPTH_MAX]; /* of the node: the key's bytes before its depth */
	smart_slot last;                        /* the leaf that the last insert was led to */
	smart_slot slot;                        /* a leaf below the node, 0: none */
	const uint64_t *slot_word;              /* where slot stands */
	const uint64_t *meta;                   /* of that leaf */
};

/*
 * A removal's block for the copy of a leaf, where there is no room (structure/standby.c).  What it holds comes back to
 * it: the leaf that the copy replaces.
 */
struct smart_standby
{
	smart_slot link;     /* leads to the block; 0: none */
	bool ready;          /* else operations may be open that have seen it linked */
	unsigned int wanted; /* units of the last copy that found no room; 0: it was something else */
	smart_slot parked;   /* a leaf in a standby's block that has to go back, 0: none */
};

struct smart_tree
{
	struct fabric *fabric;
	struct smart_env *env;
	struct smart_services *services;
	struct smart_tree_options options;
	uint16_t kind_slots[8];
	fabric_address locked; /* the leaf whose local lock this client holds, 0: none */
	bool direct;
	bool entered;           /* within the epoch */
	bool results;           /* results.c has something to do */
	bool hints;             /* so has hints.c */
	bool copies;            /* so has copies.c */
	bool leads;             /* others wait for what this client delivers: it READs by itself */
	bool knows_retractions; /* a value of the word that counts them, */
	uint64_t retractions;   /* as it was at some time before */
	uint64_t moment;        /* remote: that the operation was told when it entered (services.h); 0: none */
	smart_slot asked_link;  /* the leaf whose copy was asked for last, and the ticket that came */
	uint64_t asked_ticket;
	uint64_t cached_as;          /* the tree's number in the cache of results and leaf copies: id and tenure */
	enum smart_block_state born; /* of blocks that are made: new, but for a bulk load */
	struct smart_post *post;     /* remote: requests that wait for the next batch */
	struct smart_gather *gather; /* remote bulk load: where WRITEs of blocks wait; NULL: they are posted at once */
	struct smart_node nodes[2];  /* a descent's, taking turns: the place's node, and its child */
	struct smart_list list;      /* entries of the leaf that is rewritten */
	struct smart_list extra;     /* entries of merged leaves */
	struct smart_piggyback *piggyback; /* remote: the node above the leaf that an insert READs */
	uint8_t *leaf_buffer;              /* remote: the leaf that an operation looks at */
	uint8_t *kept_buffer;              /* remote: the leaf whose content was kept (B5) */
	uint8_t *merge_buffer;             /* remote: leaves that are merged */
	uint8_t *build_buffer;             /* a block that is being made */
	uint64_t built_meta;               /* of the leaf that was made there last, as it was written */
	bool removing;                     /* a removal is under way: what it copies finds room somehow */
	bool mends;                        /* what is finished for others may take blocks that are set apart for that */
	smart_slot room;                   /* a leaf's block that the next allocation of its class gets; 0: none */
	struct smart_standby standby;
	struct smart_recent recent;
	struct smart_offload_misses misses;
	unsigned int part_skips; /* bytes that the header had in the last node of which a part was READ (B6) */
};

/* Releases memory, if there is any. */
static inline void
smart_release(struct smart_env *env, void *memory)
{
	if (memory != NULL)
		env->release(env, memory);
}

/* Where a descent copies the node that place leads to: not over the one that place is in. */
static inline struct smart_node *
smart_next_node(struct smart_tree *tree, const struct smart_place *place)
{
	return &tree->nodes[place->node == &tree->nodes[0] ? 1 : 0];
}

#define SMART_REPLACE_BUFFER_BYTES (4 * SMART_LEAF_BYTES_MAX)

#define SMART_UNITS_FOR(bytes) (((bytes) + SMART_UNIT - 1) / SMART_UNIT)

/* Bytes of the length in front of a suffix of a variable tree. */
static inline unsigned int
smart_length_bytes(unsigned int suffix_length)
{
	return suffix_length < 0x80 ? 1 : 2;
}

/* Bytes that an entry's suffix takes in a leaf, its value included. */
static inline unsigned int
smart_stored_bytes(const struct smart_tree *tree, unsigned int suffix_length)
{
	unsigned int value = tree->options.value ? SMART_VALUE_BYTES : 0;

	if (tree->options.fixed_length != 0)
		return suffix_length + value;
	return suffix_length + smart_length_bytes(suffix_length) + value;
}

/* Writes the length in front of a suffix of a variable tree; returns its bytes. */
static inline unsigned int
smart_put_length(uint8_t *target, unsigned int suffix_length)
{
	if (suffix_length < 0x80)
	{
		target[0] = (uint8_t) suffix_length;
		return 1;
	}
	target[0] = (uint8_t) (0x80 | (suffix_length >> 8));
	target[1] = (uint8_t) suffix_length;
	return 2;
}

#endif /* SMART_TREE_HANDLE_H */

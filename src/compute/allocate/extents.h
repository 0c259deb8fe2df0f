/*
 * extents.h
 *	  The extent map: what a compute node keeps about blocks that lie on memory nodes of other hosts.
 *
 * An extent map is a sparse file with the structures of a region (src/README, The extent map).  Its first chunks, the
 * home chunks, hold what the compute node keeps for itself: tree records, the directory's table, maps.  Behind them
 * lie the heads and descriptors of remote chunks, without the chunks:
 *
 *	  offset    what
 *	  0         SMART_HOME_CHUNKS chunks of 2 MiB, as in any region
 *	  4 GiB     28 KiB for each remote chunk: number SMART_HOME_CHUNKS first
 *
 * The extent map numbers remote chunks, by which pages are counted, and memory nodes.  A remote chunk's place is its
 * memory node and its number there; a memory node's identity is its region's incarnation, whatever its address.
 *
 * A pending free is what a memory node has yet to be told: that a chunk is free, or that a tree is dropped.  It lies
 * where its subject was, in the chunk's head or the tree's record, so there is always room for one more, and it
 * outlives a clean restart.  One client of the compute node, the one that reconciles, works pending frees off:
 *
 *	  for each memory node that replies:
 *	      while (smart_pending_next(space, node, &pending))
 *	          a tree:  ask the node; SMART_OK: smart_pending_done(space, &pending), else leave it
 *	          a chunk: smart_pending_done(space, &pending), and ask the node once
 *
 * A chunk is given back by one request only: a request without a reply may still arrive, and if a second one were
 * sent, the first could free what is in use again.  Reconciling after the next lease finds what the node did not hear
 * of.  (A client that is certain that the first request cannot arrive any more may leave a chunk's pending free until
 * the node has replied.)  A pending free is for the memory node of its incarnation only.
 *
 * Progress: none of these functions waits for anything but a lock.
 */
#ifndef SMART_COMPUTE_EXTENTS_H
#define SMART_COMPUTE_EXTENTS_H

#include "compute/allocate/region.h"
#include "compute/allocate/space.h"

enum smart_node_state
{
	SMART_NODE_NONE,   /* no memory node has this number */
	SMART_NODE_ACTIVE, /* chunks and trees may be put there, unless it is closed */
	SMART_NODE_LOST    /* its memory is gone for good; the number is kept while a tree or a chunk refers to it */
};

struct smart_node_info
{
	enum smart_node_state state;
	uint64_t incarnation; /* of its region */
	uint32_t chunks;      /* that the extent map has there, free ones and those to be given back included */
	uint32_t trees;       /* whose root slot lies there, those to be dropped included */
	bool closed;          /* smart_space_close_node */
	uint64_t pages_used;  /* of SMART_PAGE_BYTES, in slabs */
	uint64_t pages_free;  /* of chunks that are not to be given back */
	uint64_t address;     /* what smart_extents_set_address said last, or 0 */
	uint64_t leased;      /* what smart_extents_set_lease said last, or 0 */
	uint64_t note;        /* what smart_extents_set_note said last, or 0 */
};

enum smart_pending_kind
{
	SMART_PENDING_GIVE_CHUNK, /* CHUNKS_GIVE chunk */
	SMART_PENDING_DROP_TREE   /* TREE_DROP tree */
};

struct smart_pending_free
{
	enum smart_pending_kind kind;
	unsigned int node;
	uint64_t incarnation; /* of the node's region */
	uint64_t number;      /* no other pending free has it */
	uint32_t chunk;       /* its number on the node */
	uint64_t tree;        /* id */
	uint32_t entry;       /* where the extent map keeps the pending free */
};

/* ---- the file ---- */

/*
 * Maps an extent map's file and sets *region up, as smart_region_map does for a region: 228 GiB of address space,
 * nothing is touched.  smart_region_check, smart_region_format and smart_region_unmap serve both; a region is no
 * extent map, and an extent map no region (SMART_CORRUPT).
 */
extern smart_status smart_extent_map(struct smart_region *region, int fd);

/* ---- memory nodes ---- */

/*
 * The number of the memory node whose region has this incarnation (not 0): the one it has, or the lowest free one.
 * SMART_NO_SPACE: 256 nodes, or the extent map's own part is full; SMART_DISK_FULL, SMART_UNREACHABLE (the extent
 * map's file).
 */
extern smart_status smart_extents_add_node(struct smart_space *space, uint64_t incarnation, unsigned int *number);

/* False: no memory node has this number, or ever had it. */
extern bool smart_extents_node_info(struct smart_space *space, unsigned int number, struct smart_node_info *info);

/*
 * Notes where an active node is, as a hash that means nothing to the extent map: a client that finds another region
 * there after a restart knows whose place that was.
 */
extern void smart_extents_set_address(struct smart_space *space, unsigned int number, uint64_t address);

/* Notes something with an active node that means nothing to the extent map. */
extern void smart_extents_set_note(struct smart_space *space, unsigned int number, uint64_t note);

/*
 * Notes that this incarnation of the compute node has the lease of an active node, and the extent map says what is
 * there: the next incarnation continues its lease (wire.h).
 */
extern void smart_extents_set_lease(struct smart_space *space, unsigned int number, uint64_t incarnation);

/* Notes how many chunks an active node has, and how many of them it could give, to us or another server. */
extern void smart_extents_set_room(struct smart_space *space, unsigned int number, uint32_t capacity, uint32_t room);

/*
 * A node that does not reply rests: its chunks give no pages until it replies again, so that what is allocated comes
 * from the other nodes.  One client at a time may say so.
 */
extern void smart_extents_rest_node(struct smart_space *space, unsigned int number, bool rest);

/*
 * The node's memory is gone for good (extents_nodes.c tells the steps): every tree with its root or a slab there is lost, its chunks and pending frees
 * leave the extent map.  The number is free again when the last tree that refers to it has been dropped.  The same
 * region, should it come back, is a new node.  A node that is not SMART_NODE_ACTIVE: nothing happens.  While startup
 * recovery is pending (the header's unsettled) the loss is noted, and smart_space_recover() does the rest: what this
 * relies on is made anew by then.
 */
extern void smart_extents_lose_node(struct smart_space *space, unsigned int number);

/*
 * For reconciling with what a node says it holds for us: false means that the extent map does not know it and the node
 * may free it.  The list must have been asked for before the question, by the client that works off the pending frees.
 */
extern bool smart_extents_has_chunk(struct smart_space *space, unsigned int node, uint32_t chunk);
extern bool smart_extents_has_tree(struct smart_space *space, uint64_t id);

/* ---- pending frees ---- */

/*
 * One of the node's pending frees, false if it has none.  It stays until it is done; from now on its chunk is not
 * taken back into use.
 */
extern bool smart_pending_next(struct smart_space *space, unsigned int node, struct smart_pending_free *pending);

/* The extent map may forget it.  A pending free that is gone meanwhile is no error. */
extern void smart_pending_done(struct smart_space *space, const struct smart_pending_free *pending);

#endif /* SMART_COMPUTE_EXTENTS_H */

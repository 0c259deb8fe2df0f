/*
 * book.h
 *	  A book: the region of a compute node whose blocks lie on memory nodes.
 *
 * A book is a sparse file with the structures of a region.  Its first chunks,
 * the home chunks, hold what the compute node keeps for itself: tree records,
 * the directory's table, maps.  Behind them lie the heads and descriptors of
 * remote chunks, without the chunks:
 *
 *	  offset    what
 *	  0         SMART_HOME_CHUNKS chunks of 2 MiB, as in any region
 *	  4 GiB     28 KiB for each remote chunk: number SMART_HOME_CHUNKS first
 *
 * A remote chunk has a number in the book, by which pages are counted, and a
 * place: its memory node and its number there.  Memory nodes are numbered by
 * the book; a node's identity is its region's incarnation, whatever its address.
 *
 * Duties.  What has to be said to a memory node some day, but nobody waits for:
 * that a chunk is free, that a tree is dropped.  They are kept in the book (in
 * the chunk's head, in the tree's record, so there is always room for one),
 * outlive a clean restart, and are worked off by one client of the compute
 * node, the same that reconciles:
 *
 *	  for each memory node that answers:
 *	      while (smart_book_next_duty(space, node, &duty))
 *	          a tree:  ask the node; SMART_OK: smart_book_duty_done(space, &duty), else leave it
 *	          a chunk: smart_book_duty_done(space, &duty), and ask the node once
 *
 * A chunk is given back once only: a request without an answer may still come,
 * and after a second one the first could free what is in use again.  What the
 * node did not hear of is found by reconciling after the next lease.  (Who is certain that the first
 * cannot come any more may leave a chunk's duty, too, until it is answered.)
 *
 * A duty is for the memory node of its incarnation only.
 *
 * None of these functions waits for anything but a lock.
 */
#ifndef SMART_COMPUTE_BOOK_H
#define SMART_COMPUTE_BOOK_H

#include "compute/region.h"
#include "compute/space.h"

enum smart_node_state
{
	SMART_NODE_NONE,   /* no memory node has this number */
	SMART_NODE_ACTIVE, /* chunks and trees may be put there */
	SMART_NODE_LOST    /* its memory is gone for good; the number is kept while a tree or a chunk refers to it */
};

struct smart_node_info
{
	enum smart_node_state state;
	uint64_t incarnation; /* of its region */
	uint32_t chunks;      /* that the book has there, free ones and those to be given back included */
	uint32_t trees;       /* whose root slot lies there, those to be dropped included */
	uint64_t pages_used;  /* of SMART_PAGE_BYTES, in slabs */
	uint64_t address;     /* what smart_book_set_address said last, or 0 */
	uint64_t leased;      /* what smart_book_set_lease said last, or 0 */
};

enum smart_duty_kind
{
	SMART_DUTY_GIVE_CHUNK, /* CHUNKS_GIVE chunk */
	SMART_DUTY_DROP_TREE   /* TREE_DROP tree */
};

struct smart_duty
{
	enum smart_duty_kind kind;
	unsigned int node;
	uint64_t incarnation; /* of the node's region */
	uint64_t number;      /* no other duty has it */
	uint32_t chunk;       /* its number on the node */
	uint64_t tree;        /* id */
	uint32_t entry;       /* where the book keeps the duty */
};

/* ---- the file ---- */

/*
 * Maps a book's file and sets *region up, as smart_region_map does for a region: 228 GiB of address space,
 * nothing is touched.  smart_region_check, smart_region_format and smart_region_unmap serve both; a region is
 * no book, and a book no region (SMART_CORRUPT).
 */
extern smart_status smart_book_map(struct smart_region *region, int fd);

/* ---- memory nodes ---- */

/*
 * The number of the memory node whose region has this incarnation (not 0): the one it has, or the lowest
 * free one.  SMART_NO_SPACE: 256 nodes, or the book's own part is full; SMART_DISK_FULL, SMART_UNREACHABLE (the book's file).
 */
extern smart_status smart_book_add_node(struct smart_space *space, uint64_t incarnation, unsigned int *number);

/* False: no memory node has this number, or ever had it. */
extern bool smart_book_node_info(struct smart_space *space, unsigned int number, struct smart_node_info *info);

/*
 * Notes where an active node is, as a hash that means nothing to the book: who finds another region there after
 * a restart knows whose place that was.
 */
extern void smart_book_set_address(struct smart_space *space, unsigned int number, uint64_t address);

/*
 * Notes that this incarnation of the compute node has the lease of an active node, and the book says what is
 * there: the next incarnation continues its lease (wire.h).
 */
extern void smart_book_set_lease(struct smart_space *space, unsigned int number, uint64_t incarnation);

/*
 * A node that does not answer rests: its chunks give no pages until it answers again, so that what
 * is allocated comes from the other nodes.  One client at a time may say so.
 */
extern void smart_book_rest_node(struct smart_space *space, unsigned int number, bool rest);

/*
 * The node's memory is gone for good: every tree with its root or a slab there is lost, its chunks and
 * duties leave the book.  The number is free again when the last tree that refers to it has been dropped.  The
 * same region, should it come back, is a new node.  A node that is not SMART_NODE_ACTIVE: nothing happens.
 */
extern void smart_book_lose_node(struct smart_space *space, unsigned int number);

/*
 * For reconciling with what a node says it holds for us: false means that the book does not know it and
 * the node may free it.  The list must have been asked for before the question, by the client that works off the duties.
 */
extern bool smart_book_has_chunk(struct smart_space *space, unsigned int node, uint32_t chunk);
extern bool smart_book_has_tree(struct smart_space *space, uint64_t id);

/* ---- duties ---- */

/*
 * One of the node's duties, false if it has none.  It stays until it is done; from now on its chunk is not taken back
 * into use.
 */
extern bool smart_book_next_duty(struct smart_space *space, unsigned int node, struct smart_duty *duty);

/* The book may forget it.  A duty that is gone meanwhile is no error. */
extern void smart_book_duty_done(struct smart_space *space, const struct smart_duty *duty);

#endif /* SMART_COMPUTE_BOOK_H */

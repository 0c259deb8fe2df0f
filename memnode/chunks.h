/*
 * chunks.h
 *	  The chunks of a region: free ones, and whose the others are.
 */
#ifndef MEMNODE_CHUNKS_H
#define MEMNODE_CHUNKS_H

#include "region.h"

struct memnode_chunks
{
	struct memnode_region *region;
	uint32_t zero;                  /* free ones that hold zeros */
	uint32_t free;                  /* free ones that may hold something else */
	uint32_t zero_start;            /* no chunk that holds zeros has a lower number, */
	uint32_t free_start;            /* nor any other free one */
	uint32_t own[MEMNODE_OWNERS];   /* handed out, by owner */
	uint32_t roots[MEMNODE_OWNERS]; /* chunks of roots, by owner */
};

/* Counts what the chunk words say. */
extern void memnode_chunks_open(struct memnode_chunks *chunks, struct memnode_region *region);

/* Chunks in all, and those that have an owner. */
extern uint32_t memnode_chunks_capacity(const struct memnode_chunks *chunks);
extern uint32_t memnode_chunks_allocated(const struct memnode_chunks *chunks);

/*
 * Takes a chunk for an owner; it holds zeros.  *cleared: it had to be filled with them,
 * which takes time.  0: there is none.
 */
extern uint32_t
memnode_chunks_take(struct memnode_chunks *chunks, uint32_t owner, enum memnode_chunk_use use, bool *cleared);

/* Frees a chunk if it is the owner's and in this use. */
extern bool
memnode_chunks_give(struct memnode_chunks *chunks, uint32_t owner, enum memnode_chunk_use use, uint32_t chunk);

/* Frees all chunks of an owner. */
extern void memnode_chunks_give_all(struct memnode_chunks *chunks, uint32_t owner);

/* The owner's handed-out chunks from number from on, at most limit, ascending.  Returns how many. */
extern uint32_t memnode_chunks_list(const struct memnode_chunks *chunks, uint32_t owner, uint32_t from, uint32_t limit,
									uint32_t *numbers);

/* Does [offset, offset + length) lie in the region at all? */
extern bool memnode_chunks_inside(const struct memnode_chunks *chunks, uint64_t offset, uint64_t length);

/* Does it lie in chunks of this owner?  length > 0. */
extern bool memnode_chunks_cover(const struct memnode_chunks *chunks, uint32_t owner, uint64_t offset, uint64_t length);

#endif /* MEMNODE_CHUNKS_H */

/*
 * chunks.h
 *	  Chunks of 2 MiB: where their parts lie, which of their pages are free, and the life of those on memory nodes.
 *
 *	  offset in a chunk   what
 *	            0  1024   of chunk 0: the region's header
 *	         1024  3072   the chunk's head
 *	         4096  24576  48 bytes for each of the 512 pages: its slab's descriptor
 *	        28672         pages 7 to 511, to be handed out
 *
 * A page number counts from the region's start.  Of a remote chunk the first 28672 bytes lie in the extent map; the
 * chunk itself, all 512 pages of it, lies at its place, on a memory node.
 */
#ifndef SMART_COMPUTE_CHUNKS_H
#define SMART_COMPUTE_CHUNKS_H

#include "compute/allocate/region.h"
#include "tree/layout.h"

#define SMART_CHUNK_HEAD_OFFSET 1024u
#define SMART_CHUNK_FIRST_PAGE  7u

/* Wholly free chunks that an extent map keeps, so that frees and allocations by turns ask no memory node each time. */
#define SMART_EMPTY_CHUNKS 4u

enum smart_chunk_state
{
	SMART_CHUNK_HOME,    /* a chunk of this region */
	SMART_CHUNK_REMOTE,  /* in use, on a memory node */
	SMART_CHUNK_LEAVING, /* wholly free, to be given back: a pending free */
	SMART_CHUNK_LOST,    /* its memory node is lost; slabs of lost trees are in it */
	SMART_CHUNK_UNUSED   /* no chunk has this number */
};

/*
 * All of it is changed under the page allocator's lock.  A client that has a page there loads node and place
 * without the lock; a client that links a slab so loads the state (smart_slab_link).
 */
struct smart_chunk
{
	uint64_t free[SMART_CHUNK_PAGES / 64];    /* bit set: the page is free */
	uint64_t touched[SMART_CHUNK_PAGES / 64]; /* bit set: it may hold other than zeros */
	uint32_t next; /* in the list of its order, of leaving or of unused chunks: chunk number + 1, or 0 */
	uint32_t previous;
	uint32_t list; /* order + 1 of the list it is in, or 0 */
	uint32_t free_pages;
	uint32_t state;   /* enum smart_chunk_state */
	uint32_t node;    /* remote: the memory node … */
	uint32_t place;   /* … and the chunk's number there */
	uint32_t told;    /* leaving: its pending free is in hand, and the node may hear of it at any time */
	uint64_t pending; /* leaving: the pending free's number */
};

/* A slab's descriptor, at its first page; under the lock of its tree's partition. */
struct smart_slab
{
	uint32_t record; /* the tree's record, 0: no slab begins here */
	smart_class class;
	uint8_t order; /* it has 1 << order pages */
	uint8_t blocks;
	uint8_t queued;   /* in the queue of slabs with retired blocks */
	uint64_t free;    /* bit per block */
	uint64_t retired; /* bit per block; apart from free */
	uint64_t stamp;   /* the epoch when a block was retired last */
	uint32_t next;    /* in the list of its class or of full slabs: page, or 0 */
	uint32_t previous;
	uint32_t queue_next; /* pages, or 0 */
	uint32_t queue_previous;
};

_Static_assert(sizeof(struct smart_slab) == 48, "descriptors of a chunk fill six pages");
_Static_assert(SMART_CHUNK_HEAD_OFFSET + sizeof(struct smart_chunk) <= SMART_PAGE_BYTES,
			   "a chunk's head fits its page");
_Static_assert(SMART_HEAD_BYTES == SMART_CHUNK_FIRST_PAGE * SMART_PAGE_BYTES,
			   "what an extent map has of a remote chunk");
_Static_assert(SMART_PAGE_BYTES + SMART_CHUNK_PAGES * sizeof(struct smart_slab) ==
				   SMART_CHUNK_FIRST_PAGE * SMART_PAGE_BYTES,
			   "descriptors end where pages begin");
_Static_assert(sizeof(struct smart_region_header) <= SMART_CHUNK_HEAD_OFFSET,
			   "the header ends before the chunk's head");

static inline bool
smart_chunk_is_remote(const struct smart_region *region, uint32_t chunk)
{
	return chunk >= region->remote;
}

/* Where a chunk's head and descriptors begin. */
static inline uint8_t *
smart_chunk_memory(const struct smart_region *region, uint32_t chunk)
{
	if (smart_chunk_is_remote(region, chunk))
		return region->base + SMART_HEADS_OFFSET + (uint64_t) (chunk - SMART_HOME_CHUNKS) * SMART_HEAD_BYTES;
	return region->base + (uint64_t) chunk * SMART_CHUNK_BYTES;
}

static inline struct smart_chunk *
smart_chunk_at(const struct smart_region *region, uint32_t chunk)
{
	return (struct smart_chunk *) (smart_chunk_memory(region, chunk) + SMART_CHUNK_HEAD_OFFSET);
}

static inline unsigned int
smart_chunk_first_page(const struct smart_region *region, uint32_t chunk)
{
	return smart_chunk_is_remote(region, chunk) ? 0 : SMART_CHUNK_FIRST_PAGE;
}

static inline struct smart_slab *
smart_slab_at(const struct smart_region *region, uint32_t page)
{
	uint32_t chunk = page / SMART_CHUNK_PAGES;

	smart_assert(page % SMART_CHUNK_PAGES >= smart_chunk_first_page(region, chunk));
	return (struct smart_slab *) (smart_chunk_memory(region, chunk) + SMART_PAGE_BYTES) + page % SMART_CHUNK_PAGES;
}

/* The counts that a chunk belongs to. */
static inline struct smart_page_lists *
smart_lists_of(const struct smart_region *region, uint32_t chunk)
{
	struct smart_region_header *header = smart_region_header(region);

	return smart_chunk_is_remote(region, chunk) ? &header->blocks : &header->home;
}

/* A run of 1 << order pages as bits of its word of a chunk's maps. */
static inline uint64_t
smart_run_bits(uint32_t page, unsigned int order)
{
	smart_assert(order < SMART_PAGE_ORDERS && page % (1u << order) == 0);
	return ((UINT64_C(1) << (1u << order)) - 1) << (page % 64);
}

/* ---- all of the following under the page allocator's lock ---- */

/* The list for a chunk: its longest free run as order + 1; 0: it has none, or its memory node rests or is closed. */
extern unsigned int smart_chunk_list_for(const struct smart_region *region, const struct smart_chunk *chunk);

/* Puts a chunk into the list that its map asks for, or takes it out of the one it is in. */
extern void smart_chunk_relist(struct smart_region *region, uint32_t number);

/* Makes all pages of a chunk free, and takes it for in no list; which pages may hold other than zeros stays known. */
extern void smart_chunk_clear(struct smart_region *region, uint32_t number);

/* Adds one more chunk of the region's own.  Errors of smart_region_extend. */
extern smart_status smart_chunk_add_home(struct smart_region *region);

/*
 * Takes up a chunk that a memory node, of this incarnation when it was asked, has given; there is a head for it,
 * and its place can be mapped.  SMART_UNREACHABLE: the node was lost meanwhile; SMART_NO_SPACE: it was closed, and the
 * chunk leaves; SMART_CORRUPT: a place that cannot be, or is taken.
 */
extern smart_status
smart_chunk_add_remote(struct smart_region *extents, unsigned int node, uint64_t incarnation, uint32_t place);

/* Takes the lowest run of a chunk that has one; its first page.  *fresh: no client ever had these pages. */
extern uint32_t smart_chunk_take_run(struct smart_region *region, uint32_t number, unsigned int order, bool *fresh);

/* Gives back a run. */
extern void smart_chunk_give_run(struct smart_region *region, uint32_t page, unsigned int order);

/* The memory node of a remote chunk is lost. */
extern void smart_chunk_lose(struct smart_region *extents, uint32_t number);

/* Puts a chunk that is leaving into its memory node's list of those. */
extern void smart_chunk_list_leaving(struct smart_region *extents, uint32_t number);

/* Counts a remote chunk that has become wholly free.  It leaves, unless it is one of a few, on nodes that are not closed. */
extern void smart_chunk_emptied(struct smart_region *extents, uint32_t number);

/* Makes a wholly free chunk of the lists, which was counted, a pending free. */
extern void smart_chunk_leave(struct smart_region *extents, uint32_t number);

/* A leaving chunk of a node that may be used, and has not heard of it, is in use again.  False: there is none. */
extern bool smart_chunk_take_back(struct smart_region *extents, unsigned int node);

/* A leaving chunk is the extent map's no more. */
extern void smart_chunk_left(struct smart_region *extents, uint32_t number);

/* A chunk's number, which is in no list, serves again. */
extern void smart_chunk_free_number(struct smart_region *extents, uint32_t number);

#endif /* SMART_COMPUTE_CHUNKS_H */

/*
 * pages.h
 *	  Runs of pages, and where things lie in a chunk.
 *
 *	  offset in a chunk   what
 *	            0  1024   of chunk 0: the region's header
 *	         1024  3072   the chunk's head
 *	         4096  24576  48 bytes for each of the 512 pages: its slab's descriptor
 *	        28672         pages 7 to 511, to be handed out
 *
 * A page number counts from the region's start.  Of a book's remote chunk the first
 * 28672 bytes lie in the book; the chunk itself, all 512 pages of it, lies at its
 * place: on a memory node.
 */
#ifndef SMART_COMPUTE_PAGES_H
#define SMART_COMPUTE_PAGES_H

#include "base/assert.h"
#include "base/status.h"
#include "compute/space.h"

#define SMART_CHUNK_HEAD_OFFSET  1024u
#define SMART_CHUNK_FIRST_PAGE   7u
#define SMART_CHUNK_USABLE_PAGES (SMART_CHUNK_PAGES - SMART_CHUNK_FIRST_PAGE)

/*
 * Pages that are left to clients that remove entries.  A leaf without its dead
 * entries is a copy, so that in a region without a free page nothing could be
 * removed, and no page would ever become free.
 */
#define SMART_SPARE_PAGES 128u

/* What pages are for.  In a book they come from different chunks, elsewhere from the same. */
enum smart_page_use
{
	SMART_PAGES_HOME,  /* the space's own: records, tables */
	SMART_PAGES_BLOCKS /* slabs */
};

enum smart_chunk_state
{
	SMART_CHUNK_HOME,    /* a chunk of this region */
	SMART_CHUNK_REMOTE,  /* in use, on a memory node */
	SMART_CHUNK_LEAVING, /* wholly free, to be given back: a duty */
	SMART_CHUNK_LOST,    /* its memory node is lost; slabs of lost trees are in it */
	SMART_CHUNK_UNUSED   /* no chunk has this number */
};

/*
 * All of it under the page allocator's lock; node and place are loaded without it
 * by who has a page there, and state by who links a slab (smart_slab_link).
 */
struct smart_chunk
{
	uint64_t free[SMART_CHUNK_PAGES / 64];    /* bit set: the page is free */
	uint64_t touched[SMART_CHUNK_PAGES / 64]; /* bit set: it may hold other than zeros */
	uint32_t next; /* in the list of its order, of leaving or of unused chunks: chunk number + 1, or 0 */
	uint32_t previous;
	uint32_t list; /* order + 1 of the list it is in, or 0 */
	uint32_t free_pages;
	uint32_t state; /* enum smart_chunk_state */
	uint32_t node;  /* remote: the memory node … */
	uint32_t place; /* … and the chunk's number there */
	uint32_t told;  /* leaving: its duty is in hand, and the node may hear of it at any time */
	uint64_t duty;  /* leaving: the duty's number */
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
_Static_assert(SMART_HEAD_BYTES == SMART_CHUNK_FIRST_PAGE * SMART_PAGE_BYTES, "what a book has of a remote chunk");
_Static_assert(SMART_PAGE_BYTES + SMART_CHUNK_PAGES * sizeof(struct smart_slab) ==
				   SMART_CHUNK_FIRST_PAGE * SMART_PAGE_BYTES,
			   "descriptors end where pages begin");
_Static_assert(sizeof(struct smart_region_header) <= SMART_CHUNK_HEAD_OFFSET,
			   "the header ends before the chunk's head");

static inline void *
smart_page_memory(const struct smart_region *region, uint32_t page)
{
	smart_assert((uint64_t) page * SMART_PAGE_BYTES < region->max_size);
	return region->base + (uint64_t) page * SMART_PAGE_BYTES;
}

static inline bool
smart_chunk_is_remote(const struct smart_region *region, uint32_t chunk)
{
	return region->book && chunk >= SMART_HOME_CHUNKS;
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

/* Where a page lies; it belongs to the caller, or to a slab that he may look at. */
static inline fabric_address
smart_page_address(const struct smart_space *space, uint32_t page)
{
	const struct smart_chunk *chunk;

	if (smart_likely(!space->region->book))
		return fabric_make_address(space->node, (uint64_t) page * SMART_PAGE_BYTES);
	chunk = smart_chunk_at(space->region, page / SMART_CHUNK_PAGES);
	return fabric_make_address(chunk->node, (uint64_t) chunk->place * SMART_CHUNK_BYTES +
												(uint64_t) (page % SMART_CHUNK_PAGES) * SMART_PAGE_BYTES);
}

/* The page that an address lies in, or 0: it is in no page that can be handed out.  Lock-free. */
extern uint32_t smart_page_of(const struct smart_space *space, fabric_address address);

/*
 * A run of 1 << order pages, at a multiple of its length.  Takes the page allocator's lock.  *fresh: it holds
 * zeros.  SMART_NO_SPACE (a book has to grow first: book_parts.h), SMART_DISK_FULL, SMART_UNREACHABLE.
 */
extern smart_status
smart_pages_take(struct smart_space *space, enum smart_page_use use, unsigned int order, uint32_t *page, bool *fresh);

/* Gives back a run.  A book's chunk that becomes wholly free leaves it, unless it is one of a few. */
extern void smart_pages_give(struct smart_space *space, uint32_t page, unsigned int order);

/* A run of the space's own, which holds zeros. */
extern smart_status smart_pages_take_home(struct smart_space *space, unsigned int order, uint32_t *page);

/* Could this client take such a run now?  Under the page allocator's lock. */
extern bool smart_pages_available(const struct smart_space *space, enum smart_page_use use, unsigned int order);

/* The list that a chunk belongs in: its longest free run as order + 1; 0: none, or its memory node rests. */
extern unsigned int smart_chunk_list_for(const struct smart_region *region, const struct smart_chunk *chunk);

/* Puts a chunk into the list that its map asks for, or takes it out of the one it is in; under the lock. */
extern void smart_chunk_relist(struct smart_region *region, uint32_t number);
extern void smart_chunk_unlist(struct smart_region *region, uint32_t number);

/* The lists that a chunk belongs to. */
static inline struct smart_page_lists *
smart_lists_of(const struct smart_region *region, uint32_t chunk)
{
	struct smart_region_header *header = smart_region_header(region);

	return smart_chunk_is_remote(region, chunk) ? &header->blocks : &header->home;
}

#endif /* SMART_COMPUTE_PAGES_H */

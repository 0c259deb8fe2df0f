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
 * A page number counts from the region's start.
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

/* All of it under the page allocator's lock. */
struct smart_chunk
{
	uint64_t free[SMART_CHUNK_PAGES / 64];    /* bit set: the page is free */
	uint64_t touched[SMART_CHUNK_PAGES / 64]; /* bit set: it may hold other than zeros */
	uint32_t next;                            /* in the list of its order: chunk number + 1, or 0 */
	uint32_t previous;
	uint32_t list; /* order + 1 of the list it is in, or 0 */
	uint32_t free_pages;
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

static inline struct smart_chunk *
smart_chunk_at(const struct smart_region *region, uint32_t chunk)
{
	return (struct smart_chunk *) (region->base + (uint64_t) chunk * SMART_CHUNK_BYTES + SMART_CHUNK_HEAD_OFFSET);
}

/* The one place that knows where descriptors are. */
static inline struct smart_slab *
smart_slab_at(const struct smart_region *region, uint32_t page)
{
	uint8_t *chunk = region->base + (uint64_t) (page / SMART_CHUNK_PAGES) * SMART_CHUNK_BYTES;

	smart_assert(page % SMART_CHUNK_PAGES >= SMART_CHUNK_FIRST_PAGE);
	return (struct smart_slab *) (chunk + SMART_PAGE_BYTES) + page % SMART_CHUNK_PAGES;
}

/*
 * A run of 1 << order pages, at a multiple of its length; it holds zeros.  Takes the page
 * allocator's lock.  SMART_NO_SPACE, SMART_DISK_FULL, SMART_UNREACHABLE.
 */
extern smart_status smart_pages_take(struct smart_space *space, unsigned int order, uint32_t *page);
extern void smart_pages_give(struct smart_space *space, uint32_t page, unsigned int order);

/* The longest free run of a chunk as order + 1, or 0. */
extern unsigned int smart_chunk_longest(const struct smart_chunk *chunk);

#endif /* SMART_COMPUTE_PAGES_H */

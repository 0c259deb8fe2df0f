/*
 * pages.h
 *	  The page allocator of a space: runs of 1, 2, 4, 8 or 16 pages of its chunks.
 */
#ifndef SMART_COMPUTE_PAGES_H
#define SMART_COMPUTE_PAGES_H

#include "compute/allocate/chunks.h"
#include "compute/allocate/space.h"

/*
 * Pages that are left to clients that remove entries.  A leaf without its dead entries is a copy, so that in a region
 * without a free page nothing could be removed, and no page would ever become free.  Of these pages some are left to
 * removals that have to finish first what another client has begun, and the last ones to removals that give back at
 * once what they take (standbys; one page each, two for the longest leaves).
 */
#define SMART_SPARE_PAGES   128u
#define SMART_MEND_PAGES    96u
#define SMART_STANDBY_PAGES 64u

/* Where a page lies; it belongs to the caller, or to a slab that it may look at. */
static inline fabric_address
smart_page_address(const struct smart_space *space, uint32_t page)
{
	const struct smart_chunk *chunk;

	if (smart_likely(!smart_chunk_is_remote(space->region, page / SMART_CHUNK_PAGES)))
		return fabric_make_address(SMART_OWN_NODE, (uint64_t) page * SMART_PAGE_BYTES);
	chunk = smart_chunk_at(space->region, page / SMART_CHUNK_PAGES);
	return fabric_make_address(chunk->node, (uint64_t) chunk->place * SMART_CHUNK_BYTES +
												(uint64_t) (page % SMART_CHUNK_PAGES) * SMART_PAGE_BYTES);
}

/*
 * A run of 1 << order pages for a tree's blocks, at a multiple of its length; in an extent map from its home
 * (placement.h).  Takes the page allocator's lock.  *fresh: it holds zeros.  SMART_NO_SPACE (an extent map has to grow
 * first: smart_storage), SMART_DISK_FULL, SMART_UNREACHABLE.
 */
extern smart_status
smart_pages_take(struct smart_space *space, uint32_t record, unsigned int order, uint32_t *page, bool *fresh);

/* Gives back a run.  Takes the page allocator's lock. */
extern void smart_pages_give(struct smart_space *space, uint32_t page, unsigned int order);

/* A run of the space's own, which holds zeros. */
extern smart_status smart_pages_take_home(struct smart_space *space, unsigned int order, uint32_t *page);

/* Could this client take a run of this order from this memory node now?  Under the page allocator's lock. */
extern bool smart_pages_available(const struct smart_space *space, unsigned int node, unsigned int order);

/* A memory node with such a run becomes the tree's home.  False: there is none.  Takes the page allocator's lock. */
extern bool smart_pages_find(struct smart_space *space, uint32_t record, unsigned int order);

#endif /* SMART_COMPUTE_PAGES_H */

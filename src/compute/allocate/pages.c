/*
 * pages.c
 *	  The page allocator: aligned runs of 1 to 16 pages, of the region's own chunks and of remote ones.
 *
 * A run is taken from a chunk whose longest run is just long enough, if there is one, so that long runs stay whole;
 * within a chunk from the lowest address, so that a bulk load ascends.
 *
 * Progress: blocked by the page allocator's lock only, which is held for the search of one chunk, and for the growth
 * of the file when there is no run.
 */
#include <string.h>

#include "compute/allocate/pages.h"

/* The lists of the chunks that have pages for this use: the same ones for both, unless blocks lie in remote chunks. */
static struct smart_page_lists *
lists_for(const struct smart_region *region, enum smart_page_use use)
{
	return smart_lists_of(region, use == SMART_PAGES_BLOCKS ? region->blocks : 0);
}

/* The shortest list whose chunks have such a run, or SMART_PAGE_ORDERS. */
static unsigned int
find_list(const struct smart_page_lists *lists, unsigned int order)
{
	while (order < SMART_PAGE_ORDERS && lists->list[order] == 0)
		order++;
	return order;
}

/* How many pages this client leaves to those that come behind it. */
static uint32_t
pages_left(const struct smart_space *space)
{
	if (space->purpose == SMART_SPACE_STANDBY)
		return 0;
	if (space->purpose == SMART_SPACE_MEND)
		return SMART_STANDBY_PAGES;
	return space->removing ? SMART_MEND_PAGES : SMART_SPARE_PAGES;
}

/* Would a run be taken from the pages that are left to others?  They are among those that blocks come from. */
static bool
takes_spare(const struct smart_space *space, const struct smart_page_lists *lists, unsigned int order)
{
	uint32_t usable = SMART_CHUNK_PAGES - smart_chunk_first_page(space->region, space->region->blocks);

	return lists == lists_for(space->region, SMART_PAGES_BLOCKS) &&
		   lists->chunks * usable - lists->used - lists->barred < pages_left(space) + (1u << order);
}

bool
smart_pages_available(const struct smart_space *space, unsigned int order)
{
	const struct smart_page_lists *lists = lists_for(space->region, SMART_PAGES_BLOCKS);

	return find_list(lists, order) < SMART_PAGE_ORDERS && !takes_spare(space, lists, order);
}

smart_status
smart_pages_take(struct smart_space *space, enum smart_page_use use, unsigned int order, uint32_t *page, bool *fresh)
{
	struct smart_region *region = space->region;
	const struct smart_page_lists *lists = lists_for(region, use);
	smart_status status = SMART_OK;
	unsigned int list;

	smart_assert(order < SMART_PAGE_ORDERS);
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	list = find_list(lists, order);
	if (list == SMART_PAGE_ORDERS || takes_spare(space, lists, order))
	{
		/* Chunks of the region's own are made here; for a remote one a memory node has to be asked, without a lock. */
		status = lists == lists_for(region, SMART_PAGES_HOME) ? smart_chunk_add_home(region) : SMART_NO_SPACE;
		if (list == SMART_PAGE_ORDERS)
			list = SMART_PAGE_ORDERS - 1;
	}
	if (status == SMART_OK)
	{
		*page = smart_chunk_take_run(region, lists->list[list] - 1, order, fresh);
		smart_assert(*page != 0 && *page % (1u << order) == 0);
	}
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	return status;
}

smart_status
smart_pages_take_home(struct smart_space *space, unsigned int order, uint32_t *page)
{
	bool fresh = true;
	smart_status status = smart_pages_take(space, SMART_PAGES_HOME, order, page, &fresh);

	if (!fresh)
		memset(smart_page_memory(space->region, *page), 0, (size_t) SMART_PAGE_BYTES << order);
	return status;
}

void
smart_pages_give(struct smart_space *space, uint32_t page, unsigned int order)
{
	smart_assert(page != 0 && order < SMART_PAGE_ORDERS);
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	smart_chunk_give_run(space->region, page, order);
	space->locks->release(space->locks, SMART_LOCK_PAGES);
}

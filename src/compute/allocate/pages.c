/*
 * pages.c
 *	  The page allocator: aligned runs of 1 to 16 pages, of the region's own chunks and of remote ones.
 *
 * A run for blocks is taken from the tree's home, of a chunk whose longest run is just long enough, if there is one, so
 * that long runs stay whole;
 * within a chunk from the lowest address, so that a bulk load ascends.
 *
 * Progress: blocked by the page allocator's lock only, which is held for the search of one chunk, and for the growth
 * of the file when there is no run.
 */
#include <string.h>

#include "compute/allocate/pages.h"
#include "compute/allocate/placement.h"

/* The shortest list whose chunks have such a run, or SMART_PAGE_ORDERS. */
static unsigned int
find_list(const uint32_t list[SMART_PAGE_ORDERS], unsigned int order)
{
	while (order < SMART_PAGE_ORDERS && list[order] == 0)
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

/* Would a run for blocks be taken from the pages that are left to others? */
static bool
takes_spare(const struct smart_space *space, unsigned int order)
{
	const struct smart_page_lists *lists = smart_lists_of(space->region, space->region->blocks);
	uint32_t usable = SMART_CHUNK_PAGES - smart_chunk_first_page(space->region, space->region->blocks);

	return lists->chunks * usable - lists->used - lists->barred < pages_left(space) + (1u << order);
}

/* Would a run for blocks be taken from what a region has and may still grow by, and is reserved? */
static bool
takes_reserve(const struct smart_space *space, unsigned int order)
{
	const struct smart_region *region = space->region;
	const struct smart_page_lists *lists = smart_lists_of(region, region->blocks);
	uint64_t pages = region->max_size / SMART_PAGE_BYTES;

	if (space->reserved_pages == 0 || space->uses_reserve || space->removing || space->purpose != SMART_SPACE_ANY)
		return false;
	return pages < (uint64_t) lists->used + space->reserved_pages + (1u << order);
}

bool
smart_pages_available(const struct smart_space *space, unsigned int node, unsigned int order)
{
	return smart_placement_is_usable(space->region, node) &&
		   find_list(smart_extents_node_at(space->region, node)->list, order) < SMART_PAGE_ORDERS &&
		   !takes_spare(space, order);
}

bool
smart_pages_find(struct smart_space *space, uint32_t record, unsigned int order)
{
	unsigned int node = 0;

	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	while (node < FABRIC_NODES_MAX && !smart_pages_available(space, node, order))
		node++;
	if (node < FABRIC_NODES_MAX)
		smart_placement_move(space, record, node);
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	return node < FABRIC_NODES_MAX;
}

/* From remote chunks; for another one a memory node has to be asked, without a lock. */
static smart_status
take_remote(struct smart_space *space, uint32_t record, unsigned int order, uint32_t *page, bool *fresh)
{
	unsigned int node = smart_placement_home(space, record);
	const uint32_t *list;

	if (node == FABRIC_NODES_MAX || !smart_pages_available(space, node, order))
		return SMART_NO_SPACE;
	list = smart_extents_node_at(space->region, node)->list;
	*page = smart_chunk_take_run(space->region, list[find_list(list, order)] - 1, order, fresh);
	return SMART_OK;
}

/* From chunks of the region's own, of which one more is made if there is none.  Blocks leave spare pages behind. */
static smart_status
take_own(struct smart_space *space, bool blocks, unsigned int order, uint32_t *page, bool *fresh)
{
	const uint32_t *lists = smart_region_header(space->region)->home.list;
	unsigned int list = find_list(lists, order);

	if (blocks && takes_reserve(space, order))
		return SMART_NO_SPACE;
	if (list == SMART_PAGE_ORDERS || (blocks && takes_spare(space, order)))
	{
		smart_status status = smart_chunk_add_home(space->region);

		if (status != SMART_OK)
			return status;
		if (list == SMART_PAGE_ORDERS)
			list = SMART_PAGE_ORDERS - 1;
	}
	*page = smart_chunk_take_run(space->region, lists[list] - 1, order, fresh);
	return SMART_OK;
}

smart_status
smart_pages_take(struct smart_space *space, uint32_t record, unsigned int order, uint32_t *page, bool *fresh)
{
	smart_status status;

	smart_assert(order < SMART_PAGE_ORDERS);
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	status = space->region->extents ? take_remote(space, record, order, page, fresh)
									: take_own(space, true, order, page, fresh);
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	smart_assert(status != SMART_OK || (*page != 0 && *page % (1u << order) == 0));
	return status;
}

smart_status
smart_pages_take_home(struct smart_space *space, unsigned int order, uint32_t *page)
{
	bool fresh = true;
	smart_status status;

	/* Of an embedded region blocks and the space's own come from the same chunks. */
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	status = take_own(space, !space->region->extents, order, page, &fresh);
	space->locks->release(space->locks, SMART_LOCK_PAGES);

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

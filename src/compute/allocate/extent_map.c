/*
 * extent_map.c
 *	  The map from a memory node and a place there to the remote chunk.
 *
 * It has three levels of home pages: memory nodes; for each node the numbers of pages; in those, chunk numbers by
 * place.  A page is made when it is first needed, and stays, also when the memory node's number serves another node.
 *
 * Progress: lookups are wait-free.  Each level is an acquire load, which pairs with the release store that linked it,
 * so what it leads to is zeros or a number.  What is found stays true as long as the caller has a page, or a block, of
 * that chunk.
 */
#include "base/assert.h"
#include "compute/allocate/extent_map.h"

static uint32_t *
numbers_in(const struct smart_region *extents, uint32_t page)
{
	return smart_page_memory(extents, page);
}

struct smart_extents_node *
smart_extents_node_at(const struct smart_region *extents, unsigned int node)
{
	uint32_t page = __atomic_load_n(&smart_region_header(extents)->nodes_page, __ATOMIC_ACQUIRE);

	smart_assert(node < FABRIC_NODES_MAX && (extents->extents || page == 0));
	return page != 0 ? (struct smart_extents_node *) smart_page_memory(extents, page) + node : NULL;
}

bool
smart_extents_node_is_active(const struct smart_region *extents, unsigned int node)
{
	const struct smart_extents_node *entry = node < FABRIC_NODES_MAX ? smart_extents_node_at(extents, node) : NULL;

	/* Acquire: some callers do not hold the page allocator's lock.  Partner: smart_extents_lose_node. */
	return entry != NULL && __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE) == SMART_NODE_ACTIVE;
}

bool
smart_extents_node_is_open(const struct smart_region *extents, unsigned int node)
{
	/* Relaxed: who has to see a node closed holds the page allocator's lock, or a lock that was taken since. */
	return smart_extents_node_is_active(extents, node) &&
		   __atomic_load_n(&smart_extents_node_at(extents, node)->closed, __ATOMIC_RELAXED) == 0;
}

void
smart_extents_count_free(struct smart_region *extents, unsigned int node, int32_t pages)
{
	struct smart_extents_node *entry = smart_extents_node_at(extents, node);

	smart_assert(pages >= 0 || entry->pages_free >= (uint32_t) -pages);
	entry->pages_free += (uint32_t) pages;
	if (smart_extents_node_is_barred(entry))
		smart_region_header(extents)->blocks.barred += (uint32_t) pages;
}

void
smart_extents_release_node(struct smart_region *extents, unsigned int node)
{
	struct smart_extents_node *entry = smart_extents_node_at(extents, node);

	if (entry->state != SMART_NODE_LOST || entry->chunks > 0 || entry->trees > 0)
		return;
	smart_assert(entry->leaving == 0 && entry->dropping == 0 && entry->pages_used == 0 && entry->incarnation != 0);
	smart_assert(entry->pages_free == 0);
	entry->resting = entry->closed = 0;
	__atomic_store_n(&entry->state, (uint32_t) SMART_NODE_NONE, __ATOMIC_RELEASE);
	entry->incarnation = 0;
}

/* The page of the map that has the place, or 0. */
static uint32_t
map_page(const struct smart_region *extents, unsigned int node, uint32_t place)
{
	const struct smart_extents_node *entry = smart_extents_node_at(extents, node);
	uint32_t map = entry != NULL ? __atomic_load_n(&entry->map, __ATOMIC_ACQUIRE) : 0;

	smart_assert(place < SMART_PLACES);
	return map != 0 ? __atomic_load_n(&numbers_in(extents, map)[place / SMART_PLACES_A_PAGE], __ATOMIC_ACQUIRE) : 0;
}

bool
smart_extents_maps_near(const struct smart_region *extents, unsigned int node, uint32_t place)
{
	return map_page(extents, node, place) != 0;
}

uint32_t
smart_extents_chunk_at(const struct smart_region *extents, unsigned int node, uint32_t place)
{
	uint32_t page = map_page(extents, node, place);

	return page != 0 ? __atomic_load_n(&numbers_in(extents, page)[place % SMART_PLACES_A_PAGE], __ATOMIC_ACQUIRE) : 0;
}

uint32_t
smart_extents_page_of(const struct smart_space *space, fabric_address address)
{
	uint64_t offset = fabric_offset(address);
	uint32_t chunk =
		smart_extents_chunk_at(space->region, fabric_node(address), (uint32_t) (offset / SMART_CHUNK_BYTES));

	return chunk != 0 ? chunk * SMART_CHUNK_PAGES + (uint32_t) (offset % SMART_CHUNK_BYTES / SMART_PAGE_BYTES) : 0;
}

void
smart_extent_map_add(struct smart_region *extents, unsigned int node, uint32_t place, uint32_t chunk)
{
	struct smart_region_header *header = smart_region_header(extents);
	uint32_t page = map_page(extents, node, place);

	smart_assert(chunk == 0 || (chunk >= SMART_HOME_CHUNKS && smart_extents_chunk_at(extents, node, place) == 0));
	if (page == 0)
	{
		smart_assert(chunk != 0 && header->map_reserve != 0 && smart_extents_node_at(extents, node)->map != 0);
		page = header->map_reserve;
		header->map_reserve = 0;
		__atomic_store_n(&numbers_in(extents, smart_extents_node_at(extents, node)->map)[place / SMART_PLACES_A_PAGE],
						 page, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&numbers_in(extents, page)[place % SMART_PLACES_A_PAGE], chunk, __ATOMIC_RELEASE);
}

/*
 * book_map.c
 *	  Where remote chunks are: from a memory node and a place there to the chunk.
 *
 * Three levels of home pages: memory nodes; for each the page numbers of, page
 * by page, chunk numbers by place.  They are made when they are first needed and
 * stay, also when the memory node's number serves another one.
 *
 * Lookups are wait-free: each level is an acquire load, which pairs with the
 * release store that linked it, so what it leads to is zeros or a number.  What is found
 * stays true as long as the caller has a page, or a block, of that chunk.
 */
#include "compute/book_parts.h"

static uint32_t *
numbers_in(const struct smart_region *book, uint32_t page)
{
	return smart_page_memory(book, page);
}

struct smart_book_node *
smart_book_node_at(const struct smart_region *book, unsigned int node)
{
	uint32_t page = __atomic_load_n(&smart_region_header(book)->nodes_page, __ATOMIC_ACQUIRE);

	smart_assert(book->book && node < FABRIC_NODES_MAX);
	return page != 0 ? (struct smart_book_node *) smart_page_memory(book, page) + node : NULL;
}

/* The page of the map that has the place, or 0. */
static uint32_t
map_page(const struct smart_region *book, unsigned int node, uint32_t place)
{
	const struct smart_book_node *entry = smart_book_node_at(book, node);
	uint32_t map = entry != NULL ? __atomic_load_n(&entry->map, __ATOMIC_ACQUIRE) : 0;

	smart_assert(place < SMART_PLACES);
	return map != 0 ? __atomic_load_n(&numbers_in(book, map)[place / SMART_PLACES_A_PAGE], __ATOMIC_ACQUIRE) : 0;
}

bool
smart_book_maps_near(const struct smart_region *book, unsigned int node, uint32_t place)
{
	return map_page(book, node, place) != 0;
}

uint32_t
smart_book_chunk_at(const struct smart_region *book, unsigned int node, uint32_t place)
{
	uint32_t page = map_page(book, node, place);

	return page != 0 ? __atomic_load_n(&numbers_in(book, page)[place % SMART_PLACES_A_PAGE], __ATOMIC_ACQUIRE) : 0;
}

uint32_t
smart_book_page_of(const struct smart_region *book, fabric_address address)
{
	uint64_t offset = fabric_offset(address);
	uint32_t chunk = smart_book_chunk_at(book, fabric_node(address), (uint32_t) (offset / SMART_CHUNK_BYTES));

	return chunk != 0 ? chunk * SMART_CHUNK_PAGES + (uint32_t) (offset % SMART_CHUNK_BYTES / SMART_PAGE_BYTES) : 0;
}

smart_status
smart_book_prepare_map(struct smart_space *space, unsigned int node)
{
	struct smart_region_header *header = smart_region_header(space->region);
	struct smart_book_node *entry = smart_book_node_at(space->region, node);
	smart_status status = SMART_OK;
	uint32_t page;

	/* Only who grows changes these two, and one client grows at a time. */
	if (entry->map == 0)
	{
		status = smart_pages_take_home(space, 0, &page);
		if (status == SMART_OK)
			__atomic_store_n(&entry->map, page, __ATOMIC_RELEASE);
	}
	if (status == SMART_OK && header->map_reserve == 0)
		status = smart_pages_take_home(space, 0, &header->map_reserve);
	return status;
}

void
smart_book_map_chunk(struct smart_region *book, unsigned int node, uint32_t place, uint32_t chunk)
{
	struct smart_region_header *header = smart_region_header(book);
	uint32_t page = map_page(book, node, place);

	if (page == 0)
	{
		smart_assert(chunk != 0 && header->map_reserve != 0);
		page = header->map_reserve;
		header->map_reserve = 0;
		__atomic_store_n(&numbers_in(book, smart_book_node_at(book, node)->map)[place / SMART_PLACES_A_PAGE], page,
						 __ATOMIC_RELEASE);
	}
	__atomic_store_n(&numbers_in(book, page)[place % SMART_PLACES_A_PAGE], chunk, __ATOMIC_RELEASE);
}

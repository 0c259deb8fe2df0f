/*
 * recover_pages.c
 *	  Chunks after a crash: their maps, counts and lists.
 */
#include <string.h>

#include "compute/recover_parts.h"

static uint32_t
remote_end(const struct smart_region *region)
{
	return region->book ? SMART_HOME_CHUNKS + smart_region_header(region)->remote_chunks : 0;
}

/* All its pages are free; what they may hold stays known. */
static void
clear_chunk(struct smart_region *region, uint32_t number)
{
	struct smart_chunk *chunk = smart_chunk_at(region, number);
	unsigned int first = smart_chunk_first_page(region, number);

	memset(chunk->free, 0xff, sizeof(chunk->free));
	chunk->free[0] &= ~((UINT64_C(1) << first) - 1);
	chunk->free_pages = SMART_CHUNK_PAGES - first;
	chunk->list = chunk->next = chunk->previous = 0;
	memset(smart_chunk_memory(region, number) + SMART_PAGE_BYTES, 0, SMART_CHUNK_PAGES * sizeof(struct smart_slab));
}

static void
clear_lists(struct smart_page_lists *lists)
{
	memset(lists->list, 0, sizeof(lists->list));
	lists->used = 0;
}

void
smart_recover_clear_chunks(struct recover *recover)
{
	struct smart_region *region = recover->region;
	struct smart_region_header *header = smart_region_header(region);

	for (uint32_t i = 0; i < header->home.chunks; i++)
		clear_chunk(region, i);
	/* One that somebody was about to add: nobody had a page of it. */
	if (((uint64_t) header->home.chunks + 1) * SMART_CHUNK_BYTES <= header->size)
		memset(smart_chunk_at(region, header->home.chunks), 0, sizeof(struct smart_chunk));
	for (uint32_t i = SMART_HOME_CHUNKS; i < remote_end(region); i++)
		clear_chunk(region, i);
	clear_lists(&header->home);
	clear_lists(&header->blocks);
}

static bool
chunk_in_use(const struct smart_region *region, uint32_t number)
{
	if (smart_chunk_is_remote(region, number))
		return number < remote_end(region) && smart_chunk_at(region, number)->state == SMART_CHUNK_REMOTE;
	return number < smart_region_header(region)->home.chunks;
}

static uint64_t
run_of(uint32_t page, unsigned int order)
{
	return ((UINT64_C(1) << (1u << order)) - 1) << (page % 64);
}

smart_status
smart_recover_claim(struct recover *recover, uint32_t page, unsigned int order)
{
	uint32_t number = page / SMART_CHUNK_PAGES;
	unsigned int bit = page % SMART_CHUNK_PAGES;
	uint64_t run = run_of(page, order);
	struct smart_chunk *chunk;

	smart_assert(order < SMART_PAGE_ORDERS);
	if (page % (1u << order) != 0 || !chunk_in_use(recover->region, number))
		return smart_recover_fault(recover, "a page does not lie in the region", page);
	chunk = smart_chunk_at(recover->region, number);
	if ((chunk->free[bit / 64] & run) != run)
		return smart_recover_fault(recover, "a page serves two purposes", page);
	chunk->free[bit / 64] &= ~run;
	/* What is in use may hold anything. */
	chunk->touched[bit / 64] |= run;
	chunk->free_pages -= 1u << order;
	return SMART_OK;
}

void
smart_recover_release(struct recover *recover, uint32_t page, unsigned int order)
{
	struct smart_chunk *chunk = smart_chunk_at(recover->region, page / SMART_CHUNK_PAGES);

	chunk->free[page % SMART_CHUNK_PAGES / 64] |= run_of(page, order);
	chunk->free_pages += 1u << order;
}

static void
list_chunk(struct recover *recover, uint32_t number)
{
	struct smart_page_lists *lists = smart_lists_of(recover->region, number);
	const struct smart_chunk *chunk = smart_chunk_at(recover->region, number);

	lists->used += SMART_CHUNK_PAGES - smart_chunk_first_page(recover->region, number) - chunk->free_pages;
	smart_chunk_relist(recover->region, number);
}

void
smart_recover_list_chunks(struct recover *recover)
{
	struct smart_region *region = recover->region;
	struct smart_region_header *header = smart_region_header(region);

	/* The first chunk of a list is used first: let that be the lowest. */
	for (uint32_t i = header->home.chunks; i-- > 0;)
		list_chunk(recover, i);
	header->blocks.chunks = 0;
	for (uint32_t i = remote_end(region); i-- > SMART_HOME_CHUNKS;)
	{
		if (!chunk_in_use(region, i))
			continue;
		header->blocks.chunks++;
		list_chunk(recover, i);
	}
}

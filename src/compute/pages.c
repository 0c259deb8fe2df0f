/*
 * pages.c
 *	  The page allocator: aligned runs of 1 to 16 pages, of this region's chunks and
 *	  of a book's remote ones.
 *
 * Each chunk has a map of its free pages, and is in the list of the longest
 * run that it can give.  A run is taken from a chunk whose longest is just long enough if
 * there is one, so that long runs stay whole; within a chunk from the lowest
 * address, so that a bulk load ascends.
 *
 * Everything is blocked by the page allocator's lock only, which is held for
 * the search of one chunk, and for the growth of the file when there is no run.
 */
#include <string.h>

#include "compute/book_parts.h"
#include "compute/pages.h"

/* Groups of 1 << order set bits that begin at a multiple of their length: the bit of their first page. */
static uint64_t
aligned_runs(uint64_t word, unsigned int order)
{
	static const uint64_t starts[SMART_PAGE_ORDERS] = {UINT64_MAX, UINT64_C(0x5555555555555555),
													   UINT64_C(0x1111111111111111), UINT64_C(0x0101010101010101),
													   UINT64_C(0x0001000100010001)};

	for (unsigned int i = 0; i < order; i++)
		word &= word >> (1u << i);
	return word & starts[order];
}

static bool
rests(const struct smart_region *region, const struct smart_chunk *chunk)
{
	return region->book && chunk->state == SMART_CHUNK_REMOTE && smart_book_node_at(region, chunk->node)->resting;
}

unsigned int
smart_chunk_list_for(const struct smart_region *region, const struct smart_chunk *chunk)
{
	unsigned int longest = 0;

	if (rests(region, chunk))
		return 0;
	for (unsigned int i = 0; i < SMART_CHUNK_PAGES / 64; i++)
		while (longest < SMART_PAGE_ORDERS && aligned_runs(chunk->free[i], longest) != 0)
			longest++;
	return longest;
}

void
smart_chunk_unlist(struct smart_region *region, uint32_t number)
{
	struct smart_chunk *chunk = smart_chunk_at(region, number);

	smart_assert(chunk->list >= 1 && chunk->list <= SMART_PAGE_ORDERS);
	if (chunk->previous != 0)
		smart_chunk_at(region, chunk->previous - 1)->next = chunk->next;
	else
	{
		uint32_t *head = &smart_lists_of(region, number)->list[chunk->list - 1];

		smart_assert(*head == number + 1);
		*head = chunk->next;
	}
	if (chunk->next != 0)
		smart_chunk_at(region, chunk->next - 1)->previous = chunk->previous;
	chunk->list = 0;
}

void
smart_chunk_relist(struct smart_region *region, uint32_t number)
{
	struct smart_chunk *chunk = smart_chunk_at(region, number);
	unsigned int list = smart_chunk_list_for(region, chunk);
	uint32_t *head;

	if (list == chunk->list)
		return;
	if (chunk->list != 0)
		smart_chunk_unlist(region, number);
	if (list == 0)
		return;
	head = &smart_lists_of(region, number)->list[list - 1];
	chunk->list = list;
	chunk->previous = 0;
	chunk->next = *head;
	if (*head != 0)
		smart_chunk_at(region, *head - 1)->previous = number + 1;
	*head = number + 1;
}

/* Makes one more chunk of the region's room; it was never touched and holds zeros. */
static smart_status
add_chunk(struct smart_region *region)
{
	struct smart_region_header *header = smart_region_header(region);
	uint32_t number = header->home.chunks;
	struct smart_chunk *chunk;

	if (((uint64_t) number + 1) * SMART_CHUNK_BYTES > header->size)
	{
		smart_status status = smart_region_extend(region);

		if (status != SMART_OK)
			return status;
	}
	chunk = smart_chunk_at(region, number);
	smart_assert(chunk->list == 0 && chunk->free_pages == 0 && chunk->state == SMART_CHUNK_HOME);
	memset(chunk->free, 0xff, sizeof(chunk->free));
	chunk->free[0] &= ~((UINT64_C(1) << SMART_CHUNK_FIRST_PAGE) - 1);
	chunk->free_pages = SMART_CHUNK_USABLE_PAGES;
	header->home.chunks++;
	smart_chunk_relist(region, number);
	return SMART_OK;
}

/* Takes the lowest run of a chunk that has one; *fresh: nobody ever had these pages. */
static uint32_t
take_from(struct smart_region *region, uint32_t number, unsigned int order, bool *fresh)
{
	struct smart_chunk *chunk = smart_chunk_at(region, number);
	uint64_t runs = 0;
	uint64_t run;
	unsigned int i = 0;
	unsigned int bit;

	while (i < SMART_CHUNK_PAGES / 64 && (runs = aligned_runs(chunk->free[i], order)) == 0)
		i++;
	smart_assert(runs != 0);
	if (smart_chunk_is_remote(region, number))
		smart_book_count_taken(region, chunk, 1u << order);
	bit = (unsigned int) __builtin_ctzll(runs);
	run = ((UINT64_C(1) << (1u << order)) - 1) << bit;
	*fresh = (chunk->touched[i] & run) == 0;
	chunk->free[i] &= ~run;
	chunk->touched[i] |= run;
	chunk->free_pages -= 1u << order;
	smart_lists_of(region, number)->used += 1u << order;
	smart_chunk_relist(region, number);
	return number * SMART_CHUNK_PAGES + i * 64 + bit;
}

static struct smart_page_lists *
lists_for(const struct smart_space *space, enum smart_page_use use)
{
	struct smart_region_header *header = smart_region_header(space->region);

	return space->region->book && use == SMART_PAGES_BLOCKS ? &header->blocks : &header->home;
}

/* Would these pages be taken from those that are spared for removals? */
static bool
takes_spare(const struct smart_space *space, enum smart_page_use use, unsigned int order)
{
	const struct smart_page_lists *lists = lists_for(space, use);
	uint32_t usable = SMART_CHUNK_USABLE_PAGES;

	if (space->removing || (space->region->book && use == SMART_PAGES_HOME))
		return false;
	if (space->region->book)
		usable = SMART_CHUNK_PAGES;
	return lists->chunks * usable - lists->used < SMART_SPARE_PAGES + (1u << order);
}

/* The shortest list whose chunks have such a run, or SMART_PAGE_ORDERS. */
static unsigned int
find_list(const struct smart_page_lists *lists, unsigned int order)
{
	while (order < SMART_PAGE_ORDERS && lists->list[order] == 0)
		order++;
	return order;
}

bool
smart_pages_available(const struct smart_space *space, enum smart_page_use use, unsigned int order)
{
	return find_list(lists_for(space, use), order) < SMART_PAGE_ORDERS && !takes_spare(space, use, order);
}

smart_status
smart_pages_take(struct smart_space *space, enum smart_page_use use, unsigned int order, uint32_t *page, bool *fresh)
{
	struct smart_region *region = space->region;
	struct smart_page_lists *lists = lists_for(space, use);
	smart_status status = SMART_OK;
	unsigned int list;

	smart_assert(order < SMART_PAGE_ORDERS);
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	list = find_list(lists, order);
	if (list == SMART_PAGE_ORDERS || takes_spare(space, use, order))
	{
		status = lists == &smart_region_header(region)->home ? add_chunk(region) : SMART_NO_SPACE;
		if (list == SMART_PAGE_ORDERS)
			list = SMART_PAGE_ORDERS - 1;
	}
	if (status == SMART_OK)
		*page = take_from(region, lists->list[list] - 1, order, fresh);
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
	struct smart_region *region = space->region;
	uint32_t number = page / SMART_CHUNK_PAGES;
	unsigned int bit = page % SMART_CHUNK_PAGES;
	uint64_t run = ((UINT64_C(1) << (1u << order)) - 1) << (bit % 64);
	struct smart_chunk *chunk = smart_chunk_at(region, number);

	smart_assert(order < SMART_PAGE_ORDERS && page % (1u << order) == 0 &&
				 bit >= smart_chunk_first_page(region, number));
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	smart_assert((chunk->free[bit / 64] & run) == 0);
	chunk->free[bit / 64] |= run;
	chunk->free_pages += 1u << order;
	if (smart_chunk_is_remote(region, number))
		smart_book_pages_given(region, number, 1u << order);
	else
	{
		smart_assert(number < smart_region_header(region)->home.chunks);
		smart_region_header(region)->home.used -= 1u << order;
		smart_chunk_relist(region, number);
	}
	space->locks->release(space->locks, SMART_LOCK_PAGES);
}

uint32_t
smart_page_of(const struct smart_space *space, fabric_address address)
{
	uint64_t page = fabric_offset(address) / SMART_PAGE_BYTES;

	if (space->region->book)
		return smart_book_page_of(space->region, address);
	if (fabric_node(address) != space->node || fabric_offset(address) >= smart_region_size(space->region) ||
		page % SMART_CHUNK_PAGES < SMART_CHUNK_FIRST_PAGE)
		return 0;
	return (uint32_t) page;
}

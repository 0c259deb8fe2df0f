/*
 * chunks.c
 *	  Chunks: the lists that pages are taken from, and the life of a remote chunk.
 *
 * Each chunk has a map of its free pages, and is in the list of the longest run that it can give.
 *
 *	  unused    its number waits for another chunk
 *	  remote    a memory node has given it: in the lists of the page allocator
 *	  leaving   it became wholly free: out of the lists, a pending free; remote again, if a chunk is wanted before
 *	            that is in hand, and its memory node is not closed
 *	  lost      its memory node is lost, and it has slabs of lost trees
 *
 * A memory node that gives a chunk which is leaving has been told that it is free, though the reply has not been seen
 * yet: the pending free is done then.
 */
#include <string.h>

#include "compute/allocate/chunks.h"
#include "compute/allocate/extent_map.h"

/* ---- lists ---- */

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

unsigned int
smart_chunk_list_for(const struct smart_region *region, const struct smart_chunk *chunk)
{
	unsigned int longest = 0;

	if (chunk->state == SMART_CHUNK_REMOTE && smart_extents_node_is_barred(smart_extents_node_at(region, chunk->node)))
		return 0;
	for (unsigned int i = 0; i < SMART_CHUNK_PAGES / 64; i++)
		while (longest < SMART_PAGE_ORDERS && aligned_runs(chunk->free[i], longest) != 0)
			longest++;
	return longest;
}

/* The lists of the chunks among which a chunk is. */
static uint32_t *
lists_with(struct smart_region *region, uint32_t number)
{
	if (smart_chunk_is_remote(region, number))
		return smart_extents_node_at(region, smart_chunk_at(region, number)->node)->list;
	return smart_region_header(region)->home.list;
}

/* Puts a chunk at the front of a list. */
static void
push(struct smart_region *region, uint32_t *head, uint32_t number)
{
	struct smart_chunk *chunk = smart_chunk_at(region, number);

	smart_assert(*head != number + 1);
	chunk->previous = 0;
	chunk->next = *head;
	if (*head != 0)
		smart_chunk_at(region, *head - 1)->previous = number + 1;
	*head = number + 1;
}

/* Takes a chunk out of the list that begins at head. */
static void
pull(struct smart_region *region, uint32_t *head, uint32_t number)
{
	struct smart_chunk *chunk = smart_chunk_at(region, number);

	smart_assert((chunk->previous == 0) == (*head == number + 1));
	if (chunk->previous != 0)
		smart_chunk_at(region, chunk->previous - 1)->next = chunk->next;
	else
		*head = chunk->next;
	if (chunk->next != 0)
		smart_chunk_at(region, chunk->next - 1)->previous = chunk->previous;
	chunk->next = chunk->previous = 0;
}

/* Takes a chunk out of the list of its order. */
static void
unlist(struct smart_region *region, uint32_t number)
{
	struct smart_chunk *chunk = smart_chunk_at(region, number);

	smart_assert(chunk->list >= 1 && chunk->list <= SMART_PAGE_ORDERS);
	pull(region, &lists_with(region, number)[chunk->list - 1], number);
	chunk->list = 0;
}

void
smart_chunk_relist(struct smart_region *region, uint32_t number)
{
	struct smart_chunk *chunk = smart_chunk_at(region, number);
	unsigned int list = smart_chunk_list_for(region, chunk);

	if (list == chunk->list)
		return;
	if (chunk->list != 0)
		unlist(region, number);
	if (list == 0)
		return;
	/* Only a chunk that pages may be taken of is in a list. */
	smart_assert(chunk->state == SMART_CHUNK_HOME || chunk->state == SMART_CHUNK_REMOTE);
	chunk->list = list;
	push(region, &lists_with(region, number)[list - 1], number);
}

void
smart_chunk_clear(struct smart_region *region, uint32_t number)
{
	struct smart_chunk *chunk = smart_chunk_at(region, number);
	unsigned int first = smart_chunk_first_page(region, number);

	memset(chunk->free, 0xff, sizeof(chunk->free));
	chunk->free[0] &= ~((UINT64_C(1) << first) - 1);
	chunk->free_pages = SMART_CHUNK_PAGES - first;
	chunk->list = chunk->next = chunk->previous = 0;
}

smart_status
smart_chunk_add_home(struct smart_region *region)
{
	struct smart_region_header *header = smart_region_header(region);
	uint32_t number = header->home.chunks;

	if (((uint64_t) number + 1) * SMART_CHUNK_BYTES > header->size)
	{
		smart_status status = smart_region_extend(region);

		if (status != SMART_OK)
			return status;
	}
	/* It was never touched and holds zeros. */
	smart_assert(number < region->remote && smart_chunk_at(region, number)->free_pages == 0);
	smart_assert(smart_chunk_at(region, number)->list == 0 &&
				 smart_chunk_at(region, number)->state == SMART_CHUNK_HOME);
	smart_chunk_clear(region, number);
	header->home.chunks++;
	smart_chunk_relist(region, number);
	return SMART_OK;
}

/* ---- runs ---- */

uint32_t
smart_chunk_take_run(struct smart_region *region, uint32_t number, unsigned int order, bool *fresh)
{
	struct smart_chunk *chunk = smart_chunk_at(region, number);
	uint64_t runs = 0;
	unsigned int i = 0;
	uint64_t bits;
	uint32_t page;

	smart_assert(chunk->list > order && chunk->free_pages >= 1u << order);
	while (i < SMART_CHUNK_PAGES / 64 && (runs = aligned_runs(chunk->free[i], order)) == 0)
		i++;
	smart_assert(runs != 0);
	page = number * SMART_CHUNK_PAGES + i * 64 + (unsigned int) __builtin_ctzll(runs);
	bits = smart_run_bits(page, order);
	if (smart_chunk_is_remote(region, number))
	{
		smart_assert(chunk->state == SMART_CHUNK_REMOTE);
		smart_extents_node_at(region, chunk->node)->pages_used += 1u << order;
		smart_extents_count_free(region, chunk->node, -(1 << order));
	}
	/* Only a remote chunk is ever free as a whole: one of the region's own has its head in it. */
	if (chunk->free_pages == SMART_CHUNK_PAGES)
		smart_region_header(region)->empty_chunks--;
	*fresh = (chunk->touched[i] & bits) == 0;
	chunk->free[i] &= ~bits;
	chunk->touched[i] |= bits;
	chunk->free_pages -= 1u << order;
	smart_lists_of(region, number)->used += 1u << order;
	smart_chunk_relist(region, number);
	return page;
}

/* Loaded by smart_slab_link() without the page allocator's lock. */
static void
set_state(struct smart_chunk *chunk, enum smart_chunk_state state)
{
	__atomic_store_n(&chunk->state, (uint32_t) state, __ATOMIC_RELEASE);
}

void
smart_chunk_free_number(struct smart_region *extents, uint32_t number)
{
	struct smart_region_header *header = smart_region_header(extents);
	struct smart_chunk *chunk = smart_chunk_at(extents, number);

	smart_assert(smart_chunk_is_remote(extents, number) && chunk->list == 0 && chunk->free_pages == SMART_CHUNK_PAGES);
	set_state(chunk, SMART_CHUNK_UNUSED);
	chunk->next = header->unused_chunk;
	header->unused_chunk = number + 1;
}

/* A wholly free chunk, which no list has any more, is the extent map's no more. */
static void
forget(struct smart_region *extents, uint32_t number)
{
	const struct smart_chunk *chunk = smart_chunk_at(extents, number);
	struct smart_extents_node *entry = smart_extents_node_at(extents, chunk->node);

	smart_assert(entry->chunks > 0 && smart_extents_chunk_at(extents, chunk->node, chunk->place) == number);
	smart_extent_map_add(extents, chunk->node, chunk->place, 0);
	smart_chunk_free_number(extents, number);
	entry->chunks--;
	smart_extents_release_node(extents, chunk->node);
}

void
smart_chunk_emptied(struct smart_region *extents, uint32_t number)
{
	const struct smart_chunk *chunk = smart_chunk_at(extents, number);

	smart_assert(chunk->state == SMART_CHUNK_REMOTE && chunk->free_pages == SMART_CHUNK_PAGES);
	if (++smart_region_header(extents)->empty_chunks > SMART_EMPTY_CHUNKS ||
		smart_extents_node_at(extents, chunk->node)->closed)
		smart_chunk_leave(extents, number);
}

void
smart_chunk_give_run(struct smart_region *region, uint32_t page, unsigned int order)
{
	uint32_t number = page / SMART_CHUNK_PAGES;
	struct smart_chunk *chunk = smart_chunk_at(region, number);
	uint64_t *word = &chunk->free[page % SMART_CHUNK_PAGES / 64];
	uint64_t bits = smart_run_bits(page, order);
	bool remote = smart_chunk_is_remote(region, number);

	smart_assert(page % SMART_CHUNK_PAGES >= smart_chunk_first_page(region, number) && (*word & bits) == 0);
	smart_assert(remote || number < smart_region_header(region)->home.chunks);
	*word |= bits;
	chunk->free_pages += 1u << order;
	if (remote)
		smart_extents_node_at(region, chunk->node)->pages_used -= 1u << order;
	if (chunk->state == SMART_CHUNK_LOST)
	{
		if (chunk->free_pages == SMART_CHUNK_PAGES)
			forget(region, number);
		return;
	}
	smart_assert(chunk->state == (remote ? SMART_CHUNK_REMOTE : SMART_CHUNK_HOME));
	smart_assert(smart_lists_of(region, number)->used >= 1u << order);
	smart_lists_of(region, number)->used -= 1u << order;
	if (remote)
		smart_extents_count_free(region, chunk->node, 1 << order);
	smart_chunk_relist(region, number);
	if (chunk->free_pages == SMART_CHUNK_PAGES)
		smart_chunk_emptied(region, number);
}

/* ---- remote chunks ---- */

/* A chunk of the lists is wholly free, and pages may be taken of it. */
static void
enlist_empty(struct smart_region *extents, uint32_t number)
{
	struct smart_region_header *header = smart_region_header(extents);
	struct smart_chunk *chunk = smart_chunk_at(extents, number);

	smart_assert(chunk->list == 0 && chunk->free_pages == SMART_CHUNK_PAGES);
	set_state(chunk, SMART_CHUNK_REMOTE);
	header->blocks.chunks++;
	header->empty_chunks++;
	smart_extents_count_free(extents, chunk->node, SMART_CHUNK_PAGES);
	smart_chunk_relist(extents, number);
}

smart_status
smart_chunk_add_remote(struct smart_region *extents, unsigned int node, uint64_t incarnation, uint32_t place)
{
	struct smart_region_header *header = smart_region_header(extents);
	struct smart_extents_node *entry = smart_extents_node_at(extents, node);
	struct smart_chunk *chunk;
	uint32_t number;

	if (entry->state != SMART_NODE_ACTIVE || entry->incarnation != incarnation)
		return SMART_UNREACHABLE;
	/* No block has the address 0. */
	if (place >= SMART_PLACES || (node == 0 && place == 0))
		return SMART_CORRUPT;
	number = smart_extents_chunk_at(extents, node, place);
	if (number != 0 && smart_chunk_at(extents, number)->state != SMART_CHUNK_LEAVING)
		return SMART_CORRUPT;
	if (number != 0)
		smart_chunk_left(extents, number);

	/* A number with a head: one that has served, or the next one. */
	if (header->unused_chunk != 0)
	{
		number = header->unused_chunk - 1;
		header->unused_chunk = smart_chunk_at(extents, number)->next;
	}
	else
	{
		smart_assert(header->remote_chunks < header->heads);
		number = SMART_HOME_CHUNKS + header->remote_chunks++;
	}
	chunk = smart_chunk_at(extents, number);
	memset(chunk, 0, sizeof(*chunk));
	smart_chunk_clear(extents, number);
	chunk->node = node;
	chunk->place = place;
	smart_extent_map_add(extents, node, place, number);
	entry->chunks++;
	entry->room -= entry->room > 0;
	smart_assert(smart_extents_chunk_at(extents, node, place) == number);
	enlist_empty(extents, number);
	/* It was closed after it had been asked. */
	if (entry->closed)
	{
		smart_chunk_leave(extents, number);
		return SMART_NO_SPACE;
	}
	return SMART_OK;
}

void
smart_chunk_list_leaving(struct smart_region *extents, uint32_t number)
{
	struct smart_chunk *chunk = smart_chunk_at(extents, number);
	struct smart_extents_node *entry = smart_extents_node_at(extents, chunk->node);

	smart_assert(chunk->state == SMART_CHUNK_LEAVING && chunk->list == 0 && chunk->free_pages == SMART_CHUNK_PAGES);
	push(extents, &entry->leaving, number);
}

static void
unlist_leaving(struct smart_region *extents, uint32_t number)
{
	struct smart_chunk *chunk = smart_chunk_at(extents, number);
	struct smart_extents_node *entry = smart_extents_node_at(extents, chunk->node);

	smart_assert(chunk->state == SMART_CHUNK_LEAVING && entry->leaving != 0);
	pull(extents, &entry->leaving, number);
}

void
smart_chunk_leave(struct smart_region *extents, uint32_t number)
{
	struct smart_region_header *header = smart_region_header(extents);
	struct smart_chunk *chunk = smart_chunk_at(extents, number);
	struct smart_extents_node *entry = smart_extents_node_at(extents, chunk->node);

	smart_assert(chunk->state == SMART_CHUNK_REMOTE && header->blocks.chunks > 0 && header->empty_chunks > 0);
	if (chunk->list != 0)
		unlist(extents, number);
	header->blocks.chunks--;
	header->empty_chunks--;
	smart_extents_count_free(extents, chunk->node, -(int32_t) SMART_CHUNK_PAGES);
	entry->room += entry->room < entry->capacity;
	chunk->told = false;
	chunk->pending = ++header->pendings;
	set_state(chunk, SMART_CHUNK_LEAVING);
	smart_chunk_list_leaving(extents, number);
}

void
smart_chunk_left(struct smart_region *extents, uint32_t number)
{
	smart_assert(smart_chunk_at(extents, number)->state == SMART_CHUNK_LEAVING);
	unlist_leaving(extents, number);
	forget(extents, number);
	smart_assert(smart_chunk_at(extents, number)->state == SMART_CHUNK_UNUSED);
}

bool
smart_chunk_take_back(struct smart_region *extents, unsigned int node)
{
	struct smart_extents_node *entry = smart_extents_node_at(extents, node);
	uint32_t next = entry->leaving;

	/* A node that has been told may give the chunk to another compute node. */
	while (next != 0 && smart_chunk_at(extents, next - 1)->told)
		next = smart_chunk_at(extents, next - 1)->next;
	if (next == 0)
		return false;
	unlist_leaving(extents, next - 1);
	entry->room -= entry->room > 0;
	enlist_empty(extents, next - 1);
	return true;
}

void
smart_chunk_lose(struct smart_region *extents, uint32_t number)
{
	struct smart_region_header *header = smart_region_header(extents);
	struct smart_chunk *chunk = smart_chunk_at(extents, number);

	smart_assert(smart_extents_node_at(extents, chunk->node)->state == SMART_NODE_LOST);
	if (chunk->state == SMART_CHUNK_LEAVING)
		smart_chunk_left(extents, number);
	if (chunk->state != SMART_CHUNK_REMOTE)
		return;
	if (chunk->list != 0)
		unlist(extents, number);
	header->blocks.chunks--;
	header->blocks.used -= SMART_CHUNK_PAGES - chunk->free_pages;
	smart_extents_count_free(extents, chunk->node, -(int32_t) chunk->free_pages);
	set_state(chunk, SMART_CHUNK_LOST);
	if (chunk->free_pages == SMART_CHUNK_PAGES)
	{
		header->empty_chunks--;
		forget(extents, number);
	}
}

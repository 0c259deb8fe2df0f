/*
 * book_chunks.c
 *	  The life of a remote chunk:
 *
 *	  unused    its number waits for another chunk
 *	  remote    a memory node has given it: in the lists of the page allocator
 *	  leaving   it became wholly free: out of the lists, a duty; remote again, if a chunk is wanted before that is in hand
 *	  lost      its memory node is lost, and it has slabs of lost trees
 *
 * A memory node that gives a chunk which is leaving has been told so, though
 * the duty's answer has not been seen yet: the duty is done then.
 */
#include <string.h>

#include "compute/book_parts.h"

/* WRITEs of a batch, and what they write. */
#define CLEAR_AT_ONCE (1u << (SMART_PAGE_ORDERS - 1))

static uint8_t zeros[SMART_PAGE_BYTES];

/* Loaded by smart_slab_link() without the page allocator's lock. */
static void
set_state(struct smart_chunk *chunk, enum smart_chunk_state state)
{
	__atomic_store_n(&chunk->state, (uint32_t) state, __ATOMIC_RELEASE);
}

/* The number, which no list has any more, serves again. */
static void
forget(struct smart_region *book, uint32_t number)
{
	struct smart_region_header *header = smart_region_header(book);
	struct smart_chunk *chunk = smart_chunk_at(book, number);

	smart_assert(chunk->list == 0 && chunk->free_pages == SMART_CHUNK_PAGES);
	smart_assert(smart_book_node_at(book, chunk->node)->chunks > 0);
	smart_book_map_chunk(book, chunk->node, chunk->place, 0);
	set_state(chunk, SMART_CHUNK_UNUSED);
	chunk->next = header->unused_chunk;
	header->unused_chunk = number + 1;
	smart_book_node_at(book, chunk->node)->chunks--;
	smart_book_release_node(book, chunk->node);
}

/* A number with a head. */
static uint32_t
take_number(struct smart_region *book)
{
	struct smart_region_header *header = smart_region_header(book);
	uint32_t number = header->unused_chunk;

	if (number != 0)
	{
		header->unused_chunk = smart_chunk_at(book, number - 1)->next;
		return number - 1;
	}
	smart_assert(header->remote_chunks < header->heads);
	return SMART_HOME_CHUNKS + header->remote_chunks++;
}

smart_status
smart_book_add_chunk(struct smart_region *book, unsigned int node, uint64_t incarnation, uint32_t place)
{
	struct smart_region_header *header = smart_region_header(book);
	struct smart_book_node *entry = smart_book_node_at(book, node);
	struct smart_chunk *chunk;
	uint32_t number;

	if (entry->state != SMART_NODE_ACTIVE || entry->incarnation != incarnation)
		return SMART_UNREACHABLE;
	/* No block has the address 0. */
	if (place >= SMART_PLACES || (node == 0 && place == 0))
		return SMART_CORRUPT;
	number = smart_book_chunk_at(book, node, place);
	if (number != 0 && smart_chunk_at(book, number)->state != SMART_CHUNK_LEAVING)
		return SMART_CORRUPT;
	if (number != 0)
		smart_book_chunk_left(book, number);
	number = take_number(book);
	chunk = smart_chunk_at(book, number);
	memset(chunk, 0, sizeof(*chunk));
	memset(chunk->free, 0xff, sizeof(chunk->free));
	chunk->free_pages = SMART_CHUNK_PAGES;
	chunk->node = node;
	chunk->place = place;
	set_state(chunk, SMART_CHUNK_REMOTE);
	smart_book_map_chunk(book, node, place, number);
	entry->chunks++;
	header->blocks.chunks++;
	header->empty_chunks++;
	smart_chunk_relist(book, number);
	return SMART_OK;
}

void
smart_book_count_taken(struct smart_region *book, struct smart_chunk *chunk, uint32_t pages)
{
	smart_assert(chunk->state == SMART_CHUNK_REMOTE);
	if (chunk->free_pages == SMART_CHUNK_PAGES)
		smart_region_header(book)->empty_chunks--;
	smart_book_node_at(book, chunk->node)->pages_used += pages;
}

void
smart_book_leave(struct smart_region *book, uint32_t number)
{
	struct smart_region_header *header = smart_region_header(book);
	struct smart_chunk *chunk = smart_chunk_at(book, number);
	struct smart_book_node *entry = smart_book_node_at(book, chunk->node);

	if (chunk->list != 0)
		smart_chunk_unlist(book, number);
	header->blocks.chunks--;
	header->empty_chunks--;
	set_state(chunk, SMART_CHUNK_LEAVING);
	chunk->told = false;
	chunk->duty = ++header->duties;
	chunk->previous = 0;
	chunk->next = entry->leaving;
	if (entry->leaving != 0)
		smart_chunk_at(book, entry->leaving - 1)->previous = number + 1;
	entry->leaving = number + 1;
}

void
smart_book_pages_given(struct smart_region *book, uint32_t number, uint32_t pages)
{
	struct smart_region_header *header = smart_region_header(book);
	struct smart_chunk *chunk = smart_chunk_at(book, number);

	smart_book_node_at(book, chunk->node)->pages_used -= pages;
	if (chunk->state == SMART_CHUNK_LOST)
	{
		if (chunk->free_pages == SMART_CHUNK_PAGES)
			forget(book, number);
		return;
	}
	smart_assert(chunk->state == SMART_CHUNK_REMOTE);
	header->blocks.used -= pages;
	smart_chunk_relist(book, number);
	if (chunk->free_pages == SMART_CHUNK_PAGES && ++header->empty_chunks > SMART_EMPTY_CHUNKS)
		smart_book_leave(book, number);
}

void
smart_book_lose_chunk(struct smart_region *book, uint32_t number)
{
	struct smart_region_header *header = smart_region_header(book);
	struct smart_chunk *chunk = smart_chunk_at(book, number);

	if (chunk->state == SMART_CHUNK_LEAVING)
		smart_book_chunk_left(book, number);
	if (chunk->state != SMART_CHUNK_REMOTE)
		return;
	if (chunk->list != 0)
		smart_chunk_unlist(book, number);
	header->blocks.chunks--;
	header->blocks.used -= SMART_CHUNK_PAGES - chunk->free_pages;
	set_state(chunk, SMART_CHUNK_LOST);
	if (chunk->free_pages == SMART_CHUNK_PAGES)
	{
		header->empty_chunks--;
		forget(book, number);
	}
}

static void
unlist_leaving(struct smart_region *book, uint32_t number)
{
	struct smart_chunk *chunk = smart_chunk_at(book, number);
	struct smart_book_node *entry = smart_book_node_at(book, chunk->node);

	smart_assert(chunk->state == SMART_CHUNK_LEAVING);
	if (chunk->previous != 0)
		smart_chunk_at(book, chunk->previous - 1)->next = chunk->next;
	else
	{
		smart_assert(entry->leaving == number + 1);
		entry->leaving = chunk->next;
	}
	if (chunk->next != 0)
		smart_chunk_at(book, chunk->next - 1)->previous = chunk->previous;
	chunk->next = 0;
	chunk->previous = 0;
}

void
smart_book_chunk_left(struct smart_region *book, uint32_t number)
{
	unlist_leaving(book, number);
	forget(book, number);
}

/* One of the node's leaving chunks, of which the node has certainly not heard; 0: none. */
static uint32_t
find_untold(const struct smart_region *book, unsigned int node)
{
	const struct smart_book_node *entry = smart_book_node_at(book, node);
	uint32_t next;

	if (entry == NULL || entry->state != SMART_NODE_ACTIVE || entry->resting)
		return 0;
	for (next = entry->leaving; next != 0 && smart_chunk_at(book, next - 1)->told;)
		next = smart_chunk_at(book, next - 1)->next;
	return next == 0 ? 0 : next - 1;
}

bool
smart_book_take_back(struct smart_region *book)
{
	struct smart_region_header *header = smart_region_header(book);
	uint32_t number = 0;

	for (unsigned int node = 0; node < FABRIC_NODES_MAX && number == 0; node++)
		number = find_untold(book, node);
	if (number == 0)
		return false;
	unlist_leaving(book, number);
	set_state(smart_chunk_at(book, number), SMART_CHUNK_REMOTE);
	header->blocks.chunks++;
	header->empty_chunks++;
	smart_chunk_relist(book, number);
	return true;
}

smart_status
smart_book_clear(struct smart_space *space, uint32_t page, unsigned int order)
{
	struct fabric_request requests[CLEAR_AT_ONCE];
	int count = 1 << order;

	smart_assert(order < SMART_PAGE_ORDERS);
	memset(requests, 0, sizeof(requests));
	for (int i = 0; i < count; i++)
	{
		requests[i].verb = FABRIC_WRITE;
		requests[i].length = SMART_PAGE_BYTES;
		requests[i].remote = smart_page_address(space, page + (uint32_t) i);
		requests[i].local = zeros;
	}
	return fabric_execute(space->supply->fabric, requests, count);
}

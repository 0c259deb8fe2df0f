/*
 * book_verify.c
 *	  Does what a book keeps about memory nodes and remote chunks agree?
 */
#include <stdio.h>
#include <string.h>

#include "compute/book_parts.h"

/* What there is of a memory node. */
struct count
{
	uint32_t chunks;
	uint32_t leaving;
	uint32_t trees;
	uint32_t dropping;
	uint64_t pages;
};

struct verify
{
	const struct smart_region *book;
	struct count node[FABRIC_NODES_MAX];
	uint32_t unused; /* chunk numbers that wait */
	uint32_t empty;
	uint64_t mapped;
	uint64_t home_pages;
	uint64_t block_pages;
	char *message;
	size_t message_size;
};

static smart_status
fault(struct verify *verify, const char *what, uint64_t where)
{
	snprintf(verify->message, verify->message_size, "%s (%llu)", what, (unsigned long long) where);
	return SMART_CORRUPT;
}

static smart_status
count_chunk(struct verify *verify, uint32_t number)
{
	const struct smart_chunk *chunk = smart_chunk_at(verify->book, number);
	struct count *count = &verify->node[chunk->node % FABRIC_NODES_MAX];

	if (chunk->state == SMART_CHUNK_UNUSED)
	{
		verify->unused++;
		return SMART_OK;
	}
	if (chunk->node >= FABRIC_NODES_MAX || chunk->place >= SMART_PLACES ||
		smart_book_chunk_at(verify->book, chunk->node, chunk->place) != number)
		return fault(verify, "a chunk is not on the map", number);
	if (chunk->state != SMART_CHUNK_REMOTE && chunk->state != SMART_CHUNK_LEAVING && chunk->state != SMART_CHUNK_LOST)
		return fault(verify, "a chunk is in no state", number);
	if ((chunk->state == SMART_CHUNK_LOST) != (smart_book_node_at(verify->book, chunk->node)->state == SMART_NODE_LOST))
		return fault(verify, "a chunk and its memory node are not in the same state", number);
	if ((chunk->state == SMART_CHUNK_LEAVING && chunk->free_pages != SMART_CHUNK_PAGES) ||
		(chunk->state == SMART_CHUNK_LOST && chunk->free_pages == SMART_CHUNK_PAGES))
		return fault(verify, "a chunk should be in another state", number);
	count->chunks++;
	count->leaving += chunk->state == SMART_CHUNK_LEAVING;
	count->pages += SMART_CHUNK_PAGES - chunk->free_pages;
	verify->empty += chunk->state == SMART_CHUNK_REMOTE && chunk->free_pages == SMART_CHUNK_PAGES;
	return SMART_OK;
}

static smart_status
count_chunks(struct verify *verify)
{
	const struct smart_region_header *header = smart_region_header(verify->book);
	uint32_t unused = 0;

	for (uint32_t i = 0; i < header->remote_chunks; i++)
	{
		smart_status status = count_chunk(verify, SMART_HOME_CHUNKS + i);

		if (status != SMART_OK)
			return status;
	}
	for (uint32_t i = header->unused_chunk; i != 0; i = smart_chunk_at(verify->book, i - 1)->next)
		if (smart_chunk_at(verify->book, i - 1)->state != SMART_CHUNK_UNUSED || ++unused > verify->unused)
			return fault(verify, "the list of unused chunk numbers is wrong", i);
	if (unused != verify->unused)
		return fault(verify, "chunk numbers are in no list", verify->unused);
	if (verify->empty != header->empty_chunks || verify->empty > SMART_EMPTY_CHUNKS + 1)
		return fault(verify, "the empty chunks are counted wrong, or too many", header->empty_chunks);
	return SMART_OK;
}

static smart_status
count_records(struct verify *verify)
{
	for (uint32_t i = smart_record_next(verify->book, 0); i != 0; i = smart_record_next(verify->book, i))
	{
		const struct smart_record *record = smart_record_at(verify->book, i);

		if (record->id == 0 && record->state == SMART_RECORD_PLAIN)
			continue;
		if (record->node >= FABRIC_NODES_MAX || (record->id != 0) == (record->state == SMART_RECORD_DROPPING))
			return fault(verify, "a tree's record is in no state", i);
		if (record->id != 0 && (fabric_node(record->root_address) != record->node || record->root_address == 0))
			return fault(verify, "a tree's root is elsewhere", i);
		verify->node[record->node].trees++;
		verify->node[record->node].dropping += record->state == SMART_RECORD_DROPPING;
	}
	return SMART_OK;
}

/* The map of one node: its pages, and how many chunks it knows. */
static void
count_map(struct verify *verify, const struct smart_book_node *entry)
{
	const uint32_t *pages = smart_page_memory(verify->book, entry->map);

	if (entry->map == 0)
		return;
	verify->home_pages++;
	for (unsigned int i = 0; i < SMART_PLACES_A_PAGE; i++)
	{
		const uint32_t *chunks = smart_page_memory(verify->book, pages[i]);

		if (pages[i] == 0)
			continue;
		verify->home_pages++;
		for (unsigned int j = 0; j < SMART_PLACES_A_PAGE; j++)
			verify->mapped += chunks[j] != 0;
	}
}

static smart_status
verify_node(struct verify *verify, unsigned int node)
{
	const struct smart_book_node *entry = smart_book_node_at(verify->book, node);
	struct count *count = &verify->node[node];
	bool referred = count->chunks > 0 || count->trees > 0;

	if (entry->chunks != count->chunks || entry->trees != count->trees || entry->pages_used != count->pages)
		return fault(verify, "what a memory node has is counted wrong", node);
	if ((entry->state == SMART_NODE_NONE && referred) || (entry->state == SMART_NODE_LOST && !referred))
		return fault(verify, "a memory node's number should be free, or should not be", node);
	for (uint32_t i = entry->leaving; i != 0; i = smart_chunk_at(verify->book, i - 1)->next)
		if (smart_chunk_at(verify->book, i - 1)->state != SMART_CHUNK_LEAVING || count->leaving-- == 0)
			return fault(verify, "a list of leaving chunks is wrong", node);
	for (uint32_t i = entry->dropping; i != 0; i = smart_record_at(verify->book, i)->next)
		if (smart_record_at(verify->book, i)->state != SMART_RECORD_DROPPING || count->dropping-- == 0)
			return fault(verify, "a list of dropped trees is wrong", node);
	if (count->leaving != 0 || count->dropping != 0)
		return fault(verify, "duties of a memory node are in no list", node);
	count_map(verify, entry);
	return SMART_OK;
}

static smart_status
verify_nodes(struct verify *verify)
{
	const struct smart_region_header *header = smart_region_header(verify->book);
	uint64_t chunks = 0;
	uint64_t pages = 0;

	if (header->growing)
		return fault(verify, "somebody is still growing the book", header->growing_node);
	verify->home_pages += header->map_reserve != 0;
	for (unsigned int node = 0; header->nodes_page != 0 && node < FABRIC_NODES_MAX; node++)
	{
		smart_status status = verify_node(verify, node);

		if (status != SMART_OK)
			return status;
		chunks += verify->node[node].chunks;
		pages += verify->node[node].pages;
	}
	if (header->nodes_page != 0)
		verify->home_pages += UINT64_C(1) << SMART_NODES_ORDER;
	if (chunks != verify->mapped)
		return fault(verify, "the map knows chunks that are not there", verify->mapped);
	if (pages != verify->block_pages)
		return fault(verify, "pages of memory nodes belong to nobody", pages - verify->block_pages);
	return SMART_OK;
}

smart_status
smart_book_verify(const struct smart_region *book, uint64_t block_pages, uint64_t *home_pages, char *message,
				  size_t message_size)
{
	struct verify verify = {
		.book = book,
		.block_pages = block_pages,
		.message = message,
		.message_size = message_size,
	};
	smart_status status = count_chunks(&verify);

	if (status == SMART_OK)
		status = count_records(&verify);
	if (status == SMART_OK)
		status = verify_nodes(&verify);
	if (status == SMART_OK)
		*home_pages = verify.home_pages;
	return status;
}

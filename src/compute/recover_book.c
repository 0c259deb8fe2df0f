/*
 * recover_book.c
 *	  Memory nodes, remote chunks and duties after a crash.
 *
 * What a memory node has handed out and the book does not know, reconciling gives back; so does it
 * drop a tree whose record was taken away before the node was told.  What a duty speaks of stays a duty, also if
 * the node has been told: it is told again, as after a clean restart.
 */
#include <string.h>

#include "compute/recover_parts.h"

/* The pages of a node's map; they are kept, and lead nowhere. */
static smart_status
clear_map(struct recover *recover, const struct smart_book_node *entry)
{
	const uint32_t *pages;
	smart_status status;

	if (entry->map == 0)
		return SMART_OK;
	status = smart_recover_claim(recover, entry->map, 0);
	pages = status == SMART_OK ? smart_page_memory(recover->region, entry->map) : NULL;
	for (unsigned int i = 0; i < SMART_PLACES_A_PAGE && status == SMART_OK; i++)
	{
		if (pages[i] == 0)
			continue;
		status = smart_recover_claim(recover, pages[i], 0);
		if (status == SMART_OK)
			memset(smart_page_memory(recover->region, pages[i]), 0, SMART_PAGE_BYTES);
	}
	return status;
}

static smart_status
clear_nodes(struct recover *recover)
{
	const struct smart_region_header *header = smart_region_header(recover->region);
	smart_status status;

	if (header->nodes_page == 0)
		return SMART_OK;
	status = smart_recover_claim(recover, header->nodes_page, SMART_NODES_ORDER);
	for (unsigned int i = 0; i < FABRIC_NODES_MAX && status == SMART_OK; i++)
	{
		struct smart_book_node *entry = smart_book_node_at(recover->region, i);

		if (entry->state > SMART_NODE_LOST)
			return smart_recover_fault(recover, "a memory node is in no state", i);
		entry->chunks = entry->trees = 0;
		entry->leaving = entry->dropping = 0;
		entry->pages_used = 0;
		status = clear_map(recover, entry);
	}
	return status;
}

/* Is this a chunk of an active memory node, where the map can have it? */
static bool
is_placed(const struct recover *recover, const struct smart_chunk *chunk)
{
	const struct smart_book_node *entry;

	if ((chunk->state != SMART_CHUNK_REMOTE && chunk->state != SMART_CHUNK_LEAVING) ||
		chunk->node >= FABRIC_NODES_MAX || chunk->place >= SMART_PLACES)
		return false;
	entry = smart_book_node_at(recover->region, chunk->node);
	return entry != NULL && entry->state == SMART_NODE_ACTIVE &&
		   smart_book_maps_near(recover->region, chunk->node, chunk->place);
}

/*
 * Of a chunk that is not on the map yet nobody has had a page; one of a lost memory node has nothing that is still
 * of use, as its trees are lost.
 */
static smart_status
resume_chunk(struct recover *recover, uint32_t number)
{
	struct smart_region *book = recover->region;
	struct smart_region_header *header = smart_region_header(book);
	struct smart_chunk *chunk = smart_chunk_at(book, number);
	struct smart_book_node *entry;

	if (!is_placed(recover, chunk))
	{
		chunk->state = SMART_CHUNK_UNUSED;
		chunk->next = header->unused_chunk;
		header->unused_chunk = number + 1;
		return SMART_OK;
	}
	if (smart_book_chunk_at(book, chunk->node, chunk->place) != 0)
		return smart_recover_fault(recover, "two chunks are at one place", number);
	smart_book_map_chunk(book, chunk->node, chunk->place, number);
	entry = smart_book_node_at(book, chunk->node);
	entry->chunks++;
	if (chunk->state == SMART_CHUNK_REMOTE)
		return SMART_OK;
	chunk->next = entry->leaving;
	if (entry->leaving != 0)
		smart_chunk_at(book, entry->leaving - 1)->previous = number + 1;
	entry->leaving = number + 1;
	return SMART_OK;
}

smart_status
smart_recover_nodes(struct recover *recover)
{
	struct smart_region_header *header = smart_region_header(recover->region);
	smart_status status;

	header->growing = false;
	header->map_reserve = 0;
	header->unused_chunk = 0;
	smart_recover_clear_chunks(recover);
	status = clear_nodes(recover);
	for (uint32_t i = SMART_HOME_CHUNKS + header->remote_chunks; i-- > SMART_HOME_CHUNKS && status == SMART_OK;)
		status = resume_chunk(recover, i);
	return status;
}

void
smart_recover_lose_node(struct smart_space *space, unsigned int number)
{
	struct smart_book_node *entry = smart_book_node_at(space->region, number);

	if (entry != NULL && entry->state == SMART_NODE_ACTIVE)
		__atomic_store_n(&entry->state, (uint32_t) SMART_NODE_LOST, __ATOMIC_RELEASE);
}

/* ---- trees ---- */

static bool
is_active(const struct recover *recover, uint32_t node)
{
	const struct smart_book_node *entry = node < FABRIC_NODES_MAX ? smart_book_node_at(recover->region, node) : NULL;

	return entry != NULL && entry->state == SMART_NODE_ACTIVE;
}

/* A memory node may have a root slot for it, or not: as if its answer had not come.  An earlier call may have begun this. */
static void
unmake(struct smart_record *record)
{
	record->dropped = record->id;
	smart_record_set_state(record, SMART_RECORD_DROPPING);
	__atomic_store_n(&record->id, 0, __ATOMIC_RELEASE);
}

bool
smart_recover_duty(struct recover *recover, uint32_t number)
{
	struct smart_record *record = smart_record_at(recover->region, number);
	struct smart_book_node *entry;

	if (record->id != 0 &&
		(smart_record_state(record) == SMART_RECORD_MAKING || smart_record_state(record) == SMART_RECORD_DROPPING))
		unmake(record);
	if (record->id != 0 || smart_record_state(record) != SMART_RECORD_DROPPING || !is_active(recover, record->node))
		return false;
	entry = smart_book_node_at(recover->region, record->node);
	entry->trees++;
	record->next = entry->dropping;
	entry->dropping = number;
	return true;
}

smart_status
smart_recover_remote_tree(struct recover *recover, uint32_t number)
{
	struct smart_record *record = smart_record_at(recover->region, number);
	enum smart_record_state state = smart_record_state(record);
	struct smart_book_node *entry =
		record->node < FABRIC_NODES_MAX ? smart_book_node_at(recover->region, record->node) : NULL;

	if (entry == NULL || entry->state == SMART_NODE_NONE || record->root_address == 0 ||
		fabric_node(record->root_address) != record->node ||
		(state != SMART_RECORD_PLAIN && state != SMART_RECORD_LOST))
		return smart_recover_fault(recover, "a tree's root is nowhere", number);
	entry->trees++;
	/* Somebody was about to say so. */
	if (entry->state == SMART_NODE_LOST)
		smart_record_set_state(record, SMART_RECORD_LOST);
	return SMART_OK;
}

/* ---- the end ---- */

static void
count_chunk(struct smart_region *book, uint32_t number)
{
	const struct smart_chunk *chunk = smart_chunk_at(book, number);

	if (chunk->state != SMART_CHUNK_REMOTE)
		return;
	smart_book_node_at(book, chunk->node)->pages_used += SMART_CHUNK_PAGES - chunk->free_pages;
	if (chunk->free_pages < SMART_CHUNK_PAGES)
		return;
	if (++smart_region_header(book)->empty_chunks > SMART_EMPTY_CHUNKS)
		smart_book_leave(book, number);
}

void
smart_recover_end_nodes(struct recover *recover)
{
	struct smart_region_header *header = smart_region_header(recover->region);

	header->empty_chunks = 0;
	for (uint32_t i = 0; i < header->remote_chunks; i++)
		count_chunk(recover->region, SMART_HOME_CHUNKS + i);
	for (unsigned int i = 0; header->nodes_page != 0 && i < FABRIC_NODES_MAX; i++)
		smart_book_release_node(recover->region, i);
}

/*
 * verify.c
 *	  Does what a space, and an extent map, keeps about itself agree?
 */
#include <stdio.h>
#include <string.h>

#include "compute/allocate/extents_parts.h"
#include "compute/allocate/segment.h"
#include "compute/allocate/slab.h"
#include "support/verify.h"

/* What there is of a memory node. */
struct count
{
	uint32_t chunks;
	uint32_t leaving;
	uint32_t trees;
	uint32_t dropping;
	uint64_t pages;
	uint64_t free; /* pages, of chunks in use */
};

struct verify
{
	const struct smart_region *region;
	uint64_t now;         /* epoch */
	uint64_t home_pages;  /* in use by what was passed */
	uint64_t block_pages; /* in slabs */
	char *message;
	size_t message_size;

	/* an extent map's */
	struct count node[FABRIC_NODES_MAX];
	uint32_t unused; /* chunk numbers that wait */
	uint32_t empty;
	uint64_t mapped;
};

static smart_status
fault(struct verify *verify, const char *what, uint64_t where)
{
	snprintf(verify->message, verify->message_size, "%s (%llu)", what, (unsigned long long) where);
	return SMART_CORRUPT;
}

static smart_status
verify_chunk(struct verify *verify, uint32_t number)
{
	const struct smart_chunk *chunk = smart_chunk_at(verify->region, number);
	uint32_t free_pages = 0;

	for (unsigned int word = 0; word < SMART_CHUNK_PAGES / 64; word++)
		free_pages += (uint32_t) __builtin_popcountll(chunk->free[word]);
	if (free_pages != chunk->free_pages)
		return fault(verify, "a chunk counts its free pages wrong", number);
	if (chunk->list != smart_chunk_list_for(verify->region, chunk))
		return fault(verify, "a chunk is in a list of another run length", number);
	if ((chunk->free[0] & ((1u << smart_chunk_first_page(verify->region, number)) - 1)) != 0)
		return fault(verify, "a chunk's own pages are free", number);
	return SMART_OK;
}

/* The chunks of lists, of a memory node unless it is FABRIC_NODES_MAX, limit at most; as far as they belong there. */
static uint64_t
count_listed(const struct verify *verify, const uint32_t list[SMART_PAGE_ORDERS], unsigned int node, uint64_t limit)
{
	uint64_t listed = 0;

	for (unsigned int order = 0; order < SMART_PAGE_ORDERS; order++)
		for (uint32_t i = list[order]; i != 0; i = smart_chunk_at(verify->region, i - 1)->next)
		{
			const struct smart_chunk *chunk = smart_chunk_at(verify->region, i - 1);

			if (listed == limit || chunk->list != order + 1 || (node < FABRIC_NODES_MAX && chunk->node != node))
				return 0;
			listed++;
		}
	return listed;
}

/* The chunks from first on, count numbers, of which those in this state are in the lists. */
static smart_status
verify_chunks(struct verify *verify, const struct smart_page_lists *lists, uint32_t first, uint32_t count,
			  enum smart_chunk_state state)
{
	uint32_t usable = SMART_CHUNK_PAGES - smart_chunk_first_page(verify->region, first);
	uint64_t used = 0;
	uint64_t listed = 0;
	uint32_t chunks = 0;

	for (uint32_t i = first; i < first + count; i++)
	{
		const struct smart_chunk *chunk = smart_chunk_at(verify->region, i);
		smart_status status;

		if (chunk->state != (uint32_t) state)
			continue;
		status = verify_chunk(verify, i);
		if (status != SMART_OK)
			return status;
		used += usable - chunk->free_pages;
		listed += chunk->list != 0;
		chunks++;
	}
	if (lists != &smart_region_header(verify->region)->blocks)
		listed -= count_listed(verify, lists->list, FABRIC_NODES_MAX, listed);
	for (unsigned int i = 0; lists == &smart_region_header(verify->region)->blocks && i < FABRIC_NODES_MAX; i++)
		if (smart_extents_node_at(verify->region, i) != NULL)
			listed -= count_listed(verify, smart_extents_node_at(verify->region, i)->list, i, listed);
	if (listed != 0)
		return fault(verify, "chunks are in no list, or a list is wrong", listed);
	if (chunks != lists->chunks)
		return fault(verify, "the chunks are counted wrong", lists->chunks);
	if (used != lists->used)
		return fault(verify, "the pages in use are counted wrong", lists->used);
	return SMART_OK;
}

/* Only lost trees have slabs in lost chunks. */
static bool
chunk_fits(struct verify *verify, uint32_t number, uint32_t page)
{
	const struct smart_chunk *chunk = smart_chunk_at(verify->region, page / SMART_CHUNK_PAGES);

	if (!verify->region->extents)
		return chunk->state == SMART_CHUNK_HOME;
	return chunk->state == SMART_CHUNK_REMOTE ||
		   (chunk->state == SMART_CHUNK_LOST &&
			smart_record_state(smart_record_at(verify->region, number)) == SMART_RECORD_LOST);
}

static bool
run_taken(struct verify *verify, uint32_t page, unsigned int order)
{
	const struct smart_chunk *chunk = smart_chunk_at(verify->region, page / SMART_CHUNK_PAGES);
	unsigned int bit = page % SMART_CHUNK_PAGES;

	return (chunk->free[bit / 64] >> (bit % 64) & ((UINT64_C(1) << (1u << order)) - 1)) == 0;
}

static smart_status
verify_slab(struct verify *verify, uint32_t number, uint32_t page, bool full, smart_class class)
{
	const struct smart_slab *slab = smart_slab_at(verify->region, page);
	uint64_t beyond;
	unsigned int order;

	if (slab->record != number || (!full && slab->class != class))
		return fault(verify, "a slab is in another tree's or class's list", page);
	if (slab->blocks != smart_slab_geometry(slab->class, &order) || slab->order != order || page % (1u << order) != 0)
		return fault(verify, "a slab has another shape than its class", page);
	beyond = slab->blocks == 64 ? 0 : ~((UINT64_C(1) << slab->blocks) - 1);
	if (((slab->free | slab->retired) & beyond) != 0 || (slab->free & slab->retired) != 0)
		return fault(verify, "a slab's maps are wrong", page);
	if (full != (slab->free == 0))
		return fault(verify, "a slab is in the wrong list", page);
	if (slab->queued != (slab->retired != 0) || slab->stamp > verify->now)
		return fault(verify, "a slab's retired blocks are not queued, or stamped in the future", page);
	if (!run_taken(verify, page, slab->order))
		return fault(verify, "a slab's pages are free", page);
	if (!chunk_fits(verify, number, page))
		return fault(verify, "a slab is in a chunk that is not there", page);
	return SMART_OK;
}

static smart_status
verify_list(struct verify *verify, uint32_t number, uint32_t head, bool full, smart_class class, uint64_t *slabs,
			uint64_t *pages)
{
	uint32_t before = 0;

	for (uint32_t page = head; page != 0; page = smart_slab_at(verify->region, page)->next)
	{
		smart_status status = verify_slab(verify, number, page, full, class);

		if (status != SMART_OK)
			return status;
		if (smart_slab_at(verify->region, page)->previous != before)
			return fault(verify, "a slab list's links disagree", page);
		before = page;
		++*slabs;
		*pages += UINT64_C(1) << smart_slab_at(verify->region, page)->order;
	}
	return SMART_OK;
}

/* The queue ascends, and every slab in it belongs to the tree (verify_slab sees that none is missing). */
static smart_status
verify_queue(struct verify *verify, uint32_t number)
{
	const struct smart_record *record = smart_record_at(verify->region, number);
	uint64_t stamp = 0;
	uint32_t before = 0;

	for (uint32_t page = record->queue_head; page != 0; page = smart_slab_at(verify->region, page)->queue_next)
	{
		const struct smart_slab *slab = smart_slab_at(verify->region, page);

		if (!slab->queued || slab->record != number || slab->queue_previous != before || slab->stamp < stamp)
			return fault(verify, "a queue of retired blocks is wrong", page);
		stamp = slab->stamp;
		before = page;
	}
	return before == record->queue_tail ? SMART_OK : fault(verify, "a queue ends elsewhere", number);
}

static smart_status
verify_tree(struct verify *verify, uint32_t number)
{
	const struct smart_record *record = smart_record_at(verify->region, number);
	uint64_t slabs = 0;
	uint64_t pages = 0;
	smart_status status = verify_list(verify, number, record->full, true, 0, &slabs, &pages);

	for (unsigned int class = 0; class < SMART_CLASSES && status == SMART_OK; class ++)
		status = verify_list(verify, number, record->partial[class], false, (smart_class) class, &slabs, &pages);
	if (status == SMART_OK)
		status = verify_queue(verify, number);
	if (status == SMART_OK && (slabs != record->slabs || pages != record->pages))
		status = fault(verify, "a tree counts its slabs wrong", number);
	if (status == SMART_OK && record->id == 0 && slabs != 0)
		status = fault(verify, "a free record has slabs", number);
	if (status == SMART_OK && smart_record_state(record) == SMART_RECORD_MAKING)
		status = fault(verify, "a tree is being made", number);
	verify->block_pages += pages;
	return status;
}

static smart_status
verify_directory(struct verify *verify)
{
	const struct smart_region_header *header = smart_region_header(verify->region);
	const uint32_t *buckets = smart_page_memory(verify->region, header->buckets_page);
	uint64_t found = 0;
	uint64_t live = 0;

	if (header->buckets_page == 0)
		return SMART_OK;
	verify->home_pages += SMART_TREE_BUCKETS * sizeof(uint32_t) / SMART_PAGE_BYTES;
	for (unsigned int i = 0; i < SMART_TREE_BUCKETS; i++)
		for (uint32_t number = buckets[i]; number != 0; number = smart_record_at(verify->region, number)->next, found++)
			if (found > header->trees || smart_record_at(verify->region, number)->id == 0)
				return fault(verify, "a bucket of the directory is wrong", i);
	for (uint32_t page = header->record_pages; page != 0; page = smart_record_at(verify->region, page)->page)
	{
		verify->home_pages++;
		for (unsigned int i = 0; i < SMART_RECORDS_A_PAGE; i++)
		{
			uint32_t number = page + i * SMART_RECORD_STEP;
			smart_status status = verify_tree(verify, number);

			live += smart_record_at(verify->region, number)->id != 0;
			if (status != SMART_OK)
				return status;
		}
	}
	if (found != header->trees || live != header->trees)
		return fault(verify, "the trees are counted wrong", header->trees);
	return SMART_OK;
}

static smart_status
count_kept(void *argument, uint32_t page, unsigned int order)
{
	struct verify *verify = argument;

	if (!run_taken(verify, page, order))
		return fault(verify, "a kept page is free", page);
	verify->home_pages += UINT64_C(1) << order;
	return SMART_OK;
}

/* ---- an extent map ---- */

static smart_status
count_chunk(struct verify *verify, uint32_t number)
{
	const struct smart_chunk *chunk = smart_chunk_at(verify->region, number);
	struct count *count = &verify->node[chunk->node % FABRIC_NODES_MAX];

	if (chunk->state == SMART_CHUNK_UNUSED)
	{
		verify->unused++;
		return SMART_OK;
	}
	if (chunk->node >= FABRIC_NODES_MAX || chunk->place >= SMART_PLACES ||
		smart_extents_chunk_at(verify->region, chunk->node, chunk->place) != number)
		return fault(verify, "a chunk is not on the map", number);
	if (chunk->state != SMART_CHUNK_REMOTE && chunk->state != SMART_CHUNK_LEAVING && chunk->state != SMART_CHUNK_LOST)
		return fault(verify, "a chunk is in no state", number);
	if ((chunk->state == SMART_CHUNK_LOST) !=
		(smart_extents_node_at(verify->region, chunk->node)->state == SMART_NODE_LOST))
		return fault(verify, "a chunk and its memory node are not in the same state", number);
	if ((chunk->state == SMART_CHUNK_LEAVING && chunk->free_pages != SMART_CHUNK_PAGES) ||
		((chunk->state == SMART_CHUNK_LOST || smart_extents_node_at(verify->region, chunk->node)->closed) &&
		 chunk->state != SMART_CHUNK_LEAVING && chunk->free_pages == SMART_CHUNK_PAGES))
		return fault(verify, "a chunk should be in another state", number);
	count->chunks++;
	count->leaving += chunk->state == SMART_CHUNK_LEAVING;
	count->pages += SMART_CHUNK_PAGES - chunk->free_pages;
	count->free += chunk->state == SMART_CHUNK_REMOTE ? chunk->free_pages : 0;
	verify->empty += chunk->state == SMART_CHUNK_REMOTE && chunk->free_pages == SMART_CHUNK_PAGES;
	return SMART_OK;
}

static smart_status
count_chunks(struct verify *verify)
{
	const struct smart_region_header *header = smart_region_header(verify->region);
	uint32_t unused = 0;

	for (uint32_t i = 0; i < header->remote_chunks; i++)
	{
		smart_status status = count_chunk(verify, SMART_HOME_CHUNKS + i);

		if (status != SMART_OK)
			return status;
	}
	for (uint32_t i = header->unused_chunk; i != 0; i = smart_chunk_at(verify->region, i - 1)->next)
		if (smart_chunk_at(verify->region, i - 1)->state != SMART_CHUNK_UNUSED || ++unused > verify->unused)
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
	for (uint32_t i = smart_record_next(verify->region, 0); i != 0; i = smart_record_next(verify->region, i))
	{
		const struct smart_record *record = smart_record_at(verify->region, i);

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
count_map(struct verify *verify, const struct smart_extents_node *entry)
{
	const uint32_t *pages = smart_page_memory(verify->region, entry->map);

	if (entry->map == 0)
		return;
	verify->home_pages++;
	for (unsigned int i = 0; i < SMART_PLACES_A_PAGE; i++)
	{
		const uint32_t *chunks = smart_page_memory(verify->region, pages[i]);

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
	const struct smart_extents_node *entry = smart_extents_node_at(verify->region, node);
	struct count *count = &verify->node[node];
	bool referred = count->chunks > 0 || count->trees > 0;

	if (entry->chunks != count->chunks || entry->trees != count->trees || entry->pages_used != count->pages ||
		entry->pages_free != count->free)
		return fault(verify, "what a memory node has is counted wrong", node);
	if ((entry->state == SMART_NODE_NONE && referred) || (entry->state == SMART_NODE_LOST && !referred))
		return fault(verify, "a memory node's number should be free, or should not be", node);
	for (uint32_t i = entry->leaving; i != 0; i = smart_chunk_at(verify->region, i - 1)->next)
		if (smart_chunk_at(verify->region, i - 1)->state != SMART_CHUNK_LEAVING || count->leaving-- == 0)
			return fault(verify, "a list of leaving chunks is wrong", node);
	for (uint32_t i = entry->dropping; i != 0; i = smart_record_at(verify->region, i)->next)
		if (smart_record_at(verify->region, i)->state != SMART_RECORD_DROPPING || count->dropping-- == 0)
			return fault(verify, "a list of dropped trees is wrong", node);
	if (count->leaving != 0 || count->dropping != 0)
		return fault(verify, "pending frees of a memory node are in no list", node);
	count_map(verify, entry);
	return SMART_OK;
}

static smart_status
verify_nodes(struct verify *verify)
{
	const struct smart_region_header *header = smart_region_header(verify->region);
	uint64_t chunks = 0;
	uint64_t pages = 0;
	uint64_t barred = 0;

	if (header->growing)
		return fault(verify, "the extent map is still growing", header->growing_node);
	verify->home_pages += header->map_reserve != 0;
	for (unsigned int node = 0; header->nodes_page != 0 && node < FABRIC_NODES_MAX; node++)
	{
		smart_status status = verify_node(verify, node);

		if (status != SMART_OK)
			return status;
		chunks += verify->node[node].chunks;
		if (smart_extents_node_is_barred(smart_extents_node_at(verify->region, node)))
			barred += verify->node[node].free;
		pages += verify->node[node].pages;
	}
	if (header->nodes_page != 0)
		verify->home_pages += UINT64_C(1) << SMART_NODES_ORDER;
	if (barred != header->blocks.barred)
		return fault(verify, "pages that are of no use now are counted wrong", header->blocks.barred);
	if (chunks != verify->mapped)
		return fault(verify, "the map knows chunks that are not there", verify->mapped);
	if (pages != verify->block_pages)
		return fault(verify, "pages of memory nodes have no owner", pages - verify->block_pages);
	return SMART_OK;
}

static smart_status
verify_book(struct verify *verify)
{
	const struct smart_region_header *header = smart_region_header(verify->region);
	smart_status status =
		verify_chunks(verify, &header->blocks, SMART_HOME_CHUNKS, header->remote_chunks, SMART_CHUNK_REMOTE);

	if (status == SMART_OK)
		status = count_chunks(verify);
	if (status == SMART_OK)
		status = count_records(verify);
	if (status == SMART_OK)
		status = verify_nodes(verify);
	return status;
}

smart_status
smart_space_verify(struct smart_space *space, char *message, size_t message_size)
{
	const struct smart_region_header *header = smart_region_header(space->region);
	struct verify verify = {
		.region = space->region,
		.now = smart_epoch_now(space->epoch),
		.message = message,
		.message_size = message_size,
	};
	smart_status status = verify_chunks(&verify, &header->home, 0, header->home.chunks, SMART_CHUNK_HOME);

	smart_assert(message_size > 0);
	if (status == SMART_OK)
		status = verify_directory(&verify);
	if (status == SMART_OK)
		status = smart_segment_runs(verify.region, count_kept, &verify);
	if (status == SMART_OK && space->region->extents)
		status = verify_book(&verify);
	else
		verify.home_pages += verify.block_pages;
	if (status == SMART_OK && verify.home_pages != header->home.used)
		status = fault(&verify, "pages have no owner", header->home.used - verify.home_pages);
	return status;
}

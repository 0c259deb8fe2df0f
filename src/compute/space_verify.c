/*
 * space_verify.c
 *	  Does what the space keeps about itself agree?  For tests and for doubts;
 *	  nobody else may be at work.
 */
#include <stdio.h>
#include <string.h>

#include "compute/book_parts.h"
#include "compute/kept.h"
#include "compute/trees.h"

struct verify
{
	const struct smart_region *region;
	uint64_t now;         /* epoch */
	uint64_t home_pages;  /* in use by what was passed */
	uint64_t block_pages; /* in slabs */
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
	for (unsigned int order = 0; order < SMART_PAGE_ORDERS; order++)
		for (uint32_t i = lists->list[order]; i != 0; i = smart_chunk_at(verify->region, i - 1)->next, listed--)
			if (listed == 0 || smart_chunk_at(verify->region, i - 1)->list != order + 1)
				return fault(verify, "a chunk list is wrong", order);
	if (listed != 0)
		return fault(verify, "chunks are in no list", listed);
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

	if (!verify->region->book)
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

static smart_status
verify_book(struct verify *verify)
{
	const struct smart_region_header *header = smart_region_header(verify->region);
	uint64_t home_pages = 0;
	smart_status status =
		verify_chunks(verify, &header->blocks, SMART_HOME_CHUNKS, header->remote_chunks, SMART_CHUNK_REMOTE);

	if (status == SMART_OK)
		status =
			smart_book_verify(verify->region, verify->block_pages, &home_pages, verify->message, verify->message_size);
	verify->home_pages += home_pages;
	return status;
}

smart_status
smart_space_verify(struct smart_space *space, char *message, size_t message_size)
{
	const struct smart_region_header *header = smart_region_header(space->region);
	struct verify verify = {space->region, smart_epoch_now(space->epoch), 0, 0, message, message_size};
	smart_status status = verify_chunks(&verify, &header->home, 0, header->home.chunks, SMART_CHUNK_HOME);

	smart_assert(message_size > 0);
	if (status == SMART_OK)
		status = verify_directory(&verify);
	if (status == SMART_OK)
		status = smart_kept_runs(verify.region, count_kept, &verify);
	if (status == SMART_OK && space->region->book)
		status = verify_book(&verify);
	else
		verify.home_pages += verify.block_pages;
	if (status == SMART_OK && verify.home_pages != header->home.used)
		status = fault(&verify, "pages belong to nobody", header->home.used - verify.home_pages);
	return status;
}

/*
 * recover.c
 *	  The course of recovery, and what it trusts.
 *
 * A process can be killed between any two of its stores.  What it had stored before is in the file, in the order of
 * its instructions; and at a release, or where it gave a lock back, all that its source has before is.  So each
 * structure is either trusted, because one store with release made it what it is, or made anew from what is trusted:
 *
 *	  trusted                                  why
 *	  region's size, number of chunks          raised when the room is there, under the lock that its users take
 *	  last tree's number                       raised before the id that it makes is stored
 *	  list of the records' pages               a page is linked by one store, behind its own link
 *	  a record with an id: owner, root         the id is stored last, and taken away first
 *	  a record's state, its pending free       the state is stored last
 *	  trees                                    every change is one CAS (src/README)
 *	  persistent segments: which there are     stored when they are zeros
 *	  chunk: which pages may hold other        set before a client has them
 *	      than zeros
 *	  remote chunk: its node and place         its state is stored last, and taken away first
 *	  memory node: its region's incarnation    its state is stored last
 *	  memory node: whether it is closed        one store
 *
 *	  made anew
 *	  directory's table, list of free records  from the records
 *	  slabs: tree, class, free blocks          from the trees: a block that a slot leads to is in use, and
 *	                                           says by its class how its slab lies
 *	  retired blocks                           none: all clients that could have seen them are dead
 *	  chunks' maps, counts and lists           from slabs, records, persistent segments and tables
 *	  map of places, nodes' counts and lists   from the remote chunks and the records; what a node said of its room, and
 *	                                           trees' homes, are hints and stay
 *	  growth in hand                           none: reconciling finds a chunk that was on its way
 *
 * Slabs' descriptors serve as mark bits: they begin without a slab, and a block that is met takes its bit away from
 * the free ones.  So a second call, or one after a second crash, starts from the same words as the first.
 *
 * A tree that was being made has an id when it is whole, and a tree that is being dropped has none from the start.  So
 * there is no half of one: what hung on a record without an id is not reached from anywhere, and free.  What a pending
 * free speaks of stays a pending free, also if the memory node has been told: it is told again, as after a clean
 * restart.  A tree whose record was taken away before its node was told is dropped by reconciling.
 *
 * What a slot does not lead to is free: blocks that were allocated and not linked, and retired ones.  A lock of a linked
 * leaf, whose holder is dead, is passed by clients that meet it (FORWARD).  In exclusive mode there are none: the locks
 * are in memory that is new.
 */
#include <stdio.h>
#include <string.h>

#include "compute/allocate/extents_parts.h"
#include "compute/allocate/segment.h"
#include "compute/allocate/slab.h"
#include "compute/recovery/recover.h"
#include "tree/read/mark.h"

struct recover
{
	struct smart_space *space;
	struct smart_region *region;
	struct fabric *fabric;
	struct smart_env *env;
	struct smart_recovery *recovery;
	uint32_t record;      /* of the tree that is being marked */
	uint64_t pages_found; /* for progress */
	uint64_t pages_before;
};

/* The number behind the last remote chunk's; there is none if this is SMART_HOME_CHUNKS. */
static inline uint32_t
remote_end(const struct smart_region *region)
{
	return SMART_HOME_CHUNKS + smart_region_header(region)->remote_chunks;
}

static smart_status
fault(struct recover *recover, const char *what, uint64_t where)
{
	snprintf(recover->recovery->message, sizeof(recover->recovery->message), "%s (%llx)", what,
			 (unsigned long long) where);
	return SMART_CORRUPT;
}

/* ---- pages ---- */

/* May pages of the chunk be in use? */
static bool
chunk_in_use(const struct smart_region *region, uint32_t number)
{
	if (smart_chunk_is_remote(region, number))
		return number < remote_end(region) && smart_chunk_at(region, number)->state == SMART_CHUNK_REMOTE;
	return number < smart_region_header(region)->home.chunks;
}

/* A run of pages is in use.  SMART_CORRUPT: there is no such run, or part of it is in use.  Also a smart_segment_fn. */
static smart_status
claim(void *argument, uint32_t page, unsigned int order)
{
	struct recover *recover = argument;
	uint32_t number = page / SMART_CHUNK_PAGES;
	unsigned int word = page % SMART_CHUNK_PAGES / 64;
	struct smart_chunk *chunk;
	uint64_t run;

	smart_assert(order < SMART_PAGE_ORDERS);
	if (page % (1u << order) != 0 || !chunk_in_use(recover->region, number))
		return fault(recover, "a page does not lie in the region", page);
	run = smart_run_bits(page, order);
	chunk = smart_chunk_at(recover->region, number);
	if ((chunk->free[word] & run) != run)
		return fault(recover, "a page serves two purposes", page);
	chunk->free[word] &= ~run;
	/* What is in use may hold anything. */
	chunk->touched[word] |= run;
	chunk->free_pages -= 1u << order;
	return SMART_OK;
}

/* The opposite of claim. */
static void
release(struct recover *recover, uint32_t page, unsigned int order)
{
	struct smart_chunk *chunk = smart_chunk_at(recover->region, page / SMART_CHUNK_PAGES);
	uint64_t *word = &chunk->free[page % SMART_CHUNK_PAGES / 64];

	smart_assert((*word & smart_run_bits(page, order)) == 0);
	*word |= smart_run_bits(page, order);
	chunk->free_pages += 1u << order;
	smart_assert(chunk->free_pages <= SMART_CHUNK_PAGES);
}

/* ---- before the directory: no page is in use, and no slab anywhere; chunks are in no list ---- */

static void
clear_chunk(struct smart_region *region, uint32_t number)
{
	smart_chunk_clear(region, number);
	memset(smart_chunk_memory(region, number) + SMART_PAGE_BYTES, 0, SMART_CHUNK_PAGES * sizeof(struct smart_slab));
}

static void
clear_chunks(struct recover *recover)
{
	struct smart_region *region = recover->region;
	struct smart_region_header *header = smart_region_header(region);

	for (uint32_t i = 0; i < header->home.chunks; i++)
		clear_chunk(region, i);
	/* A chunk that a client was about to add: no client had a page of it. */
	if (((uint64_t) header->home.chunks + 1) * SMART_CHUNK_BYTES <= header->size)
		memset(smart_chunk_at(region, header->home.chunks), 0, sizeof(struct smart_chunk));
	for (uint32_t i = SMART_HOME_CHUNKS; i < remote_end(region); i++)
		clear_chunk(region, i);
	memset(header->home.list, 0, sizeof(header->home.list));
	header->home.used = header->blocks.used = header->blocks.barred = 0;
}

/* The pages of a node's map stay in use, and lead nowhere. */
static smart_status
clear_map(struct recover *recover, const struct smart_extents_node *entry)
{
	const uint32_t *pages;
	smart_status status;

	if (entry->map == 0)
		return SMART_OK;
	status = claim(recover, entry->map, 0);
	pages = status == SMART_OK ? smart_page_memory(recover->region, entry->map) : NULL;
	for (unsigned int i = 0; i < SMART_PLACES_A_PAGE && status == SMART_OK; i++)
	{
		if (pages[i] == 0)
			continue;
		status = claim(recover, pages[i], 0);
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
	status = claim(recover, header->nodes_page, SMART_NODES_ORDER);
	for (unsigned int i = 0; i < FABRIC_NODES_MAX && status == SMART_OK; i++)
	{
		struct smart_extents_node *entry = smart_extents_node_at(recover->region, i);

		if (entry->state > SMART_NODE_LOST)
			return fault(recover, "a memory node is in no state", i);
		entry->chunks = entry->trees = 0;
		entry->leaving = entry->dropping = 0;
		entry->pages_used = 0;
		entry->pages_free = 0;
		memset(entry->list, 0, sizeof(entry->list));
		status = clear_map(recover, entry);
	}
	return status;
}

/*
 * Each remote chunk is in use, leaving, or its number unused.  Of a chunk that is not on the map yet no client has had a
 * page; one of a lost memory node has nothing that is still of use, as its trees are lost.
 */
static smart_status
resume_chunk(struct recover *recover, uint32_t number)
{
	struct smart_region *extents = recover->region;
	const struct smart_chunk *chunk = smart_chunk_at(extents, number);

	smart_assert(number >= SMART_HOME_CHUNKS && number < remote_end(extents));
	if ((chunk->state != SMART_CHUNK_REMOTE && chunk->state != SMART_CHUNK_LEAVING) || chunk->place >= SMART_PLACES ||
		!smart_extents_node_is_active(extents, chunk->node) ||
		!smart_extents_maps_near(extents, chunk->node, chunk->place))
	{
		smart_chunk_free_number(extents, number);
		return SMART_OK;
	}
	if (smart_extents_chunk_at(extents, chunk->node, chunk->place) != 0)
		return fault(recover, "two chunks are at one place", number);
	smart_extent_map_add(extents, chunk->node, chunk->place, number);
	smart_extents_node_at(extents, chunk->node)->chunks++;
	if (chunk->state == SMART_CHUNK_LEAVING)
		smart_chunk_list_leaving(extents, number);
	return SMART_OK;
}

static smart_status
begin_pages(struct recover *recover)
{
	struct smart_region_header *header = smart_region_header(recover->region);
	smart_status status;

	header->growing = false;
	header->map_reserve = 0;
	header->unused_chunk = 0;
	clear_chunks(recover);
	status = clear_nodes(recover);
	for (uint32_t i = remote_end(recover->region); i-- > SMART_HOME_CHUNKS && status == SMART_OK;)
		status = resume_chunk(recover, i);
	return status;
}

/* ---- the directory ---- */

/* The memory node of a tree in an extent map. */
static smart_status
resume_root(struct recover *recover, uint32_t number)
{
	struct smart_record *record = smart_record_at(recover->region, number);
	enum smart_record_state state = smart_record_state(record);
	struct smart_extents_node *entry =
		record->node < FABRIC_NODES_MAX ? smart_extents_node_at(recover->region, record->node) : NULL;

	if (entry == NULL || entry->state == SMART_NODE_NONE || record->root_address == 0 ||
		fabric_node(record->root_address) != record->node ||
		(state != SMART_RECORD_PLAIN && state != SMART_RECORD_LOST))
		return fault(recover, "a tree's root is nowhere", number);
	entry->trees++;
	/* A client that declared the node lost died before it came to this tree, or recovery was pending. */
	if (entry->state == SMART_NODE_LOST)
		smart_record_set_state(record, SMART_RECORD_LOST);
	return SMART_OK;
}

/* A record is a tree, a pending free, or free. */
static smart_status
resume_record(struct recover *recover, uint32_t number)
{
	struct smart_region_header *header = smart_region_header(recover->region);
	struct smart_record *record = smart_record_at(recover->region, number);
	smart_status status = SMART_OK;

	smart_assert(number != 0);
	record->pages = record->slabs = 0;
	record->queue_head = record->queue_tail = record->full = 0;
	memset(record->partial, 0, sizeof(record->partial));
	/*
	 * The memory node of a tree that was being made may have a root slot for it, or not: as if its reply had not come.
	 * An earlier call may have begun this.
	 */
	if (record->id != 0 &&
		(smart_record_state(record) == SMART_RECORD_MAKING || smart_record_state(record) == SMART_RECORD_DROPPING))
	{
		record->dropped = record->id;
		smart_record_set_state(record, SMART_RECORD_DROPPING);
		__atomic_store_n(&record->id, 0, __ATOMIC_RELEASE);
	}
	if (record->id == 0 && smart_record_state(record) == SMART_RECORD_DROPPING &&
		smart_extents_node_is_active(recover->region, record->node))
	{
		struct smart_extents_node *entry = smart_extents_node_at(recover->region, record->node);

		entry->trees++;
		record->next = entry->dropping;
		entry->dropping = number;
		return SMART_OK;
	}
	if (record->id == 0)
	{
		smart_record_free(recover->space, number);
		return SMART_OK;
	}

	/* A tree. */
	if (smart_record_exists(recover->space, record->id))
		return fault(recover, "two trees have one id", record->id);
	if (recover->region->extents)
		status = resume_root(recover, number);
	if (status != SMART_OK)
		return status;
	smart_record_link(recover->space, number, record->id);
	header->trees++;
	if (record->id - header->incarnation > header->last_tree)
		return fault(recover, "a tree has an id that was not given yet", record->id);
	return SMART_OK;
}

/* Claims the pages of the directory, and makes its table and lists from the records; trees have no slabs then. */
static smart_status
resume_directory(struct recover *recover)
{
	struct smart_region_header *header = smart_region_header(recover->region);
	smart_status status;

	header->trees = 0;
	header->free_record = 0;
	/* The table is made before the first page of records. */
	if (header->buckets_page == 0)
		return header->record_pages == 0 ? SMART_OK : fault(recover, "the directory has no table", 0);
	status = claim(recover, header->buckets_page, 2);
	if (status != SMART_OK)
		return status;
	memset(smart_page_memory(recover->region, header->buckets_page), 0, SMART_TREE_BUCKETS * sizeof(uint32_t));
	for (uint32_t first = header->record_pages; first != 0 && status == SMART_OK;
		 first = smart_record_at(recover->region, first)->page)
	{
		status = claim(recover, SMART_PAGE_OF_RECORD(first), 0);
		if (status == SMART_OK && first != SMART_PAGE_OF_RECORD(first) << SMART_RECORD_PAGE_SHIFT)
			status = fault(recover, "a page of records begins elsewhere", first);
		for (unsigned int i = SMART_RECORDS_A_PAGE; i-- > 0 && status == SMART_OK;)
			status = resume_record(recover, first + i * SMART_RECORD_STEP);
	}
	return status;
}

/* ---- slabs: made of the blocks that trees lead to ---- */

/* Where the slab of a block begins, and which of its blocks it is; false: no slab has a block there. */
static bool
place_block(const struct recover *recover, smart_class class, fabric_address block, uint32_t *page, unsigned int *index)
{
	unsigned int order;
	unsigned int blocks = smart_slab_geometry(class, &order);
	uint64_t offset;

	*page = smart_page_of(recover->space, block);
	if (*page == 0)
		return false;
	/* Runs begin at a multiple of their length. */
	*page &= ~((1u << order) - 1);
	offset = fabric_offset(block) % ((uint64_t) SMART_PAGE_BYTES << order);
	*index = (unsigned int) (offset / smart_class_bytes(class));
	return *page % SMART_CHUNK_PAGES >= smart_chunk_first_page(recover->region, *page / SMART_CHUNK_PAGES) &&
		   offset % smart_class_bytes(class) == 0 && *index < blocks;
}

/* SMART_DONE: the tree is lost. */
static smart_status
mark_block(void *argument, smart_slot link)
{
	struct recover *recover = argument;
	struct smart_recovery *recovery = recover->recovery;
	smart_class class = smart_slot_class(link);
	fabric_address block = smart_slot_address(link);
	const struct smart_extents_node *entry = smart_extents_node_at(recover->region, fabric_node(block));
	struct smart_slab *slab;
	unsigned int index;
	uint32_t page;
	smart_status status;

	smart_assert(recover->record != 0);
	if (entry != NULL && entry->state == SMART_NODE_LOST)
		return SMART_DONE;
	if (!place_block(recover, class, block, &page, &index))
		return fault(recover, "a slot leads to where no block is", block);
	slab = smart_slab_at(recover->region, page);
	if (slab->record == 0)
	{
		/* The first block of a slab is met. */
		unsigned int order = smart_slab_order(class);

		status = claim(recover, page, order);
		if (status != SMART_OK)
			return status;
		smart_slab_form(recover->region, recover->record, class, page);
		recover->pages_found += UINT64_C(1) << order;
		if (recovery->progress != NULL)
			recovery->progress(recovery->argument, recover->pages_found, recover->pages_before);
	}
	if (slab->record != recover->record || slab->class != class)
		return fault(recover, "a block lies in a slab of another tree or class", block);
	if ((slab->free >> index & 1) == 0)
		return fault(recover, "two slots lead to one block", block);
	slab->free &= ~(UINT64_C(1) << index);
	recovery->nodes += smart_class_is_node(class);
	recovery->leaves += !smart_class_is_node(class);
	return SMART_OK;
}

/* Marks the blocks of the tree in a record; a tree that leads to a lost memory node becomes lost itself. */
static smart_status
mark_tree(struct recover *recover, uint32_t number)
{
	struct smart_mark mark = {
		.fabric = recover->fabric,
		.env = recover->env,
		.root = smart_record_root(recover->space, number),
		.tiny_nodes = recover->recovery->tiny_nodes,
		.mark = mark_block,
		.argument = recover,
		.message = recover->recovery->message,
		.message_size = sizeof(recover->recovery->message),
	};
	smart_status status;

	smart_assert(number != 0);
	recover->record = number;
	status = smart_tree_mark(&mark);
	if (status != SMART_DONE)
		return status;
	smart_assert(recover->region->extents);
	smart_record_set_state(smart_record_at(recover->region, number), SMART_RECORD_LOST);
	return SMART_OK;
}

/* Puts a chunk's slabs into their trees' lists.  The first slab of a list is used first: let that be the lowest. */
static void
list_slabs_of(struct recover *recover, uint32_t chunk)
{
	struct smart_region *region = recover->region;

	for (unsigned int i = SMART_CHUNK_PAGES; i-- > smart_chunk_first_page(region, chunk);)
	{
		uint32_t page = chunk * SMART_CHUNK_PAGES + i;
		struct smart_slab *slab = smart_slab_at(region, page);

		if (slab->record == 0)
			continue;
		if (smart_record_state(smart_record_at(region, slab->record)) == SMART_RECORD_LOST)
		{
			slab->record = 0;
			release(recover, page, slab->order);
			continue;
		}
		smart_slab_enlist(region, page);
		recover->recovery->used_pages += UINT64_C(1) << slab->order;
	}
}

/* ---- after the trees ---- */

static void
list_chunk(struct recover *recover, uint32_t number)
{
	struct smart_page_lists *lists = smart_lists_of(recover->region, number);
	const struct smart_chunk *chunk = smart_chunk_at(recover->region, number);

	smart_assert(chunk->list == 0);
	lists->used += SMART_CHUNK_PAGES - smart_chunk_first_page(recover->region, number) - chunk->free_pages;
	smart_chunk_relist(recover->region, number);
}

static void
end_pages(struct recover *recover)
{
	struct smart_region *region = recover->region;
	struct smart_region_header *header = smart_region_header(region);

	/* The first chunk of a list is used first: let that be the lowest. */
	for (uint32_t i = header->home.chunks; i-- > 0;)
		list_chunk(recover, i);
	header->blocks.chunks = header->empty_chunks = 0;
	for (uint32_t i = remote_end(region); i-- > SMART_HOME_CHUNKS;)
	{
		if (!chunk_in_use(region, i))
			continue;
		header->blocks.chunks++;
		list_chunk(recover, i);
		smart_extents_count_free(region, smart_chunk_at(region, i)->node,
								 (int32_t) smart_chunk_at(region, i)->free_pages);
	}
	for (uint32_t i = SMART_HOME_CHUNKS; i < remote_end(region); i++)
	{
		const struct smart_chunk *chunk = smart_chunk_at(region, i);

		if (!chunk_in_use(region, i))
			continue;
		smart_extents_node_at(region, chunk->node)->pages_used += SMART_CHUNK_PAGES - chunk->free_pages;
		/* Wholly free chunks beyond a few leave, and all of those on closed nodes. */
		if (chunk->free_pages == SMART_CHUNK_PAGES)
			smart_chunk_emptied(region, i);
	}
	for (unsigned int i = 0; header->nodes_page != 0 && i < FABRIC_NODES_MAX; i++)
		smart_extents_release_node(region, i);
}

/* ---- the course ---- */

static smart_status
mark_trees(struct recover *recover)
{
	smart_status status = SMART_OK;
	uint32_t number = 0;

	while (status == SMART_OK && (number = smart_record_next(recover->region, number)) != 0)
	{
		const struct smart_record *record = smart_record_at(recover->region, number);

		if (record->id == 0)
			continue;
		recover->recovery->trees++;
		if (smart_record_state(record) == SMART_RECORD_PLAIN)
			status = mark_tree(recover, number);
		recover->recovery->lost += status == SMART_OK && smart_record_state(record) == SMART_RECORD_LOST;
	}
	return status;
}

static uint64_t
pages_in_use(const struct smart_region *region)
{
	return (uint64_t) smart_region_header(region)->home.used + smart_region_header(region)->blocks.used;
}

smart_status
smart_space_recover(struct smart_space *space, struct fabric *fabric, struct smart_env *env,
					struct smart_recovery *recovery)
{
	struct recover recover = {
		.space = space,
		.region = space->region,
		.fabric = fabric,
		.env = env,
		.recovery = recovery,
		.pages_before = pages_in_use(space->region),
	};
	smart_status status;
	uint64_t pages;

	recovery->trees = recovery->lost = recovery->nodes = recovery->leaves = 0;
	recovery->used_pages = recovery->gained = 0;
	recovery->message[0] = '\0';
	memset(space->recent, 0, sizeof(space->recent));
	space->retired = 0;

	status = begin_pages(&recover);
	if (status == SMART_OK)
		status = smart_segment_runs(space->region, claim, &recover);
	if (status == SMART_OK)
		status = resume_directory(&recover);
	if (status == SMART_OK)
		status = mark_trees(&recover);
	if (status != SMART_OK)
		return status;
	for (uint32_t i = smart_region_header(space->region)->home.chunks; i-- > 0;)
		list_slabs_of(&recover, i);
	for (uint32_t i = remote_end(space->region); i-- > SMART_HOME_CHUNKS;)
		list_slabs_of(&recover, i);
	end_pages(&recover);
	smart_assert(recovery->lost <= recovery->trees);
	pages = pages_in_use(space->region);
	recovery->gained = recover.pages_before > pages ? recover.pages_before - pages : 0;
	return SMART_OK;
}

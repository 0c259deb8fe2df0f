/*
 * book_nodes.c
 *	  Memory nodes of a book: numbered when they come, kept until nothing refers to
 *	  them.
 *
 * Losing a node goes in steps, so that no lock is held for long:
 *
 *	  1. the node is no longer active: nobody takes a chunk or makes a tree there
 *	  2. its chunks become lost: nobody takes pages of them
 *	  3. each partition's lock is passed once: who had still seen a chunk alive
 *	     when he linked a slab (smart_slab_link) has linked it
 *	  4. trees with a slab in a lost chunk become lost
 *	  5. trees with their root slot there become lost, trees to be dropped are forgotten
 *
 * A tree that is being made meanwhile sees the node's state when the answer comes.
 */
#include <string.h>

#include "compute/book_parts.h"

/* ---- they come ---- */

/* The node of this incarnation, else the lowest free number. */
static smart_status
place_node(const struct smart_region *book, uint64_t incarnation, unsigned int *number)
{
	struct smart_book_node *entry;
	unsigned int lowest = FABRIC_NODES_MAX;

	for (unsigned int i = FABRIC_NODES_MAX; i-- > 0;)
	{
		entry = smart_book_node_at(book, i);
		if (entry->state == SMART_NODE_ACTIVE && entry->incarnation == incarnation)
		{
			*number = i;
			return SMART_OK;
		}
		if (entry->state == SMART_NODE_NONE)
			lowest = i;
	}
	if (lowest == FABRIC_NODES_MAX)
		return SMART_NO_SPACE;
	entry = smart_book_node_at(book, lowest);
	smart_assert(entry->chunks == 0 && entry->trees == 0 && entry->leaving == 0 && entry->dropping == 0);
	entry->incarnation = incarnation;
	entry->address = 0;
	entry->leased = 0;
	/* Release: whoever recovers the book finds no node of another incarnation. */
	__atomic_store_n(&entry->state, (uint32_t) SMART_NODE_ACTIVE, __ATOMIC_RELEASE);
	*number = lowest;
	return SMART_OK;
}

/* The array of memory nodes, made with the first; under the directory's lock. */
static smart_status
make_nodes(struct smart_space *space)
{
	uint32_t *nodes_page = &smart_region_header(space->region)->nodes_page;
	uint32_t page;
	smart_status status;

	if (*nodes_page != 0)
		return SMART_OK;
	status = smart_pages_take_home(space, SMART_NODES_ORDER, &page);
	if (status == SMART_OK)
		/* Release: zeros before the number.  Partner: smart_book_node_at. */
		__atomic_store_n(nodes_page, page, __ATOMIC_RELEASE);
	return status;
}

smart_status
smart_book_add_node(struct smart_space *space, uint64_t incarnation, unsigned int *number)
{
	smart_status status;

	smart_assert(incarnation != 0 && space->region->book);
	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	status = make_nodes(space);
	if (status == SMART_OK)
	{
		space->locks->acquire(space->locks, SMART_LOCK_PAGES);
		status = place_node(space->region, incarnation, number);
		space->locks->release(space->locks, SMART_LOCK_PAGES);
	}
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
	return status;
}

bool
smart_book_node_info(struct smart_space *space, unsigned int number, struct smart_node_info *info)
{
	const struct smart_book_node *entry = smart_book_node_at(space->region, number);

	if (entry == NULL)
		return false;
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	info->state = (enum smart_node_state) entry->state;
	info->incarnation = entry->incarnation;
	info->chunks = entry->chunks;
	info->trees = entry->trees;
	info->pages_used = entry->pages_used;
	info->address = entry->address;
	info->leased = entry->leased;
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	return info->state != SMART_NODE_NONE;
}

void
smart_book_set_address(struct smart_space *space, unsigned int number, uint64_t address)
{
	struct smart_book_node *entry = smart_book_node_at(space->region, number);

	smart_assert(entry != NULL);
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	if (entry->state == SMART_NODE_ACTIVE)
		entry->address = address;
	space->locks->release(space->locks, SMART_LOCK_PAGES);
}

void
smart_book_set_lease(struct smart_space *space, unsigned int number, uint64_t incarnation)
{
	struct smart_book_node *entry = smart_book_node_at(space->region, number);

	smart_assert(entry != NULL && incarnation != 0);
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	if (entry->state == SMART_NODE_ACTIVE)
		entry->leased = incarnation;
	space->locks->release(space->locks, SMART_LOCK_PAGES);
}

/* ---- they rest ---- */

/* For the places of one page of the map. */
static void
relist_chunks(struct smart_space *space, unsigned int node, uint32_t first_place)
{
	if (!smart_book_maps_near(space->region, node, first_place))
		return;
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	for (uint32_t i = 0; i < SMART_PLACES_A_PAGE; i++)
	{
		uint32_t chunk = smart_book_chunk_at(space->region, node, first_place + i);

		if (chunk != 0 && smart_chunk_at(space->region, chunk)->state == SMART_CHUNK_REMOTE)
			smart_chunk_relist(space->region, chunk);
	}
	space->locks->release(space->locks, SMART_LOCK_PAGES);
}

void
smart_book_rest_node(struct smart_space *space, unsigned int number, bool rest)
{
	struct smart_book_node *entry = smart_book_node_at(space->region, number);
	bool changed;

	if (entry == NULL)
		return;
	/* From now on a chunk that changes goes where it belongs by itself. */
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	changed = entry->state == SMART_NODE_ACTIVE && (entry->resting != 0) != rest;
	if (changed)
		entry->resting = rest;
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	for (uint32_t place = 0; changed && place < SMART_PLACES; place += SMART_PLACES_A_PAGE)
		relist_chunks(space, number, place);
}

/* ---- they are lost ---- */

void
smart_book_release_node(struct smart_region *book, unsigned int node)
{
	struct smart_book_node *entry = smart_book_node_at(book, node);

	if (entry->state != SMART_NODE_LOST || entry->chunks > 0 || entry->trees > 0)
		return;
	smart_assert(entry->leaving == 0 && entry->dropping == 0 && entry->pages_used == 0);
	entry->resting = 0;
	entry->state = SMART_NODE_NONE;
	entry->incarnation = 0;
}

/* Step 1; the node is referred to until the end.  False: it is not active. */
static bool
condemn(struct smart_space *space, unsigned int node)
{
	struct smart_book_node *entry = smart_book_node_at(space->region, node);
	bool active;

	if (entry == NULL)
		return false;
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	active = entry->state == SMART_NODE_ACTIVE;
	if (active)
	{
		entry->state = SMART_NODE_LOST;
		entry->trees++;
	}
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	return active;
}

/* Step 2, for the places of one page of the map. */
static void
lose_chunks(struct smart_space *space, unsigned int node, uint32_t first_place)
{
	if (!smart_book_maps_near(space->region, node, first_place))
		return;
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	for (uint32_t i = 0; i < SMART_PLACES_A_PAGE; i++)
	{
		uint32_t chunk = smart_book_chunk_at(space->region, node, first_place + i);

		if (chunk != 0)
			smart_book_lose_chunk(space->region, chunk);
	}
	space->locks->release(space->locks, SMART_LOCK_PAGES);
}

static void
pass_partitions(struct smart_space *space)
{
	for (unsigned int i = 0; i < SMART_LOCK_PARTITIONS; i++)
	{
		space->locks->acquire(space->locks, SMART_LOCK_PARTITION(i));
		space->locks->release(space->locks, SMART_LOCK_PARTITION(i));
	}
}

/* The tree of the slab that begins at a page, if one does, is lost.  What is seen without the lock is looked at again. */
static void
lose_tree_at(struct smart_space *space, unsigned int node, uint32_t page)
{
	const struct smart_slab *slab = smart_slab_at(space->region, page);
	uint32_t number = __atomic_load_n(&slab->record, __ATOMIC_RELAXED);
	struct smart_record *record;
	uint64_t id;

	if (number == 0)
		return;
	record = smart_record_at(space->region, number);
	id = smart_record_id(record);
	if (id == 0 || smart_record_state(record) == SMART_RECORD_LOST)
		return;
	space->locks->acquire(space->locks, smart_partition_lock(id));
	/* A slab of this tree keeps its chunk. */
	if (smart_record_id(record) == id && slab->record == number && fabric_node(smart_page_address(space, page)) == node)
		smart_record_set_state(record, SMART_RECORD_LOST);
	space->locks->release(space->locks, smart_partition_lock(id));
}

/* Step 4 likewise. */
static void
lose_trees(struct smart_space *space, unsigned int node, uint32_t first_place)
{
	if (!smart_book_maps_near(space->region, node, first_place))
		return;
	for (uint32_t i = 0; i < SMART_PLACES_A_PAGE; i++)
	{
		uint32_t chunk = smart_book_chunk_at(space->region, node, first_place + i);

		for (uint32_t page = 0; chunk != 0 && page < SMART_CHUNK_PAGES; page++)
			lose_tree_at(space, node, chunk * SMART_CHUNK_PAGES + page);
	}
}

/* Step 5, for one record. */
static void
lose_root(struct smart_space *space, uint32_t number)
{
	struct smart_record *record = smart_record_at(space->region, number);
	uint64_t id = smart_record_id(record);

	if (id == 0)
		return;
	space->locks->acquire(space->locks, smart_partition_lock(id));
	/* Not one that is being dropped: its record is a duty, or free, soon. */
	if (smart_record_id(record) == id && smart_record_state(record) == SMART_RECORD_PLAIN)
		smart_record_set_state(record, SMART_RECORD_LOST);
	space->locks->release(space->locks, smart_partition_lock(id));
}

static void
lose_roots(struct smart_space *space, unsigned int node)
{
	const struct smart_region *book = space->region;
	struct smart_book_node *entry = smart_book_node_at(book, node);
	uint32_t number = 0;

	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	while (entry->dropping != 0)
	{
		number = entry->dropping;
		entry->dropping = smart_record_at(book, number)->next;
		smart_book_forget_tree(space, number);
	}
	for (number = smart_record_next(book, 0); number != 0; number = smart_record_next(book, number))
		if (smart_record_at(book, number)->node == node)
			lose_root(space, number);
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
}

void
smart_book_lose_node(struct smart_space *space, unsigned int number)
{
	struct smart_book_node *entry = smart_book_node_at(space->region, number);

	if (!condemn(space, number))
		return;
	for (uint32_t place = 0; place < SMART_PLACES; place += SMART_PLACES_A_PAGE)
		lose_chunks(space, number, place);
	pass_partitions(space);
	for (uint32_t place = 0; place < SMART_PLACES; place += SMART_PLACES_A_PAGE)
		lose_trees(space, number, place);
	lose_roots(space, number);
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	entry->trees--;
	smart_book_release_node(space->region, number);
	space->locks->release(space->locks, SMART_LOCK_PAGES);
}

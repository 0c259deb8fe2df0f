/*
 * extents_nodes.c
 *	  Memory nodes of an extent map: they get a number when they come, may rest or be closed, and keep the number until
 *	  nothing refers to them.
 *
 * A node is lost in steps, so that no lock is held for long:
 *
 *	  1. the node is no longer active: no client takes a chunk or makes a tree there
 *	  2. its chunks become lost: no client takes pages of them
 *	  3. each partition's lock is passed once: a client that had still seen a chunk alive
 *	     when it linked a slab (smart_slab_link) has linked it
 *	  4. trees with a slab in a lost chunk become lost
 *	  5. trees with their root slot there become lost, trees to be dropped are forgotten
 *
 * A client that makes a tree meanwhile sees the node's state when the reply comes.  While startup recovery is pending
 * only step 1 is done: the others rely on lists, counts and slabs that recovery makes anew, and recovery then treats
 * the node as lost.
 */
#include <string.h>

#include "compute/allocate/extents_parts.h"

/* ---- they come ---- */

/* The node of this incarnation, else the lowest free number. */
static smart_status
place_node(const struct smart_region *extents, uint64_t incarnation, unsigned int *number)
{
	struct smart_extents_node *entry;
	unsigned int lowest = FABRIC_NODES_MAX;

	for (unsigned int i = FABRIC_NODES_MAX; i-- > 0;)
	{
		entry = smart_extents_node_at(extents, i);
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
	entry = smart_extents_node_at(extents, lowest);
	smart_assert(entry->chunks == 0 && entry->trees == 0 && entry->leaving == 0 && entry->dropping == 0);
	entry->incarnation = incarnation;
	entry->address = 0;
	entry->leased = 0;
	entry->capacity = entry->room = 0;
	memset(entry->credit, 0, sizeof(entry->credit));
	entry->note = 0;
	/* Release: recovery finds no node of another incarnation. */
	__atomic_store_n(&entry->state, (uint32_t) SMART_NODE_ACTIVE, __ATOMIC_RELEASE);
	*number = lowest;
	return SMART_OK;
}

smart_status
smart_extents_add_node(struct smart_space *space, uint64_t incarnation, unsigned int *number)
{
	uint32_t *nodes_page = &smart_region_header(space->region)->nodes_page;
	smart_status status = SMART_OK;
	uint32_t page;

	smart_assert(incarnation != 0 && space->region->extents);
	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	/* The array of memory nodes is made with the first. */
	if (*nodes_page == 0)
	{
		status = smart_pages_take_home(space, SMART_NODES_ORDER, &page);
		if (status == SMART_OK)
			/* Release: zeros before the number.  Partner: smart_extents_node_at. */
			__atomic_store_n(nodes_page, page, __ATOMIC_RELEASE);
	}
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
smart_extents_node_info(struct smart_space *space, unsigned int number, struct smart_node_info *info)
{
	const struct smart_extents_node *entry = smart_extents_node_at(space->region, number);

	if (entry == NULL)
		return false;
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	info->state = (enum smart_node_state) entry->state;
	info->incarnation = entry->incarnation;
	info->chunks = entry->chunks;
	info->trees = entry->trees;
	info->closed = entry->closed != 0;
	info->pages_used = entry->pages_used;
	info->pages_free = entry->pages_free;
	info->address = entry->address;
	info->leased = entry->leased;
	info->note = entry->note;
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	return info->state != SMART_NODE_NONE;
}

void
smart_extents_set_address(struct smart_space *space, unsigned int number, uint64_t address)
{
	struct smart_extents_node *entry = smart_extents_node_at(space->region, number);

	smart_assert(entry != NULL);
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	if (entry->state == SMART_NODE_ACTIVE)
		entry->address = address;
	space->locks->release(space->locks, SMART_LOCK_PAGES);
}

void
smart_extents_set_note(struct smart_space *space, unsigned int number, uint64_t note)
{
	struct smart_extents_node *entry = smart_extents_node_at(space->region, number);

	smart_assert(entry != NULL);
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	if (entry->state == SMART_NODE_ACTIVE)
		entry->note = note;
	space->locks->release(space->locks, SMART_LOCK_PAGES);
}

void
smart_extents_set_lease(struct smart_space *space, unsigned int number, uint64_t incarnation)
{
	struct smart_extents_node *entry = smart_extents_node_at(space->region, number);

	smart_assert(entry != NULL && incarnation != 0);
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	if (entry->state == SMART_NODE_ACTIVE)
		entry->leased = incarnation;
	space->locks->release(space->locks, SMART_LOCK_PAGES);
}

void
smart_extents_set_room(struct smart_space *space, unsigned int number, uint32_t capacity, uint32_t room)
{
	struct smart_extents_node *entry = smart_extents_node_at(space->region, number);

	smart_assert(entry != NULL);
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	if (entry->state == SMART_NODE_ACTIVE)
	{
		entry->capacity = capacity;
		entry->room = room < capacity ? room : capacity;
	}
	space->locks->release(space->locks, SMART_LOCK_PAGES);
}

/*
 * Until startup recovery has ended, lists, counts and slabs may be anything.  Then only the node's own state is stored,
 * and recovery does the rest by it.  The server's worker that says what becomes of nodes also recovers, so the result
 * stays true while that goes on.
 */
static bool
is_recovery_pending(const struct smart_space *space)
{
	return smart_region_header(space->region)->unsettled != 0;
}

/* ---- they rest, or are closed ---- */

/* Under the page allocator's lock, which is held for one page of the map at a time. */
static void
for_each_chunk(struct smart_space *space, unsigned int node,
			   void (*visit)(struct smart_region *extents, uint32_t chunk))
{
	struct smart_region *extents = space->region;

	for (uint32_t first = 0; first < SMART_PLACES; first += SMART_PLACES_A_PAGE)
	{
		if (!smart_extents_maps_near(extents, node, first))
			continue;
		space->locks->acquire(space->locks, SMART_LOCK_PAGES);
		for (uint32_t i = 0; i < SMART_PLACES_A_PAGE; i++)
		{
			uint32_t chunk = smart_extents_chunk_at(extents, node, first + i);

			if (chunk != 0)
				visit(extents, chunk);
		}
		space->locks->release(space->locks, SMART_LOCK_PAGES);
	}
}

/* Puts a chunk where it belongs since its node rests or is closed, or does no more. */
static void
relist(struct smart_region *extents, uint32_t number)
{
	const struct smart_chunk *chunk = smart_chunk_at(extents, number);

	if (chunk->state != SMART_CHUNK_REMOTE)
		return;
	smart_chunk_relist(extents, number);
	if (chunk->free_pages == SMART_CHUNK_PAGES && smart_extents_node_at(extents, chunk->node)->closed)
		smart_chunk_leave(extents, number);
}

/* Sets one of the flags that bar a node's pages; under the page allocator's lock. */
static void
bar(struct smart_space *space, struct smart_extents_node *entry, uint32_t *flag, bool value)
{
	uint32_t *barred = &smart_region_header(space->region)->blocks.barred;

	*barred -= smart_extents_node_is_barred(entry) ? entry->pages_free : 0;
	__atomic_store_n(flag, value, __ATOMIC_RELAXED);
	*barred += smart_extents_node_is_barred(entry) ? entry->pages_free : 0;
}

/* A node begins to rest or is closed, or does or is no more: flag, which is one of the entry's. */
static void
set_flag(struct smart_space *space, unsigned int node, struct smart_extents_node *entry, uint32_t *flag, bool value)
{
	bool changed;

	smart_assert(flag == &entry->resting || flag == &entry->closed);
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	changed = entry->state == SMART_NODE_ACTIVE && (*flag != 0) != value;
	smart_assert(entry->state != SMART_NODE_NONE || *flag == 0);
	/* From now on a chunk that changes goes where it belongs by itself. */
	if (changed)
		bar(space, entry, flag, value);
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	if (changed && !is_recovery_pending(space))
		for_each_chunk(space, node, relist);
}

void
smart_extents_rest_node(struct smart_space *space, unsigned int number, bool rest)
{
	struct smart_extents_node *entry = smart_extents_node_at(space->region, number);

	if (entry != NULL)
		set_flag(space, number, entry, &entry->resting, rest);
}

void
smart_space_close_node(struct smart_space *space, unsigned int node, bool closed)
{
	struct smart_extents_node *entry = smart_extents_node_at(space->region, node);

	if (entry != NULL)
		set_flag(space, node, entry, &entry->closed, closed);
}

bool
smart_space_node_is_closed(const struct smart_space *space, unsigned int node)
{
	return smart_extents_node_is_active(space->region, node) && !smart_extents_node_is_open(space->region, node);
}

bool
smart_space_forget_node(struct smart_space *space, unsigned int node)
{
	const struct smart_region_header *header = smart_region_header(space->region);
	struct smart_extents_node *entry = smart_extents_node_at(space->region, node);
	bool forgotten;

	/* What recovery finds may lie there. */
	if (entry == NULL || is_recovery_pending(space))
		return false;
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	forgotten = entry->state == SMART_NODE_ACTIVE && entry->closed && entry->chunks == 0 && entry->trees == 0 &&
				!(header->growing && header->growing_node == node);
	if (forgotten)
	{
		/* As one of which nothing was left when it was lost. */
		__atomic_store_n(&entry->state, (uint32_t) SMART_NODE_LOST, __ATOMIC_RELEASE);
		smart_extents_release_node(space->region, node);
	}
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	return forgotten;
}

/* ---- they are lost ---- */

/* Marks the tree lost whose slab begins at a page, if one does.  What it sees without the lock, it looks at again. */
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

/* Step 4; without the page allocator's lock. */
static void
lose_trees(struct smart_space *space, unsigned int node)
{
	for (uint32_t place = 0; place < SMART_PLACES; place++)
	{
		uint32_t chunk;

		if (place % SMART_PLACES_A_PAGE == 0 && !smart_extents_maps_near(space->region, node, place))
		{
			place += SMART_PLACES_A_PAGE - 1;
			continue;
		}
		chunk = smart_extents_chunk_at(space->region, node, place);
		for (uint32_t page = 0; chunk != 0 && page < SMART_CHUNK_PAGES; page++)
			lose_tree_at(space, node, chunk * SMART_CHUNK_PAGES + page);
	}
}

/* Step 5. */
static void
lose_roots(struct smart_space *space, unsigned int node)
{
	const struct smart_region *extents = space->region;
	struct smart_extents_node *entry = smart_extents_node_at(extents, node);
	uint32_t number;

	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	while ((number = entry->dropping) != 0)
	{
		entry->dropping = smart_record_at(extents, number)->next;
		smart_extents_forget_tree(space, number);
	}
	for (number = smart_record_next(extents, 0); number != 0; number = smart_record_next(extents, number))
	{
		struct smart_record *record = smart_record_at(extents, number);
		uint64_t id = smart_record_id(record);

		if (record->node != node || id == 0)
			continue;
		space->locks->acquire(space->locks, smart_partition_lock(id));
		/* Not one that is being dropped: its record is a pending free, or free, soon. */
		if (smart_record_id(record) == id && smart_record_state(record) == SMART_RECORD_PLAIN)
			smart_record_set_state(record, SMART_RECORD_LOST);
		space->locks->release(space->locks, smart_partition_lock(id));
	}
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
}

void
smart_extents_lose_node(struct smart_space *space, unsigned int number)
{
	struct smart_extents_node *entry = smart_extents_node_at(space->region, number);
	bool pending = is_recovery_pending(space);
	bool active;

	if (entry == NULL)
		return;
	/* Step 1; the node is referred to until the end. */
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	active = entry->state == SMART_NODE_ACTIVE;
	if (active)
	{
		/* Release.  Partner: smart_extents_node_is_active. */
		__atomic_store_n(&entry->state, (uint32_t) SMART_NODE_LOST, __ATOMIC_RELEASE);
		entry->trees += !pending;
	}
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	if (!active || pending)
		return;
	/* Step 2. */
	for_each_chunk(space, number, smart_chunk_lose);
	smart_assert(entry->leaving == 0 && entry->state == SMART_NODE_LOST);
	/* Step 3. */
	for (unsigned int i = 0; i < SMART_LOCK_PARTITIONS; i++)
	{
		space->locks->acquire(space->locks, SMART_LOCK_PARTITION(i));
		space->locks->release(space->locks, SMART_LOCK_PARTITION(i));
	}
	lose_trees(space, number);
	lose_roots(space, number);
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	smart_assert(entry->state == SMART_NODE_LOST && entry->trees > 0 && entry->leaving == 0);
	entry->trees--;
	smart_extents_release_node(space->region, number);
	space->locks->release(space->locks, SMART_LOCK_PAGES);
}

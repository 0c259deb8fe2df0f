/*
 * directory.c
 *	  The directory of trees: records in pages of their own, found by id through
 *	  a hash table in the region.
 *
 * The table and the lists are under the directory's lock.  A record's id is
 * stored under the lock of its partition besides, so either lock keeps a tree;
 * without one an id that is still there only tells that the tree was there a
 * moment ago.
 */
#include <string.h>

#include "compute/book_parts.h"
#include "compute/trees.h"

static uint32_t *
bucket_of(const struct smart_region *region, uint64_t id)
{
	const struct smart_region_header *header = smart_region_header(region);
	uint32_t *buckets = smart_page_memory(region, header->buckets_page);

	smart_assert(header->buckets_page != 0);
	return &buckets[(id * UINT64_C(0x9e3779b97f4a7c15)) >> 52];
}

_Static_assert(SMART_TREE_BUCKETS == 1u << 12, "a bucket has 12 bits of the hash");
_Static_assert(SMART_TREE_BUCKETS * sizeof(uint32_t) == SMART_PAGE_BYTES << 2, "the table is a run of four pages");

static void
link_record(const struct smart_region *region, uint32_t number, uint64_t id)
{
	uint32_t *bucket = bucket_of(region, id);

	smart_record_at(region, number)->next = *bucket;
	*bucket = number;
}

void
smart_record_link(struct smart_space *space, uint32_t number)
{
	link_record(space->region, number, smart_record_at(space->region, number)->id);
}

/* The link to a record, or the link with 0 that ends its bucket. */
static uint32_t *
link_to(const struct smart_region *region, uint64_t id)
{
	uint32_t *link = bucket_of(region, id);

	while (*link != 0 && smart_record_id(smart_record_at(region, *link)) != id)
		link = &smart_record_at(region, *link)->next;
	return link;
}

fabric_address
smart_record_root(const struct smart_space *space, uint32_t number)
{
	if (space->region->book)
		return smart_load_acquire(&smart_record_at(space->region, number)->root_address);
	return fabric_make_address(space->node,
							   ((uint64_t) number << SMART_RECORD_SHIFT) + offsetof(struct smart_record, root));
}

/* The record of a tree, or 0; under the directory's lock. */
static uint32_t
find_locked(const struct smart_space *space, uint64_t tree)
{
	uint32_t number = smart_region_header(space->region)->buckets_page != 0 ? *link_to(space->region, tree) : 0;

	if (number == 0 || smart_record_state(smart_record_at(space->region, number)) == SMART_RECORD_MAKING)
		return 0;
	return number;
}

uint32_t
smart_record_find(struct smart_space *space, uint64_t tree)
{
	uint32_t *recent = &space->recent[tree % SMART_SPACE_RECENT].record;
	uint32_t number;

	smart_assert(tree != 0);
	if (space->recent[tree % SMART_SPACE_RECENT].id == tree &&
		smart_record_id(smart_record_at(space->region, *recent)) == tree)
		return *recent;
	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	number = find_locked(space, tree);
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
	if (number != 0)
	{
		space->recent[tree % SMART_SPACE_RECENT].id = tree;
		*recent = number;
	}
	return number;
}

bool
smart_record_exists(const struct smart_space *space, uint64_t id)
{
	return smart_region_header(space->region)->buckets_page != 0 && *link_to(space->region, id) != 0;
}

/* One more page of records, all of them in the free list then. */
static smart_status
add_records(struct smart_space *space)
{
	struct smart_region_header *header = smart_region_header(space->region);
	uint32_t page;
	uint32_t first;
	smart_status status = smart_pages_take_home(space, 0, &page);

	if (status != SMART_OK)
		return status;
	first = page << SMART_RECORD_PAGE_SHIFT;
	for (unsigned int i = 0; i < SMART_RECORDS_A_PAGE; i++)
	{
		uint32_t number = first + i * SMART_RECORD_STEP;

		smart_record_at(space->region, number)->next = header->free_record;
		header->free_record = number;
	}
	smart_record_at(space->region, first)->page = header->record_pages;
	/* Release: who recovers the region finds the page with its link. */
	__atomic_store_n(&header->record_pages, first, __ATOMIC_RELEASE);
	return SMART_OK;
}

/* Room for one more tree, under the directory's lock. */
static smart_status
make_room(struct smart_space *space)
{
	struct smart_region_header *header = smart_region_header(space->region);

	if (header->buckets_page == 0)
	{
		smart_status status = smart_pages_take_home(space, 2, &header->buckets_page);

		if (status != SMART_OK)
			return status;
	}
	return header->free_record != 0 ? SMART_OK : add_records(space);
}

smart_status
smart_record_make(struct smart_space *space, const struct smart_tree_owner *owner, enum smart_record_state state,
				  unsigned int node, uint32_t *number)
{
	struct smart_region_header *header = smart_region_header(space->region);
	struct smart_record *record;
	uint64_t id;
	smart_status status = make_room(space);

	if (status != SMART_OK)
		return status;
	*number = header->free_record;
	record = smart_record_at(space->region, *number);
	header->free_record = record->next;
	/* Counted from a random number: not seen in another incarnation either.  0 is no id. */
	do
		id = header->incarnation + ++header->last_tree;
	while (id == 0);
	smart_assert(record->id == 0 && record->pages == 0 && record->full == 0 && record->queue_head == 0);
	smart_assert(record->state == SMART_RECORD_PLAIN);
	record->owner = *owner;
	record->node = node;
	memset(record->counter, 0, sizeof(record->counter));
	smart_record_set_state(record, state);
	__atomic_store_n(&record->root, smart_slot_make_empty(0, 255), __ATOMIC_RELAXED);
	link_record(space->region, *number, id);
	/* Release: the root slot is there before the id, and recovery finds a whole record.  Partner: smart_record_id. */
	__atomic_store_n(&record->id, id, __ATOMIC_RELEASE);
	return SMART_OK;
}

static smart_status
create_embedded(struct smart_space *space, const struct smart_tree_owner *owner, uint64_t *id, fabric_address *root)
{
	struct smart_region_header *header = smart_region_header(space->region);
	uint32_t number;
	smart_status status;

	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	status = smart_record_make(space, owner, SMART_RECORD_PLAIN, 0, &number);
	if (status == SMART_OK)
	{
		*id = smart_record_at(space->region, number)->id;
		*root = smart_record_root(space, number);
		__atomic_store_n(&header->trees, header->trees + 1, __ATOMIC_RELAXED);
	}
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
	return status;
}

smart_status
smart_space_create_tree(struct smart_space *space, const struct smart_tree_owner *owner, uint64_t *id,
						fabric_address *root)
{
	return space->region->book ? smart_book_create_tree(space, owner, id, root)
							   : create_embedded(space, owner, id, root);
}

bool
smart_space_find_tree(struct smart_space *space, uint64_t id, fabric_address *root)
{
	uint32_t number = id != 0 ? smart_record_find(space, id) : 0;
	const struct smart_record *record;
	fabric_address address;

	if (number == 0)
		return false;
	address = smart_record_root(space, number);
	smart_assert((address & 63) == 0);
	record = smart_record_at(space->region, number);
	/* In a book the address is of the record's tree: the id again tells that it is still the same one. */
	if (space->region->book && (smart_record_state(record) == SMART_RECORD_LOST || smart_record_id(record) != id))
		return false;
	*root = address;
	return true;
}

bool
smart_space_tree_lost(struct smart_space *space, uint64_t id)
{
	uint32_t number = id != 0 ? smart_record_find(space, id) : 0;

	return number != 0 && smart_record_state(smart_record_at(space->region, number)) == SMART_RECORD_LOST;
}

uint32_t
smart_record_unlink(struct smart_space *space, uint64_t id)
{
	uint32_t *link = link_to(space->region, id);
	uint32_t number = *link;

	if (number != 0)
		*link = smart_record_at(space->region, number)->next;
	return number;
}

void
smart_record_free(struct smart_space *space, uint32_t number)
{
	struct smart_region_header *header = smart_region_header(space->region);
	struct smart_record *record = smart_record_at(space->region, number);

	smart_assert(record->id == 0 && record->slabs == 0);
	smart_record_set_state(record, SMART_RECORD_PLAIN);
	record->next = header->free_record;
	header->free_record = number;
}

/* Takes a tree out of its bucket; its record's number, or 0. */
static uint32_t
unlink_tree(struct smart_space *space, uint64_t id)
{
	struct smart_region_header *header = smart_region_header(space->region);
	uint32_t number;

	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	number = find_locked(space, id);
	if (number != 0)
	{
		(void) smart_record_unlink(space, id);
		__atomic_store_n(&header->trees, header->trees - 1, __ATOMIC_RELAXED);
	}
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
	return number;
}

bool
smart_space_drop_tree(struct smart_space *space, uint64_t id)
{
	uint32_t number = id != 0 ? unlink_tree(space, id) : 0;
	struct smart_record *record;

	if (number == 0)
		return false;
	record = smart_record_at(space->region, number);
	/* Only one client can have unlinked it.  Its slabs go without the directory's lock: there may be many. */
	space->locks->acquire(space->locks, smart_partition_lock(id));
	smart_assert(record->id == id);
	__atomic_store_n(&record->id, 0, __ATOMIC_RELEASE);
	smart_slab_drop_all(space, number);
	space->locks->release(space->locks, smart_partition_lock(id));

	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	if (space->region->book)
		smart_book_tree_dropped(space, number, id);
	else
		smart_record_free(space, number);
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
	return true;
}

/* ---- what is known of a tree ---- */

static void
fill_info(const struct smart_space *space, uint32_t number, uint64_t id, struct smart_tree_info *info)
{
	const struct smart_record *record = smart_record_at(space->region, number);

	info->id = id;
	info->owner = record->owner;
	info->root = smart_record_root(space, number);
	info->slabs = __atomic_load_n(&record->slabs, __ATOMIC_RELAXED);
	info->pages = __atomic_load_n(&record->pages, __ATOMIC_RELAXED);
	info->bytes = info->pages * SMART_PAGE_BYTES + sizeof(*record);
	for (unsigned int i = 0; i < SMART_TREE_COUNTERS; i++)
		info->counter[i] = __atomic_load_n(&record->counter[i], __ATOMIC_RELAXED);
	info->lost = smart_record_state(record) == SMART_RECORD_LOST;
}

bool
smart_space_tree_info(struct smart_space *space, uint64_t id, struct smart_tree_info *info)
{
	uint32_t number = id != 0 ? smart_record_find(space, id) : 0;
	bool found = false;

	if (number == 0)
		return false;
	/* With the lock: no half of another tree's owner. */
	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	if (smart_record_id(smart_record_at(space->region, number)) == id)
	{
		fill_info(space, number, id, info);
		found = true;
	}
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
	return found;
}

bool
smart_space_set_owner(struct smart_space *space, uint64_t id, const struct smart_tree_owner *owner)
{
	uint32_t number = id != 0 ? smart_record_find(space, id) : 0;
	bool found = false;

	if (number == 0)
		return false;
	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	if (smart_record_id(smart_record_at(space->region, number)) == id)
	{
		smart_record_at(space->region, number)->owner = *owner;
		found = true;
	}
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
	return found;
}

uint32_t
smart_record_next(const struct smart_region *region, uint32_t number)
{
	uint32_t page = SMART_PAGE_OF_RECORD(number);

	if (number == 0)
		return smart_region_header(region)->record_pages;
	number += SMART_RECORD_STEP;
	if (number + SMART_RECORD_STEP <= (page + 1) << SMART_RECORD_PAGE_SHIFT)
		return number;
	return smart_record_at(region, page << SMART_RECORD_PAGE_SHIFT)->page;
}

bool
smart_space_next_tree(struct smart_space *space, uint64_t *cursor, struct smart_tree_info *info)
{
	uint32_t number = (uint32_t) *cursor;
	bool found = false;

	smart_assert(*cursor <= UINT32_MAX);
	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	while (!found && (number = smart_record_next(space->region, number)) != 0)
	{
		const struct smart_record *record = smart_record_at(space->region, number);
		uint64_t id = smart_record_id(record);

		/* Pages of records stay in their list, so the cursor stays good. */
		*cursor = number;
		if (id != 0 && smart_record_state(record) != SMART_RECORD_MAKING)
		{
			fill_info(space, number, id, info);
			found = true;
		}
	}
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
	return found;
}

uint64_t
smart_space_tree_bytes(struct smart_space *space, uint64_t id)
{
	uint32_t number = id != 0 ? smart_record_find(space, id) : 0;

	if (number == 0)
		return 0;
	return __atomic_load_n(&smart_record_at(space->region, number)->pages, __ATOMIC_RELAXED) * SMART_PAGE_BYTES +
		   sizeof(struct smart_record);
}

bool
smart_space_tree_nodes(struct smart_space *space, uint64_t id, uint64_t pages[FABRIC_NODES_MAX])
{
	uint32_t number = id != 0 ? smart_record_find(space, id) : 0;
	bool found = false;

	if (number == 0)
		return false;
	memset(pages, 0, FABRIC_NODES_MAX * sizeof(*pages));
	space->locks->acquire(space->locks, smart_partition_lock(id));
	if (smart_record_id(smart_record_at(space->region, number)) == id)
	{
		smart_slab_count_nodes(space, number, pages);
		found = true;
	}
	space->locks->release(space->locks, smart_partition_lock(id));
	return found;
}

void
smart_space_add_counter(struct smart_space *space, uint64_t id, unsigned int counter, int64_t add)
{
	uint32_t number = id != 0 ? smart_record_find(space, id) : 0;

	smart_assert(counter < SMART_TREE_COUNTERS);
	if (number != 0)
		__atomic_fetch_add(&smart_record_at(space->region, number)->counter[counter], add, __ATOMIC_RELAXED);
}

int64_t
smart_space_counter(struct smart_space *space, uint64_t id, unsigned int counter)
{
	uint32_t number = id != 0 ? smart_record_find(space, id) : 0;

	smart_assert(counter < SMART_TREE_COUNTERS);
	return number != 0 ? __atomic_load_n(&smart_record_at(space->region, number)->counter[counter], __ATOMIC_RELAXED)
					   : 0;
}

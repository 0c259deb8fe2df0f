/*
 * directory.c
 *	  The directory of trees: records in pages of their own, found by id through a hash table in the region.
 *
 * The directory's lock guards the table and the lists.  A record's id is stored under the lock of its partition
 * besides, so either lock keeps a tree; without a lock an id that is still there only tells that the tree was there a
 * moment ago.
 */
#include <string.h>

#include "compute/allocate/placement.h"
#include "compute/allocate/slab.h"
#include "compute/allocate/trees.h"

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

/* The link to a record, or the link with 0 that ends its bucket. */
static uint32_t *
link_to(const struct smart_region *region, uint64_t id)
{
	uint32_t *link = bucket_of(region, id);

	while (*link != 0 && smart_record_id(smart_record_at(region, *link)) != id)
		link = &smart_record_at(region, *link)->next;
	return link;
}

bool
smart_record_exists(const struct smart_space *space, uint64_t id)
{
	return smart_region_header(space->region)->buckets_page != 0 && *link_to(space->region, id) != 0;
}

void
smart_record_link(struct smart_space *space, uint32_t number, uint64_t id)
{
	uint32_t *bucket = bucket_of(space->region, id);

	smart_assert(id != 0 && !smart_record_exists(space, id));
	smart_record_at(space->region, number)->next = *bucket;
	*bucket = number;
}

fabric_address
smart_record_root(const struct smart_space *space, uint32_t number)
{
	fabric_address elsewhere = smart_load_acquire(&smart_record_at(space->region, number)->root_address);

	if (elsewhere != 0)
		return elsewhere;
	return fabric_make_address(SMART_OWN_NODE,
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

void
smart_record_free(struct smart_space *space, uint32_t number)
{
	struct smart_region_header *header = smart_region_header(space->region);
	struct smart_record *record = smart_record_at(space->region, number);

	smart_assert(record->id == 0 && record->slabs == 0 && record->pages == 0 && header->free_record != number);
	smart_record_set_state(record, SMART_RECORD_PLAIN);
	record->next = header->free_record;
	header->free_record = number;
}

/* Room for one more tree: the directory's table, and a free record. */
static smart_status
make_room(struct smart_space *space)
{
	struct smart_region_header *header = smart_region_header(space->region);
	smart_status status = SMART_OK;
	uint32_t page;
	uint32_t first;

	if (header->buckets_page == 0)
		status = smart_pages_take_home(space, 2, &header->buckets_page);
	if (status != SMART_OK || header->free_record != 0)
		return status;
	/* One more page of records, all of them free. */
	status = smart_pages_take_home(space, 0, &page);
	if (status != SMART_OK)
		return status;
	first = page << SMART_RECORD_PAGE_SHIFT;
	for (unsigned int i = 0; i < SMART_RECORDS_A_PAGE; i++)
		smart_record_free(space, first + i * SMART_RECORD_STEP);
	smart_record_at(space->region, first)->page = header->record_pages;
	/* Release: recovery finds the page with its link. */
	__atomic_store_n(&header->record_pages, first, __ATOMIC_RELEASE);
	return SMART_OK;
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
	smart_placement_begin(record, node);
	memset(record->note, 0, sizeof(record->note));
	smart_record_set_state(record, state);
	__atomic_store_n(&record->root, smart_slot_make_empty(0, 255), __ATOMIC_RELAXED);
	smart_record_link(space, *number, id);
	/* Release: the root slot is there before the id, and recovery finds a whole record.  Partner: smart_record_id. */
	__atomic_store_n(&record->id, id, __ATOMIC_RELEASE);
	return SMART_OK;
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
	/* The address may be of a later tree: the id again tells that it is still the same one. */
	if (smart_record_state(record) == SMART_RECORD_LOST || smart_record_id(record) != id)
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
	smart_assert(!smart_record_exists(space, id));
	return number;
}

bool
smart_space_drop_tree(struct smart_space *space, uint64_t id)
{
	struct smart_region_header *header = smart_region_header(space->region);
	struct smart_record *record;
	uint32_t number;

	if (id == 0)
		return false;
	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	number = find_locked(space, id);
	if (number != 0)
	{
		smart_assert(header->trees > 0);
		(void) smart_record_unlink(space, id);
		__atomic_store_n(&header->trees, header->trees - 1, __ATOMIC_RELAXED);
	}
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
	if (number == 0)
		return false;

	/* Only one client can have unlinked it.  Its slabs go without the directory's lock: there may be many. */
	record = smart_record_at(space->region, number);
	space->locks->acquire(space->locks, smart_partition_lock(id));
	smart_assert(record->id == id && record->state != SMART_RECORD_MAKING && record->state != SMART_RECORD_DROPPING);
	__atomic_store_n(&record->id, 0, __ATOMIC_RELEASE);
	smart_slab_drop_all(space, number);
	space->locks->release(space->locks, smart_partition_lock(id));

	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	smart_assert(record->id == 0 && record->slabs == 0);
	space->storage->tree_dropped(space, number, id);
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
	for (unsigned int i = 0; i < SMART_TREE_NOTES; i++)
		info->note[i] = smart_load_acquire(&record->note[i]);
	info->root = smart_record_root(space, number);
	info->slabs = __atomic_load_n(&record->slabs, __ATOMIC_RELAXED);
	info->pages = __atomic_load_n(&record->pages, __ATOMIC_RELAXED);
	info->bytes = info->pages * SMART_PAGE_BYTES + sizeof(*record);
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

bool
smart_space_put_note(struct smart_space *space, uint64_t id, unsigned int which, uint64_t note)
{
	uint32_t number = id != 0 ? smart_record_find(space, id) : 0;

	smart_assert(which < SMART_TREE_NOTES);
	if (number == 0)
		return false;
	/* Release: partner smart_load_acquire.  The client that notes something keeps the tree from being dropped. */
	__atomic_store_n(&smart_record_at(space->region, number)->note[which], note, __ATOMIC_RELEASE);
	return true;
}

void
smart_space_put_notes(struct smart_space *space, uint32_t database, unsigned int which, uint64_t note)
{
	smart_assert(which < SMART_TREE_NOTES);
	/* No record gets another tree meanwhile. */
	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	for (uint32_t number = smart_record_next(space->region, 0); number != 0;
		 number = smart_record_next(space->region, number))
	{
		struct smart_record *record = smart_record_at(space->region, number);

		if (smart_record_id(record) != 0 && smart_record_state(record) != SMART_RECORD_MAKING &&
			record->owner.database == database)
			__atomic_store_n(&record->note[which], note, __ATOMIC_RELEASE);
	}
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
}

bool
smart_space_swap_note(struct smart_space *space, uint64_t id, unsigned int which, uint64_t now, uint64_t note)
{
	uint32_t number = id != 0 ? smart_record_find(space, id) : 0;

	smart_assert(which < SMART_TREE_NOTES && now != note);
	/* Acquire and release: what the client before did with the tree is seen by the one that stores the note. */
	return number != 0 && __atomic_compare_exchange_n(&smart_record_at(space->region, number)->note[which], &now, note,
													  false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

bool
smart_space_get_note(struct smart_space *space, uint64_t id, unsigned int which, uint64_t *note)
{
	uint32_t number = id != 0 ? smart_record_find(space, id) : 0;
	const struct smart_record *record;

	smart_assert(which < SMART_TREE_NOTES);
	if (number == 0)
		return false;
	record = smart_record_at(space->region, number);
	*note = smart_load_acquire(&record->note[which]);
	return smart_record_id(record) == id;
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

/*
 * space.c
 *	  Blocks: allocate, retire, reclaim; and where they lie.
 *
 * A block goes from free to in use, to retired, to free.  Everything is kept in the descriptor of its slab, so a client
 * that exits leaves nothing behind but the blocks that it had allocated and not linked.
 *
 * Progress: blocked by the lock of the tree's partition, which is held for one of these operations, and inside by the
 * page allocator's.  With an extent map, an allocation that needs another chunk waits for a memory node, without a
 * lock (extents_ask.c).
 */
#include <string.h>

#include "compute/allocate/extents_parts.h"
#include "compute/allocate/slab.h"

/* Slabs that one allocation looks at in the queue: more than it can add, and a bounded time. */
#define RECLAIM_AT_ONCE 16

/* Retirements of a client between two attempts to advance the epoch, and slabs that are freed then: more than came. */
#define ADVANCE_EVERY   32
#define RECLAIM_A_ROUND (2 * ADVANCE_EVERY)

/* ---- a space whose blocks lie in its own region ---- */

static uint32_t
own_page_of(const struct smart_space *space, fabric_address address)
{
	uint64_t page = fabric_offset(address) / SMART_PAGE_BYTES;

	if (fabric_node(address) != SMART_OWN_NODE || fabric_offset(address) >= smart_region_size(space->region) ||
		page % SMART_CHUNK_PAGES < SMART_CHUNK_FIRST_PAGE)
		return 0;
	return (uint32_t) page;
}

static smart_status
own_clear(struct smart_space *space, uint32_t page, unsigned int order)
{
	memset(smart_page_memory(space->region, page), 0, (size_t) SMART_PAGE_BYTES << order);
	return SMART_OK;
}

/* The file has grown with smart_pages_take(), as far as it can. */
static smart_status
own_grow(struct smart_space *space, uint32_t record, unsigned int order, uint64_t *deadline_ns)
{
	(void) space;
	(void) record;
	(void) order;
	(void) deadline_ns;
	return SMART_NO_SPACE;
}

static smart_status
own_create_tree(struct smart_space *space, const struct smart_tree_owner *owner, uint64_t *id, fabric_address *root)
{
	struct smart_region_header *header = smart_region_header(space->region);
	uint32_t number;
	smart_status status;

	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	status = smart_record_make(space, owner, SMART_RECORD_PLAIN, 0, &number);
	if (status == SMART_OK)
	{
		smart_assert(smart_record_at(space->region, number)->root_address == 0);
		*id = smart_record_at(space->region, number)->id;
		*root = smart_record_root(space, number);
		__atomic_store_n(&header->trees, header->trees + 1, __ATOMIC_RELAXED);
	}
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
	return status;
}

static void
own_tree_dropped(struct smart_space *space, uint32_t record, uint64_t id)
{
	(void) id;
	smart_record_free(space, record);
}

static void
own_usage(const struct smart_region *region, struct smart_space_usage *usage)
{
	const struct smart_region_header *header = smart_region_header(region);
	uint64_t heads = (uint64_t) header->home.chunks * SMART_CHUNK_FIRST_PAGE;

	usage->size = header->size;
	usage->max_size = region->max_size;
	usage->used = (header->home.used + heads) * SMART_PAGE_BYTES;
	usage->own = 0;
}

static const struct smart_storage own_storage = {
	.page_of = own_page_of,
	.clear = own_clear,
	.grow = own_grow,
	.create_tree = own_create_tree,
	.tree_dropped = own_tree_dropped,
	.usage = own_usage,
};

/* ---- opening ---- */

void
smart_space_open(struct smart_space *space, struct smart_region *region, struct smart_epoch_shared *epoch,
				 struct smart_lock_table *locks, struct smart_supply *supply)
{
	smart_assert(region->base != NULL && region->extents == (supply != NULL));
	memset(space, 0, sizeof(*space));
	space->region = region;
	space->storage = supply != NULL ? &smart_extents_storage : &own_storage;
	space->supply = supply;
	space->small_pages = SMART_SMALL_PAGES;
	space->epoch = epoch;
	space->locks = locks;
}

/* ---- blocks ---- */

/* Locks the tree's partition; the record's number, or 0 (and no lock) if the tree is gone. */
static uint32_t
lock_tree(struct smart_space *space, uint64_t tree)
{
	uint32_t number = smart_record_find(space, tree);

	if (number == 0)
		return 0;
	space->locks->acquire(space->locks, smart_partition_lock(tree));
	/* Found without the lock: it may have been dropped since. */
	if (smart_record_id(smart_record_at(space->region, number)) == tree)
		return number;
	space->locks->release(space->locks, smart_partition_lock(tree));
	return 0;
}

static void
unlock_tree(struct smart_space *space, uint64_t tree)
{
	space->locks->release(space->locks, smart_partition_lock(tree));
}

/* A block of a slab that the tree has; *found false: it needs another slab.  *number: its record. */
static smart_status
take_block(struct smart_space *space, uint64_t tree, smart_class class, fabric_address *block, bool *found,
		   uint32_t *number)
{
	const struct smart_record *record;
	smart_status status = SMART_OK;

	*number = lock_tree(space, tree);
	if (*number == 0)
		return SMART_CORRUPT;
	record = smart_record_at(space->region, *number);
	if (record->partial[class] == 0)
		smart_slab_reclaim(space, *number, RECLAIM_AT_ONCE);
	if (smart_record_state(record) == SMART_RECORD_LOST)
	{
		smart_extents_explain(space, "part of the tree was on a memory node whose memory is gone");
		status = SMART_UNREACHABLE;
	}
	*found = record->partial[class] != 0;
	if (status == SMART_OK && *found)
	{
		*block = smart_slab_take_block(space, *number, class);
		smart_assert(smart_page_of(space, *block) != 0);
	}
	unlock_tree(space, tree);
	return status;
}

/* Without growing, unless that takes no longer than a lock may be held. */
static smart_status
allocate_once(struct smart_space *space, uint64_t tree, smart_class class, fabric_address *block)
{
	bool found = false;
	uint32_t page;
	uint32_t number;
	smart_status status = take_block(space, tree, class, block, &found, &number);

	if (smart_likely(found) || status != SMART_OK)
		return status;
	/* Another slab is made of pages that are got without the tree's lock. */
	status = smart_slab_prepare(space, number, class, &page);
	if (status != SMART_OK)
		return status;
	number = lock_tree(space, tree);
	if (number == 0)
	{
		smart_pages_give(space, page, smart_slab_order(class));
		return SMART_CORRUPT;
	}
	if (smart_slab_link(space, number, class, page))
		*block = smart_slab_take_block(space, number, class);
	else
		status = SMART_NO_SPACE;
	unlock_tree(space, tree);
	return status;
}

static smart_status
allocate(struct smart_space *space, uint64_t tree, smart_class class, fabric_address *block)
{
	smart_status status = allocate_once(space, tree, class, block);
	uint64_t deadline_ns = 0;

	/* Other clients may take what this one made room for: then once more, until the deadline. */
	while (smart_unlikely(status == SMART_NO_SPACE))
	{
		uint32_t number = smart_record_find(space, tree);

		if (number == 0)
			return SMART_CORRUPT;
		status = space->storage->grow(space, number, smart_slab_order(class), &deadline_ns);
		if (status != SMART_OK)
			return status;
		status = allocate_once(space, tree, class, block);
	}
	return status;
}

/* What was freed need not lie where the tree's home is. */
static void
find_elsewhere(struct smart_space *space, uint64_t tree, smart_class class)
{
	uint32_t number = smart_record_find(space, tree);

	if (number != 0)
		(void) smart_pages_find(space, number, smart_slab_order(class));
}

smart_status
smart_space_allocate(struct smart_space *space, uint64_t tree, smart_class class, fabric_address *block)
{
	smart_status status;

	smart_assert(class != 0 && class < SMART_CLASSES && class != 128);
	status = allocate(space, tree, class, block);
	if (smart_unlikely(status == SMART_NO_SPACE || status == SMART_DISK_FULL || status == SMART_UNREACHABLE))
	{
		smart_status failure = status;
		struct smart_tree_info info;
		uint64_t cursor = 0;

		/* What all trees can spare may be enough. */
		while (smart_space_next_tree(space, &cursor, &info))
			smart_space_reclaim(space, info.id);
		if (space->supply != NULL)
			find_elsewhere(space, tree, class);
		status = allocate_once(space, tree, class, block);
		/* Why there is no room is the better reason. */
		if (status == SMART_NO_SPACE)
			status = failure;
	}
	return status;
}

smart_status
smart_space_allocate_spared(struct smart_space *space, uint64_t tree, smart_class class,
							enum smart_space_purpose purpose, fabric_address *block)
{
	smart_status status;

	smart_assert(purpose != SMART_SPACE_ANY && space->purpose == SMART_SPACE_ANY);
	space->purpose = purpose;
	status = smart_space_allocate(space, tree, class, block);
	space->purpose = SMART_SPACE_ANY;
	return status;
}

void
smart_space_retire(struct smart_space *space, uint64_t tree, smart_class class, fabric_address block)
{
	uint32_t number = lock_tree(space, tree);
	bool known;

	/* A tree that is being changed is there. */
	smart_assert(number != 0 && class != 0 && class < SMART_CLASSES);
	if (number == 0)
		return;
	/* Retired after it was sealed or dead, or was never linked (I6): the tree sees to that. */
	known = smart_slab_retire_block(space, number, class, block, smart_epoch_now(space->epoch));
	/* A tree that only shrinks allocates little: do not leave it all to that. */
	if (++space->retired >= ADVANCE_EVERY)
	{
		space->retired = 0;
		smart_epoch_try_advance(space->epoch);
		smart_slab_reclaim(space, number, RECLAIM_A_ROUND);
	}
	unlock_tree(space, tree);
	/* A block that is not in use stays as it is: better lost than handed out twice. */
	smart_assert(known);
	(void) known;
}

uint64_t
smart_space_reclaim(struct smart_space *space, uint64_t tree)
{
	uint64_t rounds = smart_space_tree_bytes(space, tree) / SMART_PAGE_BYTES / RECLAIM_AT_ONCE + 1;
	uint64_t pages = 0;

	/* As many steps as a block must wait, if no client is inside an operation. */
	for (unsigned int i = 0; i < SMART_EPOCH_GRACE; i++)
		smart_epoch_try_advance(space->epoch);
	/* A few slabs at a time, so that others get at the lock; no more than there can be. */
	while (rounds-- > 0)
	{
		uint32_t number = lock_tree(space, tree);
		uint32_t head;

		if (number == 0)
			break;
		head = smart_record_at(space->region, number)->queue_head;
		pages += smart_slab_reclaim(space, number, RECLAIM_AT_ONCE);
		if (smart_record_at(space->region, number)->queue_head == head)
			rounds = 0;
		unlock_tree(space, tree);
	}
	return pages;
}

/* ---- the whole ---- */

smart_status
smart_space_create_tree(struct smart_space *space, const struct smart_tree_owner *owner, uint64_t *id,
						fabric_address *root)
{
	return space->storage->create_tree(space, owner, id, root);
}

void
smart_space_usage(const struct smart_space *space, struct smart_space_usage *usage)
{
	const struct smart_region_header *header = smart_region_header(space->region);

	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	space->storage->usage(space->region, usage);
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	smart_assert(usage->own == 0 || space->supply != NULL);
	usage->trees = __atomic_load_n(&header->trees, __ATOMIC_RELAXED);
	usage->incarnation = header->incarnation;
	smart_assert(usage->used <= usage->size && usage->size <= usage->max_size);
}

/*
 * space.c
 *	  Blocks: allocate, retire, reclaim.
 *
 * A block's way: free, in use, retired, free.  Everything is kept in the
 * descriptor of its slab, so a client that exits leaves nothing behind but the
 * blocks that it had allocated and not linked.
 *
 * Progress: blocked by the lock of the tree's partition, which is held for one
 * of these operations, and inside by the page allocator's.
 */
#include <string.h>

#include "compute/trees.h"

/* Slabs that one allocation looks at in the queue: more than it can add, and a bounded time. */
#define RECLAIM_AT_ONCE 16

/* Retirements of a client between two attempts to advance the epoch, and slabs that are freed then: more than came. */
#define ADVANCE_EVERY   32
#define RECLAIM_A_ROUND (2 * ADVANCE_EVERY)

void
smart_space_open(struct smart_space *space, struct smart_region *region, unsigned int node,
				 struct smart_epoch_shared *epoch, struct smart_lock_table *locks)
{
	smart_assert(region->base != NULL && node < FABRIC_NODES_MAX);
	memset(space, 0, sizeof(*space));
	space->region = region;
	space->node = node;
	space->epoch = epoch;
	space->locks = locks;
}

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

/* Returns what all trees can spare, when there is no room left. */
static void
reclaim_everywhere(struct smart_space *space)
{
	struct smart_tree_info info;
	uint64_t cursor = 0;

	while (smart_space_next_tree(space, &cursor, &info))
		smart_space_reclaim(space, info.id);
}

static smart_status
allocate_once(struct smart_space *space, uint64_t tree, smart_class class, fabric_address *block)
{
	uint32_t number = lock_tree(space, tree);
	const uint32_t *partial;
	smart_status status = SMART_OK;

	if (number == 0)
		return SMART_CORRUPT;
	partial = &smart_record_at(space->region, number)->partial[class];
	if (*partial == 0)
		smart_slab_reclaim(space, number, RECLAIM_AT_ONCE);
	if (*partial == 0)
		status = smart_slab_make(space, number, class);
	if (status == SMART_OK)
		*block = smart_slab_take_block(space, number, class);
	unlock_tree(space, tree);
	return status;
}

smart_status
smart_space_allocate(struct smart_space *space, uint64_t tree, smart_class class, fabric_address *block)
{
	smart_status status;

	smart_assert(class != 0 && class < SMART_CLASSES && class != 128);
	status = allocate_once(space, tree, class, block);
	if (smart_unlikely(status == SMART_NO_SPACE || status == SMART_DISK_FULL))
	{
		reclaim_everywhere(space);
		status = allocate_once(space, tree, class, block);
	}
	/* A leaf's lock is free: its holders unlock, and their operations have ended (I4, I6). */
	smart_assert(status != SMART_OK || smart_class_is_node(class) || smart_leaf_lock_word(space, *block, class) == 0);
	return status;
}

void
smart_space_retire(struct smart_space *space, uint64_t tree, smart_class class, fabric_address block)
{
	uint32_t number = lock_tree(space, tree);
	bool known;

	smart_assert(number != 0 && class != 0 && class < SMART_CLASSES);
	if (number == 0)
		return;
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

	/* As many steps as a block must wait, if nobody is inside an operation. */
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

void
smart_space_usage(const struct smart_space *space, struct smart_space_usage *usage)
{
	const struct smart_region_header *header = smart_region_header(space->region);

	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	usage->size = header->size;
	usage->max_size = space->region->max_size;
	usage->used =
		((uint64_t) header->pages_used + (uint64_t) header->chunks * SMART_CHUNK_FIRST_PAGE) * SMART_PAGE_BYTES;
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	usage->trees = __atomic_load_n(&header->trees, __ATOMIC_RELAXED);
	usage->incarnation = header->incarnation;
	smart_assert(usage->used <= usage->size && usage->size <= usage->max_size);
}

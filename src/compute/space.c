/*
 * space.c
 *	  Blocks: allocate, retire, reclaim.
 *
 * A block's way: free, in use, retired, free.  Everything is kept in the
 * descriptor of its slab, so a client that exits leaves nothing behind but the
 * blocks that it had allocated and not linked.
 *
 * Progress: blocked by the lock of the tree's partition, which is held for one
 * of these operations, and inside by the page allocator's.  In a book an
 * allocation that needs another chunk waits for a memory node, without a lock
 * (book_grow.c).
 */
#include <string.h>

#include "compute/book_parts.h"
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
	smart_assert(region->base != NULL && !region->book && node < FABRIC_NODES_MAX);
	memset(space, 0, sizeof(*space));
	space->region = region;
	space->node = node;
	space->epoch = epoch;
	space->locks = locks;
}

void
smart_space_open_book(struct smart_space *space, struct smart_region *book, struct smart_epoch_shared *epoch,
					  struct smart_lock_table *locks, struct smart_supply *supply)
{
	smart_assert(book->base != NULL && book->book && supply != NULL);
	memset(space, 0, sizeof(*space));
	space->region = book;
	space->supply = supply;
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

/* A block of a slab that the tree has; *found false: it needs another slab. */
static smart_status
take_block(struct smart_space *space, uint64_t tree, smart_class class, fabric_address *block, bool *found)
{
	uint32_t number = lock_tree(space, tree);
	const struct smart_record *record;
	smart_status status = SMART_OK;

	if (number == 0)
		return SMART_CORRUPT;
	record = smart_record_at(space->region, number);
	if (record->partial[class] == 0)
		smart_slab_reclaim(space, number, RECLAIM_AT_ONCE);
	if (space->region->book && smart_record_state(record) == SMART_RECORD_LOST)
	{
		smart_book_explain(space, "part of the tree was on a memory node whose memory is gone");
		status = SMART_UNREACHABLE;
	}
	*found = record->partial[class] != 0;
	if (status == SMART_OK && *found)
		*block = smart_slab_take_block(space, number, class);
	unlock_tree(space, tree);
	return status;
}

/* The first block of a slab that these pages become. */
static smart_status
take_block_of(struct smart_space *space, uint64_t tree, smart_class class, uint32_t page, fabric_address *block)
{
	uint32_t number = lock_tree(space, tree);
	smart_status status = SMART_OK;
	unsigned int order;

	if (number == 0)
	{
		(void) smart_slab_geometry(class, &order);
		smart_pages_give(space, page, order);
		return SMART_CORRUPT;
	}
	if (smart_slab_link(space, number, class, page))
		*block = smart_slab_take_block(space, number, class);
	else
		status = SMART_NO_SPACE;
	unlock_tree(space, tree);
	return status;
}

/* SMART_NO_SPACE, of a book: it has to grow. */
static smart_status
allocate_once(struct smart_space *space, uint64_t tree, smart_class class, fabric_address *block)
{
	bool found = false;
	uint32_t page;
	smart_status status = take_block(space, tree, class, block, &found);

	if (smart_likely(found) || status != SMART_OK)
		return status;
	status = smart_slab_prepare(space, class, &page);
	return status == SMART_OK ? take_block_of(space, tree, class, page, block) : status;
}

static smart_status
allocate(struct smart_space *space, uint64_t tree, smart_class class, fabric_address *block)
{
	smart_status status = allocate_once(space, tree, class, block);
	unsigned int order;
	uint64_t deadline;

	if (smart_likely(status != SMART_NO_SPACE) || !space->region->book)
		return status;
	(void) smart_slab_geometry(class, &order);
	deadline = space->supply->env->now_ns(space->supply->env) + (uint64_t) space->supply->timeout_ms * 1000000;
	/* Others may take what this client made room for: then once more, until the deadline. */
	while (status == SMART_NO_SPACE)
	{
		status = smart_book_grow(space, order, deadline);
		if (status != SMART_OK)
			return status;
		status = allocate_once(space, tree, class, block);
	}
	return status;
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

		reclaim_everywhere(space);
		status = allocate_once(space, tree, class, block);
		/* Why there is no room is the better reason. */
		if (status == SMART_NO_SPACE)
			status = failure;
	}
	/* A leaf's lock is free: its holders unlock, and their operations have ended (I4, I6). */
	smart_assert(status != SMART_OK || space->region->book || smart_class_is_node(class) ||
				 smart_leaf_lock_word(space, *block, class) == 0);
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

static void
region_usage(const struct smart_region *region, struct smart_space_usage *usage)
{
	const struct smart_region_header *header = smart_region_header(region);
	uint64_t own = (uint64_t) header->home.chunks * SMART_CHUNK_FIRST_PAGE;

	usage->size = header->size;
	usage->max_size = region->max_size;
	usage->used = (header->home.used + own) * SMART_PAGE_BYTES;
	usage->own = 0;
}

static void
book_usage(const struct smart_region *book, struct smart_space_usage *usage)
{
	const struct smart_region_header *header = smart_region_header(book);

	usage->size = (uint64_t) header->blocks.chunks * SMART_CHUNK_BYTES;
	usage->max_size = (uint64_t) SMART_REMOTE_CHUNKS_MAX * SMART_CHUNK_BYTES;
	usage->used = (uint64_t) header->blocks.used * SMART_PAGE_BYTES;
	usage->own = header->size + (uint64_t) header->heads * SMART_HEAD_BYTES;
}

void
smart_space_usage(const struct smart_space *space, struct smart_space_usage *usage)
{
	const struct smart_region_header *header = smart_region_header(space->region);

	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	if (space->region->book)
		book_usage(space->region, usage);
	else
		region_usage(space->region, usage);
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	usage->trees = __atomic_load_n(&header->trees, __ATOMIC_RELAXED);
	usage->incarnation = header->incarnation;
	smart_assert(usage->used <= usage->size && usage->size <= usage->max_size);
}

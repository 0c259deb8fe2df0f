/*
 * slab.c
 *	  Slabs: runs of pages with blocks of one tree and one class (I6).
 *
 * A slab with a free block is in its tree's list of its class, any other slab in the tree's list of full slabs, so the
 * tree's lists name all its slabs.  A slab with retired blocks is in the tree's queue besides.  The queue is ordered by
 * the epoch of the last retirement, since a slab moves to the tail whenever its stamp changes.
 *
 * A slab changes its class only after all its blocks were free, which is after the epochs of those that it held; so no
 * client holds an address in it.
 */
#include <string.h>

#include "compute/allocate/slab.h"

#define SLAB_BLOCKS_MAX 64

static uint64_t
all_blocks(unsigned int blocks)
{
	return blocks == SLAB_BLOCKS_MAX ? UINT64_MAX : (UINT64_C(1) << blocks) - 1;
}

unsigned int
smart_slab_geometry(smart_class class, unsigned int *order)
{
	unsigned int bytes = smart_class_bytes(class);
	unsigned int blocks = 0;

	smart_assert(bytes >= SMART_UNIT && bytes <= SMART_LEAF_BYTES_MAX);
	/* The shortest slab that wastes less than a sixteenth; long blocks, which are rare, may waste an eighth. */
	for (*order = 0; *order < SMART_PAGE_ORDERS; (*order)++)
	{
		unsigned int room = SMART_PAGE_BYTES << *order;

		blocks = room / bytes;
		if ((room - blocks * bytes) * (bytes <= 1024 ? 16 : 8) < room)
			break;
	}
	smart_assert(*order < SMART_PAGE_ORDERS && blocks >= 1 && blocks <= SLAB_BLOCKS_MAX);
	return blocks;
}

/* ---- lists ---- */

static uint32_t *
list_of(struct smart_record *record, const struct smart_slab *slab)
{
	return slab->free != 0 ? &record->partial[slab->class] : &record->full;
}

static void
list_add(const struct smart_region *region, uint32_t *head, uint32_t page)
{
	struct smart_slab *slab = smart_slab_at(region, page);

	smart_assert(slab->record != 0 && *head != page);
	slab->previous = 0;
	slab->next = *head;
	if (*head != 0)
		smart_slab_at(region, *head)->previous = page;
	*head = page;
}

static void
list_remove(const struct smart_region *region, uint32_t *head, uint32_t page)
{
	struct smart_slab *slab = smart_slab_at(region, page);

	smart_assert(*head != 0 && (slab->previous == 0) == (*head == page));
	if (slab->previous != 0)
		smart_slab_at(region, slab->previous)->next = slab->next;
	else
		*head = slab->next;
	if (slab->next != 0)
		smart_slab_at(region, slab->next)->previous = slab->previous;
}

static void
queue_add(const struct smart_region *region, struct smart_record *record, uint32_t page)
{
	struct smart_slab *slab = smart_slab_at(region, page);

	/* Stamps ascend from head to tail: reclaiming may stop at the first one that is too young (I6). */
	smart_assert(!slab->queued && slab->retired != 0);
	smart_assert(record->queue_tail == 0 || smart_slab_at(region, record->queue_tail)->stamp <= slab->stamp);
	slab->queued = true;
	slab->queue_next = 0;
	slab->queue_previous = record->queue_tail;
	if (record->queue_tail != 0)
		smart_slab_at(region, record->queue_tail)->queue_next = page;
	else
		record->queue_head = page;
	record->queue_tail = page;
}

static void
queue_remove(const struct smart_region *region, struct smart_record *record, uint32_t page)
{
	struct smart_slab *slab = smart_slab_at(region, page);

	smart_assert(slab->queued && record->queue_head != 0 && record->queue_tail != 0);
	smart_assert((slab->queue_previous == 0) == (record->queue_head == page));
	slab->queued = false;
	if (slab->queue_previous != 0)
		smart_slab_at(region, slab->queue_previous)->queue_next = slab->queue_next;
	else
		record->queue_head = slab->queue_next;
	if (slab->queue_next != 0)
		smart_slab_at(region, slab->queue_next)->queue_previous = slab->queue_previous;
	else
		record->queue_tail = slab->queue_previous;
}

/* The lock's holder is the only client that stores these; the planner loads them without it. */
static void
count_slab(struct smart_record *record, int64_t slabs, int64_t pages)
{
	smart_assert((int64_t) record->slabs + slabs >= 0 && (int64_t) record->pages + pages >= 0);
	__atomic_store_n(&record->slabs, record->slabs + (uint64_t) slabs, __ATOMIC_RELAXED);
	__atomic_store_n(&record->pages, record->pages + (uint64_t) pages, __ATOMIC_RELAXED);
}

/* ---- slabs ---- */

smart_status
smart_slab_prepare(struct smart_space *space, uint32_t record, smart_class class, uint32_t *page)
{
	unsigned int order = smart_slab_order(class);
	bool fresh;
	smart_status status;

	status = smart_pages_take(space, record, order, page, &fresh);
	if (status != SMART_OK || fresh)
		return status;
	status = space->storage->clear(space, *page, order);
	if (status != SMART_OK)
		smart_pages_give(space, *page, order);
	return status;
}

/* Loaded by smart_extents_lose_node() without the lock. */
static void
set_record(struct smart_slab *slab, uint32_t number)
{
	__atomic_store_n(&slab->record, number, __ATOMIC_RELAXED);
}

void
smart_slab_form(const struct smart_region *region, uint32_t number, smart_class class, uint32_t page)
{
	struct smart_slab *slab = smart_slab_at(region, page);
	unsigned int order;
	unsigned int blocks = smart_slab_geometry(class, &order);

	/* Type-stable (I6): the pages are another slab's no more.  Runs begin at a multiple of their length. */
	smart_assert(slab->record == 0 && !slab->queued && page % (1u << order) == 0);
	set_record(slab, number);
	slab->class = class;
	slab->order = (uint8_t) order;
	slab->blocks = (uint8_t) blocks;
	slab->free = all_blocks(blocks);
	slab->retired = 0;
	slab->stamp = 0;
}

void
smart_slab_enlist(const struct smart_region *region, uint32_t page)
{
	const struct smart_slab *slab = smart_slab_at(region, page);
	struct smart_record *record = smart_record_at(region, slab->record);

	smart_assert(slab->retired == 0 && !slab->queued && slab->record != 0);
	list_add(region, list_of(record, slab), page);
	count_slab(record, 1, INT64_C(1) << slab->order);
}

bool
smart_slab_link(struct smart_space *space, uint32_t number, smart_class class, uint32_t page)
{
	uint32_t chunk_number = page / SMART_CHUNK_PAGES;
	const struct smart_chunk *chunk = smart_chunk_at(space->region, chunk_number);

	/* smart_extents_lose_node() says first that the memory is gone, and then looks, under this lock, at what is linked. */
	if (smart_chunk_is_remote(space->region, chunk_number) &&
		__atomic_load_n(&chunk->state, __ATOMIC_ACQUIRE) != SMART_CHUNK_REMOTE)
	{
		smart_pages_give(space, page, smart_slab_order(class));
		return false;
	}
	smart_slab_form(space->region, number, class, page);
	smart_slab_enlist(space->region, page);
	smart_assert(smart_record_at(space->region, number)->partial[class] == page);
	return true;
}

/* Gives the pages of a slab that is in no list any more back. */
static void
slab_give(struct smart_space *space, struct smart_record *record, uint32_t page)
{
	struct smart_slab *slab = smart_slab_at(space->region, page);

	smart_assert(slab->record != 0 && !slab->queued);
	set_record(slab, 0);
	count_slab(record, -1, -(INT64_C(1) << slab->order));
	smart_pages_give(space, page, slab->order);
}

fabric_address
smart_slab_take_block(struct smart_space *space, uint32_t number, smart_class class)
{
	struct smart_region *region = space->region;
	struct smart_record *record = smart_record_at(region, number);
	uint32_t page = record->partial[class];
	struct smart_slab *slab = smart_slab_at(region, page);
	unsigned int block;

	smart_assert(page != 0 && slab->record == number && slab->class == class);
	smart_assert(slab->free != 0 && (slab->free & slab->retired) == 0);
	block = (unsigned int) __builtin_ctzll(slab->free);
	if ((slab->free & (slab->free - 1)) == 0)
		list_remove(region, &record->partial[class], page);
	slab->free &= slab->free - 1;
	if (slab->free == 0)
		list_add(region, &record->full, page);
	smart_assert(block < slab->blocks && (slab->free >> block & 1) == 0);
	return smart_page_address(space, page) + (uint64_t) block * smart_class_bytes(class);
}

/* The slab's first page and the block's bit, or false: no such block in use. */
static bool
find_block(const struct smart_space *space, uint32_t number, smart_class class, fabric_address block, uint32_t *page,
		   uint64_t *bit)
{
	uint32_t offset;
	const struct smart_slab *slab;
	unsigned int order;
	unsigned int blocks = smart_slab_geometry(class, &order);
	unsigned int index;

	/* Runs begin at a multiple of their length. */
	*page = smart_page_of(space, block) & ~((1u << order) - 1);
	if (*page == 0 || *page % SMART_CHUNK_PAGES < smart_chunk_first_page(space->region, *page / SMART_CHUNK_PAGES))
		return false;
	offset = (uint32_t) (fabric_offset(block) - fabric_offset(smart_page_address(space, *page)));
	index = offset / smart_class_bytes(class);
	slab = smart_slab_at(space->region, *page);
	if (offset % smart_class_bytes(class) != 0 || index >= blocks || slab->record != number || slab->class != class)
		return false;
	*bit = UINT64_C(1) << index;
	return ((slab->free | slab->retired) & *bit) == 0;
}

bool
smart_slab_retire_block(struct smart_space *space, uint32_t number, smart_class class, fabric_address block,
						uint64_t epoch)
{
	struct smart_region *region = space->region;
	struct smart_record *record = smart_record_at(region, number);
	struct smart_slab *slab;
	uint32_t page;
	uint64_t bit;

	if (!find_block(space, number, class, block, &page, &bit))
		return false;
	slab = smart_slab_at(region, page);
	slab->retired |= bit;
	if (slab->queued && slab->stamp != epoch)
		queue_remove(region, record, page);
	slab->stamp = epoch;
	if (!slab->queued)
		queue_add(region, record, page);
	/* Not free before the grace period has passed (I6). */
	smart_assert((slab->free & slab->retired) == 0 && slab->stamp == epoch);
	return true;
}

/* Turns a slab's retired blocks into free ones, and gives it back if it is empty then. */
static void
settle(struct smart_space *space, struct smart_record *record, uint32_t page)
{
	struct smart_region *region = space->region;
	struct smart_slab *slab = smart_slab_at(region, page);

	smart_assert(slab->retired != 0 && (slab->free & slab->retired) == 0);
	smart_assert(slab->stamp + SMART_EPOCH_GRACE <= smart_epoch_now(space->epoch));
	queue_remove(region, record, page);
	list_remove(region, list_of(record, slab), page);
	slab->free |= slab->retired;
	slab->retired = 0;
	if (slab->free == all_blocks(slab->blocks))
		slab_give(space, record, page);
	else
		list_add(region, &record->partial[slab->class], page);
}

uint64_t
smart_slab_reclaim(struct smart_space *space, uint32_t number, unsigned int limit)
{
	struct smart_record *record = smart_record_at(space->region, number);
	uint64_t now = smart_epoch_now(space->epoch);
	uint64_t pages = record->pages;

	while (limit-- > 0 && record->queue_head != 0)
	{
		const struct smart_slab *slab = smart_slab_at(space->region, record->queue_head);

		smart_assert(slab->queued && slab->record == number && slab->stamp <= smart_epoch_now(space->epoch));
		if (slab->stamp + SMART_EPOCH_GRACE > now)
		{
			/* A step forward may be enough for this one. */
			if (!smart_epoch_try_advance(space->epoch))
				break;
			now = smart_epoch_now(space->epoch);
			if (slab->stamp + SMART_EPOCH_GRACE > now)
				break;
		}
		settle(space, record, record->queue_head);
	}
	smart_assert(record->pages <= pages);
	return pages - record->pages;
}

/* The lists of a record, one after another: that of full slabs, and one for each class. */
static uint32_t *
list_number(struct smart_record *record, unsigned int i)
{
	return i == 0 ? &record->full : &record->partial[i - 1];
}

void
smart_slab_count_nodes(const struct smart_space *space, uint32_t number, uint64_t pages[FABRIC_NODES_MAX])
{
	struct smart_record *record = smart_record_at(space->region, number);

	for (unsigned int i = 0; i <= SMART_CLASSES; i++)
		for (uint32_t page = *list_number(record, i); page != 0; page = smart_slab_at(space->region, page)->next)
			pages[fabric_node(smart_page_address(space, page))] += UINT64_C(1)
																   << smart_slab_at(space->region, page)->order;
}

void
smart_slab_drop_all(struct smart_space *space, uint32_t number)
{
	struct smart_record *record = smart_record_at(space->region, number);

	smart_assert(record->id == 0);
	record->queue_head = record->queue_tail = 0;
	for (unsigned int i = 0; i <= SMART_CLASSES; i++)
	{
		uint32_t *head = list_number(record, i);

		while (*head != 0)
		{
			uint32_t page = *head;
			struct smart_slab *slab = smart_slab_at(space->region, page);

			smart_assert(slab->record == number);
			*head = slab->next;
			slab->queued = false;
			slab_give(space, record, page);
		}
	}
	smart_assert(record->pages == 0 && record->slabs == 0);
}

/*
 * recover_slabs.c
 *	  Slabs after a crash: made of the blocks that trees lead to.
 */
#include "compute/recover_parts.h"
#include "tree/mark.h"

/* The tree has a block on a memory node that is lost. */
static bool
is_lost(const struct recover *recover, fabric_address block)
{
	const struct smart_book_node *entry;

	if (!recover->region->book)
		return false;
	entry = smart_book_node_at(recover->region, fabric_node(block));
	return entry != NULL && entry->state == SMART_NODE_LOST;
}

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

/* The first block of a slab that is met. */
static smart_status
begin_slab(struct recover *recover, smart_class class, uint32_t page)
{
	struct smart_recovery *recovery = recover->recovery;
	unsigned int order;
	smart_status status;

	(void) smart_slab_geometry(class, &order);
	status = smart_recover_claim(recover, page, order);
	if (status != SMART_OK)
		return status;
	smart_slab_form(recover->region, recover->record, class, page);
	recover->pages_found += UINT64_C(1) << order;
	if (recovery->progress != NULL)
		recovery->progress(recovery->argument, recover->pages_found, recover->pages_before);
	return SMART_OK;
}

/* SMART_DONE: the tree is lost. */
static smart_status
mark_block(void *argument, smart_slot link)
{
	struct recover *recover = argument;
	smart_class class = smart_slot_class(link);
	fabric_address block = smart_slot_address(link);
	struct smart_slab *slab;
	unsigned int index;
	uint32_t page;
	smart_status status = SMART_OK;

	if (is_lost(recover, block))
		return SMART_DONE;
	if (!place_block(recover, class, block, &page, &index))
		return smart_recover_fault(recover, "a slot leads to where no block is", block);
	slab = smart_slab_at(recover->region, page);
	if (slab->record == 0)
		status = begin_slab(recover, class, page);
	if (status != SMART_OK)
		return status;
	if (slab->record != recover->record || slab->class != class)
		return smart_recover_fault(recover, "a block lies in a slab of another tree or class", block);
	if ((slab->free >> index & 1) == 0)
		return smart_recover_fault(recover, "two slots lead to one block", block);
	slab->free &= ~(UINT64_C(1) << index);
	recover->recovery->nodes += smart_class_is_node(class);
	recover->recovery->leaves += !smart_class_is_node(class);
	return SMART_OK;
}

smart_status
smart_recover_tree(struct recover *recover, uint32_t number)
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

	recover->record = number;
	status = smart_tree_mark(&mark);
	if (status != SMART_DONE)
		return status;
	smart_record_set_state(smart_record_at(recover->region, number), SMART_RECORD_LOST);
	return SMART_OK;
}

/* Who held the lock of a free leaf is dead. */
static void
clear_locks(const struct recover *recover, const struct smart_slab *slab, uint32_t page)
{
	uint8_t *memory = smart_page_memory(recover->region, page);

	for (uint64_t free = slab->free; free != 0; free &= free - 1)
	{
		unsigned int block = (unsigned int) __builtin_ctzll(free);
		uint64_t *word = (uint64_t *) (void *) (memory + smart_leaf_lock_address(block * smart_class_bytes(slab->class),
																				 slab->class));

		if (*word != 0)
			*word = 0;
	}
}

static void
list_slab(struct recover *recover, uint32_t page)
{
	struct smart_slab *slab = smart_slab_at(recover->region, page);

	if (smart_record_state(smart_record_at(recover->region, slab->record)) == SMART_RECORD_LOST)
	{
		slab->record = 0;
		smart_recover_release(recover, page, slab->order);
		return;
	}
	smart_slab_enlist(recover->region, page);
	recover->recovery->used_pages += UINT64_C(1) << slab->order;
	if (!recover->region->book && !smart_class_is_node(slab->class))
		clear_locks(recover, slab, page);
}

/* The first slab of a list is used first: let that be the lowest. */
static void
list_slabs_of(struct recover *recover, uint32_t chunk)
{
	for (unsigned int i = SMART_CHUNK_PAGES; i-- > smart_chunk_first_page(recover->region, chunk);)
	{
		uint32_t page = chunk * SMART_CHUNK_PAGES + i;

		if (smart_slab_at(recover->region, page)->record != 0)
			list_slab(recover, page);
	}
}

void
smart_recover_list_slabs(struct recover *recover)
{
	const struct smart_region_header *header = smart_region_header(recover->region);

	if (!recover->region->book)
		for (uint32_t i = header->home.chunks; i-- > 0;)
			list_slabs_of(recover, i);
	else
		for (uint32_t i = SMART_HOME_CHUNKS + header->remote_chunks; i-- > SMART_HOME_CHUNKS;)
			list_slabs_of(recover, i);
}

/*
 * recover_trees.c
 *	  The directory after a crash: a record with an id is a tree.
 *
 * A tree that was being made has an id when it is whole, and a tree that is being
 * dropped has none from the start.  So there is no half of one: what hung on a record
 * without an id is not reached from anywhere, and free.
 */
#include <string.h>

#include "compute/recover_parts.h"

static void
forget_slabs(struct smart_record *record)
{
	record->pages = record->slabs = 0;
	record->queue_head = record->queue_tail = record->full = 0;
	memset(record->partial, 0, sizeof(record->partial));
}

static smart_status
resume_tree(struct recover *recover, uint32_t number)
{
	struct smart_region_header *header = smart_region_header(recover->region);
	const struct smart_record *record = smart_record_at(recover->region, number);
	smart_status status = SMART_OK;

	if (smart_record_exists(recover->space, record->id))
		return smart_recover_fault(recover, "two trees have one id", record->id);
	if (recover->region->book)
		status = smart_recover_remote_tree(recover, number);
	if (status != SMART_OK)
		return status;
	smart_record_link(recover->space, number);
	header->trees++;
	if (record->id - header->incarnation > header->last_tree)
		return smart_recover_fault(recover, "a tree has an id that was not given yet", record->id);
	return SMART_OK;
}

static smart_status
resume_record(struct recover *recover, uint32_t number)
{
	struct smart_record *record = smart_record_at(recover->region, number);

	forget_slabs(record);
	if (recover->region->book && smart_recover_duty(recover, number))
		return SMART_OK;
	if (record->id != 0)
		return resume_tree(recover, number);
	smart_record_free(recover->space, number);
	return SMART_OK;
}

/* The records of one page. */
static smart_status
resume_records(struct recover *recover, uint32_t first)
{
	smart_status status = smart_recover_claim(recover, SMART_PAGE_OF_RECORD(first), 0);

	if (status == SMART_OK && first != SMART_PAGE_OF_RECORD(first) << SMART_RECORD_PAGE_SHIFT)
		status = smart_recover_fault(recover, "a page of records begins elsewhere", first);
	for (unsigned int i = SMART_RECORDS_A_PAGE; i-- > 0 && status == SMART_OK;)
		status = resume_record(recover, first + i * SMART_RECORD_STEP);
	return status;
}

smart_status
smart_recover_directory(struct recover *recover)
{
	struct smart_region_header *header = smart_region_header(recover->region);
	smart_status status;

	header->trees = 0;
	header->free_record = 0;
	/* The table is made before the first page of records. */
	if (header->buckets_page == 0)
		return header->record_pages == 0 ? SMART_OK : smart_recover_fault(recover, "the directory has no table", 0);
	status = smart_recover_claim(recover, header->buckets_page, 2);
	if (status != SMART_OK)
		return status;
	memset(smart_page_memory(recover->region, header->buckets_page), 0, SMART_TREE_BUCKETS * sizeof(uint32_t));
	for (uint32_t first = header->record_pages; first != 0 && status == SMART_OK;
		 first = smart_record_at(recover->region, first)->page)
		status = resume_records(recover, first);
	return status;
}

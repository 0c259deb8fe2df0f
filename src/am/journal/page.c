/*
 * page.c
 *	  The pages of a journal.
 *
 * What is read here comes from disk, perhaps torn or of another life of the block: every number is checked before it is
 * used.
 */
#include "postgres.h"

#include "am/journal/page.h"
#include "base/assert.h"

void
smart_page_init(Page page, enum smart_page_kind kind, uint64 journal, uint64 number, uint32 position)
{
	PageInit(page, BLCKSZ, 0);
	*smart_page_head(page) = (struct smart_page_head){
		.kind = (uint16) kind,
		.next = InvalidBlockNumber,
		.journal = journal,
		.number = number,
		.position = position,
	};
	((PageHeader) page)->pd_lower = SMART_PAGE_BEGIN;
	smart_assert(journal != 0 && number != 0 && ((PageHeader) page)->pd_upper == BLCKSZ);
}

bool
smart_page_is(Page page, enum smart_page_kind kind, uint64 journal, uint64 number)
{
	const PageHeader header = (PageHeader) page;
	const struct smart_page_head *head = smart_page_head(page);

	return !PageIsNew(page) && header->pd_lower >= SMART_PAGE_BEGIN && header->pd_lower <= header->pd_upper &&
		   header->pd_upper == BLCKSZ && head->kind == kind && head->journal == journal && head->number == number;
}

/* ---- run pages ---- */

static uint32
content_crc(Page page)
{
	return smart_content_crc((uint8 *) page + SMART_PAGE_BEGIN, ((PageHeader) page)->pd_lower - SMART_PAGE_BEGIN);
}

void
smart_run_page_finish(Page page, const uint8 *end)
{
	smart_assert(smart_page_head(page)->kind == SMART_PAGE_RUN);
	smart_assert(end > (uint8 *) page + SMART_PAGE_BEGIN && end <= (uint8 *) page + BLCKSZ);
	((PageHeader) page)->pd_lower = (LocationIndex) (end - (uint8 *) page);
	smart_page_head(page)->crc = content_crc(page);
}

bool
smart_run_page_open(Page page, struct smart_unpacker *unpacker)
{
	uint32 lower = ((PageHeader) page)->pd_lower;

	/* One that was reserved and never written has no content. */
	if (lower == SMART_PAGE_BEGIN || smart_page_head(page)->crc != content_crc(page))
		return false;
	smart_unpacker_begin(unpacker, (uint8 *) page + SMART_PAGE_BEGIN, (uint8 *) page + lower);
	return true;
}

/* ---- batches of log pages ---- */

bool
smart_batch_open(Page page, uint32 place, struct smart_unpacker *unpacker, enum smart_operation *operation,
				 uint32 *next)
{
	return place >= SMART_PAGE_BEGIN && smart_batch_begin((uint8 *) page, place, ((PageHeader) page)->pd_lower,
														  smart_page_head(page)->number, unpacker, operation, next);
}

void
smart_log_page_count(Page page, uint64 *adds, uint64 *removals)
{
	struct smart_unpacker unpacker;
	enum smart_operation operation;

	for (uint32 place = SMART_PAGE_BEGIN; smart_batch_open(page, place, &unpacker, &operation, &place);)
		*(operation == SMART_OPERATION_REMOVE ? removals : adds) += smart_unpacker_count(&unpacker);
}

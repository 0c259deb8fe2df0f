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
#include "base/crc32c.h"

void
smart_page_init(Page page, enum smart_page_kind kind, uint64 journal, uint64 number, uint32 position)
{
	smart_assert((kind == SMART_PAGE_FENCE) == (position > 0));
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
		   (kind == SMART_PAGE_LOG ? header->pd_upper == BLCKSZ : header->pd_upper <= BLCKSZ) && head->kind == kind &&
		   head->journal == journal && head->number == number;
}

/* ---- run pages and fence pages ---- */

static uint32
content_crc(Page page)
{
	const PageHeader header = (PageHeader) page;
	uint32 crc = smart_crc32c(UINT32_MAX, (uint8 *) page + SMART_PAGE_BEGIN, header->pd_lower - SMART_PAGE_BEGIN);

	smart_assert(header->pd_lower >= SMART_PAGE_BEGIN && header->pd_lower <= header->pd_upper);
	smart_assert(header->pd_upper <= BLCKSZ);
	return ~smart_crc32c(crc, (uint8 *) page + header->pd_upper, (Size) (BLCKSZ - header->pd_upper));
}

static int
suffix_of(Page page)
{
	return smart_page_head(page)->kind == SMART_PAGE_FENCE ? SMART_FENCE_SUFFIX : 0;
}

void
smart_run_page_begin(Page page, struct smart_groups_writer *writer)
{
	smart_assert(smart_page_head(page)->kind == SMART_PAGE_RUN || smart_page_head(page)->kind == SMART_PAGE_FENCE);
	smart_assert(((PageHeader) page)->pd_lower == SMART_PAGE_BEGIN);
	smart_groups_begin(writer, (uint8 *) page + SMART_PAGE_BEGIN, (uint8 *) page + BLCKSZ, suffix_of(page));
}

void
smart_run_page_finish(Page page, struct smart_groups_writer *writer)
{
	const uint8 *directory = smart_groups_finish(writer);
	PageHeader header = (PageHeader) page;

	smart_assert(writer->begin == (uint8 *) page + SMART_PAGE_BEGIN && directory < (uint8 *) page + BLCKSZ);
	header->pd_lower = (LocationIndex) (writer->packer.at - (uint8 *) page);
	header->pd_upper = (LocationIndex) (directory - (uint8 *) page);
	smart_page_head(page)->crc = content_crc(page);
	smart_assert(header->pd_lower > SMART_PAGE_BEGIN && header->pd_lower <= header->pd_upper);
}

bool
smart_run_page_open_sound(Page page, struct smart_groups *groups)
{
	const PageHeader header = (PageHeader) page;
	const uint8 *bytes = (uint8 *) page;

	smart_assert(header->pd_lower >= SMART_PAGE_BEGIN && header->pd_lower <= header->pd_upper);
	smart_assert(header->pd_upper <= BLCKSZ);
	return smart_groups_open(groups, bytes + SMART_PAGE_BEGIN, bytes + header->pd_lower, bytes + header->pd_upper,
							 bytes + BLCKSZ, suffix_of(page));
}

bool
smart_run_page_open(Page page, struct smart_groups *groups)
{
	const PageHeader header = (PageHeader) page;

	/* One that was reserved and never written has no content. */
	return header->pd_lower > SMART_PAGE_BEGIN && smart_page_head(page)->crc == content_crc(page) &&
		   smart_run_page_open_sound(page, groups);
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

	smart_assert(smart_page_head(page)->kind == SMART_PAGE_LOG);
	for (uint32 place = SMART_PAGE_BEGIN; smart_batch_open(page, place, &unpacker, &operation, &place);)
		*(operation == SMART_OPERATION_REMOVE ? removals : adds) += smart_unpacker_count(&unpacker);
}

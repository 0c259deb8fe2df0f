/*
 * page.h
 *	  The pages of a journal: what an index's tree holds, in blocks 1 and up of the main fork.
 *
 *	  run page   entries of one whole tree, in ascending order
 *	  log page   batches of operations, in the order in which they happened
 *
 * Both have PostgreSQL's page header, and behind it a head that says what the page is and which one comes next.
 * Content lies between the head and pd_lower, packed as tree/pack.h tells.  Integers are in the server's byte order.
 */
#ifndef SMART_AM_JOURNAL_PAGE_H
#define SMART_AM_JOURNAL_PAGE_H

#include "storage/block.h"
#include "storage/bufpage.h"

#include "tree/pack.h"

enum smart_page_kind
{
	SMART_PAGE_RUN = 0x5352,
	SMART_PAGE_LOG = 0x534c
};

struct smart_page_head
{
	uint16 kind;      /* enum smart_page_kind */
	uint16 unused;    /* 0 */
	BlockNumber next; /* InvalidBlockNumber: there is none (yet) */
	uint64 journal;   /* of whose content it is (meta.h) */
	uint64 number;    /* run page: the run's id; log page: its serial, one more than that of the page before */
	uint32
		position; /* run page: how many pages of its run come before it; log page: pd_lower once there is a next one */
	uint32 crc;   /* run page: CRC-32C of content; log page: 0, each batch has its own */
};

StaticAssertDecl(sizeof(struct smart_page_head) == 32 && offsetof(struct smart_page_head, crc) == 28, "page format");

/* Where content begins, and how many bytes there are. */
#define SMART_PAGE_BEGIN (MAXALIGN(SizeOfPageHeaderData) + sizeof(struct smart_page_head))
#define SMART_PAGE_ROOM  (BLCKSZ - SMART_PAGE_BEGIN)

StaticAssertDecl(SMART_PACKED_MAX(SMART_ENTRY_MAX) + sizeof(struct smart_batch_head) <= SMART_PAGE_ROOM,
				 "every entry fits on a page");

static inline struct smart_page_head *
smart_page_head(Page page)
{
	return (struct smart_page_head *) PageGetContents(page);
}

/* Makes a page without content. */
extern void smart_page_init(Page page, enum smart_page_kind kind, uint64 journal, uint64 number, uint32 position);

/* Is it a page of this kind, journal and number?  Its content has not been looked at. */
extern bool smart_page_is(Page page, enum smart_page_kind kind, uint64 journal, uint64 number);

/* ---- run pages ---- */

/* Closes a run page whose content ends at end. */
extern void smart_run_page_finish(Page page, const uint8 *end);

/* Begins to read one, which smart_page_is() has accepted.  False: it has no content, or that is damaged. */
extern bool smart_run_page_open(Page page, struct smart_unpacker *unpacker);

/* ---- batches of log pages ---- */

/*
 * Begins to read the batch at this place of a log page, which smart_page_is() has accepted.  *next: the place behind it.
 * False: there is no batch, or it is damaged.
 */
extern bool smart_batch_open(Page page, uint32 place, struct smart_unpacker *unpacker, enum smart_operation *operation,
							 uint32 *next);

/* Adds what a log page holds to the counts of entries; of a damaged one, what comes before the damage. */
extern void smart_log_page_count(Page page, uint64 *adds, uint64 *removals);

#endif /* SMART_AM_JOURNAL_PAGE_H */

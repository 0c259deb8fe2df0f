/*
 * page.h
 *	  The pages of a journal: what an index's tree holds, in blocks 1 and up of the main fork.
 *
 *	  run page    entries of one whole tree, in ascending order
 *	  fence page  the way to run pages, or to fence pages one level below: for each but the first of these a separator, the
 *	              shortest string that is behind all entries in front of it, and not behind those on it; its block follows.
 *	              The first one's is any string that begins as the next ones do: what is before all others is looked for
 *	              there.
 *	  log page    batches of operations, in the order in which they happened
 *	  free page   nothing: a run page that was given back (free.h)
 *
 * All have PostgreSQL's page header, and behind it a head that says what the page is.  Which run pages a run has, and in
 * which order, its fence pages tell: a run may have kept pages of the one before, whose neighbours were others.  Content
 * lies between the head and pd_lower, packed as tree/pack.h tells.  Run pages and fence pages are packed in groups, as
 * tree/groups.h tells, whose directory lies between pd_upper and the page's end; and no byte of them is changed while
 * their run lives.  Integers are in the server's byte order.
 */
#ifndef SMART_AM_JOURNAL_PAGE_H
#define SMART_AM_JOURNAL_PAGE_H

#include "storage/block.h"
#include "storage/bufpage.h"

#include "tree/groups.h"

enum smart_page_kind
{
	SMART_PAGE_RUN = 0x5352,
	SMART_PAGE_FENCE = 0x5346,
	SMART_PAGE_LOG = 0x534c,
	SMART_PAGE_FREE = 0x5355
};

struct smart_page_head
{
	uint16 kind;      /* enum smart_page_kind */
	uint16 unused;    /* 0 */
	BlockNumber next; /* log page: InvalidBlockNumber if there is none yet; the others have none */
	uint64 journal;   /* of whose content it is (meta.h) */
	uint64 number;    /* log page: its serial, one more than that of the page before; else the id of the run that it was
						 written for, or, if it is free, that did without it */
	uint32 position; /* fence page: its level, 1 is that above run pages; log page: pd_lower once there is a next one */
	uint32 crc;      /* CRC-32C of content and directory; log page: 0, each batch has its own */
};

StaticAssertDecl(sizeof(struct smart_page_head) == 32 && offsetof(struct smart_page_head, crc) == 28, "page format");

/* Where content begins, and how many bytes there are. */
#define SMART_PAGE_BEGIN (MAXALIGN(SizeOfPageHeaderData) + sizeof(struct smart_page_head))
#define SMART_PAGE_ROOM  (BLCKSZ - SMART_PAGE_BEGIN)

#define SMART_FENCE_LEVELS    32 /* at most: each page has two children, and a file 2^32 blocks */
#define SMART_FENCE_SUFFIX    ((int) sizeof(BlockNumber)) /* behind a separator: the block, the highest byte first */
#define SMART_FENCE_FIRST_MAX 64                          /* bytes of the first separator on a page */
#define SMART_FENCE_CHILDREN  (SMART_PAGE_ROOM / 3) /* of a page, at most: a head, a mask, and a byte (tree/pack.h) */

StaticAssertDecl(SMART_PACKED_MAX(SMART_ENTRY_MAX) + sizeof(struct smart_batch_head) <= SMART_PAGE_ROOM &&
					 SMART_GROUPS_SPACE(SMART_ENTRY_MAX) <= SMART_PAGE_ROOM &&
					 SMART_PAGE_ROOM <= SMART_GROUPS_SPACE_MAX,
				 "every entry fits on a page");
StaticAssertDecl(SMART_PACKED_MAX(SMART_FENCE_FIRST_MAX + SMART_FENCE_SUFFIX) +
						 SMART_PACKED_MAX(SMART_KEY_MAX + SMART_FENCE_SUFFIX) + SMART_GROUPS_DIRECTORY(2) <=
					 SMART_PAGE_ROOM,
				 "every fence page has two children");

static inline struct smart_page_head *
smart_page_head(Page page)
{
	return (struct smart_page_head *) PageGetContents(page);
}

/* Makes a page without content. */
extern void smart_page_init(Page page, enum smart_page_kind kind, uint64 journal, uint64 number, uint32 position);

/* Is it a page of this kind, journal and number?  Its content has not been looked at. */
extern bool smart_page_is(Page page, enum smart_page_kind kind, uint64 journal, uint64 number);

/* ---- run pages and fence pages ---- */

/* Is it a run page of this journal that a run from least to last has written?  Its content has not been looked at. */
static inline bool
smart_page_is_of_runs(Page page, uint64 journal, uint64 least, uint64 last)
{
	uint64 number = smart_page_head(page)->number;

	return number >= least && number <= last && smart_page_is(page, SMART_PAGE_RUN, journal, number);
}

static inline bool
smart_page_is_of_run(Page page, uint64 journal, uint64 run)
{
	return smart_page_is(page, SMART_PAGE_RUN, journal, run) || smart_page_is(page, SMART_PAGE_FENCE, journal, run);
}

/* Begins to fill one. */
extern void smart_run_page_begin(Page page, struct smart_groups_writer *writer);

/* Closes it. */
extern void smart_run_page_finish(Page page, struct smart_groups_writer *writer);

/*
 * Opens one that smart_page_is() has accepted.  False: it has no content, or that is damaged.  open_sound: one that open has
 * accepted before, perhaps as a copy, without reading all of it.
 */
extern bool smart_run_page_open(Page page, struct smart_groups *groups);
extern bool smart_run_page_open_sound(Page page, struct smart_groups *groups);

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

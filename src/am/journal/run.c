/*
 * run.c
 *	  Writing a run: the entries of a whole tree, in order, on pages of their own.
 *
 * A page says which one comes next, so the place of each is known before the one in front is written: of a build it is
 * the next block, behind the fence pages that have become full; compaction reserves a page by making it an empty one of
 * its run.
 */
#include "postgres.h"

#include "access/xloginsert.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/smgr.h"
#include "utils/rel.h"

#include "am/compat.h"
#include "am/journal/fences.h"
#include "am/journal/free.h"
#include "am/journal/page.h"
#include "am/journal/run.h"
#include "am/server/environment.h"
#include "base/assert.h"
#include "base/bytes.h"

#define FIRST_RUN UINT64CONST(1)
#define ALIGNMENT 4096
#define AT_ONCE   32 /* pages of a build that are logged by one record */
#define HELD_MAX  (AT_ONCE + SMART_FENCE_LEVELS)

struct smart_run_writer
{
	Relation index;
	struct smart_run run;
	const struct smart_meta *meta; /* compaction: a copy; NULL: a build */
	BlockNumber block;             /* where the page that is being filled will go */
	BlockNumber end;               /* build: behind it, and behind all pages that are held */
	Page page;                     /* that page: one of pages */
	struct smart_groups_writer groups;
	struct smart_fences fences;
	int first_length; /* of what is kept of the first entry */
	uint8 first[SMART_FENCE_FIRST_MAX];
	int held;     /* build: full pages that have not been written yet, at the beginning of pages */
	char *pages;  /* build: HELD_MAX; compaction: one; aligned for any I/O */
	char *memory; /* of pages */
	struct smart_meta copy;
};

static void
begin_page(struct smart_run_writer *writer, BlockNumber before)
{
	writer->page = (Page) (writer->pages + (Size) writer->held * BLCKSZ);
	smart_page_init(writer->page, SMART_PAGE_RUN, writer->run.journal, writer->run.id, before);
	writer->run.pages++;
	smart_run_page_begin(writer->page, &writer->groups);
}

static struct smart_run_writer *
make_writer(Relation index, int pages)
{
	struct smart_run_writer *writer = palloc(sizeof(*writer));

	memset(writer, 0, sizeof(*writer));
	writer->index = index;
	writer->run.block = InvalidBlockNumber;
	writer->run.root = InvalidBlockNumber;
	writer->memory = palloc((Size) pages * BLCKSZ + ALIGNMENT);
	writer->pages = (char *) TYPEALIGN(ALIGNMENT, writer->memory);
	return writer;
}

/* ---- a build ---- */

/* Writes the pages that are held, whose blocks end before `end`. */
static void
write_held(struct smart_run_writer *writer, BlockNumber end)
{
	BlockNumber block[HELD_MAX];
	char *page[HELD_MAX];

	smart_assert(writer->meta == NULL && writer->held <= HELD_MAX);
	if (writer->held == 0)
		return;
	for (int i = 0; i < writer->held; i++)
	{
		block[i] = end - (BlockNumber) (writer->held - i);
		page[i] = writer->pages + (Size) i * BLCKSZ;
	}
	if (RelationNeedsWAL(writer->index))
		log_newpages(&smart_relation_locator(writer->index), MAIN_FORKNUM, writer->held, block, page, true);
	for (int i = 0; i < writer->held; i++)
	{
		PageSetChecksumInplace(page[i], block[i]);
		smgrextend(RelationGetSmgr(writer->index), MAIN_FORKNUM, block[i], page[i], true);
	}
	writer->held = 0;
	CHECK_FOR_INTERRUPTS();
}

/* smart_fences.place: behind all pages so far. */
static BlockNumber
hold_fences(void *argument, Page page)
{
	struct smart_run_writer *writer = argument;

	if (writer->held == HELD_MAX)
		write_held(writer, writer->end);
	memcpy(writer->pages + (Size) writer->held++ * BLCKSZ, page, BLCKSZ);
	return writer->end++;
}

struct smart_run_writer *
smart_run_begin_build(Relation index)
{
	struct smart_run_writer *writer = make_writer(index, HELD_MAX);

	writer->run.journal = smart_random_token();
	writer->fences.place = hold_fences;
	return writer;
}

/* ---- compaction ---- */

/* Writes a page of the run to where nobody else writes; unlocks that. */
static void
put_page(Relation index, Buffer buffer, Page page)
{
	START_CRIT_SECTION();
	memcpy(BufferGetPage(buffer), page, BLCKSZ);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(index))
		log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}

/* A page for the run, which nobody else takes from now on. */
static BlockNumber
reserve_page(struct smart_run_writer *writer)
{
	PGAlignedBlock empty;
	Buffer buffer = smart_page_take(writer->index, writer->meta);
	BlockNumber block = BufferGetBlockNumber(buffer);

	smart_page_init(empty.data, SMART_PAGE_RUN, writer->run.journal, writer->run.id, 0);
	put_page(writer->index, buffer, empty.data);
	return block;
}

/* smart_fences.place: on a page that was free. */
static BlockNumber
write_fences(void *argument, Page page)
{
	struct smart_run_writer *writer = argument;
	Buffer buffer = smart_page_take(writer->index, writer->meta);
	BlockNumber block = BufferGetBlockNumber(buffer);

	put_page(writer->index, buffer, page);
	return block;
}

static void
write_page(struct smart_run_writer *writer)
{
	Buffer buffer = ReadBuffer(writer->index, writer->block);

	smart_assert(writer->meta != NULL);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	smart_assert(smart_page_is(BufferGetPage(buffer), SMART_PAGE_RUN, writer->run.journal, writer->run.id));
	put_page(writer->index, buffer, writer->page);
}

struct smart_run_writer *
smart_run_begin(Relation index, const struct smart_meta *meta, uint64 id)
{
	struct smart_run_writer *writer = make_writer(index, 1);

	smart_assert(id > meta->run && id == meta->last_run);
	writer->copy = *meta;
	writer->meta = &writer->copy;
	writer->run.journal = meta->journal;
	writer->run.id = id;
	writer->fences.place = write_fences;
	return writer;
}

/* ---- both ---- */

/* Begins the first page of the run. */
static void
begin_run(struct smart_run_writer *writer, const uint8 *entry, int length)
{
	smart_assert(writer->run.pages == 0);
	if (writer->meta == NULL)
	{
		/* Block 0 is filled in at the end. */
		memset(writer->pages, 0, BLCKSZ);
		smgrextend(RelationGetSmgr(writer->index), MAIN_FORKNUM, SMART_META_BLOCK, writer->pages, true);
		writer->run.id = FIRST_RUN;
		writer->block = SMART_META_BLOCK + 1;
		writer->end = writer->block + 1;
	}
	else
		writer->block = reserve_page(writer);
	writer->run.block = writer->block;
	writer->fences.journal = writer->run.journal;
	writer->fences.run = writer->run.id;
	writer->fences.argument = writer;
	writer->first_length = Min(length, SMART_FENCE_FIRST_MAX);
	memcpy(writer->first, entry, (Size) writer->first_length);
	begin_page(writer, InvalidBlockNumber);
}

/* The page is full, or the last one; it is written, of a build soon. */
static void
end_page(struct smart_run_writer *writer)
{
	smart_run_page_finish(writer->page, &writer->groups);
	if (writer->meta == NULL)
		writer->held++;
}

/* The block of the next page, which begins with this entry; the fence pages have it then. */
static BlockNumber
fence(struct smart_run_writer *writer, const uint8 *entry, int length)
{
	const struct smart_packer *last = &writer->groups.packer;
	int separator = 1 + (int) smart_common_prefix(last->before, (Size) last->length, entry, (Size) length);
	BlockNumber next;

	if (separator > Min(length, SMART_KEY_MAX))
		elog(ERROR, "entries of index \"%s\" do not ascend", RelationGetRelationName(writer->index));
	next = writer->meta == NULL ? writer->end : reserve_page(writer);
	if (writer->run.pages == 1)
		(void) smart_fences_add(&writer->fences, writer->first, writer->first_length, writer->block);
	if (!smart_fences_add(&writer->fences, entry, separator, next))
	{
		smart_fences_place(&writer->fences);
		if (writer->meta == NULL)
			next = writer->end;
		if (!smart_fences_add(&writer->fences, entry, separator, next))
			elog(ERROR, "a separator of %d bytes does not fit on a page", separator);
	}
	return next;
}

/* Goes on with a new page, which begins with this entry. */
static void
next_page(struct smart_run_writer *writer, const uint8 *entry, int length)
{
	BlockNumber before = writer->block;
	BlockNumber next;

	end_page(writer);
	next = fence(writer, entry, length);
	smart_page_head(writer->page)->next = next;
	if (writer->meta != NULL)
		write_page(writer);
	else
	{
		if (writer->held >= AT_ONCE)
			write_held(writer, writer->end);
		writer->end++;
	}
	writer->block = next;
	begin_page(writer, before);
}

bool
smart_run_add(struct smart_run_writer *writer, const uint8 *entry, int length)
{
	bool full = false;

	if (unlikely(writer->run.pages == 0))
		begin_run(writer, entry, length);
	if (unlikely(!smart_groups_add(&writer->groups, entry, length)))
	{
		next_page(writer, entry, length);
		full = true;
		if (!smart_groups_add(&writer->groups, entry, length))
			elog(ERROR, "an entry of %d bytes does not fit on a page", length);
	}
	writer->run.entries++;
	return full;
}

void
smart_run_finish(struct smart_run_writer *writer, struct smart_run *run)
{
	if (writer->run.pages > 0)
	{
		end_page(writer);
		if (writer->meta != NULL)
			write_page(writer);
		writer->run.root = writer->run.pages == 1 ? writer->block : smart_fences_finish(&writer->fences);
		writer->run.fences = writer->fences.pages;
	}
	/* Written past shared buffers, so that no checkpoint knows of it; as PostgreSQL's own builds do. */
	if (writer->meta == NULL && writer->run.pages > 0)
	{
		write_held(writer, writer->end);
		smgrimmedsync(RelationGetSmgr(writer->index), MAIN_FORKNUM);
	}
	*run = writer->run;
	pfree(writer->memory);
	pfree(writer);
}

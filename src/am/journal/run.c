/*
 * run.c
 *	  Writing a run: the entries of a whole tree, in order, on pages of their own.
 *
 * A page says which one comes next, so the place of each is known before the one in front is written: of a build it is
 * the next block; compaction reserves a page by making it an empty one of its run.
 */
#include "postgres.h"

#include "access/xloginsert.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/smgr.h"
#include "utils/rel.h"

#include "am/compat.h"
#include "am/journal/free.h"
#include "am/journal/page.h"
#include "am/journal/run.h"
#include "am/server/environment.h"
#include "base/assert.h"

#define FIRST_RUN UINT64CONST(1)
#define ALIGNMENT 4096
#define AT_ONCE   32 /* pages of a build that are logged by one record */

struct smart_run_writer
{
	Relation index;
	struct smart_run run;
	const struct smart_meta *meta; /* compaction: a copy; NULL: a build */
	BlockNumber block;             /* where the page that is being filled will go */
	Page page;                     /* that page: one of pages */
	struct smart_packer packer;
	int held;     /* build: full pages that have not been written yet, at the beginning of pages */
	char *pages;  /* build: AT_ONCE; compaction: one; aligned for any I/O */
	char *memory; /* of pages */
	struct smart_meta copy;
};

static void
begin_page(struct smart_run_writer *writer)
{
	writer->page = (Page) (writer->pages + (Size) writer->held * BLCKSZ);
	smart_page_init(writer->page, SMART_PAGE_RUN, writer->run.journal, writer->run.id, writer->run.pages++);
	smart_packer_begin(&writer->packer, (uint8 *) writer->page + SMART_PAGE_BEGIN, (uint8 *) writer->page + BLCKSZ);
}

static struct smart_run_writer *
make_writer(Relation index, int pages)
{
	struct smart_run_writer *writer = palloc(sizeof(*writer));

	memset(writer, 0, sizeof(*writer));
	writer->index = index;
	writer->memory = palloc((Size) pages * BLCKSZ + ALIGNMENT);
	writer->pages = (char *) TYPEALIGN(ALIGNMENT, writer->memory);
	return writer;
}

/* ---- a build ---- */

/* Writes the pages that are held, whose blocks end before `end`. */
static void
write_held(struct smart_run_writer *writer, BlockNumber end)
{
	BlockNumber block[AT_ONCE];
	char *page[AT_ONCE];

	smart_assert(writer->meta == NULL && writer->held <= AT_ONCE);
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

struct smart_run_writer *
smart_run_begin_build(Relation index)
{
	struct smart_run_writer *writer = make_writer(index, AT_ONCE);

	writer->run.journal = smart_random_token();
	writer->run.block = InvalidBlockNumber;
	writer->block = SMART_META_BLOCK;
	return writer;
}

/* ---- compaction ---- */

/* A page for the run, which nobody else takes from now on. */
static BlockNumber
reserve_page(struct smart_run_writer *writer)
{
	Buffer buffer = smart_page_take(writer->index, writer->meta);
	BlockNumber block = BufferGetBlockNumber(buffer);

	START_CRIT_SECTION();
	smart_page_init(BufferGetPage(buffer), SMART_PAGE_RUN, writer->run.journal, writer->run.id, 0);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(writer->index))
		log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
	return block;
}

static void
write_page(struct smart_run_writer *writer)
{
	Buffer buffer = ReadBuffer(writer->index, writer->block);

	smart_assert(writer->meta != NULL);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	smart_assert(smart_page_is(BufferGetPage(buffer), SMART_PAGE_RUN, writer->run.journal, writer->run.id));
	START_CRIT_SECTION();
	memcpy(BufferGetPage(buffer), writer->page, BLCKSZ);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(writer->index))
		log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
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
	writer->run.block = InvalidBlockNumber;
	return writer;
}

/* ---- both ---- */

/* Begins the first page of the run. */
static void
begin_run(struct smart_run_writer *writer)
{
	smart_assert(writer->run.pages == 0);
	if (writer->meta == NULL)
	{
		/* Block 0 is filled in at the end. */
		memset(writer->pages, 0, BLCKSZ);
		smgrextend(RelationGetSmgr(writer->index), MAIN_FORKNUM, SMART_META_BLOCK, writer->pages, true);
		writer->run.id = FIRST_RUN;
		writer->block = SMART_META_BLOCK + 1;
	}
	else
		writer->block = reserve_page(writer);
	writer->run.block = writer->block;
	begin_page(writer);
}

/* The page is full, or the last one. */
static void
end_page(struct smart_run_writer *writer, BlockNumber next)
{
	smart_run_page_finish(writer->page, writer->packer.at);
	smart_page_head(writer->page)->next = next;
	if (writer->meta != NULL)
		write_page(writer);
	else if (++writer->held == AT_ONCE || next == InvalidBlockNumber)
		write_held(writer, writer->block + 1);
}

bool
smart_run_add(struct smart_run_writer *writer, const uint8 *entry, int length)
{
	bool full = false;

	if (unlikely(writer->run.pages == 0))
		begin_run(writer);
	if (unlikely(!smart_packer_add(&writer->packer, entry, length)))
	{
		BlockNumber next = writer->meta == NULL ? writer->block + 1 : reserve_page(writer);

		end_page(writer, next);
		writer->block = next;
		begin_page(writer);
		full = true;
		if (!smart_packer_add(&writer->packer, entry, length))
			elog(ERROR, "an entry of %d bytes does not fit on a page", length);
	}
	writer->run.entries++;
	return full;
}

void
smart_run_finish(struct smart_run_writer *writer, struct smart_run *run)
{
	if (writer->run.pages > 0)
		end_page(writer, InvalidBlockNumber);
	/* Written past shared buffers, so that no checkpoint knows of it; as PostgreSQL's own builds do. */
	if (writer->meta == NULL && writer->run.pages > 0)
		smgrimmedsync(RelationGetSmgr(writer->index), MAIN_FORKNUM);
	*run = writer->run;
	pfree(writer->memory);
	pfree(writer);
}

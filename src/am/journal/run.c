/*
 * run.c
 *	  Writing a run: the entries of a whole tree, in order, on pages of their own.
 *
 * A page gets its block when it is full: of a build the next one, of a compaction one that is free.  Then the fence pages
 * have it, and below which separator it stands.
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
#include "am/journal/run_walk.h"
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
	const struct smart_meta *meta;      /* compaction: a copy; NULL: a build */
	const struct smart_run_map *before; /* compaction: pages of the run before, or NULL */
	BlockNumber end;                    /* build: behind all pages, also those that are held */
	bool open;                          /* a page is being filled: */
	Page page;                          /* one of pages */
	struct smart_groups_writer groups;
	struct smart_run_place place; /* of that page, or of the next one if it has a length; its block is yet to come */
	struct smart_run_place first; /* of the first page, which is in no fence page while there is no other one */
	struct smart_fences fences;
	int held;     /* build: full pages that have not been written yet, at the beginning of pages */
	char *pages;  /* build: HELD_MAX; compaction: one; aligned for any I/O */
	char *memory; /* of pages */
	struct smart_meta copy;
};

static struct smart_run_writer *
make_writer(Relation index, int pages)
{
	struct smart_run_writer *writer = palloc(sizeof(*writer));

	memset(writer, 0, sizeof(*writer));
	writer->index = index;
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
	smart_assert((BlockNumber) writer->held < end);
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
	smart_assert(writer->meta == NULL && writer->held < HELD_MAX);
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

/*
 * A page whose checksum is wrong looks free (free.c), also one of the run before.  If that was kept, and the block used for another
 * page, both would be of this run, and none would say that it is not the right one.
 */
static void
check_block(const struct smart_run_writer *writer, BlockNumber block)
{
	if (writer->before != NULL && smart_run_map_has(writer->before, block))
		ereport(ERROR, errcode(ERRCODE_INDEX_CORRUPTED),
				errmsg("the journal of index \"%s\" is damaged", RelationGetRelationName(writer->index)),
				errdetail_internal("Block %u is of its run, and looks free.", block),
				smart_hint_reindex(writer->index));
}

/* Writes a page to one that was free; which block it has.  Also smart_fences.place. */
static BlockNumber
write_page(void *argument, Page page)
{
	struct smart_run_writer *writer = argument;
	Buffer buffer = smart_page_take(writer->index, writer->meta);
	BlockNumber block = BufferGetBlockNumber(buffer);

	smart_assert(block != SMART_META_BLOCK);
	check_block(writer, block);
	smart_page_put(writer->index, buffer, page);
	return block;
}

struct smart_run_writer *
smart_run_begin(Relation index, const struct smart_meta *meta, uint64 id, const struct smart_run_map *before)
{
	struct smart_run_writer *writer = make_writer(index, 1);

	smart_assert(id > meta->run && id == meta->last_run);
	writer->copy = *meta;
	writer->meta = &writer->copy;
	writer->before = before;
	writer->run.journal = meta->journal;
	writer->run.id = id;
	writer->fences.place = write_page;
	return writer;
}

/* ---- both ---- */

/* Called before the first page. */
static void
begin_run(struct smart_run_writer *writer)
{
	smart_assert(writer->run.pages == 0 && !writer->open && writer->held == 0);
	if (writer->meta == NULL)
	{
		/* Block 0 is filled in at the end. */
		memset(writer->pages, 0, BLCKSZ);
		smgrextend(RelationGetSmgr(writer->index), MAIN_FORKNUM, SMART_META_BLOCK, writer->pages, true);
		writer->run.id = FIRST_RUN;
		writer->end = SMART_META_BLOCK + 1;
	}
	smart_assert(writer->run.id != 0);
	writer->fences.journal = writer->run.journal;
	writer->fences.run = writer->run.id;
	writer->fences.argument = writer;
}

static void
add_fence(struct smart_run_writer *writer, const struct smart_run_place *place)
{
	smart_assert(place->length > 0 && place->length <= SMART_KEY_MAX);
	if (smart_fences_add(&writer->fences, place->separator, place->length, place->block))
		return;
	smart_fences_place(&writer->fences);
	if (!smart_fences_add(&writer->fences, place->separator, place->length, place->block))
		elog(ERROR, "a separator of %d bytes does not fit on a page", place->length);
}

/* The run's next page stands there. */
static void
add_page(struct smart_run_writer *writer, const struct smart_run_place *place)
{
	if (writer->run.pages == 0)
		smart_run_place_copy(&writer->first, place);
	else
	{
		if (writer->run.pages == 1)
			add_fence(writer, &writer->first);
		add_fence(writer, place);
	}
	writer->run.pages++;
}

/* The page is full, or the last one for now; it is written, of a build soon. */
static void
end_page(struct smart_run_writer *writer)
{
	smart_assert(writer->open);
	smart_run_page_finish(writer->page, &writer->groups);
	if (writer->meta == NULL)
	{
		writer->held++;
		writer->place.block = writer->end++;
	}
	else
		writer->place.block = write_page(writer, writer->page);
	add_page(writer, &writer->place);
	if (writer->held >= AT_ONCE)
		write_held(writer, writer->end);
	writer->place.length = 0;
	writer->open = false;
	smart_assert(writer->held < AT_ONCE);
}

/* The page will begin with this entry.  Where it stands is said already, if pages were kept before it. */
static void
begin_page(struct smart_run_writer *writer, const uint8 *entry, int length)
{
	struct smart_run_place *place = &writer->place;

	smart_assert(!writer->open && (writer->meta == NULL || writer->held == 0));
	if (writer->run.pages == 0)
		begin_run(writer);
	if (place->length == 0 && writer->run.pages == 0)
	{
		place->length = Min(length, SMART_FENCE_FIRST_MAX);
		memcpy(place->separator, entry, (Size) place->length);
	}
	smart_assert(place->length > 0);
	writer->page = (Page) (writer->pages + (Size) writer->held * BLCKSZ);
	smart_page_init(writer->page, SMART_PAGE_RUN, writer->run.journal, writer->run.id, 0);
	smart_run_page_begin(writer->page, &writer->groups);
	writer->open = true;
}

/* Goes on with a new page, which begins with this entry. */
static void
next_page(struct smart_run_writer *writer, const uint8 *entry, int length)
{
	const struct smart_packer *last = &writer->groups.packer;
	int separator = 1 + (int) smart_common_prefix(last->before, (Size) last->length, entry, (Size) length);

	if (separator > Min(length, SMART_KEY_MAX))
		elog(ERROR, "entries of index \"%s\" do not ascend", RelationGetRelationName(writer->index));
	end_page(writer);
	writer->place.length = separator;
	memcpy(writer->place.separator, entry, (Size) separator);
	begin_page(writer, entry, length);
}

bool
smart_run_add(struct smart_run_writer *writer, const uint8 *entry, int length)
{
	bool full = false;

	smart_assert(length > 0 && length <= SMART_ENTRY_MAX);
	if (unlikely(!writer->open))
		begin_page(writer, entry, length);
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
smart_run_keep(struct smart_run_writer *writer, const struct smart_run_place *page)
{
	smart_assert(writer->meta != NULL);
	smart_assert(page->length > 0 && page->length <= SMART_KEY_MAX);
	if (writer->open)
	{
		if ((Size) (writer->groups.packer.at - writer->groups.begin) < SMART_PAGE_ROOM / 2)
			writer->run.borders++;
		end_page(writer);
	}
	if (writer->run.pages == 0)
		begin_run(writer);
	add_page(writer, page);
	writer->run.kept++;
}

void
smart_run_go_on(struct smart_run_writer *writer, const struct smart_run_place *page)
{
	smart_assert(!writer->open && writer->run.kept > 0);
	smart_assert(page->length > 0 && page->length <= SMART_KEY_MAX);
	smart_run_place_copy(&writer->place, page);
}

void
smart_run_finish(struct smart_run_writer *writer, struct smart_run *run)
{
	if (writer->open)
		end_page(writer);
	if (writer->run.pages > 0)
	{
		writer->run.root = writer->run.pages == 1 ? writer->first.block : smart_fences_finish(&writer->fences);
		writer->run.fences = writer->fences.pages;
	}
	/* Written past shared buffers, so that no checkpoint knows of it; as PostgreSQL's own builds do. */
	if (writer->meta == NULL && writer->run.pages > 0)
	{
		write_held(writer, writer->end);
		smgrimmedsync(RelationGetSmgr(writer->index), MAIN_FORKNUM);
	}
	smart_assert(writer->held == 0 && !writer->open);
	smart_assert((writer->run.pages == 0) == (writer->run.root == InvalidBlockNumber));
	writer->run.made = GetCurrentTimestamp();
	*run = writer->run;
	pfree(writer->memory);
	pfree(writer);
}

/*
 * free.c
 *	  Pages of an index's file that are not in use.
 */
#include "postgres.h"

#include "access/xloginsert.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/indexfsm.h"
#include "storage/lmgr.h"
#include "utils/rel.h"

#include "am/compat.h"
#include "am/journal/free.h"
#include "am/journal/page.h"
#include "am/journal/run_walk.h"
#include "base/assert.h"

#define PROPOSALS_MAX 8    /* pages of the map that are looked at before the file is extended */
#define SMALL         4096 /* pages of a file that are always looked at */
#define LET_GO_SHARE  8    /* of a larger one, one in so many has to have been let go */

/*
 * The page that this process gave back last.  The map tells of a page late: its upper levels are brought up to date by
 * VACUUM and by compaction.
 */
static smart_file given_file;
static BlockNumber given_block = InvalidBlockNumber;

bool
smart_page_is_free(Page page, const struct smart_meta *meta)
{
	const struct smart_page_head *head = smart_page_head(page);

	if (PageIsNew(page))
		return true;
	/* Nothing is known of what is not a page of this journal; it is left alone. */
	if (smart_page_is(page, SMART_PAGE_FREE, meta->journal, head->number))
		return true;
	if (smart_page_is(page, SMART_PAGE_FENCE, meta->journal, head->number))
		return head->number < meta->last_run && head->number != meta->run && head->number != meta->previous_run;
	if (smart_page_is(page, SMART_PAGE_RUN, meta->journal, head->number))
		return head->number < (meta->previous_run != 0 ? meta->previous_kept : meta->run_kept) ||
			   (head->number > meta->run && head->number < meta->last_run);
	if (smart_page_is(page, SMART_PAGE_LOG, meta->journal, head->number))
		return head->number < meta->previous_serial;
	return false;
}

/* A page that may be free, or InvalidBlockNumber. */
static BlockNumber
propose(Relation index)
{
	BlockNumber block = given_block;

	if (block == InvalidBlockNumber || memcmp(&given_file, &smart_relation_locator(index), sizeof(smart_file)) != 0)
		return GetFreeIndexPage(index);
	given_block = InvalidBlockNumber;
	return block;
}

/* Locks a page if it is free; else InvalidBuffer.  Another process may hold it while it waits for a page of this one. */
static Buffer
lock_free(Relation index, const struct smart_meta *meta, BlockNumber block)
{
	Buffer buffer = ReadBufferExtended(index, MAIN_FORKNUM, block, RBM_ZERO_ON_ERROR, NULL);

	smart_assert(block != SMART_META_BLOCK);
	if (ConditionalLockBuffer(buffer))
	{
		if (smart_page_is_free(BufferGetPage(buffer), meta))
			return buffer;
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	}
	ReleaseBuffer(buffer);
	return InvalidBuffer;
}

Buffer
smart_page_take(Relation index, const struct smart_meta *meta)
{
	Buffer buffer;

	smart_assert(meta->journal != 0);
	for (int i = 0; i < PROPOSALS_MAX; i++)
	{
		BlockNumber block = propose(index);

		if (block == InvalidBlockNumber)
			break;
		if (block == SMART_META_BLOCK || block >= RelationGetNumberOfBlocks(index))
			continue;
		/* The map may propose any page. */
		buffer = lock_free(index, meta, block);
		if (BufferIsValid(buffer))
			return buffer;
	}
	LockRelationForExtension(index, ExclusiveLock);
	buffer = ReadBufferExtended(index, MAIN_FORKNUM, P_NEW, RBM_ZERO_AND_LOCK, NULL);
	UnlockRelationForExtension(index, ExclusiveLock);
	smart_assert(BufferGetBlockNumber(buffer) != SMART_META_BLOCK);
	return buffer;
}

void
smart_page_put(Relation index, Buffer buffer, Page page)
{
	smart_assert(BufferGetBlockNumber(buffer) != SMART_META_BLOCK);
	smart_assert(smart_page_head(page)->journal != 0 && smart_page_head(page)->kind != SMART_PAGE_LOG);
	START_CRIT_SECTION();
	memcpy(BufferGetPage(buffer), page, BLCKSZ);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(index))
		log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}

void
smart_page_give_back(Relation index, Buffer buffer)
{
	BlockNumber block = BufferGetBlockNumber(buffer);

	smart_assert(block != SMART_META_BLOCK);
	UnlockReleaseBuffer(buffer);
	given_file = smart_relation_locator(index);
	given_block = block;
	RecordFreeIndexPage(index, block);
}

/* ---- looking for pages that are not in use ---- */

static bool
is_worth_it(Relation index, const struct smart_meta *meta)
{
	BlockNumber blocks = RelationGetNumberOfBlocks(index);

	return blocks <= SMALL || meta->let_go > blocks / LET_GO_SHARE;
}

/* Is it a run page of a run before that the run does not have?  map: of the run. */
static bool
is_left(Page page, const struct smart_meta *meta, const struct smart_run_map *map, BlockNumber block)
{
	return map != NULL && smart_page_is_of_runs(page, meta->journal, meta->run_kept, meta->run) &&
		   !smart_run_map_has(map, block);
}

/* Makes such a page a free one.  Nobody has written to it meanwhile, since it was not free. */
static void
give_back(Relation index, const struct smart_meta *meta, const struct smart_run_map *map, BlockNumber block)
{
	Buffer buffer = ReadBuffer(index, block);
	PGAlignedBlock empty;

	smart_assert(block != SMART_META_BLOCK);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	smart_assert(is_left(BufferGetPage(buffer), meta, map, block));
	smart_page_init(empty.data, SMART_PAGE_FREE, meta->journal, meta->run, 0);
	smart_page_put(index, buffer, empty.data);
}

static void
collect_page(Relation index, const struct smart_meta *meta, const struct smart_run_map *map, BlockNumber block,
			 BufferAccessStrategy ring)
{
	/* A page whose checksum is wrong is as good as a new one. */
	Buffer buffer = ReadBufferExtended(index, MAIN_FORKNUM, block, RBM_ZERO_ON_ERROR, ring);
	bool is_free;
	bool left;

	smart_assert(block != SMART_META_BLOCK);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	is_free = smart_page_is_free(BufferGetPage(buffer), meta);
	left = !is_free && is_left(BufferGetPage(buffer), meta, map, block);
	UnlockReleaseBuffer(buffer);
	if (left)
		give_back(index, meta, map, block);
	if (is_free || left)
		RecordFreeIndexPage(index, block);
}

/* All have been looked at that were let go by then. */
static void
note_collected(Relation index, const struct smart_meta *meta)
{
	struct smart_meta now;
	Buffer buffer;

	if (meta->let_go == 0)
		return;
	buffer = smart_meta_lock(index, &now);
	smart_assert(now.journal == meta->journal && now.let_go >= meta->let_go);
	now.let_go -= meta->let_go;
	(void) smart_meta_change(index, buffer, &now);
}

bool
smart_free_collect(Relation index, const struct smart_meta *meta, bool has_to, bool (*around)(void *), void *argument)
{
	BufferAccessStrategy ring;
	struct smart_run_map *map = NULL;
	BlockNumber blocks;
	bool going = true;

	smart_assert(meta->journal != 0 && meta->previous_run == 0);
	if (!has_to && !is_worth_it(index, meta))
		return true;
	if (meta->run_kept < meta->run)
		map = smart_run_map_make(index, meta);
	ring = GetAccessStrategy(BAS_BULKREAD);
	blocks = RelationGetNumberOfBlocks(index);
	for (BlockNumber block = SMART_META_BLOCK + 1; block < blocks && going; block++)
	{
		collect_page(index, meta, map, block, ring);
		going = around(argument);
	}
	if (going)
		note_collected(index, meta);
	IndexFreeSpaceMapVacuum(index);
	FreeAccessStrategy(ring);
	if (map != NULL)
		pfree(map);
	return going;
}

/* ---- pages for what must not end half-way ---- */

void
smart_reserve_begin(Relation index, struct smart_reserve *reserve, uint32 count)
{
	BlockNumber end = RelationGetNumberOfBlocks(index);
	Buffer buffer = InvalidBuffer;

	*reserve = (struct smart_reserve){.blocks = palloc(Max(count, 1) * sizeof(BlockNumber))};
	smart_meta_read(index, &reserve->meta);
	/* Pages at the end of the file are what attempts have left that came to a full disk. */
	while (reserve->count < count && end > SMART_META_BLOCK + 1)
	{
		buffer = lock_free(index, &reserve->meta, --end);
		if (!BufferIsValid(buffer))
			break;
		reserve->blocks[reserve->count++] = end;
		UnlockReleaseBuffer(buffer);
	}
	while (reserve->count < count)
	{
		buffer = smart_page_take(index, &reserve->meta);
		reserve->blocks[reserve->count++] = BufferGetBlockNumber(buffer);
		UnlockReleaseBuffer(buffer);
	}
	smart_assert(reserve->count == count && reserve->next == 0);
}

Buffer
smart_reserve_lock(Relation index, struct smart_reserve *reserve)
{
	Buffer buffer = InvalidBuffer;

	smart_assert(reserve->next <= reserve->count);
	while (!BufferIsValid(buffer) && reserve->next < reserve->count)
		buffer = lock_free(index, &reserve->meta, reserve->blocks[reserve->next++]);
	smart_assert(BufferIsValid(buffer) || reserve->next == reserve->count);
	return buffer;
}

void
smart_reserve_unlock(Relation index, struct smart_reserve *reserve, Buffer buffer)
{
	smart_assert(reserve->next <= reserve->count);
	if (!BufferIsValid(buffer))
		return;
	/* Another one than was locked, if a process was faster: it is free all the same. */
	if (reserve->next > 0)
	{
		reserve->blocks[--reserve->next] = BufferGetBlockNumber(buffer);
		UnlockReleaseBuffer(buffer);
	}
	else
		smart_page_give_back(index, buffer);
}

void
smart_reserve_end(Relation index, struct smart_reserve *reserve)
{
	Buffer buffer;

	/* The macro may look at its argument more than once. */
	while ((buffer = smart_reserve_lock(index, reserve)) != InvalidBuffer)
		smart_page_give_back(index, buffer);
	pfree(reserve->blocks);
	smart_assert(reserve->next == reserve->count);
}

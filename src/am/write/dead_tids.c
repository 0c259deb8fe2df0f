/*
 * dead_tids.c
 *	  The rows whose entries VACUUM removes, as bits.
 *
 * Is the function that ambulkdelete is given the one of VACUUM, so that its argument is VACUUM's list?  Others call
 * ambulkdelete, too: CREATE INDEX CONCURRENTLY collects all TIDs in that way.  The server has an exported function that
 * bulk deletes one index of a VACUUM, and passes its own function; so that is called once, with an empty list, and
 * ambulkdelete notes what it is given.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "am/compat.h"
#include "am/write/dead_tids.h"
#include "base/assert.h"

#define ROOM_FIRST 1024

static IndexBulkDeleteCallback vacuums_own = NULL; /* NULL: not known yet */
static bool learning = false;

bool
smart_dead_tids_learn(IndexBulkDeleteCallback callback)
{
	if (!learning)
		return false;
	vacuums_own = callback;
	return true;
}

/* Has the server call ambulkdelete as VACUUM does. */
static void
learn(const IndexVacuumInfo *info)
{
	IndexVacuumInfo quiet = *info;

	smart_assert(!learning);
	quiet.message_level = DEBUG5;
	learning = true;
	PG_TRY();
	{
		smart_vacuum_nothing(&quiet);
	}
	PG_FINALLY();
	{
		learning = false;
	}
	PG_END_TRY();
}

/* Makes room for so many words and blocks; false: there is none. */
static bool
reserve(struct smart_dead_tids *dead, uint64 blocks, uint64 words)
{
	uint64 blocks_room = Max(dead->blocks_room, ROOM_FIRST);
	uint64 words_room = Max(dead->words_room, ROOM_FIRST);

	while (blocks_room < blocks)
		blocks_room *= 2;
	while (words_room < words)
		words_room *= 2;
	if (blocks_room * sizeof(uint32) + words_room * sizeof(uint64) > dead->limit)
		return false;
	if (blocks_room > dead->blocks_room)
	{
		Size size = blocks_room * sizeof(uint32);

		dead->begin = dead->begin == NULL ? palloc(size) : repalloc(dead->begin, size);
		dead->blocks_room = (uint32) blocks_room;
	}
	if (words_room > dead->words_room)
	{
		Size size = words_room * sizeof(uint64);

		dead->words = dead->words == NULL ? palloc(size) : repalloc(dead->words, size);
		dead->words_room = (uint32) words_room;
	}
	smart_assert(blocks <= dead->blocks_room && words <= dead->words_room);
	return true;
}

/* smart_dead_block_fn: blocks come in ascending order, and a block's offsets do, too. */
static bool
add_block(void *argument, BlockNumber block, const OffsetNumber *offsets, int count)
{
	struct smart_dead_tids *dead = argument;
	uint32 begin = dead->blocks == 0 ? 0 : dead->begin[dead->blocks];
	uint32 words = offsets[count - 1] / SMART_DEAD_WORD + 1;
	uint64 blocks;

	if (dead->blocks == 0)
		dead->first = block;
	blocks = (uint64) block - dead->first + 1;
	smart_assert(count > 0 && blocks > dead->blocks);
	/* One more: where the last one ends. */
	if (!reserve(dead, blocks + 1, (uint64) begin + words))
		return false;
	for (uint64 i = dead->blocks; i < blocks; i++)
		dead->begin[i] = begin;
	dead->begin[blocks] = begin + words;
	dead->blocks = (BlockNumber) blocks;
	memset(&dead->words[begin], 0, words * sizeof(uint64));
	for (int i = 0; i < count; i++)
	{
		smart_assert(offsets[i] <= offsets[count - 1]);
		dead->words[begin + offsets[i] / SMART_DEAD_WORD] |= UINT64CONST(1) << (offsets[i] % SMART_DEAD_WORD);
	}
	return true;
}

struct smart_dead_tids *
smart_dead_tids_of(IndexVacuumInfo *info, IndexBulkDeleteCallback callback, void *callback_state)
{
	struct smart_dead_tids *dead;

	if (vacuums_own == NULL)
		learn(info);
	if (callback != vacuums_own)
		return NULL;
	dead = palloc0(sizeof(*dead));
	dead->limit = Min((Size) maintenance_work_mem * 1024, MaxAllocSize);
	if (smart_each_dead_block(callback_state, add_block, dead))
		return dead;
	smart_dead_tids_free(dead);
	return NULL;
}

void
smart_dead_tids_free(struct smart_dead_tids *dead)
{
	if (dead->begin != NULL)
		pfree(dead->begin);
	if (dead->words != NULL)
		pfree(dead->words);
	pfree(dead);
}

/*
 * due.c
 *	  When a journal's run is to be written anew.
 */
#include "postgres.h"

#include "am/index/backend.h"
#include "am/index/relation.h"
#include "am/index/trees.h"
#include "am/journal/due.h"
#include "am/journal/spent.h"
#include "am/server/passed.h"
#include "am/server/shared.h"
#include "base/assert.h"

#define PAGES_MIN        16    /* of the chain, that are worth a compaction where memory is short */
#define PAGES_LONG       64    /* of the chain of an index without a tree: fewer are not worth a compaction */
#define PASSED_MIN       65536 /* entries, that are worth a compaction */
#define PASSED_PER_ENTRY 8     /* as many are passed by in the time that it takes to write one, with its WAL, about */
#define PRESSING_TIMES   2     /* as large as it is when it becomes due may a delta become while a compaction sleeps */
#define MEMORY_PER_BYTE  2     /* that a delta takes for what stands in the chain, about, */
#define MEMORY_PER_ENTRY 16    /* or, where keys are short there, for each entry */

/* The memory of a delta with all that the chain has. */
static uint64
memory_of_delta(const struct smart_meta *meta)
{
	uint64 bytes = (meta->tail_serial - meta->cut.serial) * BLCKSZ;

	return Max(bytes * MEMORY_PER_BYTE, (meta->adds + meta->removals) * MEMORY_PER_ENTRY);
}

/*
 * Is the delta of an index whose pages answer too large, so many times?  Or, with memory nodes, where one may go at any moment, would
 * it be, if they had to?  It is also too large if there may be no room for it: a session and a worker may make one each.
 */
static bool
takes_too_much(Relation index, const struct smart_meta *meta, uint64 times)
{
	uint64 pages = meta->tail_serial - meta->cut.serial;
	uint64 bytes = memory_of_delta(meta);
	struct smart_space_usage usage;

	smart_assert(times > 0);
	if (pages < PAGES_MIN)
		return false;
	if (smart_server.remote && bytes > times * (smart_server.delta_region.max_size / SMART_DELTA_SHARE))
		return smart_relation_could_answer(index);
	if (!smart_relation_can_answer(index))
		return false;
	smart_space_usage(&smart_delta_client()->space, &usage);
	return bytes > Min(times * (usage.max_size / SMART_DELTA_SHARE), (usage.max_size - usage.used) / 2);
}

/* Has an index without a tree of its own more in its chain, and so in the memory of its delta, than in its run? */
static bool
outgrows_run(const struct smart_meta *meta)
{
	uint64 pages = meta->tail_serial - meta->cut.serial;

	return meta->tree == SMART_TREE_NOWHERE && smart_meta_is_loadable(meta) && pages > PAGES_LONG &&
		   pages > meta->run_pages;
}

bool
smart_compaction_would_pay(const struct smart_meta *meta, uint64 passed)
{
	return passed > PASSED_MIN && passed > PASSED_PER_ENTRY * meta->run_entries;
}

/*
 * The entries at the front of a queue are removed, and whoever looks for the least one passes by all of them, until there is
 * another run.
 */
static bool
is_worn(Relation index, const struct smart_meta *meta)
{
	struct smart_tree_info delta;

	return smart_relation_can_answer(index) && smart_tree_of_delta(index, meta, &delta) &&
		   smart_compaction_would_pay(meta, smart_passed(delta.id) + smart_spent_passed(delta.id));
}

bool
smart_compaction_is_due(Relation index, const struct smart_meta *meta)
{
	return smart_meta_wants_compaction(meta) || outgrows_run(meta) || takes_too_much(index, meta, 1) ||
		   is_worn(index, meta);
}

bool
smart_compaction_is_pressing(Relation index)
{
	struct smart_meta meta;

	smart_meta_read(index, &meta);
	return takes_too_much(index, &meta, PRESSING_TIMES);
}

/*
 * due.c
 *	  When a journal's run is to be written anew.
 */
#include "postgres.h"

#include "am/index/backend.h"
#include "am/index/relation.h"
#include "am/journal/due.h"

#define SHARE 8 /* of the region, of which the operations of a chain are to take one */

static bool
takes_too_much(Relation index, const struct smart_meta *meta)
{
	uint64 pages = meta->tail_serial - meta->cut.serial;
	struct smart_space_usage usage;

	if (pages <= SMART_CHAIN_SHORT || !smart_relation_can_answer(index))
		return false;
	smart_space_usage(&smart_backend_client()->space, &usage);
	return pages * BLCKSZ > usage.max_size / SHARE;
}

bool
smart_compaction_is_due(Relation index, const struct smart_meta *meta)
{
	return smart_meta_wants_compaction(meta) || takes_too_much(index, meta);
}

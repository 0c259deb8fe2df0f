/*
 * loading.c
 *	  Loading an index in the background, as others see it.
 */
#include "postgres.h"

#include "commands/progress.h"
#include "pgstat.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "am/maintenance/loading.h"
#include "base/assert.h"

bool
smart_load_and_tell(Relation heap, Relation index, smart_load_fn load, const struct smart_look *look)
{
	const int parameter[] = {PROGRESS_CREATEIDX_COMMAND, PROGRESS_CREATEIDX_INDEX_OID,
							 PROGRESS_CREATEIDX_ACCESS_METHOD_OID, PROGRESS_CREATEIDX_PHASE};
	const int64 value[] = {PROGRESS_CREATEIDX_COMMAND_REINDEX_CONCURRENTLY, RelationGetRelid(index),
						   index->rd_rel->relam, PROGRESS_CREATEIDX_PHASE_BUILD};
	TimestampTz start = GetCurrentTimestamp();
	uint64 entries;
	bool loaded;

	smart_assert(index->rd_index->indrelid == RelationGetRelid(heap));
	pgstat_progress_start_command(PROGRESS_COMMAND_CREATE_INDEX, RelationGetRelid(heap));
	pgstat_progress_update_multi_param(lengthof(parameter), parameter, value);
	loaded = load(index, look, &entries);
	pgstat_progress_end_command();
	if (loaded)
		ereport(LOG, errmsg("smart index \"%s\" has been loaded", RelationGetRelationName(index)),
				errdetail("From its journal, with " UINT64_FORMAT " entries; this took %ld ms.", entries,
						  TimestampDifferenceMilliseconds(start, GetCurrentTimestamp())));
	return loaded;
}

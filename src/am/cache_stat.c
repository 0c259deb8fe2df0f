/*
 * cache_stat.c
 *	  What is in the cache of inner nodes, answers and stubs of leaves, and what it was good for:
 *	  smart_stat_cache().
 */
#include "postgres.h"

#include "fmgr.h"

#include "am/shared.h"
#include "am/stat_row.h"
#include "base/assert.h"
#include "compute/cache.h"

#define COLUMNS 26

PG_FUNCTION_INFO_V1(smart_stat_cache);

static uint64
used_bytes(const struct smart_cache_stat *stat)
{
	uint64 used = 0;

	for (int kind = 1; kind <= SMART_NODE_KINDS; kind++)
		used += stat->bytes[kind];
	return used;
}

/* One row: the cache now, and what all sessions did with it since the server started; zeros where there is none. */
PGDLLEXPORT Datum
smart_stat_cache(PG_FUNCTION_ARGS)
{
	struct smart_cache_stat stat = {0};
	Datum values[COLUMNS];
	int column = 0;

	smart_server_require();
	if (smart_server.compute.cache != NULL)
		smart_cache_stat(smart_server.compute.cache, &stat);
	values[column++] = Int64GetDatum((int64) stat.size);
	values[column++] = Int64GetDatum((int64) used_bytes(&stat));
	values[column++] = Int64GetDatum((int64) stat.hits);
	values[column++] = Int64GetDatum((int64) stat.misses);
	values[column++] = Int64GetDatum((int64) stat.stores);
	values[column++] = Int64GetDatum((int64) stat.updates);
	values[column++] = Int64GetDatum((int64) stat.drops);
	values[column++] = Int64GetDatum((int64) stat.evictions);
	values[column++] = Int64GetDatum((int64) stat.moves);
	values[column++] = Int64GetDatum((int64) stat.skips);
	for (int kind = 1; kind <= SMART_NODE_KINDS; kind++)
		values[column++] = Int64GetDatum((int64) stat.bytes[kind]);
	values[column++] = Int64GetDatum((int64) stat.answer_hits);
	values[column++] = Int64GetDatum((int64) stat.answer_misses);
	values[column++] = Int64GetDatum((int64) stat.answer_stores);
	values[column++] = Int64GetDatum((int64) stat.answer_drops);
	values[column++] = Int64GetDatum((int64) stat.answer_bytes);
	values[column++] = Int64GetDatum((int64) stat.stub_hits);
	values[column++] = Int64GetDatum((int64) stat.stub_misses);
	values[column++] = Int64GetDatum((int64) stat.stub_stores);
	values[column++] = Int64GetDatum((int64) stat.stub_drops);
	values[column++] = Int64GetDatum((int64) stat.stub_bytes);
	smart_assert(column == COLUMNS);
	return smart_stat_row(fcinfo, values, COLUMNS);
}

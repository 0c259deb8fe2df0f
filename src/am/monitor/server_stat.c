/*
 * server_stat.c
 *	  What the sessions of the server did together: smart_stat_cache(),
 *	  smart_stat_fabric(), and smart_stat_reset() for both.
 *
 * Sessions count for themselves.  What they add to the totals of the fabric is set back by a reset; of the counters of the
 * cache and of RDWC, which are theirs for good, a reset remembers the sums.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/timestamp.h"

#include "am/index/backend.h"
#include "am/monitor/stat_row.h"
#include "am/server/shared.h"
#include "compute/cache/cache.h"

PG_FUNCTION_INFO_V1(smart_stat_cache);
PG_FUNCTION_INFO_V1(smart_stat_fabric);
PG_FUNCTION_INFO_V1(smart_stat_reset);

/* ---- the cache of inner nodes, cached results and leaf hints ---- */

/* The cache, and what all sessions did with it since the server started; zeros where there is none. */
static void
read_cache(struct smart_cache_stat *stat, uint64 counter[SMART_CACHE_COUNTERS])
{
	memset(stat, 0, sizeof(*stat));
	if (smart_server.compute.cache != NULL)
		smart_cache_stat(smart_server.compute.cache, stat);
	StaticAssertStmt(sizeof(stat->counters) == SMART_CACHE_COUNTERS * sizeof(*counter), "the counters lie as an array");
	memcpy(counter, &stat->counters, sizeof(stat->counters));
}

static Datum
return_cache_row(FunctionCallInfo fcinfo, const struct smart_cache_stat *stat, uint64 used_bytes)
{
	const struct smart_cache_counters *did = &stat->counters;
	const uint64 nodes[] = {stat->size,   used_bytes, did->hits,      did->misses, did->stores,
							did->updates, did->drops, did->evictions, did->moves,  did->skips};
	const uint64 results[] = {did->result_hits, did->result_misses, did->result_stores, did->result_drops,
							  stat->result_bytes};
	const uint64 hints[] = {did->hint_hits, did->hint_misses, did->hint_stores, did->hint_drops, stat->hint_bytes};
	struct smart_row row;

	smart_row_begin(&row, fcinfo);
	smart_row_counts(&row, nodes, lengthof(nodes));
	smart_row_counts(&row, stat->bytes + 1, SMART_NODE_KINDS);
	smart_row_counts(&row, results, lengthof(results));
	smart_row_counts(&row, hints, lengthof(hints));
	smart_row_time(&row, (TimestampTz) pg_atomic_read_u64(&smart_server.shared->cache.reset_at));
	return smart_row_return(&row);
}

/* One row: the cache now, and what all sessions did with it since the last reset. */
PGDLLEXPORT Datum
smart_stat_cache(PG_FUNCTION_ARGS)
{
	struct smart_cache_stat stat;
	uint64 counter[SMART_CACHE_COUNTERS];
	uint64 used_bytes = 0;

	smart_server_require();
	read_cache(&stat, counter);
	for (int i = 0; i < (int) SMART_CACHE_COUNTERS; i++)
		counter[i] -= pg_atomic_read_u64(&smart_server.shared->cache.counter[i]);
	memcpy(&stat.counters, counter, sizeof(counter));
	for (int kind = 1; kind <= SMART_NODE_KINDS; kind++)
		used_bytes += stat.bytes[kind];
	return return_cache_row(fcinfo, &stat, used_bytes);
}

static void
reset_cache(TimestampTz now)
{
	struct smart_cache_stat stat;
	uint64 counter[SMART_CACHE_COUNTERS];

	read_cache(&stat, counter);
	for (int i = 0; i < (int) SMART_CACHE_COUNTERS; i++)
		pg_atomic_write_u64(&smart_server.shared->cache.counter[i], counter[i]);
	pg_atomic_write_u64(&smart_server.shared->cache.reset_at, (uint64) now);
}

/* ---- the fabric, and what sessions shared at the leaves of memory nodes ---- */

/* What the clients have counted of RDWC for good; zeros where there are no memory nodes. */
static void
read_rdwc(uint64 counter[SMART_RDWC_COUNTERS])
{
	struct smart_rdwc_counters sum = {0};

	if (smart_server.compute.rdwc != NULL)
		smart_rdwc_sum(smart_server.compute.rdwc, &sum);
	StaticAssertStmt(sizeof(sum) == SMART_RDWC_COUNTERS * sizeof(*counter), "the counters lie as an array");
	memcpy(counter, &sum, sizeof(sum));
}

/* One row: what the server did since the last reset, with what this session has done up to now. */
PGDLLEXPORT Datum
smart_stat_fabric(PG_FUNCTION_ARGS)
{
	struct fabric_counters counters;
	uint64 total[SMART_FABRIC_TOTALS];
	uint64 rdwc[SMART_RDWC_COUNTERS];
	struct smart_row row;

	smart_server_require();
	smart_fabric_stat_flush();
	for (int i = 0; i < (int) SMART_FABRIC_TOTALS; i++)
		total[i] = pg_atomic_read_u64(&smart_server.shared->fabric.total[i]);
	StaticAssertStmt(sizeof(counters) == sizeof(total), "the totals are those of the counters");
	memcpy(&counters, total, sizeof(counters));
	smart_row_begin(&row, fcinfo);
	smart_row_count(&row, counters.requests[FABRIC_READ]);
	smart_row_count(&row, counters.bytes[FABRIC_READ]);
	smart_row_count(&row, counters.requests[FABRIC_WRITE]);
	smart_row_count(&row, counters.bytes[FABRIC_WRITE]);
	smart_row_count(&row, counters.requests[FABRIC_CAS]);
	smart_row_count(&row, counters.requests[FABRIC_FAA]);
	smart_row_count(&row, counters.doorbells);
	smart_row_count(&row, counters.round_trips);
	smart_row_count(&row, counters.flights);
	smart_row_count(&row, smart_session_round_trips());
	smart_row_count(&row, counters.connections);
	smart_row_count(&row, counters.timeouts);
	smart_row_count(&row, counters.failures);
	smart_row_count(&row, counters.descents);
	smart_row_count(&row, counters.descents_busy);
	smart_row_count(&row, counters.descents_stopped);
	read_rdwc(rdwc);
	for (int i = 0; i < (int) SMART_RDWC_COUNTERS; i++)
		smart_row_count(&row, rdwc[i] - pg_atomic_read_u64(&smart_server.shared->fabric.rdwc[i]));
	smart_row_time(&row, (TimestampTz) pg_atomic_read_u64(&smart_server.shared->fabric.reset_at));
	return smart_row_return(&row);
}

static void
reset_fabric(TimestampTz now)
{
	uint64 rdwc[SMART_RDWC_COUNTERS];

	smart_fabric_stat_flush();
	for (int i = 0; i < (int) SMART_FABRIC_TOTALS; i++)
		pg_atomic_write_u64(&smart_server.shared->fabric.total[i], 0);
	read_rdwc(rdwc);
	for (int i = 0; i < (int) SMART_RDWC_COUNTERS; i++)
		pg_atomic_write_u64(&smart_server.shared->fabric.rdwc[i], rdwc[i]);
	pg_atomic_write_u64(&smart_server.shared->fabric.reset_at, (uint64) now);
}

/* ---- resets ---- */

/*
 * smart_stat_reset(what text)
 *
 * Sets the counters of the view smart_stat_fabric to zero ('fabric'), those of smart_stat_cache ('cache'), or both ('all').
 * INVALID_PARAMETER_VALUE: anything else.
 */
PGDLLEXPORT Datum
smart_stat_reset(PG_FUNCTION_ARGS)
{
	const char *what = text_to_cstring(PG_GETARG_TEXT_PP(0));
	bool all = strcmp(what, "all") == 0;
	bool fabric = all || strcmp(what, "fabric") == 0;
	bool cache = all || strcmp(what, "cache") == 0;
	TimestampTz now = GetCurrentTimestamp();

	if (!fabric && !cache)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("unrecognized reset target: \"%s\"", what),
				errhint("Target must be \"all\", \"cache\", or \"fabric\"."));
	smart_server_require();
	if (fabric)
		reset_fabric(now);
	if (cache)
		reset_cache(now);
	PG_RETURN_VOID();
}

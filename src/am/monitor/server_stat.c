/*
 * server_stat.c
 *	  What the sessions of the server did together: smart_stat_cache(),
 *	  smart_stat_fabric() and smart_stat_rdwc() with their resets, smart_round_trips().
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
PG_FUNCTION_INFO_V1(smart_stat_fabric_reset);
PG_FUNCTION_INFO_V1(smart_round_trips);
PG_FUNCTION_INFO_V1(smart_stat_rdwc);
PG_FUNCTION_INFO_V1(smart_stat_rdwc_reset);

/* ---- the cache of inner nodes, cached results and leaf hints ---- */

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
	return smart_row_return(&row);
}

/* One row: the cache now, and what all sessions did with it since the server started; zeros where there is none. */
PGDLLEXPORT Datum
smart_stat_cache(PG_FUNCTION_ARGS)
{
	struct smart_cache_stat stat = {0};
	uint64 used_bytes = 0;

	smart_server_require();
	if (smart_server.compute.cache != NULL)
		smart_cache_stat(smart_server.compute.cache, &stat);
	for (int kind = 1; kind <= SMART_NODE_KINDS; kind++)
		used_bytes += stat.bytes[kind];
	return return_cache_row(fcinfo, &stat, used_bytes);
}

/* ---- the fabric ---- */

/* One row: what the server did since the last reset, with what this session has done up to now. */
PGDLLEXPORT Datum
smart_stat_fabric(PG_FUNCTION_ARGS)
{
	struct fabric_counters counters;
	uint64 total[SMART_FABRIC_TOTALS] = {0};
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
	smart_row_count(&row, counters.connections);
	smart_row_count(&row, counters.timeouts);
	smart_row_count(&row, counters.failures);
	smart_row_count(&row, counters.descents);
	smart_row_count(&row, counters.descents_busy);
	smart_row_count(&row, counters.descents_stopped);
	smart_row_time(&row, (TimestampTz) pg_atomic_read_u64(&smart_server.shared->fabric.reset_at));
	return smart_row_return(&row);
}

PGDLLEXPORT Datum
smart_stat_fabric_reset(PG_FUNCTION_ARGS)
{
	smart_server_require();
	smart_fabric_stat_flush();
	for (int i = 0; i < (int) SMART_FABRIC_TOTALS; i++)
		pg_atomic_write_u64(&smart_server.shared->fabric.total[i], 0);
	pg_atomic_write_u64(&smart_server.shared->fabric.reset_at, (uint64) GetCurrentTimestamp());
	PG_RETURN_VOID();
}

/* Waits for memory nodes in this session so far. */
PGDLLEXPORT Datum
smart_round_trips(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64((int64) smart_session_round_trips());
}

/* ---- what sessions shared at the leaves of memory nodes ---- */

/* What the clients have counted for good; zeros where there are no memory nodes. */
static void
sum_up(uint64 counter[SMART_RDWC_COUNTERS])
{
	struct smart_rdwc_counters sum = {0};

	if (smart_server.compute.rdwc != NULL)
		smart_rdwc_sum(smart_server.compute.rdwc, &sum);
	StaticAssertStmt(sizeof(sum) == SMART_RDWC_COUNTERS * sizeof(*counter), "the counters lie as an array");
	memcpy(counter, &sum, sizeof(sum));
}

PGDLLEXPORT Datum
smart_stat_rdwc(PG_FUNCTION_ARGS)
{
	uint64 counter[SMART_RDWC_COUNTERS];
	struct smart_row row;

	smart_server_require();
	sum_up(counter);
	smart_row_begin(&row, fcinfo);
	for (int i = 0; i < (int) SMART_RDWC_COUNTERS; i++)
		smart_row_count(&row, counter[i] - pg_atomic_read_u64(&smart_server.shared->rdwc.counter[i]));
	smart_row_time(&row, (TimestampTz) pg_atomic_read_u64(&smart_server.shared->rdwc.reset_at));
	return smart_row_return(&row);
}

/* A reset remembers the counters. */
PGDLLEXPORT Datum
smart_stat_rdwc_reset(PG_FUNCTION_ARGS)
{
	uint64 counter[SMART_RDWC_COUNTERS];

	smart_server_require();
	sum_up(counter);
	for (int i = 0; i < (int) SMART_RDWC_COUNTERS; i++)
		pg_atomic_write_u64(&smart_server.shared->rdwc.counter[i], counter[i]);
	pg_atomic_write_u64(&smart_server.shared->rdwc.reset_at, (uint64) GetCurrentTimestamp());
	PG_RETURN_VOID();
}

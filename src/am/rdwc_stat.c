/*
 * rdwc_stat.c
 *	  What sessions shared at the leaves of memory nodes: smart_stat_rdwc(),
 *	  smart_stat_rdwc_reset().
 *
 * The clients count in the table itself, for good; a reset remembers the counters.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/timestamp.h"

#include "am/rdwc_stat.h"
#include "am/shared.h"
#include "am/stat_row.h"

#define COLUMNS (SMART_RDWC_COUNTERS + 1)

PG_FUNCTION_INFO_V1(smart_stat_rdwc);
PG_FUNCTION_INFO_V1(smart_stat_rdwc_reset);

void
smart_rdwc_base_init(struct smart_rdwc_base *base)
{
	for (int i = 0; i < (int) SMART_RDWC_COUNTERS; i++)
		pg_atomic_init_u64(&base->counter[i], 0);
	pg_atomic_init_u64(&base->reset_at, (uint64) GetCurrentTimestamp());
}

/* Zeros where there are no memory nodes. */
static void
sum_up(uint64 counter[SMART_RDWC_COUNTERS])
{
	struct smart_rdwc_counters sum = {0};

	if (smart_server.compute.rdwc != NULL)
		smart_rdwc_sum(smart_server.compute.rdwc, &sum);
	memcpy(counter, &sum, sizeof(sum));
}

PGDLLEXPORT Datum
smart_stat_rdwc(PG_FUNCTION_ARGS)
{
	uint64 counter[SMART_RDWC_COUNTERS];
	Datum values[COLUMNS];

	smart_server_require();
	sum_up(counter);
	for (int i = 0; i < (int) SMART_RDWC_COUNTERS; i++)
		values[i] = Int64GetDatum((int64) (counter[i] - pg_atomic_read_u64(&smart_server.shared->rdwc.counter[i])));
	values[SMART_RDWC_COUNTERS] =
		TimestampTzGetDatum((TimestampTz) pg_atomic_read_u64(&smart_server.shared->rdwc.reset_at));
	return smart_stat_row(fcinfo, values, COLUMNS);
}

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

/*
 * fabric_stat.c
 *	  What all processes of the server did on the fabric: smart_stat_fabric(),
 *	  smart_stat_fabric_reset(), smart_round_trips().
 *
 * Each process counts for itself, in its fabric, and adds what is new to the
 * shared totals at the end of a transaction.
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "utils/timestamp.h"

#include "am/fabric_stat.h"
#include "am/shared.h"
#include "am/stat_row.h"
#include "base/assert.h"

#define COLUMNS 15

StaticAssertDecl(sizeof(struct fabric_counters) == (2 * FABRIC_VERBS + 8) * sizeof(uint64),
				 "all members of the counters are 8 bytes");

PG_FUNCTION_INFO_V1(smart_stat_fabric);
PG_FUNCTION_INFO_V1(smart_stat_fabric_reset);
PG_FUNCTION_INFO_V1(smart_round_trips);

/* What this process has added already. */
static uint64 flushed[SMART_FABRIC_TOTALS];

void
smart_fabric_totals_init(struct smart_fabric_totals *totals)
{
	for (int i = 0; i < (int) SMART_FABRIC_TOTALS; i++)
		pg_atomic_init_u64(&totals->total[i], 0);
	pg_atomic_init_u64(&totals->reset_at, (uint64) GetCurrentTimestamp());
}

void
smart_fabric_stat_flush(void)
{
	struct smart_client *client = smart_backend_client_if_any();
	uint64 now[SMART_FABRIC_TOTALS];

	if (client == NULL)
		return;
	memcpy(now, &client->fabric->counters, sizeof(now));
	for (int i = 0; i < (int) SMART_FABRIC_TOTALS; i++)
	{
		if (now[i] != flushed[i])
			pg_atomic_fetch_add_u64(&smart_server.shared->fabric.total[i], (int64) (now[i] - flushed[i]));
	}
	memcpy(flushed, now, sizeof(flushed));
}

static void
at_transaction_end(XactEvent event, void *argument)
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE ||
		event == XACT_EVENT_PARALLEL_COMMIT || event == XACT_EVENT_PARALLEL_ABORT)
		smart_fabric_stat_flush();
}

void
smart_fabric_stat_begin(void)
{
	RegisterXactCallback(at_transaction_end, NULL);
}

/* ---- SQL ---- */

/* One row: what the server did since the last reset, with what this session has done up to now. */
PGDLLEXPORT Datum
smart_stat_fabric(PG_FUNCTION_ARGS)
{
	struct fabric_counters counters;
	uint64 total[SMART_FABRIC_TOTALS] = {0};
	Datum values[COLUMNS];
	int column = 0;

	smart_server_require();
	smart_fabric_stat_flush();
	for (int i = 0; i < (int) SMART_FABRIC_TOTALS; i++)
		total[i] = pg_atomic_read_u64(&smart_server.shared->fabric.total[i]);
	memcpy(&counters, total, sizeof(counters));
	values[column++] = Int64GetDatum((int64) counters.requests[FABRIC_READ]);
	values[column++] = Int64GetDatum((int64) counters.bytes[FABRIC_READ]);
	values[column++] = Int64GetDatum((int64) counters.requests[FABRIC_WRITE]);
	values[column++] = Int64GetDatum((int64) counters.bytes[FABRIC_WRITE]);
	values[column++] = Int64GetDatum((int64) counters.requests[FABRIC_CAS]);
	values[column++] = Int64GetDatum((int64) counters.requests[FABRIC_FAA]);
	values[column++] = Int64GetDatum((int64) counters.doorbells);
	values[column++] = Int64GetDatum((int64) counters.round_trips);
	values[column++] = Int64GetDatum((int64) counters.connections);
	values[column++] = Int64GetDatum((int64) counters.timeouts);
	values[column++] = Int64GetDatum((int64) counters.failures);
	values[column++] = Int64GetDatum((int64) counters.descents);
	values[column++] = Int64GetDatum((int64) counters.descents_busy);
	values[column++] = Int64GetDatum((int64) counters.descents_stopped);
	values[column++] = TimestampTzGetDatum((TimestampTz) pg_atomic_read_u64(&smart_server.shared->fabric.reset_at));
	smart_assert(column == COLUMNS);
	return smart_stat_row(fcinfo, values, COLUMNS);
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
	struct smart_client *client = smart_backend_client_if_any();

	PG_RETURN_INT64(client == NULL ? 0 : (int64) client->fabric->counters.round_trips);
}

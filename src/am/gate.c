/*
 * gate.c
 *	  The first to pass the gate after a crash makes the region good: memory that
 *	  dead clients had in hand is found (compute/recover.h), and entries are removed whose
 *	  rows are lost with the end of WAL (undo.h).
 *
 * Everybody passes here when he becomes a client, which no process is before it first
 * uses a smart index; so an open gate costs nothing.  The background worker comes
 * unasked.  With memory nodes only the worker may, which joins them at the same time; and
 * the planner does without the indexes meanwhile, since a memory node may be away.
 *
 * The end of WAL is known once only: positions behind it are used again by what the server
 * writes from now on.  So it is put down in the region first of all, and serves later
 * starts if this one does not come to its end.
 *
 * A region that cannot be made good is made empty; its indexes are rebuilt then.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"

#include "am/acceptance.h"
#include "am/compat.h"
#include "am/gate.h"
#include "am/region_file.h"
#include "am/report.h"
#include "am/runmark.h"
#include "am/settings.h"
#include "am/shared.h"
#include "am/undo.h"
#include "compute/recover.h"

enum gate_state
{
	GATE_OPEN,
	GATE_CLOSED,
	GATE_BUSY /* somebody is about to open it */
};

void
smart_gate_init(struct smart_gate *gate)
{
	pg_atomic_init_u32(&gate->state, GATE_OPEN);
	ConditionVariableInit(&gate->changed);
}

void
smart_gate_close(struct smart_gate *gate)
{
	pg_atomic_write_u32(&gate->state, GATE_CLOSED);
}

bool
smart_gate_is_open(struct smart_gate *gate)
{
	bool open = pg_atomic_read_u32(&gate->state) == GATE_OPEN;

	/* Pairs with set_state(): who sees it open sees a region that is good. */
	pg_read_barrier();
	return open;
}

static void
set_state(struct smart_gate *gate, enum gate_state state)
{
	pg_write_barrier();
	pg_atomic_write_u32(&gate->state, state);
	ConditionVariableBroadcast(&gate->changed);
}

/* The position behind which rows are lost.  No position at all is lost if the last thing that the server did was to shut down. */
static XLogRecPtr
lost_from(struct smart_region_header *header)
{
	if (header->undo_from == 0)
	{
		XLogRecPtr end = GetXLogReplayRecPtr(NULL);

		header->undo_from = end != InvalidXLogRecPtr ? end : PG_UINT64_MAX;
	}
	return header->undo_from;
}

/* SMART_CORRUPT: *reason tells why the region cannot be used. */
static smart_status
make_good(struct smart_client *client, uint64 *removed, const char **reason)
{
	static struct smart_recovery recovery;
	struct smart_region_header *header = smart_region_header(client->compute->region);
	XLogRecPtr end = lost_from(header);
	smart_status status;

	/* Since when it is this start's; likewise put down only once. */
	header->started = smart_run_started();
	if (end < header->durable)
	{
		*reason = "the data directory is older than it";
		return SMART_CORRUPT;
	}
	memset(&recovery, 0, sizeof(recovery));
	status = smart_space_recover(&client->space, client->fabric, client->env, &recovery);
	*reason = recovery.message;
	if (status == SMART_OK)
	{
		*reason = "an entry whose row is lost could not be removed";
		status = smart_undo_perform(client, end, removed);
	}
	/* Another time it may come about; but without room for what a removal makes, it never will. */
	return status == SMART_NO_SPACE || status == SMART_DISK_FULL || status == SMART_TOO_LONG ? SMART_CORRUPT : status;
}

static void
open_gate(struct smart_client *client)
{
	struct smart_region_header *header = smart_region_header(client->compute->region);
	TimestampTz start = GetCurrentTimestamp();
	const char *reason = NULL;
	uint64 removed = 0;
	smart_status status = make_good(client, &removed, &reason);

	if (status == SMART_CORRUPT)
	{
		smart_region_report_empty(reason);
		smart_check_status(smart_region_make_empty(), NULL);
		return;
	}
	smart_check_status(status, NULL);
	/* What was to be made good is gone, so it does no harm if this is not the last store. */
	header->unsettled = 0;
	header->undo_from = 0;
	if (smart_server.remote)
		smart_acceptance_announce_all(&client->space);
	ereport(LOG, (errmsg("smart has recovered its region"),
				  errdetail("Entries of rows whose WAL is lost: " UINT64_FORMAT " removed; this took %ld ms.", removed,
							TimestampDifferenceMilliseconds(start, GetCurrentTimestamp()))));
}

/* Who was about to open the gate failed: somebody else may try. */
static void
give_up(int code, Datum gate)
{
	set_state((struct smart_gate *) DatumGetPointer(gate), GATE_CLOSED);
}

/* The background worker will open it, if the memory nodes are there; not for longer than one waits for one of them. */
static void
wait_for_worker(struct smart_gate *gate, uint32 wait_event)
{
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), smart_settings.fabric_timeout_ms);

	while (!smart_gate_is_open(gate))
	{
		long rest_ms = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), end);

		if (rest_ms <= 0)
			ereport(ERROR, (errcode(ERRCODE_CONNECTION_FAILURE),
							errmsg("smart has not yet recovered what the server left on memory nodes when it crashed"),
							errhint("Recovery needs all memory nodes that indexes are on; the server's log tells which "
									"one is missing.")));
		(void) ConditionVariableTimedSleep(&gate->changed, rest_ms, wait_event);
	}
	ConditionVariableCancelSleep();
}

void
smart_gate_pass(struct smart_gate *gate, struct smart_client *client, bool may_open)
{
	uint32 wait_event = smart_wait_event("SmartRecovery");

	if (!may_open)
	{
		wait_for_worker(gate, wait_event);
		return;
	}
	for (;;)
	{
		uint32 state = GATE_CLOSED;

		if (smart_gate_is_open(gate))
			break;
		if (pg_atomic_compare_exchange_u32(&gate->state, &state, GATE_BUSY))
		{
			PG_ENSURE_ERROR_CLEANUP(give_up, PointerGetDatum(gate));
			{
				open_gate(client);
			}
			PG_END_ENSURE_ERROR_CLEANUP(give_up, PointerGetDatum(gate));
			set_state(gate, GATE_OPEN);
			break;
		}
		ConditionVariableSleep(&gate->changed, wait_event);
	}
	ConditionVariableCancelSleep();
}

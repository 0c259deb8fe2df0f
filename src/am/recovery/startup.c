/*
 * startup.c
 *	  Startup recovery: after a crash, the first client makes the region good.
 *
 * It finds the memory that dead clients had in hand (compute/recovery/recover.h), and removes the entries whose rows
 * are lost with the end of WAL (undo.h).
 *
 * Each process checks for it when it becomes a client, at its first use of a smart index; so it costs nothing when it
 * is done.  The launcher becomes a client unasked.  With memory nodes only the launcher may recover, since it
 * connects to them at the same time.  A node may be away for long.  Indexes that have no tree are read from their pages and
 * written meanwhile (src/README, J15), the planner does without the others, and nobody looks for a tree in the region or makes one.
 *
 * The end of WAL is known once only: the server's new WAL uses the positions behind it again.  So it is stored in the
 * region first of all, and serves later starts if this one does not come to its end.
 *
 * A region that cannot be made good is made empty; its indexes are rebuilt then.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"

#include "am/compat.h"
#include "am/recovery/marks.h"
#include "am/recovery/region_file.h"
#include "am/recovery/startup.h"
#include "am/recovery/undo.h"
#include "am/server/report.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "am/server/validity.h"
#include "base/assert.h"
#include "compute/recovery/recover.h"

/* Only the process that set it to busy changes it. */
static void
set_state(enum smart_startup_state state)
{
	struct smart_shared *shared = smart_server.shared;

	smart_assert(pg_atomic_read_u32(&shared->startup) == SMART_STARTUP_BUSY && state != SMART_STARTUP_BUSY);
	/* Pairs with smart_startup_is_done(). */
	pg_write_barrier();
	pg_atomic_write_u32(&shared->startup, state);
	ConditionVariableBroadcast(&shared->startup_changed);
}

/* Stores the position behind which rows are lost, once; and that the region is this start's from now on. */
static void
claim_region(struct smart_region_header *header)
{
	smart_assert(header->unsettled != 0);
	if (header->undo_from == 0)
	{
		/* No position at all if the last thing that the server did was to shut down. */
		XLogRecPtr end = GetXLogReplayRecPtr(NULL);

		header->undo_from = end != InvalidXLogRecPtr ? end : PG_UINT64_MAX;
	}
	smart_assert(header->undo_from != 0);
	header->started = smart_run_started();
}

void
smart_startup_begin(void)
{
	if (smart_startup_is_done())
		return;
	smart_assert(smart_server.remote && smart_server.client == NULL);
	claim_region(smart_region_header(&smart_server.region));
}

/* Makes the region good, or empty. */
static void
recover(struct smart_client *client)
{
	static struct smart_recovery recovery;
	struct smart_region_header *header = smart_region_header(client->compute->region);
	TimestampTz start = GetCurrentTimestamp();
	const char *reason = "the data directory is older than it";
	const char *finding = NULL;
	uint64 removed = 0;
	smart_status status;

	smart_assert(pg_atomic_read_u32(&smart_server.shared->startup) == SMART_STARTUP_BUSY && header->unsettled != 0);

	claim_region(header);
	status = header->undo_from < header->durable ? SMART_CORRUPT : SMART_OK;

	/* Find all memory, then remove the entries of those rows. */
	if (status == SMART_OK)
	{
		memset(&recovery, 0, sizeof(recovery));
		status = smart_space_recover(&client->space, client->fabric, client->env, &recovery);
		reason = smart_server.remote ? "the memory nodes do not hold what this server has left there"
									 : "what it holds contradicts itself";
		finding = recovery.message;
	}
	if (status == SMART_OK)
	{
		reason = "an entry whose row is lost could not be removed";
		finding = NULL;
		status = smart_undo_perform(client, header->undo_from, &removed);
	}

	/* Another failure may not occur again; but without room for what a removal makes, it always will. */
	if (status == SMART_CORRUPT || status == SMART_NO_SPACE || status == SMART_DISK_FULL || status == SMART_TOO_LONG)
	{
		smart_region_report_empty(reason, finding);
		smart_raise_if_failed(smart_region_make_empty(), NULL);
		return;
	}
	smart_raise_if_failed(status, NULL);

	/* Nothing is left to be made good, so a crash before or between these stores does no harm. */
	smart_assert(header->unsettled != 0 && header->undo_from != 0);
	header->unsettled = 0;
	header->undo_from = 0;
	ereport(LOG, errmsg("smart has recovered its region"),
			errdetail("Entries of rows whose WAL is lost: " UINT64_FORMAT " removed; this took %ld ms.", removed,
					  TimestampDifferenceMilliseconds(start, GetCurrentTimestamp())));
}

/* Recovery has failed in this process: another may try. */
static void
give_up(int code, Datum argument)
{
	set_state(SMART_STARTUP_CLOSED);
}

/* Waits until the launcher has recovered, for no longer than for a memory node. */
static void
wait_for_launcher(uint32 wait_event)
{
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), smart_settings.fabric_timeout_ms);

	smart_assert(smart_server.remote);
	while (!smart_startup_is_done())
	{
		long rest_ms = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), end);

		if (rest_ms <= 0)
			ereport(ERROR, errcode(ERRCODE_CONNECTION_FAILURE),
					errmsg("smart has not yet recovered what the server left on memory nodes when it crashed"),
					errhint("Recovery needs all memory nodes that indexes are on; the server's log tells which "
							"one is missing."));
		(void) ConditionVariableTimedSleep(&smart_server.shared->startup_changed, rest_ms, wait_event);
	}
}

void
smart_startup_await(struct smart_client *client, bool may_recover)
{
	struct smart_shared *shared = smart_server.shared;
	uint32 wait_event = smart_wait_event("SmartRecovery");

	smart_assert(smart_server.client == NULL && shared->made);
	if (!may_recover)
		wait_for_launcher(wait_event);
	while (!smart_startup_is_done())
	{
		uint32 state = SMART_STARTUP_CLOSED;

		if (!pg_atomic_compare_exchange_u32(&shared->startup, &state, SMART_STARTUP_BUSY))
		{
			ConditionVariableSleep(&shared->startup_changed, wait_event);
			continue;
		}
		PG_ENSURE_ERROR_CLEANUP(give_up, (Datum) 0);
		{
			recover(client);
		}
		PG_END_ENSURE_ERROR_CLEANUP(give_up, (Datum) 0);
		set_state(SMART_STARTUP_OPEN);
		/* Behind it: who looks at what has changed finds it. */
		if (smart_server.remote)
			smart_validity_announce_trees(&client->space, false);
	}
	ConditionVariableCancelSleep();
	smart_assert(smart_startup_is_done());
}

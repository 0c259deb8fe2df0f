/*
 * backend.c
 *	  A backend as a client of the compute node: made at the first use, gone when the backend exits.
 *
 * Each client counts for itself, in its fabric, and adds what is new to the shared totals at the end of a
 * transaction.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/ipc.h"

#include "am/index/backend.h"
#include "am/nodes/locate.h"
#include "am/nodes/peers.h"
#include "am/recovery/delta_region.h"
#include "am/recovery/marks.h"
#include "am/recovery/region_file.h"
#include "am/recovery/startup.h"
#include "am/recovery/undo.h"
#include "am/server/environment.h"
#include "am/server/report.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "base/assert.h"

StaticAssertDecl(sizeof(struct fabric_counters) == (2 * FABRIC_VERBS + 9) * sizeof(uint64),
				 "all members of the counters are 8 bytes");

static struct smart_client *opened; /* smart_server.client is the same, after startup recovery */

/* ---- its counters ---- */

void
smart_fabric_stat_flush(void)
{
	static uint64 flushed[SMART_FABRIC_TOTALS]; /* what this process has added already */
	struct smart_client *client = smart_server.client;
	uint64 now[SMART_FABRIC_TOTALS];

	if (client == NULL)
		return;
	memcpy(now, &client->fabric->counters, sizeof(now));
	for (int i = 0; i < (int) SMART_FABRIC_TOTALS; i++)
	{
		smart_assert(now[i] >= flushed[i]);
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
	{
		smart_undo_at_transaction_end();
		smart_fabric_stat_flush();
	}
}

/* ---- its beginning and its end ---- */

static void
backend_exit(int code, Datum argument)
{
	bool wake;

	smart_assert(opened != NULL && (smart_server.client == NULL || smart_server.client == opened));
	wake = smart_pins_leave_all(smart_server.compute.pins, opened->number);

	smart_undo_end();
	smart_fabric_stat_flush();
	smart_client_close(opened);
	opened = smart_server.client = NULL;
	if (wake)
		ConditionVariableBroadcast(&smart_server.shared->pins_wait);
}

struct smart_client *
smart_backend_client_at_startup(void)
{
	static struct smart_remote remote; /* how this process reaches memory nodes */
	struct smart_lock_table *locks = smart_server.compute.locks;
	smart_status status = SMART_OK;

	smart_server_require();
	if (opened != NULL)
		return opened;
	smart_assert(smart_server.client == NULL);
	smart_environment_init();
	/* The region of a server that had none, or not this one, is made by its first user. */
	locks->acquire(locks, SMART_LOCK_DIRECTORY);
	if (!smart_server.shared->made)
		status = smart_region_make_empty();
	if (status == SMART_OK)
		smart_server.shared->made = smart_server.shared->used = true;
	locks->release(locks, SMART_LOCK_DIRECTORY);
	smart_raise_if_failed(status, NULL);
	if (smart_server.remote)
	{
		remote = (struct smart_remote){
			.nodes = smart_locate_nodes(),
			.secret = smart_locate_secret(),
			.owner = smart_server.identity,
			.system = GetSystemIdentifier(),
			.incarnation = smart_server.shared->server_incarnation,
			.timeout_ms = (uint32) smart_settings.fabric_timeout_ms,
		};
		smart_server.compute.remote = &remote;
	}
	smart_raise_if_failed(smart_client_open(&smart_server.compute, &smart_environment, MyProcPid, &opened), NULL);
	/* Behind before_shmem_exit, which aborts a transaction that is still open and needs the client for that. */
	on_shmem_exit(backend_exit, 0);
	return opened;
}

static struct smart_client *deltas; /* with memory nodes: of their region */

static void
close_deltas(int code, Datum argument)
{
	smart_assert(deltas != NULL);
	smart_client_close(deltas);
	deltas = NULL;
}

struct smart_client *
smart_delta_client(void)
{
	if (!smart_server.remote)
		return smart_backend_client();
	if (likely(deltas != NULL))
		return deltas;
	smart_server_require();
	smart_environment_init();
	smart_raise_if_failed(smart_delta_region_make(), NULL);
	smart_assert(smart_server.shared->deltas_made);
	smart_raise_if_failed(smart_client_open(&smart_server.delta_compute, &smart_environment, MyProcPid, &deltas), NULL);
	on_shmem_exit(close_deltas, 0);
	return deltas;
}

struct smart_client *
smart_backend_client(void)
{
	struct smart_region_header *header;

	if (likely(smart_server.client != NULL))
		return smart_server.client;
	(void) smart_backend_client_at_startup();
	smart_startup_await(opened, !smart_server.remote || smart_server.peers->launcher == MyProcPid);
	smart_assert(smart_startup_is_done() && smart_server.shared->made && smart_server.shared->used);
	header = smart_region_header(&smart_server.region);
	if (header->started == 0)
		header->started = smart_run_started();
	smart_server.client = opened;
	if (!smart_server.remote)
		opened->space.reserved_pages = (uint32) (smart_server.region.max_size / SMART_PAGE_BYTES / SMART_DELTA_SHARE);
	RegisterXactCallback(at_transaction_end, NULL);
	/* From now on settings.c tells it of changes. */
	smart_client_set_timeout(opened, (uint32) smart_settings.fabric_timeout_ms);
	smart_client_set_spread(opened, (uint32) smart_settings.spread_above_mb * SMART_PAGES_A_MB);
	return opened;
}

struct smart_space *
smart_tree_space(uint64 tree)
{
	fabric_address root;

	/* No id is in both: each region counts from a random number. */
	if (smart_server.remote && smart_server.shared->deltas_made &&
		smart_space_find_tree(&smart_delta_client()->space, tree, &root))
		return &smart_delta_client()->space;
	/* A delta that has gone: no other tree is known before startup recovery. */
	if (unlikely(smart_server_recovers()))
		return &smart_delta_client()->space;
	return &smart_backend_client()->space;
}

bool
smart_trees_next(struct smart_trees_cursor *cursor, struct smart_tree_info *info)
{
	if (!cursor->at_deltas && smart_space_next_tree(&smart_backend_client()->space, &cursor->trees, info))
		return true;
	cursor->at_deltas = true;
	return smart_server.remote && smart_server.shared->deltas_made &&
		   smart_space_next_tree(&smart_delta_client()->space, &cursor->deltas, info);
}

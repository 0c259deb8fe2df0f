/*
 * maintenance.c
 *	  The server's launcher and its jobs.
 *
 * There are eight: to start workers for lost indexes and for those whose trees have to move (rebuild_worker.c, moves.c), for
 * what was requested for journals (errand_worker.c: long ones, what memory nodes have not yet, and deltas) and for dead entries
 * (kill_worker.c), to start the collection of orphans (orphans.c), and to look after the region.  After a crash it is usually
 * the launcher that makes good what was left (startup.c).  It also finds the memory nodes, keeps a session to each, and does
 * what no client waits for.
 *
 * On a standby the launcher has indexes loaded from their journals, and the trees of dropped ones collected.  Memory nodes
 * are the standby's as a primary's are, under an identity of its own (src/am/recovery/identity.h); so nothing about them
 * changes at a promotion.
 *
 * One process serves all.  An attempt to connect to a memory node that does not reply takes a second
 * (endpoint.c).  A round ends after such an attempt, so that the other jobs wait for one attempt at most; a
 * rebuild, a collection or DROP DATABASE can be that much later, and later still where the resolver is asked
 * for a host's name and does not reply.  While startup recovery runs the jobs wait for its end; but so does
 * every user of a smart index.  The region comes last, so that what the others begin
 * need not wait for recovery.  No job waits for a lock on a catalog, since memory nodes have to be looked
 * after while pg_database is locked, too.
 */
#include "postgres.h"

#include <signal.h>

#include "access/xlog.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"

#include "am/index/backend.h"
#include "am/maintenance/errand_worker.h"
#include "am/maintenance/filters.h"
#include "am/maintenance/journal_errands.h"
#include "am/maintenance/kill_worker.h"
#include "am/maintenance/maintenance.h"
#include "am/maintenance/moves.h"
#include "am/maintenance/orphans.h"
#include "am/maintenance/rebuild.h"
#include "am/nodes/endpoint.h"
#include "am/recovery/region_file.h"
#include "am/recovery/startup.h"
#include "am/server/launcher_requests.h"
#include "am/server/shared.h"
#include "base/assert.h"

#define RESTART_S 5     /* after the end of the launcher */
#define IDLE_MS   60000 /* when there is nothing to wait for but the latch */

StaticAssertDecl(SMART_LAUNCHER_SOCKETS >= FABRIC_NODES_MAX, "the launcher listens to every memory node");

/* ---- the region ---- */

static struct smart_endpoints *endpoints = NULL; /* NULL: there are no memory nodes, or none has been looked for yet */

/* After an error: the next turn begins as a new process would. */
static void
drop_sessions(void)
{
	for (int i = 0; endpoints != NULL && i < FABRIC_NODES_MAX; i++)
	{
		if (endpoints->endpoint[i].session != NULL)
			session_close(endpoints->endpoint[i].session);
	}
	if (endpoints != NULL)
		pfree(endpoints);
	endpoints = NULL;
}

static void
listen_to_nodes(WaitEventSet *set)
{
	for (int i = 0; endpoints != NULL && i < FABRIC_NODES_MAX; i++)
	{
		if (endpoints->endpoint[i].session != NULL)
			AddWaitEventToSet(set, WL_SOCKET_READABLE, session_descriptor(endpoints->endpoint[i].session), NULL, NULL);
	}
}

static long
tend_region(struct smart_job *job)
{
	static bool recovered = false;

	if (!RecoveryInProgress() && smart_server.shared->made)
		smart_region_promote();
	if (!smart_server.remote)
	{
		if (RecoveryInProgress())
			return IDLE_MS;
		/* Does startup recovery now if it is due, so that no backend has to wait for it later. */
		if (!recovered && smart_server.shared->made)
			(void) smart_backend_client();
		recovered = true;
		return IDLE_MS;
	}
	if (endpoints == NULL)
	{
		/* The client comes first: it may raise an error, again and again. */
		struct smart_client *client = smart_backend_client_at_startup();
		struct smart_endpoints *made = MemoryContextAllocZero(TopMemoryContext, sizeof(*made));

		smart_assert(smart_server.peers != NULL);
		smart_startup_begin();
		smart_endpoints_init(made, client, smart_server.peers);
		endpoints = made;
		if (!smart_server_recovers())
			(void) smart_backend_client();
	}
	smart_endpoints_tend(endpoints);
	if (smart_server_recovers() && smart_endpoints_are_up(endpoints))
	{
		const struct smart_region_header *extents = smart_region_header(endpoints->client->compute->region);
		uint64 incarnation = extents->incarnation;

		/* All nodes are there, so that startup recovery can run. */
		(void) smart_backend_client();
		smart_assert(!smart_server_recovers());
		/* The region had to be given up: the nodes are met anew, with an extent map that does not know them. */
		if (extents->incarnation != incarnation)
			smart_endpoints_forget(endpoints);
	}
	smart_fabric_stat_flush();
	return smart_endpoints_rest_ms(endpoints);
}

/* ---- the process ---- */

#define ERRAND(KIND) .tend = smart_errand_tend, .work = smart_errand_serve, .errand = &smart_errand_works[KIND]

static struct smart_job jobs[] = {
	{.tend = smart_moves_tend},
	{.worker = "smart rebuild", .tend = smart_rebuild_tend, .work = smart_rebuild_serve},
	{.worker = "smart orphan collector",
	 .tend = smart_orphans_tend,
	 .work = smart_orphans_serve,
	 .connects_anywhere = true},
	{.worker = "smart compaction", ERRAND(SMART_ERRAND_COMPACT)},
	{.worker = "smart carrier", ERRAND(SMART_ERRAND_CARRY)},
	{.worker = "smart delta", ERRAND(SMART_ERRAND_DELTA)},
	{.worker = "smart dead entry remover", .tend = smart_kill_tend, .work = smart_kill_serve},
	{.tend = smart_filters_tend},
	{.tend = tend_region, .drop = drop_sessions, .listen = listen_to_nodes},
};

void
smart_worker_main(Datum argument)
{
	smart_worker_run(jobs, lengthof(jobs), DatumGetObjectId(argument));
}

static void
launcher_exit(int code, Datum argument)
{
	smart_assert(!smart_server.remote || smart_server.peers->launcher == MyProcPid);
	smart_launcher_set(false);
	if (smart_server.remote)
		smart_server.peers->launcher = 0;
}

void
smart_launcher_main(Datum argument)
{
	/* Without a region there is nothing to do until the next start. */
	if (!smart_server_available())
		proc_exit(0);
	pqsignal(SIGTERM, die); /* seen by smart_environment, so that a wait for a node ends, too */
	pqsignal(SIGINT, SIG_IGN);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	on_shmem_exit(launcher_exit, 0);
	smart_launcher_set(true);
	smart_assert(!smart_server.remote || smart_server.peers != NULL);
	if (smart_server.remote)
		smart_server.peers->launcher = MyProcPid;
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	smart_launcher_run(jobs, lengthof(jobs));
}

void
smart_maintenance_init(void)
{
	BackgroundWorker worker = {
		.bgw_name = SMART_LAUNCHER_NAME,
		.bgw_type = SMART_LAUNCHER_NAME,
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_ConsistentState,
		.bgw_restart_time = RESTART_S,
		.bgw_library_name = "smart",
		.bgw_function_name = "smart_launcher_main",
	};

	if (!process_shared_preload_libraries_in_progress)
		return;
	smart_orphans_init();
	RegisterBackgroundWorker(&worker);
}

/*
 * worker.c
 *	  The background worker that looks after the memory nodes: it finds them,
 *	  keeps a connection to each, and does what nobody waits for.
 *
 * It begins when the server is no standby any more: before, nobody uses smart
 * indexes, and the lease would take them from the primary.  A wait ends after a
 * second, or when a node is lost, the configuration is read again or the server stops.
 */
#include "postgres.h"

#include <signal.h>

#include "access/xlog.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "am/addresses.h"
#include "am/compat.h"
#include "am/contact.h"
#include "am/shared.h"
#include "am/worker.h"

#define RESTART_S 5 /* after an error */

void
smart_worker_register(void)
{
	BackgroundWorker worker = {
		.bgw_name = SMART_WORKER_NAME,
		.bgw_type = SMART_WORKER_NAME,
		.bgw_flags = BGWORKER_SHMEM_ACCESS,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = RESTART_S,
		.bgw_library_name = "smart",
		.bgw_function_name = "smart_worker_main",
	};

	RegisterBackgroundWorker(&worker);
}

void
smart_worker_wake(void)
{
	Latch *latch = smart_server.peers == NULL ? NULL : smart_server.peers->worker_latch;

	/* One that has just exited left its latch to another process, which does not mind. */
	if (latch != NULL)
		SetLatch(latch);
}

static void
worker_exit(int code, Datum argument)
{
	smart_server.peers->worker_latch = NULL;
	smart_server.peers->worker = 0;
}

/* Sleeps until a node has something to say, a signal comes, or something is due. */
static void
rest(const struct smart_contacts *contacts)
{
	WaitEventSet *set = smart_make_wait_set(FABRIC_NODES_MAX + 2);
	WaitEvent event;

	AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	for (int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		if (contacts->contact[i].session != NULL)
			AddWaitEventToSet(set, WL_SOCKET_READABLE, session_descriptor(contacts->contact[i].session), NULL, NULL);
	}
	(void) WaitEventSetWait(set, smart_contacts_rest_ms(contacts), &event, 1, PG_WAIT_EXTENSION);
	FreeWaitEventSet(set);
	ResetLatch(MyLatch);
}

static void
begin(struct smart_contacts *contacts)
{
	/* Without a region there is nothing to do until the next start. */
	if (!smart_server_available())
		proc_exit(0);
	pqsignal(SIGTERM, die); /* seen by smart_environment, so that a wait for a node ends, too */
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	on_shmem_exit(worker_exit, 0);
	smart_server.peers->worker = MyProcPid;
	smart_server.peers->worker_latch = MyLatch;
	smart_contacts_init(contacts, smart_backend_client(), smart_server.peers);
}

void
smart_worker_main(Datum argument)
{
	struct smart_contacts *contacts = MemoryContextAllocZero(TopMemoryContext, sizeof(*contacts));
	struct smart_address *addresses =
		MemoryContextAlloc(TopMemoryContext, FABRIC_NODES_MAX * sizeof(struct smart_address));
	unsigned int count;

	begin(contacts);
	while (!ProcDiePending)
	{
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		count = smart_addresses_find(addresses);
		smart_contacts_tend(contacts, addresses, count);
		smart_fabric_stat_flush();
		if (!ProcDiePending)
			rest(contacts);
	}
	proc_exit(0);
}

/*
 * worker.c
 *	  The background worker.  It looks after the memory nodes, if there are any:
 *	  finds them, keeps a connection to each, and does what nobody waits for.
 *	  And it starts the sweeps for what dropped indexes have left.  After a crash it is
 *	  the one, as a rule, that makes good what was left (gate.c).
 *
 * It begins when the server is no standby any more: before, nobody uses smart
 * indexes, and the lease would take them from the primary.  A wait ends after a
 * second, or when a node is lost, something is to be swept, the configuration is
 * read again or the server stops.
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
#include "am/sweep_worker.h"
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
	Latch *latch = smart_server.shared == NULL ? NULL : smart_server.shared->worker_latch;

	/* One that has just exited left its latch to another process, which does not mind. */
	if (latch != NULL)
		SetLatch(latch);
}

static void
worker_exit(int code, Datum argument)
{
	smart_server.shared->worker_latch = NULL;
	if (smart_server.remote)
		smart_server.peers->worker = 0;
}

/* Sleeps until a node has something to say, a signal comes, or something is due.  contacts: NULL without memory nodes. */
static void
rest(const struct smart_contacts *contacts)
{
	WaitEventSet *set = smart_make_wait_set(FABRIC_NODES_MAX + 2);
	long rest_ms = smart_sweeper_rest_ms();
	WaitEvent event;

	AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	for (int i = 0; contacts != NULL && i < FABRIC_NODES_MAX; i++)
	{
		if (contacts->contact[i].session != NULL)
			AddWaitEventToSet(set, WL_SOCKET_READABLE, session_descriptor(contacts->contact[i].session), NULL, NULL);
	}
	if (contacts != NULL)
		rest_ms = Min(rest_ms, smart_contacts_rest_ms(contacts));
	(void) WaitEventSetWait(set, rest_ms, &event, 1, PG_WAIT_EXTENSION);
	FreeWaitEventSet(set);
	ResetLatch(MyLatch);
}

static void
begin(void)
{
	/* Without a region there is nothing to do until the next start. */
	if (!smart_server_available())
		proc_exit(0);
	pqsignal(SIGTERM, die); /* seen by smart_environment, so that a wait for a node ends, too */
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	on_shmem_exit(worker_exit, 0);
	if (smart_server.remote)
		smart_server.peers->worker = MyProcPid;
	smart_server.shared->worker_latch = MyLatch;
	/* Opens the gate if it is closed, so that nobody has to wait for that later. */
	if ((smart_server.remote || smart_server.shared->made) && !smart_server_recovers())
		(void) smart_backend_client();
}

/* All nodes are there, so that the gate can be opened. */
static void
recover_book(struct smart_contacts *contacts)
{
	const struct smart_region_header *book = smart_region_header(contacts->client->compute->region);
	uint64 incarnation = book->incarnation;

	(void) smart_backend_client();
	/* It had to be given up: the nodes are to be met anew, with a book that does not know them. */
	if (book->incarnation != incarnation)
		smart_contacts_forget(contacts);
}

/* One round of looking after the memory nodes. */
static void
tend_nodes(struct smart_contacts *contacts)
{
	static struct smart_address *addresses = NULL;
	unsigned int count;

	if (addresses == NULL)
		addresses = MemoryContextAlloc(TopMemoryContext, FABRIC_NODES_MAX * sizeof(struct smart_address));
	count = smart_addresses_find(addresses);
	smart_contacts_tend(contacts, addresses, count);
	if (smart_server_recovers() && smart_contacts_are_up(contacts))
		recover_book(contacts);
	smart_fabric_stat_flush();
}

void
smart_worker_main(Datum argument)
{
	struct smart_contacts *contacts = NULL;

	begin();
	if (smart_server.remote)
	{
		contacts = MemoryContextAllocZero(TopMemoryContext, sizeof(*contacts));
		smart_contacts_init(contacts, smart_backend_client_at_gate(), smart_server.peers);
	}
	while (!ProcDiePending)
	{
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		if (contacts != NULL)
			tend_nodes(contacts);
		smart_sweeper_tend();
		if (!ProcDiePending)
			rest(contacts);
	}
	proc_exit(0);
}

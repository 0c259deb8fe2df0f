/*
 * backend.c
 *	  A backend as a client of the compute node: made at the first use, gone when
 *	  the backend exits.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/ipc.h"

#include "am/environment.h"
#include "am/locate.h"
#include "am/region_file.h"
#include "am/report.h"
#include "am/runmark.h"
#include "am/settings.h"
#include "am/shared.h"
#include "am/undo.h"

static struct smart_client *opened;
static struct smart_client *client; /* the same, once it has passed the gate */

bool
smart_server_available(void)
{
	return smart_server.shared != NULL && smart_server.problem[0] == '\0';
}

bool
smart_server_recovers(void)
{
	return smart_server.remote && !smart_gate_is_open(&smart_server.shared->gate);
}

bool
smart_server_is_remote(void)
{
	return smart_server.remote;
}

void
smart_server_require(void)
{
	if (likely(smart_server_available()))
		return;
	if (smart_server.shared == NULL)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("smart must be loaded when the server starts"),
						errhint("Add 'smart' to shared_preload_libraries and restart the server.")));
	ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("smart has no region to keep indexes in"),
					errdetail_internal("%s", smart_server.problem),
					errhint("Check smart.embedded_path and smart.embedded_max_size, and restart the server.")));
}

static void
backend_exit(int code, Datum argument)
{
	bool wake = smart_interlock_leave_all(smart_server.compute.interlock, opened->number);

	smart_undo_end();
	smart_fabric_stat_flush();
	smart_client_close(opened);
	opened = client = NULL;
	if (wake)
		ConditionVariableBroadcast(&smart_server.shared->interlock_wait);
}

/* The region of a server that had none, or not this one, is made by its first user. */
static smart_status
use_region(void)
{
	struct smart_lock_table *locks = smart_server.compute.locks;
	smart_status status = SMART_OK;

	locks->acquire(locks, SMART_LOCK_DIRECTORY);
	if (!smart_server.shared->made)
		status = smart_region_make_empty();
	if (status == SMART_OK)
		smart_server.shared->made = smart_server.shared->used = true;
	locks->release(locks, SMART_LOCK_DIRECTORY);
	return status;
}

/* How this process reaches memory nodes. */
static struct smart_remote *
remote(void)
{
	static struct smart_remote remote;

	remote = (struct smart_remote){
		.nodes = smart_locate_nodes(),
		.secret = smart_locate_secret(),
		.owner = GetSystemIdentifier(),
		.incarnation = smart_server.shared->server_incarnation,
		.timeout_ms = (uint32) smart_settings.fabric_timeout_ms,
	};
	return &remote;
}

static void
open_client(void)
{
	smart_environment_init();
	smart_check_status(use_region(), NULL);
	if (smart_server.remote)
		smart_server.compute.remote = remote();
	smart_check_status(smart_client_open(&smart_server.compute, &smart_environment, MyProcPid, &opened), NULL);
	smart_client_set_rdwc(opened, smart_settings.rdwc != SMART_RDWC_OFF);
	/* Behind before_shmem_exit, which aborts a transaction that is still open and needs the client for that. */
	on_shmem_exit(backend_exit, 0);
}

struct smart_client *
smart_backend_client_at_gate(void)
{
	smart_server_require();
	if (opened == NULL)
		open_client();
	return opened;
}

struct smart_client *
smart_backend_client(void)
{
	struct smart_region_header *header;

	if (likely(client != NULL))
		return client;
	(void) smart_backend_client_at_gate();
	smart_gate_pass(&smart_server.shared->gate, opened,
					!smart_server.remote || smart_server.peers->worker == MyProcPid);
	header = smart_region_header(&smart_server.region);
	if (header->started == 0)
		header->started = smart_run_started();
	client = opened;
	smart_fabric_stat_begin();
	smart_client_set_offload(client, (enum smart_offload_mode) smart_settings.offload);
	return client;
}

struct smart_client *
smart_backend_client_if_any(void)
{
	return client;
}

void
smart_backend_set_rdwc(bool takes_part)
{
	if (client != NULL)
		smart_client_set_rdwc(client, takes_part);
}

void
smart_backend_set_timeout(uint32 timeout_ms)
{
	if (client != NULL)
		smart_client_set_timeout(client, timeout_ms);
}

void
smart_backend_set_offload(enum smart_offload_mode mode)
{
	if (client != NULL)
		smart_client_set_offload(client, mode);
}

uint64
smart_region_incarnation(void)
{
	return smart_region_header(smart_backend_client()->compute->region)->incarnation;
}

uint64
smart_server_incarnation(void)
{
	smart_server_require();
	return smart_server.shared->server_incarnation;
}

ConditionVariable *
smart_interlock_wait(void)
{
	smart_server_require();
	return &smart_server.shared->interlock_wait;
}

int
smart_client_pid(unsigned int number)
{
	smart_server_require();
	return number < smart_server.compute.epoch->clients ? (int) smart_epoch_owner(smart_server.compute.epoch, number)
														: 0;
}

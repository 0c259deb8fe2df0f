/*
 * lifecycle.c
 *	  What happens to the region when the server starts and stops.
 *
 * A start finds out whether the region belongs to the data directory as it is
 * (cleanmark.c); if not, it is emptied, and the first user makes a new one of
 * another incarnation.  So is the start of shared memory after a backend has
 * crashed: what it was at in the region, nobody knows.  A book is a region like
 * any other here: the memory nodes free what an older book had, when they
 * meet the new one.
 *
 * A region that cannot be had does not keep the server from starting: only the
 * users of smart indexes get the error.
 */
#include "postgres.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/pg_prng.h"
#include "miscadmin.h"
#include "postmaster/postmaster.h"
#include "storage/fd.h"
#include "storage/ipc.h"

#include "am/cleanmark.h"
#include "am/rebuild_table.h"
#include "am/rebuild_worker.h"
#include "am/region_file.h"
#include "am/settings.h"
#include "am/shared.h"
#include "am/worker.h"

static shmem_request_hook_type previous_request_hook;
static shmem_startup_hook_type previous_startup_hook;

/* Is this the region that was closed together with this data directory?  If not, *reason tells why. */
static bool
region_is_ours(const char **reason)
{
	const struct smart_region_header *header = smart_region_header(&smart_server.region);
	struct smart_clean_mark mark;
	struct smart_clean_mark now;

	if (!smart_clean_mark_position(&now, reason))
		return false;
	*reason = "it was not closed cleanly";
	if (!smart_clean_mark_read(&mark) || smart_region_check(&smart_server.region, reason) != SMART_OK)
		return false;
	*reason = "it does not belong to this state of the data directory";
	return mark.system == now.system && mark.timeline == now.timeline && mark.checkpoint == now.checkpoint &&
		   mark.incarnation == header->incarnation && mark.token == header->clean_token && mark.token != 0;
}

/* Written by the postmaster when all children are gone and the shutdown checkpoint is done. */
static void
postmaster_exit(int code, Datum argument)
{
	struct smart_region_header *header = smart_region_header(&smart_server.region);
	struct smart_clean_mark mark;
	const char *reason;

	if (MyProcPid != DatumGetInt32(argument) || !smart_server.shared->made)
		return;
	/* A start that failed before anyone used the region leaves it as it was. */
	if ((code != 0 && smart_server.shared->used) || !smart_clean_mark_position(&mark, &reason))
		return;
	do
		mark.token = pg_prng_uint64(&pg_global_prng_state);
	while (mark.token == 0);
	mark.incarnation = header->incarnation;
	header->epoch_saved = smart_epoch_now(smart_server.compute.epoch);
	header->clean_token = mark.token;
	/* The region is on disk before the mark says that it is. */
	if (pg_fsync(smart_server.region.fd) != 0)
		ereport(LOG, (errcode_for_file_access(), errmsg("could not fsync the region of smart: %m")));
	else
		smart_clean_mark_write(&mark);
}

/* Takes the mark away before anybody uses the region; false: the region begins empty. */
static bool
accept_region(bool first_start)
{
	const char *reason = "a server process crashed";
	bool ours = first_start && region_is_ours(&reason);
	struct stat file;

	smart_clean_mark_remove();
	if (ours)
	{
		smart_region_header(&smart_server.region)->clean_token = 0;
		/* A copy of the mark elsewhere must not fit the region any more, whatever happens to the machine. */
		if (msync(smart_server.region.base, SMART_PAGE_BYTES, MS_SYNC) == 0)
			return true;
		reason = "it could not be written";
	}
	if (fstat(smart_server.region.fd, &file) == 0 && file.st_size > 0)
		ereport(LOG, (errmsg("smart starts with an empty region: %s", reason),
					  errdetail("The indexes that were in it have to be rebuilt.")));
	if (ftruncate(smart_server.region.fd, 0) != 0)
		ereport(FATAL, (errcode_for_file_access(), errmsg("could not truncate the region of smart: %m")));
	return false;
}

static void
request_shared_memory(void)
{
	if (previous_request_hook)
		previous_request_hook();
	smart_shared_request();
	smart_rebuild_table_request();
}

static void
start_shared_memory(void)
{
	bool first_start = smart_server.region.base == NULL;
	bool mapped;
	bool accepted;

	if (previous_startup_hook)
		previous_startup_hook();
	smart_server.problem[0] = '\0';
	mapped = !first_start || smart_region_file_map();
	accepted = mapped && accept_region(first_start);
	smart_shared_make(accepted ? smart_region_header(&smart_server.region)->epoch_saved + SMART_EPOCH_GRACE : 0);
	smart_server.shared->made = accepted;
	smart_rebuild_table_make();
	if (mapped)
		on_shmem_exit(postmaster_exit, Int32GetDatum(MyProcPid));
}

void
smart_server_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	smart_settings_init();
	smart_server.remote = smart_settings_name_nodes();
	smart_sweep_init();
	smart_worker_register();
	smart_rebuild_register();
	previous_request_hook = shmem_request_hook;
	shmem_request_hook = request_shared_memory;
	previous_startup_hook = shmem_startup_hook;
	shmem_startup_hook = start_shared_memory;
}

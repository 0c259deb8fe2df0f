/*
 * lifecycle.c
 *	  What happens to the region when the server starts and stops.
 *
 * A start, also that of shared memory after a backend has crashed, finds out
 * whether the region belongs to the data directory as it is.  Either both were closed
 * together (cleanmark.c), or the region is as a server left it that was killed a moment
 * ago (runmark.c): then the gate stays closed until somebody has made good what
 * that server was at (gate.c).  If it is neither, it is emptied, and the first user
 * makes a new one of another incarnation.
 *
 * A book is a region like any other here: the memory nodes free what an older book
 * had, when they meet the new one.
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
#include "am/runmark.h"
#include "am/settings.h"
#include "am/shared.h"
#include "am/worker.h"

static shmem_request_hook_type previous_request_hook;
static shmem_startup_hook_type previous_startup_hook;

/*
 * Is this the region that was closed together with this data directory?  If not, *reason tells why, or is NULL if
 * nothing says that any region was closed with it.
 */
static bool
region_was_closed(const char **reason)
{
	const struct smart_region_header *header = smart_region_header(&smart_server.region);
	struct smart_clean_mark mark;
	struct smart_clean_mark now;

	if (!smart_clean_mark_read(&mark, reason) || !smart_clean_mark_position(&now, reason) ||
		smart_region_check(&smart_server.region, reason) != SMART_OK)
		return false;
	*reason = smart_clean_mark_misfit(&mark, &now, header->incarnation, header->clean_token);
	return *reason == NULL;
}

/* Is it as a server of this data directory left it when it was killed?  If not, *reason tells why. */
static bool
region_was_left(const char **reason)
{
	struct smart_region *region = &smart_server.region;
	const struct smart_region_header *header = smart_region_header(region);
	struct stat file;

	if (!smart_start_is_ordinary(reason))
		return false;
	*reason = "its size is not known";
	if (fstat(region->fd, &file) != 0)
		return false;
	region->file_size = (uint64) file.st_size;
	if (smart_region_check(region, reason) != SMART_OK || !smart_run_mark_matches(region->fd, header->run, reason))
		return false;
	*reason = "the server was killed again before it had recovered";
	if (header->unsettled != 0 && header->undo_from == 0)
		return false;
	*reason = "the server has been started without it since it was used";
	return header->started != 0 && header->started == smart_run_started();
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
	/* What an earlier end has left, the next start makes good. */
	if (!smart_gate_is_open(&smart_server.shared->gate))
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
	{
		smart_clean_mark_write(&mark);
		smart_run_mark_remove();
	}
}

/* Whose region it is from now on. */
enum acceptance
{
	REGION_EMPTY, /* none: the first user makes one */
	REGION_CLOSED,
	REGION_LEFT
};

static void
empty_region(const char *reason)
{
	struct stat file;

	if (fstat(smart_server.region.fd, &file) == 0 && file.st_size > 0)
		smart_region_report_empty(reason);
	if (ftruncate(smart_server.region.fd, 0) != 0)
		ereport(FATAL, (errcode_for_file_access(), errmsg("could not truncate the region of smart: %m")));
}

/* A region that was closed is used by a new run. */
static bool
begin_run(const char **reason)
{
	struct smart_region_header *header = smart_region_header(&smart_server.region);

	smart_server.run = smart_run_mark_write(smart_server.region.fd);
	header->clean_token = 0;
	header->run = smart_server.run;
	header->started = 0;
	/* A copy of the mark elsewhere must not fit the region any more, whatever happens to the machine. */
	*reason = "it could not be written";
	return msync(smart_server.region.base, SMART_PAGE_BYTES, MS_SYNC) == 0;
}

/* One that was left is still in the hands of the same run, and the gate has to know of it. */
static void
continue_run(void)
{
	struct smart_region_header *header = smart_region_header(&smart_server.region);

	smart_server.run = header->run;
	header->started = 0;
	if (header->unsettled == 0)
		header->undo_from = 0;
	header->unsettled = 1;
}

/* Takes the mark away before anybody uses the region. */
static enum acceptance
accept_region(bool first_start)
{
	const char *reason = NULL;
	const char *not_closed = NULL;
	bool closed = first_start && region_was_closed(&not_closed);
	bool left = !closed && region_was_left(&reason);

	smart_clean_mark_remove();
	if (left)
	{
		continue_run();
		return REGION_LEFT;
	}
	if (closed && begin_run(&reason))
		return REGION_CLOSED;
	/* A mark says more than what a server that was killed would have left. */
	empty_region(not_closed != NULL ? not_closed : reason);
	smart_server.run = smart_run_mark_write(smart_server.region.fd);
	return REGION_EMPTY;
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
	enum acceptance accepted = REGION_EMPTY;
	bool mapped;

	if (previous_startup_hook)
		previous_startup_hook();
	smart_server.problem[0] = '\0';
	mapped = !first_start || smart_region_file_map();
	if (mapped)
		accepted = accept_region(first_start);
	smart_shared_make(
		accepted == REGION_CLOSED ? smart_region_header(&smart_server.region)->epoch_saved + SMART_EPOCH_GRACE : 0);
	smart_server.shared->made = accepted != REGION_EMPTY;
	if (accepted == REGION_LEFT)
		smart_gate_close(&smart_server.shared->gate);
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

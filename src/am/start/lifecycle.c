/*
 * lifecycle.c
 *	  What happens to shared memory and to the region when the server starts and stops.
 *
 * A start, also that of shared memory after a backend has crashed, finds out whether the region belongs to the data
 * directory as it is.  Either both were closed together, or the region is as a server left it that was killed a
 * moment ago (marks.c): then startup recovery (startup.c) has to make it good before it is used.  If it is neither, it
 * is emptied, and the first user makes a new one of another incarnation.
 *
 * An extent map is a region like any other here: the memory nodes free what an older extent map had, when they meet
 * the new one.
 *
 * A region that cannot be had does not keep the server from starting: only the users of smart indexes get the error.
 */
#include "postgres.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "miscadmin.h"
#include "postmaster/postmaster.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/timestamp.h"

#include "am/journal/staging.h"
#include "am/nodes/peers.h"
#include "am/recovery/delta_region.h"
#include "am/recovery/identity.h"
#include "am/recovery/marks.h"
#include "am/recovery/region_file.h"
#include "am/server/dead_rows.h"
#include "am/server/environment.h"
#include "am/server/key_cache.h"
#include "am/server/key_filter.h"
#include "am/server/key_memory.h"
#include "am/server/key_locks.h"
#include "am/server/kill_queue.h"
#include "am/server/leaving_table.h"
#include "am/server/rebuild_table.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "am/server/tree_changes.h"
#include "am/start/lifecycle.h"
#include "base/assert.h"

#define SPACE_TRANCHE  "smart_space"
#define LEAVES_TRANCHE "smart_leaf"
#define SPACE_LOCKS    SMART_LOCK_LEAF(0)

/* Every part begins with a cache line of its own, and with the next one's, which the processor fetches too. */
#define PART_ALIGNMENT 128

static shmem_request_hook_type previous_request_hook;
static shmem_startup_hook_type previous_startup_hook;

/* ---- shared memory ---- */

/* The light locks of a region.  Leaves are locked by them in one region alone: on memory nodes they have other locks. */
struct light_locks
{
	struct smart_lock_table table; /* first */
	unsigned int first;            /* of its locks in the space's tranche */
};

static LWLock *
lock_of(const struct smart_lock_table *table, unsigned int lock)
{
	const struct light_locks *locks = (const struct light_locks *) table;

	smart_assert(lock < SMART_LOCK_COUNT);
	return lock < SPACE_LOCKS ? &smart_server.space_locks[locks->first + lock].lock
							  : &smart_server.leaf_locks[lock - SPACE_LOCKS].lock;
}

static void
acquire_lock(struct smart_lock_table *table, unsigned int lock)
{
	LWLockAcquire(lock_of(table, lock), LW_EXCLUSIVE);
}

static void
release_lock(struct smart_lock_table *table, unsigned int lock)
{
	LWLockRelease(lock_of(table, lock));
}

static struct light_locks region_locks = {.table = {acquire_lock, release_lock}};
static struct light_locks delta_locks = {.table = {acquire_lock, release_lock}, .first = SPACE_LOCKS};

/* Puts a part behind *end, and moves that behind it; returns where it lies, NULL without a base. */
static void *
add_part(char *base, Size *end, Size bytes)
{
	Size from = TYPEALIGN(PART_ALIGNMENT, *end);

	smart_assert(from >= *end);
	*end = from + bytes;
	return base == NULL ? NULL : base + from;
}

/* Sets where the parts lie; returns their bytes, of which the first *zeros begin as zeros: the cache sets itself up. */
static Size
lay_out(char *base, Size *zeros)
{
	struct smart_compute *compute = &smart_server.compute;
	Size cache_bytes = (Size) smart_settings.cache_size_mb << 20;
	Size end = 0;

	smart_server.shared = add_part(base, &end, sizeof(struct smart_shared));
	compute->epoch = add_part(base, &end, smart_epoch_size(MaxBackends));
	compute->pins = add_part(base, &end, smart_pins_size(MaxBackends));
	if (smart_server.remote)
	{
		smart_server.delta_compute.epoch = add_part(base, &end, smart_epoch_size(MaxBackends));
		smart_server.delta_compute.pins = add_part(base, &end, smart_pins_size(MaxBackends));
		smart_server.peers = add_part(base, &end, sizeof(struct smart_peers));
		compute->leaf_locks = add_part(base, &end, sizeof(struct smart_leaf_locks));
		compute->rdwc = add_part(base, &end, smart_rdwc_size(SMART_RDWC_PLACES, MaxBackends));
	}
	*zeros = end;
	if (smart_server.remote && cache_bytes > 0)
		compute->cache = add_part(base, &end, smart_cache_size(cache_bytes, MaxBackends));
	return end;
}

/* Asks the server for it, and for locks. */
static void
request_shared_memory(void)
{
	Size zeros;

	if (previous_request_hook)
		previous_request_hook();
	RequestAddinShmemSpace(lay_out(NULL, &zeros) + PART_ALIGNMENT);
	RequestNamedLWLockTranche(SPACE_TRANCHE, smart_server.remote ? 2 * SPACE_LOCKS : SPACE_LOCKS);
	RequestNamedLWLockTranche(LEAVES_TRANCHE, SMART_LOCK_LEAVES);
	if (smart_server.remote)
		smart_peers_request();
	smart_changes_request();
	smart_leaving_table_request();
	smart_rebuild_table_request();
	smart_staging_request();
	smart_kill_queue_request();
	smart_dead_rows_request();
	smart_key_locks_request();
	smart_key_memory_request();
	smart_key_filter_request();
	smart_key_cache_request();
}

/* epoch: what the reclamation epoch begins with (smart_epoch_init). */
static void
make_shared_memory(uint64 epoch)
{
	struct smart_compute *compute = &smart_server.compute;
	uint64 now = (uint64) GetCurrentTimestamp();
	Size zeros;
	Size bytes = lay_out(NULL, &zeros) + PART_ALIGNMENT;
	struct smart_shared *shared;
	const char *reason;
	bool found;
	char *base;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	base = (char *) TYPEALIGN(PART_ALIGNMENT, ShmemInitStruct("smart", bytes, &found));
	memset(base, 0, zeros);
	(void) lay_out(base, &zeros);
	smart_server.space_locks = GetNamedLWLockTranche(SPACE_TRANCHE);
	smart_server.leaf_locks = GetNamedLWLockTranche(LEAVES_TRANCHE);

	/* What shared.h declares. */
	shared = smart_server.shared;
	shared->server_incarnation = smart_random_token();
	pg_atomic_init_u32(&shared->startup, SMART_STARTUP_OPEN);
	ConditionVariableInit(&shared->startup_changed);
	ConditionVariableInit(&shared->applied);
	ConditionVariableInit(&shared->pins_wait);
	shared->standby = !smart_start_is_ordinary(&reason);
	for (int i = 0; i < (int) SMART_FABRIC_TOTALS; i++)
		pg_atomic_init_u64(&shared->fabric.total[i], 0);
	for (int i = 0; i < (int) SMART_RDWC_COUNTERS; i++)
		pg_atomic_init_u64(&shared->fabric.rdwc[i], 0);
	pg_atomic_init_u64(&shared->fabric.reset_at, now);
	for (int i = 0; i < (int) SMART_CACHE_COUNTERS; i++)
		pg_atomic_init_u64(&shared->cache.counter[i], 0);
	pg_atomic_init_u64(&shared->cache.reset_at, now);
	pg_atomic_init_u32(&shared->moves_requested, 1); /* an earlier start of the server may have begun it */
	SpinLockInit(&shared->orphans.lock);
	for (int i = 0; i < (int) SMART_ERRAND_KINDS; i++)
		SpinLockInit(&shared->errands[i].lock);
	for (int i = 0; i < SMART_PASSED; i++)
	{
		pg_atomic_init_u64(&shared->passed[i].delta, 0);
		pg_atomic_init_u64(&shared->passed[i].entries, 0);
	}
	for (int i = 0; i < SMART_SPENT; i++)
		SpinLockInit(&shared->spent[i].lock);
	shared->orphans.all = true; /* an earlier start of the server may have left something */

	/* What the compute node needs. */
	compute->region = &smart_server.region;
	compute->locks = &region_locks.table;
	smart_epoch_init(compute->epoch, MaxBackends, epoch);
	smart_pins_init(compute->pins, MaxBackends);
	if (smart_server.remote)
	{
		struct smart_compute *deltas = &smart_server.delta_compute;

		deltas->region = &smart_server.delta_region;
		deltas->locks = &delta_locks.table;
		smart_epoch_init(deltas->epoch, MaxBackends, 0);
		smart_pins_init(deltas->pins, MaxBackends);
		smart_peers_init(smart_server.peers);
		smart_rdwc_init(compute->rdwc, SMART_RDWC_PLACES, MaxBackends);
	}
	if (compute->cache != NULL)
		smart_cache_init(compute->cache, (Size) smart_settings.cache_size_mb << 20, MaxBackends,
						 shared->server_incarnation);
	LWLockRelease(AddinShmemInitLock);
}

/* ---- the end of a server ---- */

/* Written by the postmaster when all children are gone and the shutdown checkpoint is done. */
static void
postmaster_exit(int code, Datum argument)
{
	struct smart_region_header *header = smart_region_header(&smart_server.region);
	struct smart_clean_mark mark;
	const char *reason;

	if (MyProcPid != DatumGetInt32(argument) || !smart_server.shared->made)
		return;
	/*
	 * What an earlier end has left, the next start makes good.  A start that failed before the region was used leaves
	 * it as it was.
	 */
	if (!smart_startup_is_done())
		return;
	if ((code != 0 && smart_server.shared->used) || !smart_clean_mark_position(&mark, &reason))
		return;
	mark.token = smart_random_token();
	mark.incarnation = header->incarnation;
	header->epoch_saved = smart_epoch_now(smart_server.compute.epoch);
	header->clean_token = mark.token;
	/* The region is on disk before the mark says that it is. */
	if (pg_fsync(smart_server.region.fd) != 0)
		ereport(LOG, errcode_for_file_access(), errmsg("could not fsync the region of smart: %m"));
	else
	{
		smart_clean_mark_write(&mark);
		smart_run_mark_remove();
	}
}

/* ---- the beginning of one ---- */

/* Is the region as a server of this data directory left it when it was killed?  If not, *reason tells why. */
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

/* Is the region valid for this data directory? */
enum validity
{
	REGION_EMPTY,  /* no: the first user makes a new one */
	REGION_CLOSED, /* yes: they were closed together */
	REGION_LEFT    /* yes, after startup recovery */
};

/* Removes the clean mark before any process uses the region, and begins a run, or continues the one that left it. */
static enum validity
take_region(bool first_start)
{
	struct smart_region_header *header = smart_region_header(&smart_server.region);
	const char *reason = NULL;
	const char *not_closed = NULL;
	bool closed = first_start && smart_clean_mark_matches(&smart_server.region, &not_closed);
	bool left = !closed && region_was_left(&reason);
	struct stat file;

	smart_assert(smart_server.region.base != NULL);
	smart_clean_mark_remove();
	if (left)
	{
		/* It still belongs to the same run, and startup recovery has to make it good. */
		smart_server.run = header->run;
		smart_region_sign();
		header->started = 0;
		if (header->unsettled == 0)
			header->undo_from = 0;
		header->unsettled = 1;
		return REGION_LEFT;
	}
	if (closed)
	{
		smart_server.run = smart_run_mark_write(smart_server.region.fd);
		header->clean_token = 0;
		header->run = smart_server.run;
		header->started = 0;
		smart_region_sign();
		/* A copy of the mark elsewhere must not fit the region any more, whatever happens to the machine. */
		if (msync(smart_server.region.base, SMART_PAGE_BYTES, MS_SYNC) == 0)
			return REGION_CLOSED;
		reason = "it could not be written";
	}
	/* A clean mark says more than what a server that was killed would have left. */
	if (fstat(smart_server.region.fd, &file) == 0 && file.st_size > 0)
		smart_region_report_empty(not_closed != NULL ? not_closed : reason, NULL);
	if (ftruncate(smart_server.region.fd, 0) != 0)
		ereport(FATAL, errcode_for_file_access(), errmsg("could not truncate the region of smart: %m"));
	smart_server.run = smart_run_mark_write(smart_server.region.fd);
	return REGION_EMPTY;
}

static bool
are_mapped(void)
{
	return smart_server.region.base != NULL && (!smart_server.remote || smart_server.delta_region.base != NULL);
}

/* Maps those that are not mapped yet: there may have been no memory for one of them when the server was started before. */
static bool
map_regions(void)
{
	if (smart_server.region.base == NULL && !smart_region_file_map())
		return false;
	return are_mapped() || smart_delta_region_map();
}

static void
start_shared_memory(void)
{
	bool first_start = !are_mapped();
	enum validity validity = REGION_EMPTY;
	bool mapped;

	if (previous_startup_hook)
		previous_startup_hook();
	smart_assert(smart_server.client == NULL);
	smart_assert(!IsUnderPostmaster);
	smart_server.problem[0] = '\0';
	mapped = map_regions();
	if (mapped && smart_server.remote)
		smart_delta_region_empty();
	if (mapped && first_start && smart_server.remote)
		smart_server.identity = smart_identity_find();
	if (mapped)
		validity = take_region(first_start);
	make_shared_memory(
		validity == REGION_CLOSED ? smart_region_header(&smart_server.region)->epoch_saved + SMART_EPOCH_GRACE : 0);
	smart_assert(!smart_server.shared->used && smart_startup_is_done());
	smart_server.shared->made = validity != REGION_EMPTY;
	if (validity == REGION_LEFT)
		pg_atomic_write_u32(&smart_server.shared->startup, SMART_STARTUP_CLOSED);
	smart_changes_make();
	smart_leaving_table_make();
	smart_rebuild_table_make();
	smart_staging_make();
	smart_kill_queue_make();
	smart_dead_rows_make();
	smart_key_locks_make();
	smart_key_memory_make();
	smart_key_filter_make();
	smart_key_cache_make();
	if (mapped)
		on_shmem_exit(postmaster_exit, Int32GetDatum(MyProcPid));
}

void
smart_server_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	smart_settings_init();
	smart_server.remote = smart_settings.memory_nodes[0] != '\0' || smart_settings.cluster[0] != '\0';
	previous_request_hook = shmem_request_hook;
	shmem_request_hook = request_shared_memory;
	previous_startup_hook = shmem_startup_hook;
	shmem_startup_hook = start_shared_memory;
}

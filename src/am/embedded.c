/*
 * embedded.c
 *	  The embedded memory node: settings, shared memory, and what happens to the
 *	  region when the server starts and stops.
 *
 * The postmaster maps the region once, so that all backends have it at the same
 * address.  A start finds out whether the region belongs to the data directory
 * as it is (cleanmark.c); if not, it is emptied, and the first user makes a new
 * one of another incarnation.  So is the start of shared memory after a
 * backend has crashed: what it was at in the region, nobody knows.
 *
 * A region that cannot be had does not keep the server from starting: only the
 * users of smart indexes get the error.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/pg_prng.h"
#include "miscadmin.h"
#include "postmaster/postmaster.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/guc.h"

#include "am/cleanmark.h"
#include "am/embedded.h"
#include "am/embedded_state.h"
#include "am/report.h"

#ifdef EXEC_BACKEND
#error "smart maps its region in the postmaster and needs backends that are forked"
#endif

#define REGION_FILE    "pgsql_tmp_region"
#define MAX_SIZE_MB    65536
#define SPACE_TRANCHE  "smart_space"
#define LEAVES_TRANCHE "smart_leaf"
#define SPACE_LOCKS    SMART_LOCK_LEAF(0)

/* Set in the postmaster, inherited by all backends. */
struct smart_embedded smart_embedded;

static char *embedded_path;
static int embedded_max_size_mb;
static shmem_request_hook_type previous_request_hook;
static shmem_startup_hook_type previous_startup_hook;

/* ---- shared memory ---- */

static Size
shared_size(Size *epoch_offset, Size *interlock_offset)
{
	*epoch_offset = TYPEALIGN(128, sizeof(struct smart_embedded_shared));
	*interlock_offset = *epoch_offset + TYPEALIGN(128, smart_epoch_size(MaxBackends));
	return *interlock_offset + smart_interlock_size(MaxBackends);
}

static void
request_shared_memory(void)
{
	Size epoch_offset;
	Size interlock_offset;

	if (previous_request_hook)
		previous_request_hook();
	RequestAddinShmemSpace(shared_size(&epoch_offset, &interlock_offset) + 128);
	RequestNamedLWLockTranche(SPACE_TRANCHE, SPACE_LOCKS);
	RequestNamedLWLockTranche(LEAVES_TRANCHE, SMART_LOCK_LEAVES);
}

static LWLock *
lock_of(unsigned int lock)
{
	smart_assert(lock < SMART_LOCK_COUNT);
	return lock < SPACE_LOCKS ? &smart_embedded.space_locks[lock].lock
							  : &smart_embedded.leaf_locks[lock - SPACE_LOCKS].lock;
}

static void
acquire_lock(struct smart_lock_table *table, unsigned int lock)
{
	LWLockAcquire(lock_of(lock), LW_EXCLUSIVE);
}

static void
release_lock(struct smart_lock_table *table, unsigned int lock)
{
	LWLockRelease(lock_of(lock));
}

static struct smart_lock_table lock_table = {acquire_lock, release_lock};

static void
make_shared(uint64 epoch)
{
	struct smart_embedded_shared *shared;
	Size epoch_offset;
	Size interlock_offset;
	Size size = shared_size(&epoch_offset, &interlock_offset);
	bool found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = (struct smart_embedded_shared *) TYPEALIGN(128, ShmemInitStruct("smart", size + 128, &found));
	smart_embedded.shared = shared;
	smart_embedded.space_locks = GetNamedLWLockTranche(SPACE_TRANCHE);
	smart_embedded.leaf_locks = GetNamedLWLockTranche(LEAVES_TRANCHE);
	smart_embedded.compute.region = &smart_embedded.region;
	smart_embedded.compute.locks = &lock_table;
	smart_embedded.compute.epoch = (struct smart_epoch_shared *) ((char *) shared + epoch_offset);
	smart_embedded.compute.interlock = (struct smart_interlock_shared *) ((char *) shared + interlock_offset);
	memset(shared, 0, sizeof(*shared));
	shared->server_start = pg_prng_uint64(&pg_global_prng_state);
	ConditionVariableInit(&shared->interlock_wait);
	smart_epoch_init(smart_embedded.compute.epoch, MaxBackends, epoch);
	smart_interlock_init(smart_embedded.compute.interlock, MaxBackends);
	LWLockRelease(AddinShmemInitLock);
}

/* ---- the region file ---- */

/* Remembers why there is no region, for the log and for who asks for it. */
static void no_region(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void
no_region(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(smart_embedded.problem, sizeof(smart_embedded.problem), format, arguments);
	va_end(arguments);
	ereport(LOG, (errmsg("smart indexes cannot be used: %s", smart_embedded.problem)));
}

/* Where the region would be a copy on every write, a full disk meets us as SIGBUS and not as an error. */
static void
warn_of_copy_on_write(const char *path)
{
	static const struct
	{
		uint32 type;
		const char *name;
	} kinds[] = {{0x9123683e, "btrfs"}, {0x2fc12fc1, "zfs"}, {0xca451a4e, "bcachefs"}};
	struct statfs file_system;

	if (statfs(path, &file_system) != 0)
		return;
	for (int i = 0; i < (int) lengthof(kinds); i++)
		if ((uint32) file_system.f_type == kinds[i].type)
			ereport(WARNING,
					(errmsg("smart keeps its region \"%s\" on %s, a copy-on-write file system", path, kinds[i].name),
					 errdetail(
						 "When it is full, writes to memory that was allocated before can fail and stop the server."),
					 errhint("Set smart.embedded_path to a directory on another file system.")));
}

/* Opens the file so that no other server uses it; -1: no_region() was called. */
static int
open_region_file(void)
{
	const char *directory = embedded_path[0] != '\0' ? embedded_path : SMART_DIRECTORY;
	char path[MAXPGPATH];
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd;

	if ((mkdir(SMART_DIRECTORY, S_IRWXU) != 0 && errno != EEXIST) ||
		(mkdir(directory, S_IRWXU) != 0 && errno != EEXIST))
	{
		no_region("could not create directory \"%s\": %s", directory, strerror(errno));
		return -1;
	}
	snprintf(path, sizeof(path), "%s/%s", directory, REGION_FILE);
	fd = BasicOpenFilePerm(path, O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
	if (fd < 0)
		no_region("could not open file \"%s\": %s", path, strerror(errno));
	else if (fcntl(fd, F_SETLK, &lock) != 0)
	{
		/* The lock is the postmaster's: a logger that outlives it does not keep it. */
		no_region("file \"%s\" is in use by another server", path);
		close(fd);
		fd = -1;
	}
	else
		warn_of_copy_on_write(path);
	return fd;
}

static bool
map_region(void)
{
	uint64 max_size = (uint64) embedded_max_size_mb << 20;
	struct stat file;
	int fd = open_region_file();

	if (fd < 0)
		return false;
	/* A region that is longer than the setting allows now keeps what it has. */
	if (fstat(fd, &file) == 0 && (uint64) file.st_size > max_size)
		max_size = (uint64) file.st_size;
	if (smart_region_map(&smart_embedded.region, fd, max_size) == SMART_OK)
		return true;
	no_region("could not map " UINT64_FORMAT " MB of address space: %s", max_size >> 20, strerror(errno));
	close(fd);
	return false;
}

/* ---- start and stop of the server ---- */

/* Is this the region that was closed together with this data directory?  If not, *reason tells why. */
static bool
region_is_ours(const char **reason)
{
	const struct smart_region_header *header = smart_region_header(&smart_embedded.region);
	struct smart_clean_mark mark;
	struct smart_clean_mark now;

	if (!smart_clean_mark_position(&now, reason))
		return false;
	*reason = "it was not closed cleanly";
	if (!smart_clean_mark_read(&mark) || smart_region_check(&smart_embedded.region, reason) != SMART_OK)
		return false;
	*reason = "it does not belong to this state of the data directory";
	return mark.system == now.system && mark.timeline == now.timeline && mark.checkpoint == now.checkpoint &&
		   mark.incarnation == header->incarnation && mark.token == header->clean_token && mark.token != 0;
}

/* Written by the postmaster when all children are gone and the shutdown checkpoint is done. */
static void
postmaster_exit(int code, Datum argument)
{
	struct smart_region_header *header = smart_region_header(&smart_embedded.region);
	struct smart_clean_mark mark;
	const char *reason;

	if (MyProcPid != DatumGetInt32(argument) || !smart_embedded.shared->made)
		return;
	/* A start that failed before anyone used the region leaves it as it was. */
	if ((code != 0 && smart_embedded.shared->used) || !smart_clean_mark_position(&mark, &reason))
		return;
	do
		mark.token = pg_prng_uint64(&pg_global_prng_state);
	while (mark.token == 0);
	mark.incarnation = header->incarnation;
	header->epoch_saved = smart_epoch_now(smart_embedded.compute.epoch);
	header->clean_token = mark.token;
	/* The region is on disk before the mark says that it is. */
	if (pg_fsync(smart_embedded.region.fd) != 0)
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
		smart_region_header(&smart_embedded.region)->clean_token = 0;
		/* A copy of the mark elsewhere must not fit the region any more, whatever happens to the machine. */
		if (msync(smart_embedded.region.base, SMART_PAGE_BYTES, MS_SYNC) == 0)
			return true;
		reason = "it could not be written";
	}
	if (fstat(smart_embedded.region.fd, &file) == 0 && file.st_size > 0)
		ereport(LOG, (errmsg("smart starts with an empty region: %s", reason),
					  errdetail("The indexes that were in it have to be rebuilt with REINDEX.")));
	if (ftruncate(smart_embedded.region.fd, 0) != 0)
		ereport(FATAL, (errcode_for_file_access(), errmsg("could not truncate the region of smart: %m")));
	return false;
}

static void
start_shared_memory(void)
{
	bool first_start = smart_embedded.region.base == NULL;
	bool mapped;
	bool accepted;

	if (previous_startup_hook)
		previous_startup_hook();
	smart_embedded.problem[0] = '\0';
	mapped = !first_start || map_region();
	accepted = mapped && accept_region(first_start);
	make_shared(accepted ? smart_region_header(&smart_embedded.region)->epoch_saved + SMART_EPOCH_GRACE : 0);
	smart_embedded.shared->made = accepted;
	if (mapped)
		on_shmem_exit(postmaster_exit, Int32GetDatum(MyProcPid));
}

/* ---- settings ---- */

void
smart_embedded_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	DefineCustomStringVariable("smart.embedded_path", "Directory of the region that holds smart indexes.",
							   "Empty: \"" SMART_DIRECTORY "\" below the data directory.", &embedded_path, "",
							   PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("smart.embedded_max_size", "Greatest size of the region that holds smart indexes.",
							"Address space of this size is reserved; the file grows as it is needed.",
							&embedded_max_size_mb, MAX_SIZE_MB, 16, (int) (SMART_REGION_SIZE_MAX >> 20), PGC_POSTMASTER,
							GUC_UNIT_MB, NULL, NULL, NULL);
	previous_request_hook = shmem_request_hook;
	shmem_request_hook = request_shared_memory;
	previous_startup_hook = shmem_startup_hook;
	shmem_startup_hook = start_shared_memory;
}

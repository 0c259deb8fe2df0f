/*
 * region_file.c
 *	  The file of the region, or its shared memory: opened for this server alone, and mapped.
 *
 * The postmaster maps it once, so that all backends have it at the same address.  There are two kinds, each with a
 * name of its own: the region that contains the indexes, and the extent map of indexes that are on memory nodes.  A
 * server uses one of them; the content of a file of the other kind can never be valid again (lifecycle.c), so the
 * file is removed.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/fd.h"

#include "am/recovery/marks.h"
#include "am/recovery/region_file.h"
#include "am/recovery/region_shm.h"
#include "am/server/environment.h"
#include "am/server/launcher_requests.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "base/assert.h"
#include "compute/allocate/extents.h"

#ifdef EXEC_BACKEND
#error "smart maps its region in the postmaster and needs backends that are forked"
#endif

/* Base backups and pg_rewind leave out what begins with pgsql_tmp. */
#define REGION_FILE  "pgsql_tmp_region"
#define EXTENTS_FILE "pgsql_tmp_book"

void
smart_region_report_missing(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(smart_server.problem, sizeof(smart_server.problem), format, arguments);
	va_end(arguments);
	smart_assert(smart_server.problem[0] != '\0');
	ereport(LOG, errmsg("smart indexes cannot be used: %s", smart_server.problem));
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
			ereport(WARNING, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					errmsg("smart keeps its region \"%s\" on %s, a copy-on-write file system", path, kinds[i].name),
					errdetail(
						"When it is full, writes to memory that was allocated before can fail and stop the server."),
					errhint("Set smart.embedded_path to a directory on another file system."));
}

/* Opens the file so that no other server uses it; -1: smart_region_report_missing() was called. */
static int
open_file(const char *directory, const char *name)
{
	char path[MAXPGPATH];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = BasicOpenFilePerm(path, O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
	if (fd < 0)
		smart_region_report_missing("could not open file \"%s\": %s", path, strerror(errno));
	else if (!smart_region_lock(fd))
	{
		smart_region_report_missing("file \"%s\" is in use by another server", path);
		close(fd);
		fd = -1;
	}
	else
		warn_of_copy_on_write(path);
	return fd;
}

/* Removes the file of the other kind, unless it is another server's. */
static void
remove_file(const char *directory, const char *name)
{
	char path[MAXPGPATH];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = BasicOpenFile(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	if (smart_region_lock(fd) && unlink(path) == 0)
		ereport(LOG, errmsg("smart removed file \"%s\"", path),
				errdetail("The settings have the indexes elsewhere now."));
	close(fd);
}

/* The descriptor of what the region lies in, opened for this server; -1: smart_region_report_missing() was called. */
static int
open_region(uint64 max_size)
{
	const char *directory = smart_settings.embedded_path[0] != '\0' ? smart_settings.embedded_path : SMART_DIRECTORY;
	bool automatic = !smart_server.remote && smart_settings.embedded_path[0] == '\0';
	int fd = automatic ? smart_region_shm_open(max_size) : -1;

	smart_assert(max_size > 0);
	smart_server.in_shared_memory = fd >= 0;
	smart_region_shm_sweep(fd >= 0);
	if ((mkdir(SMART_DIRECTORY, S_IRWXU) != 0 && errno != EEXIST) ||
		(mkdir(directory, S_IRWXU) != 0 && errno != EEXIST))
	{
		smart_region_report_missing("could not create directory \"%s\": %s", directory, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	if (!smart_server.remote)
		remove_file(directory, EXTENTS_FILE);
	if (smart_server.remote || fd >= 0)
		remove_file(directory, REGION_FILE);
	return fd >= 0 ? fd : open_file(directory, smart_server.remote ? EXTENTS_FILE : REGION_FILE);
}

bool
smart_region_file_map(void)
{
	uint64 max_size = (uint64) smart_settings.embedded_max_size_mb << 20;
	struct stat file;
	bool mapped;
	int fd;

	smart_assert(smart_server.region.base == NULL);
	fd = open_region(max_size);
	if (fd < 0)
		return false;
	if (smart_server.remote)
	{
		mapped = smart_extent_map(&smart_server.region, fd) == SMART_OK;
		if (!mapped)
			smart_region_report_missing("could not map the address space of the extent map: %s", strerror(errno));
	}
	else
	{
		/* A region that is longer than the setting allows now keeps what it has. */
		if (fstat(fd, &file) == 0 && (uint64) file.st_size > max_size)
			max_size = (uint64) file.st_size;
		mapped = smart_region_map(&smart_server.region, fd, max_size) == SMART_OK;
		if (!mapped)
			smart_region_report_missing("could not map " UINT64_FORMAT " MB of address space: %s", max_size >> 20,
										strerror(errno));
	}
	if (!mapped)
		close(fd);
	smart_assert(mapped == (smart_server.region.base != NULL));
	return mapped;
}

void
smart_region_sign(void)
{
	smart_assert(smart_server.region.base != NULL);
	strlcpy(smart_region_header(&smart_server.region)->owner, DataDir, SMART_REGION_OWNER_BYTES);
}

smart_status
smart_region_make_empty(void)
{
	struct smart_region_header *header = smart_region_header(&smart_server.region);
	uint64 incarnation = smart_random_token();
	smart_status status;

	smart_assert(smart_server.region.base != NULL);
	status = smart_region_format(&smart_server.region, incarnation);
	if (status != SMART_OK)
		return status;
	smart_assert(header->incarnation == incarnation);
	header->run = smart_server.run;
	header->started = smart_run_started();
	smart_region_sign();
	return SMART_OK;
}

void
smart_region_promote(void)
{
	struct smart_lock_table *locks = smart_server.compute.locks;

	smart_assert(!RecoveryInProgress());
	if (!smart_server.shared->standby || smart_server.shared->promoted)
		return;
	locks->acquire(locks, SMART_LOCK_DIRECTORY);
	/* The mark was made on another timeline. */
	if (!smart_server.shared->promoted)
	{
		smart_run_mark_renew(smart_server.region.fd, smart_server.run);
		/* The worker that followed looks for orphans no more, and may have missed the last ones. */
		smart_orphans_request_all();
	}
	smart_server.shared->promoted = true;
	locks->release(locks, SMART_LOCK_DIRECTORY);
}

void
smart_region_report_empty(const char *reason, const char *finding)
{
	ereport(LOG, errmsg("smart starts with an empty region: %s", reason),
			finding == NULL
				? errdetail("Nothing is left of the indexes that were in it.")
				: errdetail("Nothing is left of the indexes that were in it.  Recovery came to this: %s.", finding),
			errhint("Those with a journal are loaded in the background, others rebuilt if smart.auto_rebuild is on; "
					"smart_index_state shows how far that is."));
}

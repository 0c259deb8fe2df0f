/*
 * marks.c
 *	  Two files below the data directory that tell a start of the server whether the region still belongs to it.
 *
 * The clean mark is written when a server has shut down, and removed before the next one uses the region: a region
 * that was closed is valid only together with the exact state of the data directory that it was closed with.  How the
 * postmaster exits says nothing about that (after an immediate stop its callbacks run with code 0); pg_control does:
 * it is "shut down" from the shutdown checkpoint to the next start, and no WAL was written since the checkpoint that
 * it names.
 *
 * The run mark is there while a server uses the region.  The mapped pages of a region outlive their server, but not
 * the machine, and only as long as other files are not put in their place.  So a region that was not closed is taken
 * up again only by the same data directory, on the same boot of the same machine, and only if neither the run mark
 * nor the region is a copy: a file's number and time of birth cannot be copied with it.  A server that is started
 * without the library writes WAL that does not mention the region; but every start writes postmaster.opts anew, after
 * its shared memory was made.  The run mark need not be durable, since it says nothing on the machine's next boot.
 *
 * The names begin with pgsql_tmp, so that base backups and pg_rewind leave them out.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog.h"
#include "catalog/pg_control.h"
#include "common/controldata_utils.h"
#include "miscadmin.h"
#include "storage/fd.h"

#include "am/recovery/marks.h"
#include "am/server/environment.h"
#include "am/server/settings.h"
#include "base/assert.h"
#include "base/crc32c.h"

#define CLEAN_FILE     SMART_DIRECTORY "/pgsql_tmp_owner"
#define CLEAN_FILE_NEW SMART_DIRECTORY "/pgsql_tmp_owner_new"
#define CLEAN_MAGIC    UINT64CONST(0x6e77306d73000001)
#define CLEAN_VERSION  1

#define RUN_FILE     SMART_DIRECTORY "/pgsql_tmp_run"
#define OPTIONS_FILE "postmaster.opts"
#define BOOT_FILE    "/proc/sys/kernel/random/boot_id"
#define RUN_MAGIC    UINT64CONST(0x6e75726d73000001)
#define RUN_VERSION  1
#define BOOT_BYTES   36

/* The content of the run mark's file, in the server's byte order. */
struct run_mark
{
	uint64 magic;
	uint32 version;
	uint32 timeline;
	uint64 system; /* identifier of the database cluster */
	uint64 token;  /* as in the region's header */
	struct smart_file_mark run;
	struct smart_file_mark region;
	char boot[BOOT_BYTES]; /* the kernel's id of this boot */
	uint32 crc;            /* crc32c of the bytes before it */
};

StaticAssertDecl(offsetof(struct smart_clean_mark, crc) == 52 && sizeof(struct smart_clean_mark) == 56,
				 "clean mark format");
StaticAssertDecl(offsetof(struct run_mark, crc) == 100 && sizeof(struct run_mark) == 104, "run mark format");

/* The checksum of a mark, whose last member it is. */
static uint32
mark_crc(const void *mark, Size bytes)
{
	smart_assert(bytes > sizeof(uint32));
	return ~smart_crc32c(PG_UINT32_MAX, mark, bytes - sizeof(uint32));
}

/* What pg_control says about the cluster; false: its checksum is wrong. */
static bool
read_control(ControlFileData *control)
{
	bool crc_good;
	ControlFileData *read = get_controlfile(DataDir, &crc_good);

	*control = *read;
	pfree(read);
	return crc_good;
}

static bool
file_exists(const char *name)
{
	struct stat file;

	return stat(name, &file) == 0;
}

bool
smart_start_is_ordinary(const char **reason)
{
	*reason = "the server recovers from a backup or is a standby";
	return !file_exists(BACKUP_LABEL_FILE) && !file_exists(STANDBY_SIGNAL_FILE) && !file_exists(RECOVERY_SIGNAL_FILE);
}

/* ---- the clean mark ---- */

bool
smart_clean_mark_position(struct smart_clean_mark *mark, const char **reason)
{
	ControlFileData control;
	bool clean;

	if (!smart_start_is_ordinary(reason))
		return false;
	clean = read_control(&control) && control.state == DB_SHUTDOWNED;
	*mark = (struct smart_clean_mark){
		.magic = CLEAN_MAGIC,
		.version = CLEAN_VERSION,
		.timeline = control.checkPointCopy.ThisTimeLineID,
		.system = control.system_identifier,
		.checkpoint = control.checkPoint,
	};
	*reason = clean ? NULL : "the server was not shut down cleanly";
	return clean;
}

bool
smart_clean_mark_matches(struct smart_region *region, const char **reason)
{
	const struct smart_region_header *header = smart_region_header(region);
	int fd = BasicOpenFile(CLEAN_FILE, O_RDONLY | PG_BINARY);
	struct smart_clean_mark mark;
	struct smart_clean_mark now;
	bool whole;

	*reason = fd < 0 && errno == ENOENT ? NULL : "its owner file cannot be read";
	if (fd < 0)
		return false;
	whole = read(fd, &mark, sizeof(mark)) == (ssize_t) sizeof(mark);
	close(fd);
	if (!whole || mark.magic != CLEAN_MAGIC || mark.version != CLEAN_VERSION ||
		mark.crc != mark_crc(&mark, sizeof(mark)))
		return false;
	if (!smart_clean_mark_position(&now, reason) || smart_region_check(region, reason) != SMART_OK)
		return false;
	*reason = NULL;
	if (mark.system != now.system)
		*reason = "its owner file is another database cluster's";
	else if (mark.timeline != now.timeline)
		*reason = "it was closed on another timeline";
	else if (mark.checkpoint != now.checkpoint)
		*reason = "the server has been started without it since it was closed";
	else if (mark.incarnation != header->incarnation)
		*reason = "it is not the region that was closed with this data directory";
	else if (header->clean_token == 0)
		*reason = "it was not closed when this data directory was";
	else if (mark.token != header->clean_token)
		*reason = "it was closed at another time than this data directory";
	return *reason == NULL;
}

void
smart_clean_mark_write(const struct smart_clean_mark *mark)
{
	struct smart_clean_mark written = *mark;
	int fd = BasicOpenFilePerm(CLEAN_FILE_NEW, O_WRONLY | O_CREAT | O_TRUNC | PG_BINARY, S_IRUSR | S_IWUSR);
	bool done;

	smart_assert(mark->token != 0 && mark->incarnation != 0);
	written.crc = mark_crc(&written, sizeof(written));
	if (fd >= 0)
		errno = ENOSPC; /* what a short write means */
	done = fd >= 0 && write(fd, &written, sizeof(written)) == (ssize_t) sizeof(written) && pg_fsync(fd) == 0;
	if (!done)
		ereport(LOG, errcode_for_file_access(), errmsg("could not write file \"%s\": %m", CLEAN_FILE_NEW),
				errdetail("Smart indexes will have to be rebuilt after the next start."));
	if (fd >= 0)
		close(fd);
	/* Flushes the file and its directory; logs its own failure. */
	if (done)
		(void) durable_rename(CLEAN_FILE_NEW, CLEAN_FILE, LOG);
}

void
smart_clean_mark_remove(void)
{
	if (file_exists(CLEAN_FILE))
		(void) durable_unlink(CLEAN_FILE, FATAL);
}

/* ---- the run mark ---- */

bool
smart_file_mark(int fd, struct smart_file_mark *mark)
{
	struct statx file;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &file) != 0)
		return false;
	mark->number = file.stx_ino;
	mark->born_ns =
		(file.stx_mask & STATX_BTIME) != 0 ? (uint64) file.stx_btime.tv_sec * 1000000000 + file.stx_btime.tv_nsec : 0;
	return true;
}

/* Sets all of a mark but the token and the identities of files. */
static bool
describe(struct run_mark *mark)
{
	ControlFileData control;
	bool good = read_control(&control);
	int fd = BasicOpenFile(BOOT_FILE, O_RDONLY);

	memset(mark, 0, sizeof(*mark));
	mark->magic = RUN_MAGIC;
	mark->version = RUN_VERSION;
	/* Right after a promotion the last checkpoint is of the timeline before. */
	mark->timeline = Max(control.checkPointCopy.ThisTimeLineID, control.minRecoveryPointTLI);
	mark->system = control.system_identifier;
	good &= fd >= 0 && read(fd, mark->boot, BOOT_BYTES) == BOOT_BYTES;
	if (fd >= 0)
		close(fd);
	return good;
}

static void
write_run_mark(int fd, uint64 token)
{
	struct run_mark mark;
	bool done = describe(&mark);
	int file;

	smart_assert(fd >= 0 && token != 0);
	smart_run_mark_remove();
	file = BasicOpenFilePerm(RUN_FILE, O_WRONLY | O_CREAT | O_EXCL | PG_BINARY, S_IRUSR | S_IWUSR);
	done = done && file >= 0 && smart_file_mark(file, &mark.run) && smart_file_mark(fd, &mark.region);
	mark.token = token;
	mark.crc = mark_crc(&mark, sizeof(mark));
	if (!done || write(file, &mark, sizeof(mark)) != (ssize_t) sizeof(mark))
		ereport(LOG, errcode_for_file_access(), errmsg("could not write file \"%s\": %m", RUN_FILE),
				errdetail("Smart indexes will have to be rebuilt if the server is not shut down cleanly."));
	if (file >= 0)
		close(file);
}

uint64
smart_run_mark_write(int fd)
{
	uint64 token = smart_random_token();

	write_run_mark(fd, token);
	return token;
}

void
smart_run_mark_renew(int fd, uint64 token)
{
	smart_assert(token != 0);
	write_run_mark(fd, token);
}

/* Reads the run mark, and what identifies its file; false: there is none that is whole. */
static bool
read_run_mark(struct run_mark *mark, struct smart_file_mark *found)
{
	int file = BasicOpenFile(RUN_FILE, O_RDONLY | PG_BINARY);
	bool whole;

	if (file < 0)
		return false;
	whole = read(file, mark, sizeof(*mark)) == (ssize_t) sizeof(*mark) && smart_file_mark(file, found);
	close(file);
	return whole && mark->magic == RUN_MAGIC && mark->version == RUN_VERSION &&
		   mark->crc == mark_crc(mark, sizeof(*mark));
}

bool
smart_run_mark_matches(int fd, uint64 token, const char **reason)
{
	struct run_mark mark;
	struct run_mark now;
	struct smart_file_mark run;
	struct smart_file_mark region;

	smart_assert(fd >= 0);
	if (!read_run_mark(&mark, &run))
		*reason = "there is no whole run file of the server that used it";
	else if (!describe(&now) || memcmp(mark.boot, now.boot, BOOT_BYTES) != 0)
		*reason = "the machine has been started anew since it was used";
	else if (mark.system != now.system || mark.timeline != now.timeline)
		*reason = "it was used on another timeline, or by another database cluster";
	else if (memcmp(&mark.run, &run, sizeof(run)) != 0)
		*reason = "the data directory is a copy";
	else if (!smart_file_mark(fd, &region) || memcmp(&mark.region, &region, sizeof(region)) != 0)
		*reason = "it is another file than the one that was used";
	else if (mark.token != token)
		*reason = "another run of the server was the last to use it";
	else
		return true;
	return false;
}

void
smart_run_mark_remove(void)
{
	if (unlink(RUN_FILE) != 0 && errno != ENOENT)
		ereport(FATAL, errcode_for_file_access(), errmsg("could not remove file \"%s\": %m", RUN_FILE));
}

uint64
smart_run_started(void)
{
	struct stat file;

	if (stat(OPTIONS_FILE, &file) != 0)
		return 0;
	return (uint64) file.st_mtim.tv_sec * 1000000000 + file.st_mtim.tv_nsec;
}

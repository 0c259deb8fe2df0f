/*
 * runmark.c
 *	  The run file.
 *
 * The mapped pages of a region outlive their server, but not the machine, and
 * only as long as nobody puts other files in their place.  So a region that was
 * not closed is taken up again only by the same data directory, on the same boot
 * of the same machine, and only if neither the run file nor the region is a
 * copy: a file's number and time of birth cannot be copied with it.  A server that is
 * started without the library writes WAL that says nothing of us; but every
 * start writes postmaster.opts anew, after its shared memory was made.
 *
 * The file need not be durable, since it says nothing on the machine's next boot.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "catalog/pg_control.h"
#include "common/controldata_utils.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "storage/fd.h"

#include "am/cleanmark.h"
#include "am/runmark.h"
#include "base/crc32c.h"

#define RUN_FILE     SMART_DIRECTORY "/pgsql_tmp_run"
#define OPTIONS_FILE "postmaster.opts"
#define BOOT_FILE    "/proc/sys/kernel/random/boot_id"
#define RUN_MAGIC    UINT64CONST(0x6e75726d73000001)
#define RUN_VERSION  1
#define BOOT_BYTES   36

/* A file that is no copy of itself. */
struct identity
{
	uint64 number;
	uint64 born_ns; /* 0: the file system does not tell */
};

/* The content of the run file, in the server's byte order. */
struct run_mark
{
	uint64 magic;
	uint32 version;
	uint32 timeline;
	uint64 system; /* identifier of the database cluster */
	uint64 token;  /* as in the region's header */
	struct identity run;
	struct identity region;
	char boot[BOOT_BYTES]; /* the kernel's id of this boot */
	uint32 crc;            /* crc32c of the bytes before it */
};

StaticAssertDecl(offsetof(struct run_mark, crc) == 100 && sizeof(struct run_mark) == 104, "run file format");

static uint32
mark_crc(const struct run_mark *mark)
{
	return ~smart_crc32c(PG_UINT32_MAX, mark, offsetof(struct run_mark, crc));
}

static bool
read_boot(char boot[BOOT_BYTES])
{
	int fd = BasicOpenFile(BOOT_FILE, O_RDONLY);
	bool whole = fd >= 0 && read(fd, boot, BOOT_BYTES) == BOOT_BYTES;

	if (fd >= 0)
		close(fd);
	return whole;
}

static bool
identify(int fd, struct identity *identity)
{
	struct statx file;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &file) != 0)
		return false;
	identity->number = file.stx_ino;
	identity->born_ns =
		(file.stx_mask & STATX_BTIME) != 0 ? (uint64) file.stx_btime.tv_sec * 1000000000 + file.stx_btime.tv_nsec : 0;
	return true;
}

static bool
is_same(const struct identity *a, const struct identity *b)
{
	return a->number == b->number && a->born_ns == b->born_ns;
}

/* All but the token and the identities of files. */
static bool
describe(struct run_mark *mark)
{
	ControlFileData *control;
	bool crc_good;

	memset(mark, 0, sizeof(*mark));
	mark->magic = RUN_MAGIC;
	mark->version = RUN_VERSION;
	control = get_controlfile(DataDir, &crc_good);
	mark->timeline = control->checkPointCopy.ThisTimeLineID;
	mark->system = control->system_identifier;
	pfree(control);
	return read_boot(mark->boot) && crc_good;
}

uint64
smart_run_mark_write(int fd)
{
	struct run_mark mark;
	bool done = describe(&mark);
	int file;

	smart_run_mark_remove();
	file = BasicOpenFilePerm(RUN_FILE, O_WRONLY | O_CREAT | O_EXCL | PG_BINARY, S_IRUSR | S_IWUSR);
	done = done && file >= 0 && identify(file, &mark.run) && identify(fd, &mark.region);
	do
		mark.token = pg_prng_uint64(&pg_global_prng_state);
	while (mark.token == 0);
	mark.crc = mark_crc(&mark);
	if (!done || write(file, &mark, sizeof(mark)) != (ssize_t) sizeof(mark))
		ereport(LOG, (errcode_for_file_access(), errmsg("could not write file \"%s\": %m", RUN_FILE),
					  errdetail("Smart indexes will have to be rebuilt if the server is not shut down cleanly.")));
	if (file >= 0)
		close(file);
	return mark.token;
}

/* Reads the run file, and what identifies it; false: there is none that is whole. */
static bool
read_mark(struct run_mark *mark, struct identity *found)
{
	int file = BasicOpenFile(RUN_FILE, O_RDONLY | PG_BINARY);
	bool whole;

	if (file < 0)
		return false;
	whole = read(file, mark, sizeof(*mark)) == (ssize_t) sizeof(*mark) && identify(file, found);
	close(file);
	return whole && mark->magic == RUN_MAGIC && mark->version == RUN_VERSION && mark->crc == mark_crc(mark);
}

bool
smart_run_mark_matches(int fd, uint64 token, const char **reason)
{
	struct run_mark mark;
	struct run_mark now;
	struct identity run;
	struct identity region;

	if (!read_mark(&mark, &run))
		*reason = "there is no whole run file of the server that used it";
	else if (!describe(&now) || memcmp(mark.boot, now.boot, BOOT_BYTES) != 0)
		*reason = "the machine has been started anew since it was used";
	else if (mark.system != now.system || mark.timeline != now.timeline)
		*reason = "it was used on another timeline, or by another database cluster";
	else if (!is_same(&mark.run, &run))
		*reason = "the data directory is a copy";
	else if (!identify(fd, &region) || !is_same(&mark.region, &region))
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
		ereport(FATAL, (errcode_for_file_access(), errmsg("could not remove file \"%s\": %m", RUN_FILE)));
}

uint64
smart_run_started(void)
{
	struct stat file;

	if (stat(OPTIONS_FILE, &file) != 0)
		return 0;
	return (uint64) file.st_mtim.tv_sec * 1000000000 + file.st_mtim.tv_nsec;
}

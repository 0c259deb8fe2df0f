/*
 * cleanmark.c
 *	  The owner file: written when a server has shut down, removed before the
 *	  next one uses the region.
 *
 * A region is accepted only together with the exact state of the data directory
 * that it was closed with.  How the postmaster exits says nothing about that (after
 * an immediate stop its callbacks run with code 0); pg_control does: it is
 * "shut down" from the shutdown checkpoint to the next start, and no WAL was
 * written since the checkpoint that it names.
 *
 * The name begins with pgsql_tmp, so that base backups and pg_rewind leave it out.
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

#include "am/cleanmark.h"
#include "base/crc32c.h"

#define MARK_FILE     SMART_DIRECTORY "/pgsql_tmp_owner"
#define MARK_FILE_NEW SMART_DIRECTORY "/pgsql_tmp_owner_new"
#define MARK_MAGIC    UINT64CONST(0x6e77306d73000001)
#define MARK_VERSION  1

StaticAssertDecl(offsetof(struct smart_clean_mark, crc) == 52 && sizeof(struct smart_clean_mark) == 56,
				 "owner file format");

static uint32
mark_crc(const struct smart_clean_mark *mark)
{
	return ~smart_crc32c(PG_UINT32_MAX, mark, offsetof(struct smart_clean_mark, crc));
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

bool
smart_clean_mark_position(struct smart_clean_mark *mark, const char **reason)
{
	ControlFileData *control;
	bool crc_good;
	bool clean;

	if (!smart_start_is_ordinary(reason))
		return false;
	control = get_controlfile(DataDir, &crc_good);
	clean = crc_good && control->state == DB_SHUTDOWNED;
	memset(mark, 0, sizeof(*mark));
	mark->magic = MARK_MAGIC;
	mark->version = MARK_VERSION;
	mark->timeline = control->checkPointCopy.ThisTimeLineID;
	mark->system = control->system_identifier;
	mark->checkpoint = control->checkPoint;
	pfree(control);
	*reason = clean ? NULL : "the server was not shut down cleanly";
	return clean;
}

bool
smart_clean_mark_read(struct smart_clean_mark *mark, const char **reason)
{
	int fd = BasicOpenFile(MARK_FILE, O_RDONLY | PG_BINARY);
	bool whole;

	*reason = fd < 0 && errno == ENOENT ? NULL : "its owner file cannot be read";
	if (fd < 0)
		return false;
	whole = read(fd, mark, sizeof(*mark)) == (ssize_t) sizeof(*mark);
	close(fd);
	return whole && mark->magic == MARK_MAGIC && mark->version == MARK_VERSION && mark->crc == mark_crc(mark);
}

const char *
smart_clean_mark_misfit(const struct smart_clean_mark *mark, const struct smart_clean_mark *now, uint64 incarnation,
						uint64 token)
{
	if (mark->system != now->system)
		return "its owner file is another database cluster's";
	if (mark->timeline != now->timeline)
		return "it was closed on another timeline";
	if (mark->checkpoint != now->checkpoint)
		return "the server has been started without it since it was closed";
	if (mark->incarnation != incarnation)
		return "it is not the region that was closed with this data directory";
	if (token == 0)
		return "it was not closed when this data directory was";
	if (mark->token != token)
		return "it was closed at another time than this data directory";
	return NULL;
}

void
smart_clean_mark_write(const struct smart_clean_mark *mark)
{
	struct smart_clean_mark written = *mark;
	int fd = BasicOpenFilePerm(MARK_FILE_NEW, O_WRONLY | O_CREAT | O_TRUNC | PG_BINARY, S_IRUSR | S_IWUSR);
	bool done;

	smart_assert(mark->token != 0 && mark->incarnation != 0);
	written.crc = mark_crc(&written);
	if (fd >= 0)
		errno = ENOSPC; /* what a short write means */
	done = fd >= 0 && write(fd, &written, sizeof(written)) == (ssize_t) sizeof(written) && pg_fsync(fd) == 0;
	if (!done)
		ereport(LOG, (errcode_for_file_access(), errmsg("could not write file \"%s\": %m", MARK_FILE_NEW),
					  errdetail("Smart indexes will have to be rebuilt after the next start.")));
	if (fd >= 0)
		close(fd);
	/* Flushes the file and its directory; logs its own failure. */
	if (done)
		(void) durable_rename(MARK_FILE_NEW, MARK_FILE, LOG);
}

void
smart_clean_mark_remove(void)
{
	if (file_exists(MARK_FILE))
		(void) durable_unlink(MARK_FILE, FATAL);
}

/*
 * identity.c
 *	  By which identity this data directory is known on memory nodes.
 *
 * A server and its standbys have one system identifier, and use the same memory nodes side by side: so each data
 * directory has a random number of its own, in a file.  It lasts for as long as the data directory does, whatever
 * becomes of the extent map, so that a memory node frees what an older extent map had there.
 *
 * The file's name begins with pgsql_tmp, so that base backups leave it out: a standby that is made from one has another
 * identity.  A copy of all files has the same one.  If it starts as a standby, or recovers from a backup, the region
 * begins anew in any case, and a file that is a copy (marks.h) is replaced, too.  Otherwise it may be the original that
 * was moved, with a region that is still good; so it goes on under its identity, and whichever of the two servers comes
 * second to a memory node is refused there (rdma/wire.h).
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/fd.h"

#include "am/recovery/identity.h"
#include "am/recovery/marks.h"
#include "am/server/settings.h"
#include "base/assert.h"
#include "base/crc32c.h"

#define IDENTITY_FILE     SMART_DIRECTORY "/pgsql_tmp_identity"
#define IDENTITY_FILE_NEW SMART_DIRECTORY "/pgsql_tmp_identity_new"
#define IDENTITY_MAGIC    UINT64CONST(0x746e64696d730001)

/* The content of the file, in the server's byte order. */
struct identity_file
{
	uint64 magic;
	uint64 identity;
	struct smart_file_mark file; /* of the file itself: a copy has another one */
	uint32 unused;
	uint32 crc; /* crc32c of the bytes before it */
};

StaticAssertDecl(offsetof(struct identity_file, crc) == 36 && sizeof(struct identity_file) == 40,
				 "identity file format");

static uint32
content_crc(const struct identity_file *content)
{
	return ~smart_crc32c(PG_UINT32_MAX, content, offsetof(struct identity_file, crc));
}

/* False: there is no whole file.  *copied: it is one of another data directory. */
static bool
read_identity(uint64 *identity, bool *copied)
{
	int fd = BasicOpenFile(IDENTITY_FILE, O_RDONLY | PG_BINARY);
	struct identity_file content;
	struct smart_file_mark file;
	bool whole;

	if (fd < 0)
		return false;
	whole = read(fd, &content, sizeof(content)) == (ssize_t) sizeof(content) && smart_file_mark(fd, &file) &&
			content.magic == IDENTITY_MAGIC && content.crc == content_crc(&content) && content.identity != 0;
	close(fd);
	if (!whole)
		return false;
	*identity = content.identity;
	*copied = memcmp(&content.file, &file, sizeof(file)) != 0;
	return true;
}

static void
write_identity(uint64 identity)
{
	struct identity_file content = {.magic = IDENTITY_MAGIC, .identity = identity};
	int fd;
	bool done;

	smart_assert(identity != 0);
	/* A file that is made now: its number and time of birth tell it from copies. */
	if (unlink(IDENTITY_FILE_NEW) != 0 && errno != ENOENT)
		ereport(LOG, errcode_for_file_access(), errmsg("could not remove file \"%s\": %m", IDENTITY_FILE_NEW));
	fd = BasicOpenFilePerm(IDENTITY_FILE_NEW, O_WRONLY | O_CREAT | O_EXCL | PG_BINARY, S_IRUSR | S_IWUSR);
	done = fd >= 0 && smart_file_mark(fd, &content.file);
	content.crc = content_crc(&content);
	if (done)
		errno = ENOSPC; /* what a short write means */
	done = done && write(fd, &content, sizeof(content)) == (ssize_t) sizeof(content) && pg_fsync(fd) == 0;
	if (!done)
		ereport(LOG, errcode_for_file_access(), errmsg("could not write file \"%s\": %m", IDENTITY_FILE_NEW),
				errdetail("After the next start memory nodes will take this server for another one."));
	if (fd >= 0)
		close(fd);
	/* Flushes the file and its directory; logs its own failure. */
	if (done)
		(void) durable_rename(IDENTITY_FILE_NEW, IDENTITY_FILE, LOG);
}

static uint64
make_identity(void)
{
	uint64 identity = 0;

	while (identity == 0)
	{
		if (!pg_strong_random(&identity, sizeof(identity)))
			ereport(FATAL, errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random number"));
	}
	return identity;
}

uint64
smart_identity_find(void)
{
	bool copied = false;
	const char *reason;
	uint64 identity;

	if (read_identity(&identity, &copied) && (!copied || smart_start_is_ordinary(&reason)))
		return identity;
	identity = make_identity();
	write_identity(identity);
	smart_assert(identity != 0);
	return identity;
}

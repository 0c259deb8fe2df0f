/*
 * database_birth.c
 *	  Tells a database from another one that had its OID before.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "miscadmin.h"
#include "storage/fd.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "am/server/database_birth.h"

/*
 * PostgreSQL makes this file with the directory of a database.  Where the file system does not tell when that was, the time
 * of the last change has to do, although the replay of CREATE DATABASE may write the file once more: then trees are loaded
 * again.
 */
static uint64
birth_of(const char *directory)
{
	char path[MAXPGPATH];
	struct statx file;
	const struct statx_timestamp *made;
	uint64 words[3];

	snprintf(path, sizeof(path), "%s/PG_VERSION", directory);
	if (statx(AT_FDCWD, path, 0, STATX_INO | STATX_MTIME | STATX_BTIME, &file) != 0)
		ereport(ERROR, errcode_for_file_access(), errmsg("could not stat file \"%s\": %m", path));
	made = (file.stx_mask & STATX_BTIME) != 0 ? &file.stx_btime : &file.stx_mtime;
	words[0] = file.stx_ino;
	words[1] = (uint64) made->tv_sec;
	words[2] = made->tv_nsec;
	return XXH3_64bits(words, sizeof(words));
}

uint64
smart_database_birth(void)
{
	static uint64 birth = 0;

	if (unlikely(birth == 0) && DatabasePath != NULL)
		birth = birth_of(DatabasePath);
	return birth;
}

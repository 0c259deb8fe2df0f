/*
 * database_birth.c
 *	  Tells a database from another one that had its OID before.
 */
#include "postgres.h"

#include <sys/stat.h>

#include "miscadmin.h"
#include "storage/fd.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "am/server/database_birth.h"

/* PostgreSQL writes this file when it makes the directory of a database, and never again. */
static uint64
birth_of(const char *directory)
{
	char path[MAXPGPATH];
	struct stat file;
	uint64 words[3];

	snprintf(path, sizeof(path), "%s/PG_VERSION", directory);
	if (stat(path, &file) != 0)
		ereport(ERROR, errcode_for_file_access(), errmsg("could not stat file \"%s\": %m", path));
	words[0] = (uint64) file.st_ino;
	words[1] = (uint64) file.st_mtim.tv_sec;
	words[2] = (uint64) file.st_mtim.tv_nsec;
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

/*
 * marks.h
 *	  Two files below the data directory that tell a start of the server whether the region still belongs to it: the
 *	  clean mark, which is there while no server runs, and the run mark, which is there while one does.
 */
#ifndef SMART_AM_MARKS_H
#define SMART_AM_MARKS_H

#include "compute/allocate/region.h"

/* The content of the clean mark's file, in the server's byte order. */
struct smart_clean_mark
{
	uint64 magic;
	uint32 version;
	uint32 timeline;
	uint64 system;      /* identifier of the database cluster */
	uint64 checkpoint;  /* LSN of the shutdown checkpoint */
	uint64 incarnation; /* of the region */
	uint64 token;       /* as in the region's header */
	uint32 unused;
	uint32 crc; /* crc32c of the bytes before it */
};

/* Tells a file from its copies. */
struct smart_file_mark
{
	uint64 number;
	uint64 born_ns; /* 0: the file system does not tell */
};

/* The mark of an open file; false: errno. */
extern bool smart_file_mark(int fd, struct smart_file_mark *mark);

/* Does the server start, or restart after a crash, from where it was?  If not, *reason tells so. */
extern bool smart_start_is_ordinary(const char **reason);

/* ---- the clean mark: the region was closed together with its server ---- */

/*
 * Sets the mark to the position of a server that is shut down: checkpoint, timeline, system.  False if pg_control
 * says that it is not, or if this start will recover from a backup or as a standby; *reason then tells why.
 */
extern bool smart_clean_mark_position(struct smart_clean_mark *mark, const char **reason);

/*
 * Does the mark show that the region was closed together with this data directory?  If not, *reason tells why, or is
 * NULL if there is no mark.
 */
extern bool smart_clean_mark_matches(struct smart_region *region, const char **reason);

/* Writes it durably (logs a failure, which makes the next start unclean). */
extern void smart_clean_mark_write(const struct smart_clean_mark *mark);

/* Removes it durably, or stops the server. */
extern void smart_clean_mark_remove(void);

/* ---- the run mark: a server uses the region ---- */

/*
 * Makes the run mark anew for the region in the open file fd; its token, never 0.  A run without a mark (that is
 * logged) is taken for another one at the next start.
 */
extern uint64 smart_run_mark_write(int fd);

/* The same with a token that the region has already: the data directory has gone on in another way (a new timeline). */
extern void smart_run_mark_renew(int fd, uint64 token);

/*
 * Does the run mark show that the region in fd, which has the token, is in the state in which a server of this data
 * directory has left it on this machine?  If not, *reason tells why.
 */
extern bool smart_run_mark_matches(int fd, uint64 token, const char **reason);

/* There is no such run any more: it has ended cleanly, or its region is given up.  Stops the server if it cannot. */
extern void smart_run_mark_remove(void);

/* Changes whenever a server is started on the data directory, whatever it loads; 0: not known. */
extern uint64 smart_run_started(void);

#endif /* SMART_AM_MARKS_H */

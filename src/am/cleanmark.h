/*
 * cleanmark.h
 *	  The mark that a region was closed together with its server, and how the
 *	  next start tells that it still belongs to this data directory.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_CLEANMARK_H
#define SMART_AM_CLEANMARK_H

#include "base/assert.h"

#define SMART_DIRECTORY "smart" /* below the data directory */

/* The content of the owner file, in the server's byte order. */
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

/* Does the server start, or restart after a crash, from where it was?  If not, *reason tells so. */
extern bool smart_start_is_ordinary(const char **reason);

/*
 * Sets the mark to the position of a server that is shut down: checkpoint,
 * timeline, system.  False if pg_control says that it is not, or if this start
 * will recover from a backup or as a standby; *reason then tells why.
 */
extern bool smart_clean_mark_position(struct smart_clean_mark *mark, const char **reason);

/*
 * Reads the owner file; false if there is none (*reason is NULL then), or if it
 * is not whole or cannot be read (*reason says so).
 */
extern bool smart_clean_mark_read(struct smart_clean_mark *mark, const char **reason);

/*
 * Why a region with this incarnation and this token is not the one that the mark was written with, or the server's
 * position (smart_clean_mark_position) not the mark's; NULL: they fit.
 */
extern const char *smart_clean_mark_misfit(const struct smart_clean_mark *mark, const struct smart_clean_mark *now,
										   uint64 incarnation, uint64 token);

/* Writes it durably (logs a failure, which makes the next start unclean). */
extern void smart_clean_mark_write(const struct smart_clean_mark *mark);

/* Removes it durably, or stops the server. */
extern void smart_clean_mark_remove(void);

#endif /* SMART_AM_CLEANMARK_H */

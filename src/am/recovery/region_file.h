/*
 * region_file.h
 *	  The file of the region, or its shared memory: opened for this server alone, and mapped.
 */
#ifndef SMART_AM_REGION_FILE_H
#define SMART_AM_REGION_FILE_H

#include <stdbool.h>

#include "base/status.h"

/* Maps smart_server.region in the postmaster, once; false: smart_server.problem tells why there is none, as the log does. */
extern bool smart_region_file_map(void);

/* Keeps in smart_server.problem why there is no region, for the error of its users, and logs it. */
extern void smart_region_report_missing(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Empties the region, or makes the one of a server that has none yet: a region of another incarnation.  No other
 * client may be at work; errors of smart_region_format.
 */
extern smart_status smart_region_make_empty(void);

/* Notes in the region, which belongs to this server, where the data directory is (region_shm.c). */
extern void smart_region_sign(void);

/*
 * A server that was started as a standby is none any more: its region, from now on, may serve the next start after a
 * crash, as another server's.  Before a metapage names a tree of it; nothing if that is done.  Requests a
 * collection of orphans.
 */
extern void smart_region_promote(void);

/* Says in the log that a region with content is given up; finding: what recovery has met, in terms of trees, or NULL. */
extern void smart_region_report_empty(const char *reason, const char *finding);

#endif /* SMART_AM_REGION_FILE_H */

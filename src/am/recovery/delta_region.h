/*
 * delta_region.h
 *	  With memory nodes: the region for deltas (src/am/journal/delta.h), in memory of the server's own, so that an index
 *	  answers whatever becomes of the nodes.
 *
 * It is of one start of the server, as deltas are: nothing of it is recovered.
 */
#ifndef SMART_AM_DELTA_REGION_H
#define SMART_AM_DELTA_REGION_H

#include <stdbool.h>

#include "base/status.h"

/* Maps smart_server.delta_region in the postmaster, once; false: smart_server.problem tells why there is none, as the log does. */
extern bool smart_delta_region_map(void);

/* Gives its memory back: all processes that used it are gone. */
extern void smart_delta_region_empty(void);

/* Makes it, unless that is done; called by each client before it uses it.  Errors of smart_region_format(). */
extern smart_status smart_delta_region_make(void);

#endif /* SMART_AM_DELTA_REGION_H */

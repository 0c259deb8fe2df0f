/*
 * backend.h
 *	  A backend as a client of the compute node that the server is.
 */
#ifndef SMART_AM_BACKEND_H
#define SMART_AM_BACKEND_H

#include "compute/client.h"

/* One part in so many of an embedded region is kept for deltas (src/am/journal/delta.h); other trees leave it alone. */
#define SMART_DELTA_SHARE 8

/*
 * This backend as a client of the compute node: made at the first call, closed when the backend exits.  Raises an
 * error where smart_server_require() does, or when memory or client lines have run out; never NULL.  Does not wait
 * for the network.
 */
extern struct smart_client *smart_backend_client(void);

/* The same before startup recovery (startup.h), for the launcher, which prepares what recovery needs. */
extern struct smart_client *smart_backend_client_at_startup(void);

/*
 * The client of what deltas lie in (src/am/journal/delta.h): the same, or, with memory nodes, one of a region in the server's own
 * memory, which waits for no node and for no startup recovery.  Errors as above, and DISK_FULL.
 */
extern struct smart_client *smart_delta_client(void);

/* The space that a tree lies in: deltas may have one of their own (smart_delta_client()). */
extern struct smart_space *smart_tree_space(uint64 tree);

/* All trees, those of deltas, too, as smart_space_next_tree(), for a *cursor that begins as zeros. */
struct smart_trees_cursor
{
	uint64 trees;
	uint64 deltas;
	bool at_deltas;
};

extern bool smart_trees_next(struct smart_trees_cursor *cursor, struct smart_tree_info *info);

/*
 * Adds what this process has done on the fabric since the last call to the server's totals.  Done at the end of each
 * transaction of a client, and when it exits.
 */
extern void smart_fabric_stat_flush(void);

#endif /* SMART_AM_BACKEND_H */

/*
 * locate.h
 *	  Where this process finds memory nodes, and the key that it shows them.
 */
#ifndef SMART_AM_LOCATE_H
#define SMART_AM_LOCATE_H

#include "rdma/remote/remote.h"

/*
 * For the fabric of this process (remote.h); there must be a table of peers.  locate() waits while a node is still
 * being connected since the server's start, at most smart.fabric_timeout: SMART_INTERRUPTED, or SMART_UNREACHABLE and
 * the reason.  await() waits, for smart.wait_timeout at most, while a node is down.
 */
extern struct fabric_nodes *smart_locate_nodes(void);

/*
 * Waits until the nodes have been tried, as above, if they have not yet been; for an operation that needs any node.
 * Raises the error of an interrupt.
 */
extern void smart_locate_wait(void);

/*
 * An operation on a tree came to status, which is an error.  Waits, for smart.wait_timeout at most, if a memory node
 * did not answer; true: do the operation again, as a whole.  *since_ns is 0 before the first time.
 *
 * Every operation may be done twice: an insert does not add an entry that is there already, and a scan goes on behind
 * the entries that it has returned.
 */
extern bool smart_locate_again(smart_status status, uint64 *since_ns);

static inline bool
smart_again_if_away(smart_status status, uint64 *since_ns)
{
	return smart_unlikely(status != SMART_OK) && status != SMART_DONE && smart_locate_again(status, since_ns);
}

/* Has this host an RDMA device that could be used? */
extern bool smart_locate_has_rdma(void);

/* The key, as it was read last; without a file its length is 0. */
extern const struct stream_secret *smart_locate_secret(void);

/* Reads the file of smart.secret_file anew: done before each connection.  SMART_UNREACHABLE, and problem[]. */
extern smart_status smart_locate_read_secret(char problem[SESSION_PROBLEM_MAX]);

#endif /* SMART_AM_LOCATE_H */

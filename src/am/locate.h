/*
 * locate.h
 *	  Where this process finds memory nodes, and the key that it shows them.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_LOCATE_H
#define SMART_AM_LOCATE_H

#include "rdma/remote.h"

/*
 * For the fabric of this process (remote.h); there must be a table of peers.
 * locate() waits while a node is still being connected since the server's start, at most
 * smart.fabric_timeout: SMART_INTERRUPTED, or SMART_UNREACHABLE and the reason.  await() waits, if
 * smart.on_unavailable says so, while a node is down.
 */
extern struct fabric_nodes *smart_locate_nodes(void);

/*
 * Waits until the nodes have been tried, as above, if they have not yet been; for who needs any node.  Raises the error
 * of an interrupt.
 */
extern void smart_locate_wait(void);

/* Has this host an RDMA device that could be used? */
extern bool smart_locate_has_rdma(void);

/* The key, as it was read last; without a file its length is 0. */
extern const struct stream_secret *smart_locate_secret(void);

/* Reads the file of smart.secret_file anew: done before each connection.  SMART_UNREACHABLE, and problem[]. */
extern smart_status smart_locate_read_secret(char problem[SESSION_PROBLEM_MAX]);

#endif /* SMART_AM_LOCATE_H */

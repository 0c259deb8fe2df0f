/*
 * announce.h
 *	  Announcing the node in memcached, on a thread of its own: memcached may be
 *	  slow, the data path must not be.
 */
#ifndef MEMNODE_ANNOUNCE_H
#define MEMNODE_ANNOUNCE_H

#include "options.h"

struct memnode_announcer;

/*
 * Announces the node as the options say until it is stopped.  Nothing is shared with the
 * thread but the log.  False: problem[] says why.
 */
extern bool memnode_announcer_start(const struct memnode_options *options, const struct discovery_node *node,
									struct memnode_announcer **announcer, char problem[MEMNODE_PROBLEM_MAX]);

/* Takes the announcement back and ends the thread. */
extern void memnode_announcer_stop(struct memnode_announcer *announcer);

#endif /* MEMNODE_ANNOUNCE_H */

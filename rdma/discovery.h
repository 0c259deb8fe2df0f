/*
 * discovery.h
 *	  Finding memory nodes: they announce themselves in memcached under their
 *	  cluster's name, with a time to live.
 *
 * A cluster has FABRIC_NODES_MAX places, "smart.CLUSTER.N".  A memory node takes
 * the first free one (add fails where one is), keeps it by writing it again
 * before its time to live is over, and takes another one if a different node has it then.
 * A place holds "INCARNATION HOST:PORT".  There is no list that nodes read, change and
 * write, so no announcement is lost to another one's.
 */
#ifndef SMART_RDMA_DISCOVERY_H
#define SMART_RDMA_DISCOVERY_H

#include "rdma/wire.h"

#define DISCOVERY_CLUSTER_MAX 64 /* letters, digits, '-' and '_' */

struct discovery;

struct discovery_node
{
	uint64_t incarnation;
	char host[SESSION_HOST_MAX];
	char port[SESSION_PORT_MAX];
};

/*
 * servers: "host[:port], …", as in smart.memory_nodes behind a cluster's name.  SMART_CORRUPT for a list or a name that
 * cannot be, SMART_NO_MEMORY; problem[] tells.  timeout_ms bounds every later call.
 */
extern smart_status discovery_open(const char *servers, const char *cluster, uint32_t timeout_ms,
								   struct discovery **discovery, char problem[SESSION_PROBLEM_MAX]);
extern void discovery_close(struct discovery *discovery);

/* The memory nodes announced now, at most FABRIC_NODES_MAX, in the order of their places. */
extern smart_status discovery_find(struct discovery *discovery, struct discovery_node *nodes, unsigned int *count,
								   char problem[SESSION_PROBLEM_MAX]);

/* Announces this node for ttl_s seconds, or goes on doing so.  SMART_NO_SPACE: all places are taken. */
extern smart_status discovery_announce(struct discovery *discovery, const struct discovery_node *node, uint32_t ttl_s,
									   char problem[SESSION_PROBLEM_MAX]);

/* Takes the announcement back (a clean stop). */
extern void discovery_withdraw(struct discovery *discovery);

/* Splits "host:port", "[v6]:port" or "host" (default_port then).  False: it is none. */
extern bool discovery_parse_address(const char *text, const char *default_port, char host[SESSION_HOST_MAX],
									char port[SESSION_PORT_MAX]);

#define DISCOVERY_PORT "7471" /* where memory nodes listen unless told otherwise */

#endif /* SMART_RDMA_DISCOVERY_H */

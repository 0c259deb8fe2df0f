/*
 * endpoint.h
 *	  The launcher's connections to memory nodes: one session to each address, for the lease, the node's state and
 *	  its pending frees.
 */
#ifndef SMART_AM_ENDPOINT_H
#define SMART_AM_ENDPOINT_H

#include "am/nodes/peers.h"
#include "compute/client.h"
#include "rdma/tcp/session.h"

struct smart_address
{
	char host[SESSION_HOST_MAX];
	char port[SESSION_PORT_MAX];
};

struct smart_endpoint
{
	struct smart_address address;
	bool used;
	bool listed;             /* the settings or memcached name it now */
	bool tried;              /* at least once */
	int node;                /* number of the memory node that was found here last, or -1 */
	struct session *session; /* NULL: not connected */
	bool unsettled;          /* to be reconciled after startup recovery */
	bool asked;              /* for the node's state, and not yet answered */
	uint64 asked_ns;         /* when */
	uint64 next_ns;          /* when to try, or to ask, next */
	uint64 seen_ns;          /* when that memory node was seen here last */
	uint64 knocked_ns;       /* when a new session was tried, or made, last */
	uint64 key;              /* a hash of the key with which it was made */
};

struct smart_endpoints
{
	struct smart_client *client;
	struct smart_peers *peers;
	struct smart_endpoint endpoint[FABRIC_NODES_MAX];
	unsigned int next;                 /* round robin */
	uint64 added_ns[FABRIC_NODES_MAX]; /* by number: when it was met for the first time; 0: before this launcher */
	uint64 away_ns[FABRIC_NODES_MAX];  /* by number: since when it is away; 0: it is up, or not in the extent map */
	bool displaced[FABRIC_NODES_MAX];  /* by number: a region never met before is at its address */
};

static inline uint64
smart_endpoints_now_ns(const struct smart_endpoints *endpoints)
{
	return endpoints->client->env->now_ns(endpoints->client->env);
}

/* ---- one of them (endpoint.c) ---- */

/* Does what is due: connects, notices that the node has gone, asks for its state, does its pending frees. */
extern void smart_endpoint_tend(struct smart_endpoints *endpoints, struct smart_endpoint *endpoint);

/* When the reply to the question that is under way is late; UINT64_MAX: there is none. */
extern uint64 smart_endpoint_late_ns(const struct smart_endpoint *endpoint);

/* Ends the session, if there is one, and frees the place. */
extern void smart_endpoint_remove(struct smart_endpoints *endpoints, struct smart_endpoint *endpoint);

/* Stores the state of the node or the address in the table of peers, and logs it if it is new. */
extern void smart_endpoint_report(struct smart_endpoints *endpoints, struct smart_endpoint *endpoint,
								  enum smart_peer_state state, const char *problem);

/*
 * Loses a node for good: what the extent map has there is gone.  forgot: it has lost its memory; else it is given up.
 * reason: for the table of peers; explanation: a sentence for the log, with its full stop.
 */
extern void smart_endpoint_give_up(struct smart_endpoints *endpoints, unsigned int node, bool forgot,
								   const char *reason, const char *explanation);

/*
 * What is noted with a node of the extent map (smart_extents_set_note): it is closed since neither the settings nor memcached
 * name it, and will be open when they do again.
 */
#define SMART_NODE_UNNAMED 1

/* Is it where this node of the extent map is, or was when the map learned its address? */
extern bool smart_endpoint_leads_to(const struct smart_endpoints *endpoints, const struct smart_endpoint *endpoint,
									unsigned int node);

/* ---- all of them (endpoints.c) ---- */

/* Begins with what the extent map and the table of peers know. */
extern void
smart_endpoints_init(struct smart_endpoints *endpoints, struct smart_client *client, struct smart_peers *peers);

/* Begins anew, with an extent map that has been made empty. */
extern void smart_endpoints_forget(struct smart_endpoints *endpoints);

/*
 * Finds the addresses that there are now, which takes some tenths of a second at most when memcached does not answer,
 * and does one round, or a part of it that ends after a node that does not answer in time.
 */
extern void smart_endpoints_tend(struct smart_endpoints *endpoints);

/* How long until something is due, at most a second. */
extern long smart_endpoints_rest_ms(const struct smart_endpoints *endpoints);

/* Is every memory node of the extent map that is not lost up? */
extern bool smart_endpoints_are_up(struct smart_endpoints *endpoints);

#endif /* SMART_AM_ENDPOINT_H */

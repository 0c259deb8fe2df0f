/*
 * peers.h
 *	  What the server knows about its memory nodes now: one table in shared memory, written by the launcher
 *	  (maintenance.c), read by all processes.
 *
 * The extent map in the region is the permanent list of the server's memory nodes; this table has their addresses and
 * states, as of this start of the server.
 */
#ifndef SMART_AM_PEERS_H
#define SMART_AM_PEERS_H

#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/latch.h"
#include "storage/lwlock.h"

#include "rdma/remote/remote.h"

enum smart_peer_state
{
	SMART_PEER_CONNECTING, /* since the server started: not yet tried everywhere */
	SMART_PEER_UP,
	SMART_PEER_DOWN,   /* does not answer */
	SMART_PEER_LOST,   /* its memory is gone for good */
	SMART_PEER_REFUSED /* answers, but will not or cannot serve this server */
};

struct smart_peer
{
	bool used;
	bool missed;     /* away for smart.node_down_after: statements do without it */
	bool shut;       /* up, but new sessions do not get in: problem says why */
	bool unanswered; /* chunks were given back, and the node did not confirm it (reconcile.c) */
	enum smart_peer_state state;
	uint64 incarnation; /* of its region; 0: not known */
	uint32 transport;   /* enum wire_transport of the verbs; 0: not known */
	char host[SESSION_HOST_MAX];
	char port[SESSION_PORT_MAX];
	char problem[SESSION_PROBLEM_MAX]; /* the last one, or empty */
	TimestampTz since;                 /* of the state */
	uint64 capacity;                   /* bytes; these two are 0 until it was up */
	uint64 allocated;                  /* bytes in chunks that have an owner, this server or another one */
	uint64 round_trip_ns;              /* of the last request; 0: none yet */
};

/* An entry's place: a node's number, or, from FABRIC_NODES_MAX on, any place for an address that never answered. */
#define SMART_PEER_PLACES (2 * FABRIC_NODES_MAX)

struct smart_peers
{
	LWLock *lock;              /* of the entries; held for a copy only */
	ConditionVariable changed; /* an entry's state, or tried */
	pid_t launcher;            /* 0: it does not run */
	pg_atomic_uint32 tried;    /* 1: the launcher has tried every address once */
	pg_atomic_uint32 away;     /* entries that are missed, or down */
	uint32 generation[FABRIC_NODES_MAX];
	struct smart_peer peer[SMART_PEER_PLACES];
};

/* Asks the server for a lock (shmem_request_hook), and makes the table (shmem_startup_hook). */
extern void smart_peers_request(void);
extern void smart_peers_init(struct smart_peers *peers);

/* A copy of an entry; false if it is unused. */
extern bool smart_peer_get(struct smart_peers *peers, unsigned int place, struct smart_peer *peer);

/* Stores an entry, sets its time when the state changes, and wakes those that wait for a change. */
extern void smart_peer_put(struct smart_peers *peers, unsigned int place, const struct smart_peer *peer);
extern void smart_peer_remove(struct smart_peers *peers, unsigned int place);

/* Every address has been tried once, or, after the extent map was made empty, not yet; wakes those that wait for that. */
extern void smart_peers_set_tried(struct smart_peers *peers, bool tried);

/* If so, each memory node of the extent map has an entry. */
extern bool smart_peers_are_tried(struct smart_peers *peers);

/* Is a node missed?  Or does it not answer, which may be over in a moment?  Cheap as long as that is true of none. */
extern bool smart_peer_is_missed(struct smart_peers *peers, unsigned int node);
extern bool smart_peer_is_away(struct smart_peers *peers, unsigned int node);
extern bool smart_peers_are_away(struct smart_peers *peers);

/*
 * Lets all clients make their links to a node anew before they use it again, and the node forget what the old ones
 * still had under way (remote.h).
 */
extern void smart_peer_raise_generation(struct smart_peers *peers, unsigned int node);

/* "connecting", "up", ... */
extern const char *smart_peer_state_name(enum smart_peer_state state);

/* "host:port", an IPv6 address in brackets. */
#define SMART_ADDRESS_MAX (SESSION_HOST_MAX + SESSION_PORT_MAX + 4)
extern const char *smart_peer_address(const char *host, const char *port, char address[SMART_ADDRESS_MAX]);

#endif /* SMART_AM_PEERS_H */

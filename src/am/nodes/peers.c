/*
 * peers.c
 *	  The shared table of memory nodes.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

#include "am/nodes/peers.h"
#include "base/assert.h"

#define PEERS_TRANCHE "smart_peers"

void
smart_peers_request(void)
{
	RequestNamedLWLockTranche(PEERS_TRANCHE, 1);
}

void
smart_peers_init(struct smart_peers *peers)
{
	memset(peers, 0, sizeof(*peers));
	peers->lock = &GetNamedLWLockTranche(PEERS_TRANCHE)->lock;
	ConditionVariableInit(&peers->changed);
	pg_atomic_init_u32(&peers->tried, 0);
	pg_atomic_init_u32(&peers->away, 0);
}

bool
smart_peer_get(struct smart_peers *peers, unsigned int place, struct smart_peer *peer)
{
	smart_assert(place < SMART_PEER_PLACES);
	LWLockAcquire(peers->lock, LW_SHARED);
	*peer = peers->peer[place];
	LWLockRelease(peers->lock);
	return peer->used;
}

static bool
is_away(const struct smart_peer *peer)
{
	return peer->missed || peer->state == SMART_PEER_DOWN;
}

/* The lock is held. */
static void
count_away(struct smart_peers *peers, bool before, bool now)
{
	smart_assert(LWLockHeldByMeInMode(peers->lock, LW_EXCLUSIVE));
	smart_assert(!before || pg_atomic_read_u32(&peers->away) > 0);
	if (now && !before)
		pg_atomic_fetch_add_u32(&peers->away, 1);
	else if (before && !now)
		pg_atomic_fetch_sub_u32(&peers->away, 1);
}

void
smart_peer_put(struct smart_peers *peers, unsigned int place, const struct smart_peer *peer)
{
	TimestampTz now = GetCurrentTimestamp();
	struct smart_peer *shared = &peers->peer[place];
	bool changed;

	smart_assert(place < SMART_PEER_PLACES && peers->launcher == MyProcPid);
	smart_assert(peer->state != SMART_PEER_UP || (place < FABRIC_NODES_MAX && peer->transport != 0));
	LWLockAcquire(peers->lock, LW_EXCLUSIVE);
	changed = !shared->used || shared->state != peer->state;
	if (!changed)
		now = shared->since;
	count_away(peers, shared->used && is_away(shared), is_away(peer));
	*shared = *peer;
	shared->used = true;
	shared->since = now;
	LWLockRelease(peers->lock);
	if (changed)
		ConditionVariableBroadcast(&peers->changed);
}

void
smart_peer_remove(struct smart_peers *peers, unsigned int place)
{
	smart_assert(place < SMART_PEER_PLACES && peers->launcher == MyProcPid);
	LWLockAcquire(peers->lock, LW_EXCLUSIVE);
	count_away(peers, peers->peer[place].used && is_away(&peers->peer[place]), false);
	memset(&peers->peer[place], 0, sizeof(peers->peer[place]));
	LWLockRelease(peers->lock);
	ConditionVariableBroadcast(&peers->changed);
}

void
smart_peers_set_tried(struct smart_peers *peers, bool tried)
{
	smart_assert(peers->launcher == MyProcPid && !LWLockHeldByMe(peers->lock));
	if ((pg_atomic_read_u32(&peers->tried) != 0) == tried)
		return;
	/* Pairs with smart_peers_are_tried(): a process that sees it sees the entries. */
	pg_write_barrier();
	pg_atomic_write_u32(&peers->tried, tried);
	ConditionVariableBroadcast(&peers->changed);
}

bool
smart_peers_are_tried(struct smart_peers *peers)
{
	bool tried = pg_atomic_read_u32(&peers->tried) != 0;

	pg_read_barrier();
	return tried;
}

bool
smart_peers_are_away(struct smart_peers *peers)
{
	return pg_atomic_read_u32(&peers->away) != 0;
}

bool
smart_peer_is_missed(struct smart_peers *peers, unsigned int node)
{
	struct smart_peer peer;

	smart_assert(node < FABRIC_NODES_MAX);
	return smart_peers_are_away(peers) && smart_peer_get(peers, node, &peer) && peer.missed;
}

bool
smart_peer_is_away(struct smart_peers *peers, unsigned int node)
{
	struct smart_peer peer;

	smart_assert(node < FABRIC_NODES_MAX);
	return smart_peers_are_away(peers) && smart_peer_get(peers, node, &peer) && is_away(&peer);
}

void
smart_peer_raise_generation(struct smart_peers *peers, unsigned int node)
{
	smart_assert(node < FABRIC_NODES_MAX && peers->launcher == MyProcPid);
	/* Behind everything that made it necessary.  Partner: remote.c, before it posts. */
	__atomic_fetch_add(&peers->generation[node], 1, __ATOMIC_SEQ_CST);
}

const char *
smart_peer_state_name(enum smart_peer_state state)
{
	static const char *const names[] = {
		[SMART_PEER_CONNECTING] = "connecting",
		[SMART_PEER_UP] = "up",
		[SMART_PEER_DOWN] = "down",
		[SMART_PEER_LOST] = "lost",
		[SMART_PEER_REFUSED] = "refused",
	};

	smart_assert((unsigned int) state < lengthof(names));
	return names[state];
}

const char *
smart_peer_address(const char *host, const char *port, char address[SMART_ADDRESS_MAX])
{
	snprintf(address, SMART_ADDRESS_MAX, strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
	return address;
}

/*
 * peers.c
 *	  The shared table of memory nodes.
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "am/peers.h"
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

void
smart_peer_put(struct smart_peers *peers, unsigned int place, const struct smart_peer *peer)
{
	TimestampTz now = GetCurrentTimestamp();
	struct smart_peer *shared = &peers->peer[place];
	bool changed;

	smart_assert(place < SMART_PEER_PLACES);
	LWLockAcquire(peers->lock, LW_EXCLUSIVE);
	changed = !shared->used || shared->state != peer->state;
	if (!changed)
		now = shared->since;
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
	smart_assert(place < SMART_PEER_PLACES);
	LWLockAcquire(peers->lock, LW_EXCLUSIVE);
	memset(&peers->peer[place], 0, sizeof(peers->peer[place]));
	LWLockRelease(peers->lock);
	ConditionVariableBroadcast(&peers->changed);
}

void
smart_peers_tried(struct smart_peers *peers)
{
	if (peers->tried)
		return;
	/* Release: who sees it sees the entries.  Partner: locate.c. */
	__atomic_store_n(&peers->tried, true, __ATOMIC_RELEASE);
	ConditionVariableBroadcast(&peers->changed);
}

void
smart_peer_raise_generation(struct smart_peers *peers, unsigned int node)
{
	smart_assert(node < FABRIC_NODES_MAX);
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

/*
 * locate.c
 *	  Where this process finds memory nodes, and the key that it shows them.
 *
 * locate() is called with operations of the tree on the stack, so it must not raise an error: it sleeps on a latch
 * and looks for interrupts itself.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/wait_event.h"

#include "am/compat.h"
#include "am/nodes/locate.h"
#include "am/nodes/peers.h"
#include "am/server/environment.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "base/assert.h"
#include "rdma/verbs/verbs.h"

#define SLEEP_MS 100 /* at most, between two looks at interrupts and the clock */

static struct stream_secret secret;
static uint32 wait_event = PG_WAIT_EXTENSION;

bool
smart_locate_has_rdma(void)
{
	struct wire_queue_pair mine;
	struct fabric_link *link;
	char problem[SESSION_PROBLEM_MAX];

	/* A link that has no other end. */
	if (verbs_link_prepare(&smart_environment, 0, &mine, &link, problem) != SMART_OK)
		return false;
	link->kind->close(link);
	return true;
}

const struct stream_secret *
smart_locate_secret(void)
{
	return &secret;
}

smart_status
smart_locate_read_secret(char problem[SESSION_PROBLEM_MAX])
{
	struct stream_secret found;
	smart_status status;

	if (smart_settings.secret_file[0] == '\0')
	{
		secret.length = 0;
		return SMART_OK;
	}
	status = stream_secret_read(smart_settings.secret_file, &found, problem, SESSION_PROBLEM_MAX);
	if (status == SMART_OK)
		secret = found;
	return status;
}

/* ---- waiting for the first connections ---- */

/* Has the node yet to be tried?  FABRIC_NODES_MAX: has any node? */
static bool
is_untried(unsigned int node, struct smart_peer *peer)
{
	struct smart_peers *peers = smart_server.peers;

	smart_assert(node <= FABRIC_NODES_MAX);
	if (!smart_peers_are_tried(peers))
		return node == FABRIC_NODES_MAX || !smart_peer_get(peers, node, peer) || peer->state == SMART_PEER_CONNECTING;
	return node < FABRIC_NODES_MAX && smart_peer_get(peers, node, peer) && peer->state == SMART_PEER_CONNECTING;
}

/* Sleeps for a moment if that is true of a node.  SMART_INTERRUPTED. */
static smart_status
doze(bool (*is)(unsigned int node, struct smart_peer *peer), unsigned int node, struct smart_peer *peer)
{
	smart_status status = SMART_OK;

	smart_assert(!LWLockHeldByMe(smart_server.peers->lock));
	ConditionVariablePrepareToSleep(&smart_server.peers->changed);
	if (is(node, peer) && (WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_POSTMASTER_DEATH, SLEEP_MS, wait_event) &
						   WL_POSTMASTER_DEATH) != 0)
		status = SMART_INTERRUPTED;
	ResetLatch(MyLatch);
	ConditionVariableCancelSleep();
	return smart_environment.interrupted(&smart_environment) ? SMART_INTERRUPTED : status;
}

/* Sleeps until the node has been tried, for smart.fabric_timeout at most. */
static smart_status
wait_until_tried(unsigned int node, struct smart_peer *peer)
{
	struct smart_env *env = &smart_environment;
	uint64 end = smart_deadline_ns(env, (uint32) smart_settings.fabric_timeout_ms);
	smart_status status = SMART_OK;

	while (status == SMART_OK && is_untried(node, peer) && env->now_ns(env) < end)
		status = doze(is_untried, node, peer);
	smart_assert(status == SMART_OK || status == SMART_INTERRUPTED);
	return status;
}

void
smart_locate_wait(void)
{
	struct smart_peer peer;

	smart_assert(smart_server.remote);
	if (!is_untried(FABRIC_NODES_MAX, &peer))
		return;
	(void) wait_until_tried(FABRIC_NODES_MAX, &peer);
	CHECK_FOR_INTERRUPTS();
}

/* ---- locating ---- */

/* address: "" if it is not known. */
static void
describe_absence(unsigned int node, const char *address, const struct smart_peer *peer,
				 char problem[SESSION_PROBLEM_MAX])
{
	const char *state = smart_peer_state_name(peer->state);
	const char *why = peer->problem;

	smart_assert(peer->used && peer->state != SMART_PEER_UP);
	if (address[0] != '\0' && why[0] != '\0')
		snprintf(problem, SESSION_PROBLEM_MAX, "memory node %u at %s is %s: %s", node, address, state, why);
	else if (address[0] != '\0')
		snprintf(problem, SESSION_PROBLEM_MAX, "memory node %u at %s is %s", node, address, state);
	else if (why[0] != '\0')
		snprintf(problem, SESSION_PROBLEM_MAX, "memory node %u is %s: %s", node, state, why);
	else
		snprintf(problem, SESSION_PROBLEM_MAX, "memory node %u is %s", node, state);
}

static smart_status
locate(struct fabric_nodes *nodes, unsigned int node, struct fabric_location *location,
	   char problem[SESSION_PROBLEM_MAX])
{
	char address[SMART_ADDRESS_MAX] = "";
	struct smart_peer peer;
	smart_status status = SMART_OK;

	smart_assert(node < FABRIC_NODES_MAX);
	if (!smart_peer_get(smart_server.peers, node, &peer) || peer.state == SMART_PEER_CONNECTING)
		status = wait_until_tried(node, &peer);
	if (status == SMART_OK && (!peer.used || peer.state != SMART_PEER_UP))
	{
		if (smart_server.peers->launcher == 0)
			snprintf(problem, SESSION_PROBLEM_MAX,
					 "memory node %u is not connected: the background worker \"%s\" does not run", node,
					 SMART_LAUNCHER_NAME);
		else if (!peer.used)
			snprintf(problem, SESSION_PROBLEM_MAX, "memory node %u is not connected", node);
		else
		{
			if (peer.host[0] != '\0')
				smart_peer_address(peer.host, peer.port, address);
			describe_absence(node, address, &peer, problem);
		}
		/* The launcher puts all nodes of the extent map into the table. */
		status = peer.used || !smart_peers_are_tried(smart_server.peers) ? SMART_UNREACHABLE : SMART_CORRUPT;
	}
	if (status == SMART_OK)
		status = smart_locate_read_secret(problem);
	if (status != SMART_OK)
		return status;
	smart_assert(peer.used && peer.state == SMART_PEER_UP && peer.transport != 0);
	memcpy(location->host, peer.host, sizeof(location->host));
	memcpy(location->port, peer.port, sizeof(location->port));
	location->incarnation = peer.incarnation;
	location->transport = (enum wire_transport) peer.transport;
	return SMART_OK;
}

/* ---- waiting for one that is away ---- */

static bool
is_away(unsigned int node, struct smart_peer *peer)
{
	return smart_peer_get(smart_server.peers, node, peer) &&
		   (peer->state == SMART_PEER_DOWN || peer->state == SMART_PEER_CONNECTING);
}

/* Is it up, as far as the launcher has noticed? */
static bool
is_up(unsigned int node, struct smart_peer *peer)
{
	return smart_peer_get(smart_server.peers, node, peer) && peer->state == SMART_PEER_UP;
}

/*
 * Waits while the node is away, for smart.wait_timeout at most, and for smart.fabric_timeout if it is up but this process
 * does not reach it, which was first found at *since_ns.  Bulk deletes do not wait but go on without the index (vacuum.c):
 * VACUUM of the table must not depend on a memory node.  Nor does anybody on a standby, where replay may have to wait for
 * who does.
 */
static bool
await(struct fabric_nodes *nodes, unsigned int node, uint64_t *since_ns)
{
	uint64 limit_ns = (uint64) smart_settings.fabric_timeout_ms * 1000000;
	uint64 now_ns = smart_environment.now_ns(&smart_environment);
	smart_status status = SMART_OK;
	struct smart_peer peer;

	smart_assert(node < FABRIC_NODES_MAX && *since_ns <= now_ns);
	if (smart_settings_node_wait_ms() == 0 || RecoveryInProgress() ||
		(smart_server.client != NULL && smart_server.client->space.removing))
		return false;
	if (is_up(node, &peer))
	{
		if (*since_ns == 0)
			*since_ns = now_ns;
		if (now_ns - *since_ns > limit_ns)
			return false;
		status = doze(is_up, node, &peer);
	}
	while (status == SMART_OK && is_away(node, &peer) &&
		   smart_environment.now_ns(&smart_environment) - now_ns < (uint64) smart_settings_node_wait_ms() * 1000000)
	{
		*since_ns = 0;
		status = doze(is_away, node, &peer);
	}
	return status == SMART_OK && is_up(node, &peer);
}

/* What is read here without the lock is one byte. */
static bool
is_missed(struct fabric_nodes *nodes, unsigned int node)
{
	smart_assert(node < FABRIC_NODES_MAX);
	return smart_peers_are_away(smart_server.peers) && smart_server.peers->peer[node].missed;
}

bool
smart_locate_again(smart_status status, uint64 *since_ns)
{
	smart_assert(status != SMART_OK);
	return smart_server.client != NULL && smart_server.remote &&
		   fabric_remote_await(smart_server.client->fabric, status, since_ns);
}

struct fabric_nodes *
smart_locate_nodes(void)
{
	static struct fabric_nodes nodes = {.locate = locate, .await = await, .is_missed = is_missed};
	char device[SMART_RDMA_NAME_MAX];
	int port;
	int gid_index;

	if (smart_settings_rdma_device(smart_settings.rdma_device, device, &port, &gid_index))
		verbs_set_device(device, port, gid_index);
	nodes.generation = smart_server.peers->generation;
	wait_event = smart_wait_event("SmartMemoryNodeAway");
	return &nodes;
}

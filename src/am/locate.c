/*
 * locate.c
 *	  Where this process finds memory nodes, and the key that it shows them.
 *
 * locate() is called with operations of the tree on the stack, so it must not
 * raise an error: it sleeps on a latch and looks for interrupts itself.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/wait_event.h"

#include "am/compat.h"
#include "am/environment.h"
#include "am/locate.h"
#include "am/settings.h"
#include "am/shared.h"
#include "am/worker.h"
#include "rdma/verbs.h"

#define SLEEP_MS 100 /* at most, between two looks at interrupts and the clock */

static struct stream_secret secret;
static uint32 wait_event = PG_WAIT_EXTENSION;

bool
smart_locate_has_rdma(void)
{
	struct wire_queue_pair mine;
	struct fabric_link *link;
	char problem[SESSION_PROBLEM_MAX];

	/* A link that nobody is at the other end of. */
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

/* Does it remain to be seen how the node is?  FABRIC_NODES_MAX: do any nodes remain to be tried? */
static bool
is_open(unsigned int node, struct smart_peer *peer)
{
	struct smart_peers *peers = smart_server.peers;

	if (!__atomic_load_n(&peers->tried, __ATOMIC_ACQUIRE))
		return node == FABRIC_NODES_MAX || !smart_peer_get(peers, node, peer) || peer->state == SMART_PEER_CONNECTING;
	return node < FABRIC_NODES_MAX && smart_peer_get(peers, node, peer) && peer->state == SMART_PEER_CONNECTING;
}

/* Sleeps while that holds of a node, for a moment at most.  SMART_INTERRUPTED. */
static smart_status
doze(bool (*holds)(unsigned int node, struct smart_peer *peer), unsigned int node, struct smart_peer *peer)
{
	smart_status status = SMART_OK;

	ConditionVariablePrepareToSleep(&smart_server.peers->changed);
	if (holds(node, peer) &&
		(WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_POSTMASTER_DEATH, SLEEP_MS, wait_event) &
		 WL_POSTMASTER_DEATH) != 0)
		status = SMART_INTERRUPTED;
	ResetLatch(MyLatch);
	ConditionVariableCancelSleep();
	return smart_environment.interrupted(&smart_environment) ? SMART_INTERRUPTED : status;
}

/* Sleeps until that is seen, as far as time allows. */
static smart_status
wait_until_seen(unsigned int node, struct smart_peer *peer)
{
	struct smart_env *env = &smart_environment;
	uint64 end = env->now_ns(env) + (uint64) smart_settings.fabric_timeout_ms * 1000000;
	smart_status status = SMART_OK;

	while (status == SMART_OK && is_open(node, peer) && env->now_ns(env) < end)
		status = doze(is_open, node, peer);
	return status;
}

void
smart_locate_wait(void)
{
	struct smart_peer peer;

	if (!is_open(FABRIC_NODES_MAX, &peer))
		return;
	(void) wait_until_seen(FABRIC_NODES_MAX, &peer);
	CHECK_FOR_INTERRUPTS();
}

/* ---- locating ---- */

static void
describe_problem(unsigned int node, const struct smart_peer *peer, char problem[SESSION_PROBLEM_MAX])
{
	char address[SMART_ADDRESS_MAX];

	if (smart_server.peers->worker == 0)
		snprintf(problem, SESSION_PROBLEM_MAX,
				 "memory node %u is not connected: the background worker \"%s\" does not run", node, SMART_WORKER_NAME);
	else if (!peer->used)
		snprintf(problem, SESSION_PROBLEM_MAX, "memory node %u is not connected", node);
	else if (peer->host[0] == '\0')
		snprintf(problem, SESSION_PROBLEM_MAX, "memory node %u is %s%s%s", node, smart_peer_state_name(peer->state),
				 peer->problem[0] == '\0' ? "" : ": ", peer->problem);
	else
		snprintf(problem, SESSION_PROBLEM_MAX, "memory node %u at %s is %s%s%s", node,
				 smart_peer_address(peer->host, peer->port, address), smart_peer_state_name(peer->state),
				 peer->problem[0] == '\0' ? "" : ": ", peer->problem);
}

static smart_status
locate(struct fabric_nodes *nodes, unsigned int node, struct fabric_location *location,
	   char problem[SESSION_PROBLEM_MAX])
{
	struct smart_peer peer;
	smart_status status = SMART_OK;

	if (!smart_peer_get(smart_server.peers, node, &peer) || peer.state == SMART_PEER_CONNECTING)
		status = wait_until_seen(node, &peer);
	if (status == SMART_OK && (!peer.used || peer.state != SMART_PEER_UP))
	{
		describe_problem(node, &peer, problem);
		/* The worker puts all nodes of the book into the table. */
		status = peer.used || !__atomic_load_n(&smart_server.peers->tried, __ATOMIC_ACQUIRE) ? SMART_UNREACHABLE
																							 : SMART_CORRUPT;
	}
	if (status == SMART_OK)
		status = smart_locate_read_secret(problem);
	if (status != SMART_OK)
		return status;
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

/* The worker has not yet noticed that it is. */
static bool
is_up(unsigned int node, struct smart_peer *peer)
{
	return smart_peer_get(smart_server.peers, node, peer) && peer->state == SMART_PEER_UP;
}

/* Bulk deletes go on without the index instead (vacuum.c): VACUUM of the table must not depend on a memory node. */
static bool
waits(void)
{
	const struct smart_client *client = smart_backend_client_if_any();

	return smart_settings.on_unavailable == SMART_ON_UNAVAILABLE_WAIT && !(client != NULL && client->space.removing);
}

/*
 * For as long as it is away; and no longer than for an answer if it is not, but cannot be reached by us.  *since_ns
 * is when that was first found.
 */
static bool
await(struct fabric_nodes *nodes, unsigned int node, uint64_t *since_ns)
{
	uint64 limit_ns = (uint64) smart_settings.fabric_timeout_ms * 1000000;
	uint64 now_ns = smart_environment.now_ns(&smart_environment);
	smart_status status = SMART_OK;
	struct smart_peer peer;

	if (!waits())
		return false;
	if (is_up(node, &peer))
	{
		if (*since_ns == 0)
			*since_ns = now_ns;
		if (now_ns - *since_ns > limit_ns)
			return false;
		status = doze(is_up, node, &peer);
	}
	while (status == SMART_OK && is_away(node, &peer))
	{
		*since_ns = 0;
		status = doze(is_away, node, &peer);
	}
	return status == SMART_OK && is_up(node, &peer);
}

bool
smart_locate_again(smart_status status, uint64 *since_ns)
{
	struct smart_client *client = smart_backend_client_if_any();

	return client != NULL && smart_server_is_remote() && fabric_remote_await(client->fabric, status, since_ns);
}

struct fabric_nodes *
smart_locate_nodes(void)
{
	static struct fabric_nodes nodes = {.locate = locate, .await = await};

	verbs_set_device(smart_settings.rdma_device, 0, smart_settings.rdma_gid_index);
	nodes.generation = smart_server.peers->generation;
	wait_event = smart_wait_event("SmartMemoryNodeAway");
	return &nodes;
}

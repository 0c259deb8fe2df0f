/*
 * endpoints.c
 *	  All addresses that the launcher looks after, and which memory node is where.
 *
 * Addresses come from the settings' list and from memcached.  An address that once led to a memory node of the extent
 * map is kept for as long as the launcher runs, even if neither names it any more: indexes may be there.
 *
 * A memory node is given up for lost when an empty region is found at its address, which the extent map keeps from
 * one start of the server to the next, and its own region at no other address.  A node that does not answer, or is no
 * longer named, may still have its memory.  A node is given up, too, when it is there, but another server with a copy
 * of our extent map has used it (endpoint.c), and when it has been away for smart.node_lost_after while others are up:
 * then its indexes can be had there.  Without that it would keep startup recovery waiting for ever.
 *
 * A node that is there, and that is not named any more, is closed: what is on it moves to the others (moves.c).  When nothing
 * is left it is forgotten, as is one that was retired (smart_retire_node), and is not named any more or has gone.
 *
 * Long before a node is given up, after smart.node_down_after, it is missed: statements do without the indexes on it, and
 * those with a journal are loaded elsewhere (src/am/index/relation.c).
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/procsignal.h"
#include "utils/timestamp.h"

#include "am/nodes/endpoint.h"
#include "am/nodes/peers.h"
#include "am/server/launcher_requests.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "am/server/validity.h"
#include "base/assert.h"
#include "compute/allocate/extents.h"
#include "rdma/discovery.h"

#define ROUND_MS 1000 /* between two rounds, at most */
#define SLOW_MS  200  /* for one endpoint: the launcher has other jobs, too */

#define UNNAMED_MS 5000 /* after so long a node that no setting names any more is closed, or, if it is away, lost */

#define DISCOVERY_TIMEOUT_MS 200
#define DISCOVERY_PERIOD_MS  1000 /* between two questions */

/* What memcached said last, and how it is asked. */
static struct discovery_node announced[FABRIC_NODES_MAX];
static unsigned int announced_count = 0;
static uint64
	unnamed_ns[FABRIC_NODES_MAX]; /* by number: since when it is not named; 0: it is, or not in the extent map */
static struct discovery *discovery = NULL;
static char *discovery_setting = NULL; /* that it was made for */
static bool silent = false;            /* the last question failed: it is in the log */

void
smart_endpoints_init(struct smart_endpoints *endpoints, struct smart_client *client, struct smart_peers *peers)
{
	struct smart_node_info info;
	struct smart_peer peer;

	smart_assert(peers->launcher == MyProcPid);
	memset(endpoints, 0, sizeof(*endpoints));
	endpoints->client = client;
	endpoints->peers = peers;
	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
	{
		/* An earlier launcher of this start of the server may have left more than we know. */
		if (smart_peer_get(peers, node, &peer) || !smart_extents_node_info(&client->space, node, &info) ||
			info.state == SMART_NODE_NONE)
			continue;
		peer.state = info.state == SMART_NODE_ACTIVE ? SMART_PEER_CONNECTING : SMART_PEER_LOST;
		peer.incarnation = info.incarnation;
		smart_peer_put(peers, node, &peer);
	}
}

void
smart_endpoints_forget(struct smart_endpoints *endpoints)
{
	smart_assert(endpoints->peers->launcher == MyProcPid && !smart_server_recovers());
	smart_peers_set_tried(endpoints->peers, false);
	for (int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		endpoints->endpoint[i].node = -1;
		if (endpoints->endpoint[i].used)
			smart_endpoint_remove(endpoints, &endpoints->endpoint[i]);
	}
	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
	{
		smart_peer_raise_generation(endpoints->peers, node);
		smart_peer_remove(endpoints->peers, node);
	}
	smart_endpoints_init(endpoints, endpoints->client, endpoints->peers);
}

/* ---- which addresses there are ---- */

static void
add_address(struct smart_address *addresses, unsigned int *count, const char *host, const char *port)
{
	smart_assert(*count <= FABRIC_NODES_MAX);
	for (unsigned int i = 0; i < *count; i++)
	{
		if (strcmp(addresses[i].host, host) == 0 && strcmp(addresses[i].port, port) == 0)
			return;
	}
	if (*count == FABRIC_NODES_MAX)
		return;
	strlcpy(addresses[*count].host, host, sizeof(addresses->host));
	strlcpy(addresses[*count].port, port, sizeof(addresses->port));
	(*count)++;
}

/* Logs that memcached fails: once when that begins, once when it is over. */
static void
log_silence(bool now, const char *problem)
{
	if (now && !silent)
		ereport(LOG, errmsg("could not ask memcached for memory nodes: %s", problem),
				errdetail("Those that it named before are used."));
	if (!now && silent)
		ereport(LOG, errmsg("memcached answers again"));
	silent = now;
}

/* The connection to memcached for the setting as it is now, or NULL. */
static struct discovery *
current_discovery(void)
{
	char problem[SESSION_PROBLEM_MAX] = "";
	char name[DISCOVERY_CLUSTER_MAX];
	const char *at;
	smart_status status;

	if (discovery_setting != NULL && strcmp(discovery_setting, smart_settings.cluster) != 0)
	{
		if (discovery != NULL)
			discovery_close(discovery);
		free(discovery_setting);
		discovery = NULL;
		discovery_setting = NULL;
		announced_count = 0;
		silent = false;
	}
	if (discovery != NULL || smart_settings.cluster[0] == '\0')
		return discovery;
	if (discovery_setting == NULL)
		discovery_setting = strdup(smart_settings.cluster);
	if (discovery_setting == NULL)
		ereport(ERROR, errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"));
	at = strchr(discovery_setting, '@');
	smart_assert(at != NULL && at - discovery_setting < DISCOVERY_CLUSTER_MAX);
	strlcpy(name, discovery_setting, at - discovery_setting + 1);
	status = discovery_open(at + 1, name, DISCOVERY_TIMEOUT_MS, &discovery, problem);
	if (status != SMART_OK)
		log_silence(true, status == SMART_NO_MEMORY ? "out of memory" : problem);
	return discovery;
}

static void
ask_memcached(void)
{
	static TimestampTz last = 0;
	struct discovery *asked = current_discovery();
	struct discovery_node nodes[FABRIC_NODES_MAX];
	char problem[SESSION_PROBLEM_MAX] = "";
	unsigned int count;
	smart_status status;

	/* The launcher may come here more often: every reply of a memory node wakes it. */
	if (asked == NULL || !TimestampDifferenceExceeds(last, GetCurrentTimestamp(), DISCOVERY_PERIOD_MS))
		return;
	last = GetCurrentTimestamp();
	status = discovery_find(asked, nodes, &count, problem);
	log_silence(status != SMART_OK, problem[0] != '\0' ? problem : smart_status_text(status));
	if (status != SMART_OK)
		return;
	smart_assert(count <= FABRIC_NODES_MAX);
	memcpy(announced, nodes, count * sizeof(nodes[0]));
	announced_count = count;
}

/* Finds all addresses, each once; returns how many.  When memcached does not answer, those that it named last stay. */
static unsigned int
find_addresses(struct smart_address addresses[FABRIC_NODES_MAX])
{
	const char *list = smart_settings.memory_nodes;
	char host[SESSION_HOST_MAX];
	char port[SESSION_PORT_MAX];
	unsigned int count = 0;

	smart_assert(announced_count <= FABRIC_NODES_MAX);
	while (smart_settings_next_address(&list, host, port))
		add_address(addresses, &count, host, port);
	ask_memcached();
	for (unsigned int i = 0; i < announced_count; i++)
		add_address(addresses, &count, announced[i].host, announced[i].port);
	return count;
}

/* Lists an address: finds its endpoint, or takes the first free place; without one the address has to wait. */
static void
list_address(struct smart_endpoints *endpoints, const struct smart_address *address)
{
	struct smart_endpoint *unused = NULL;

	for (int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		struct smart_endpoint *endpoint = &endpoints->endpoint[i];

		if (endpoint->used && strcmp(endpoint->address.host, address->host) == 0 &&
			strcmp(endpoint->address.port, address->port) == 0)
		{
			endpoint->listed = true;
			return;
		}
		if (!endpoint->used && unused == NULL)
			unused = endpoint;
	}
	if (unused == NULL)
		return;
	*unused = (struct smart_endpoint){.address = *address, .used = true, .listed = true, .node = -1};
	smart_endpoint_report(endpoints, unused, SMART_PEER_CONNECTING, NULL);
}

/* Makes the endpoints follow the addresses as they are now. */
static void
follow_addresses(struct smart_endpoints *endpoints)
{
	struct smart_address *addresses = palloc(FABRIC_NODES_MAX * sizeof(struct smart_address));
	unsigned int count = find_addresses(addresses);

	smart_assert(count <= FABRIC_NODES_MAX);
	for (int i = 0; i < FABRIC_NODES_MAX; i++)
		endpoints->endpoint[i].listed = false;
	for (unsigned int i = 0; i < count; i++)
		list_address(endpoints, &addresses[i]);
	for (int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		struct smart_endpoint *endpoint = &endpoints->endpoint[i];

		if (endpoint->used && !endpoint->listed && endpoint->node < 0)
			smart_endpoint_remove(endpoints, endpoint);
	}
	pfree(addresses);
}

/* ---- which nodes are missing ---- */

/* Settles what becomes of a node of the extent map to which no address leads. */
static void
look_for_node(struct smart_endpoints *endpoints, unsigned int node)
{
	struct smart_node_info info;
	struct smart_peer peer;
	bool found = !smart_peer_get(endpoints->peers, node, &peer);

	smart_assert(node < FABRIC_NODES_MAX && endpoints->peers->launcher == MyProcPid);
	for (int i = 0; i < FABRIC_NODES_MAX; i++)
		found |= endpoints->endpoint[i].used && endpoints->endpoint[i].node == (int) node;
	if (found)
		return;
	if (endpoints->displaced[node])
	{
		endpoints->displaced[node] = false;
		smart_endpoint_give_up(endpoints, node, true, "it came back with an empty region",
							   "An empty region was found there.");
	}
	else if (peer.state == SMART_PEER_CONNECTING)
	{
		peer.state = SMART_PEER_DOWN;
		strlcpy(peer.problem, "it was found at none of the addresses", sizeof(peer.problem));
		smart_peer_put(endpoints->peers, node, &peer);
		smart_extents_rest_node(&endpoints->client->space, node, true);
		ereport(LOG, errmsg("memory node %u is down: %s", node, peer.problem), errhint("Check smart.memory_nodes."));
	}
	else if (peer.state == SMART_PEER_LOST &&
			 (!smart_extents_node_info(&endpoints->client->space, node, &info) || info.state == SMART_NODE_NONE))
		smart_peer_remove(endpoints->peers, node);
}

static bool
is_in_use(const struct smart_endpoints *endpoints, unsigned int node)
{
	struct smart_node_info info;

	return smart_extents_node_info(&endpoints->client->space, node, &info) && info.state == SMART_NODE_ACTIVE;
}

static bool
is_up(const struct smart_endpoints *endpoints, unsigned int node)
{
	struct smart_peer peer;

	smart_assert(node < FABRIC_NODES_MAX);
	return smart_peer_get(endpoints->peers, node, &peer) && peer.state == SMART_PEER_UP;
}

/* The place that the settings, or memcached, name for a node; NULL: none. */
static const struct smart_endpoint *
named_place(const struct smart_endpoints *endpoints, unsigned int node)
{
	for (int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		const struct smart_endpoint *endpoint = &endpoints->endpoint[i];

		if (endpoint->listed && smart_endpoint_leads_to(endpoints, endpoint, node))
			return endpoint;
	}
	return NULL;
}

/* Is nothing left on a node that is closed? */
static bool
is_emptied(const struct smart_endpoints *endpoints, unsigned int node)
{
	struct smart_node_info info;

	return smart_extents_node_info(&endpoints->client->space, node, &info) && info.state == SMART_NODE_ACTIVE &&
		   info.closed && info.chunks == 0 && info.trees == 0;
}

/* For how long a node of the extent map may be away; UINT64_MAX: for ever. */
static uint64
patience_ns(const struct smart_endpoints *endpoints, unsigned int node)
{
	struct smart_peer peer;

	/* It is there, and another server has it. */
	if (smart_peer_get(endpoints->peers, node, &peer) && peer.state == SMART_PEER_REFUSED)
		return UINT64_MAX;
	/* A node that announces itself is forgotten by memcached when it is away. */
	if (smart_settings.cluster[0] == '\0' && named_place(endpoints, node) == NULL)
		return UNNAMED_MS * UINT64CONST(1000000);
	return smart_settings.node_lost_after_s == 0 ? UINT64_MAX
												 : (uint64) smart_settings.node_lost_after_s * UINT64CONST(1000000000);
}

/* A node on which nothing is left leaves the extent map, and the table of peers. */
static void
forget_emptied(struct smart_endpoints *endpoints, unsigned int node)
{
	char address[SMART_ADDRESS_MAX] = "";
	struct smart_peer peer;

	smart_assert(node < FABRIC_NODES_MAX && endpoints->peers->launcher == MyProcPid);
	if (!smart_space_forget_node(&endpoints->client->space, node))
		return;
	if (smart_peer_get(endpoints->peers, node, &peer) && peer.host[0] != '\0')
		smart_peer_address(peer.host, peer.port, address);
	smart_peer_raise_generation(endpoints->peers, node);
	smart_peer_remove(endpoints->peers, node);
	endpoints->away_ns[node] = unnamed_ns[node] = 0;
	for (int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		struct smart_endpoint *endpoint = &endpoints->endpoint[i];

		if (!endpoint->used || endpoint->node != (int) node)
			continue;
		endpoint->node = -1;
		smart_endpoint_remove(endpoints, endpoint);
	}
	ereport(LOG, address[0] != '\0'
					 ? errmsg("memory node %u at %s is not used any more: nothing is left on it", node, address)
					 : errmsg("memory node %u is not used any more: nothing is left on it", node));
}

static void
give_up_absent(struct smart_endpoints *endpoints, unsigned int node, uint64 away_ns)
{
	const struct smart_endpoint *place = named_place(endpoints, node);
	struct smart_peer peer;
	char reason[64];

	smart_assert(node < FABRIC_NODES_MAX && away_ns > 0);
	/* After a start of the server the table does not know it. */
	if (place != NULL && smart_peer_get(endpoints->peers, node, &peer) && peer.host[0] == '\0')
	{
		strlcpy(peer.host, place->address.host, sizeof(peer.host));
		strlcpy(peer.port, place->address.port, sizeof(peer.port));
		smart_peer_put(endpoints->peers, node, &peer);
	}
	snprintf(reason, sizeof(reason), "it was away for %d s", (int) (away_ns / UINT64CONST(1000000000)));
	smart_endpoint_give_up(endpoints, node, false, reason,
						   "What it holds is of no use any more, and other memory nodes are up.");
	for (int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		if (endpoints->endpoint[i].used && endpoints->endpoint[i].node == (int) node)
			endpoints->endpoint[i].node = -1;
	}
}

/* When statements begin to do without a node, which is in use; UINT64_MAX: never. */
static uint64
missed_from_ns(const struct smart_endpoints *endpoints, unsigned int node)
{
	smart_assert(node < FABRIC_NODES_MAX);
	if (endpoints->away_ns[node] == 0 || smart_settings.node_down_after_s == 0 || smart_server_recovers())
		return UINT64_MAX;
	return endpoints->away_ns[node] + (uint64) smart_settings.node_down_after_s * UINT64CONST(1000000000);
}

/* Statements do without a node from now on, until it is back; indexes that it has can be loaded elsewhere. */
static void
miss(struct smart_endpoints *endpoints, unsigned int node)
{
	struct smart_peer peer;

	smart_assert(node < FABRIC_NODES_MAX && endpoints->away_ns[node] != 0);
	if (!smart_peer_get(endpoints->peers, node, &peer) || peer.missed)
		return;
	peer.missed = true;
	smart_peer_put(endpoints->peers, node, &peer);
	smart_validity_announce_trees(&endpoints->client->space, false);
	ereport(LOG, errmsg("memory node %u is away: statements do without the indexes on it", node),
			errdetail("Those with a journal are loaded on other memory nodes, if these are up."));
}

/*
 * Sees to nodes that have been away for too long: statements do without them; and they are given up, if another one is there
 * to take their indexes.
 */
static void
look_at_absent(struct smart_endpoints *endpoints)
{
	uint64 now = smart_endpoints_now_ns(endpoints);
	bool others = false;

	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
		others |= is_in_use(endpoints, node) && is_up(endpoints, node);
	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
	{
		uint64 *since = &endpoints->away_ns[node];

		smart_assert(*since <= now);
		if (!is_in_use(endpoints, node) || is_up(endpoints, node))
			*since = 0;
		else if (*since == 0)
			*since = now;
		else if (is_emptied(endpoints, node))
		{
			if (now - *since >= patience_ns(endpoints, node))
				forget_emptied(endpoints, node);
		}
		else if (others && now - *since >= patience_ns(endpoints, node))
			give_up_absent(endpoints, node, now - *since);
		else if (now >= missed_from_ns(endpoints, node))
			miss(endpoints, node);
	}
}

/* ---- nodes that are not named any more ---- */

/* For how long a node may not be named before it is closed; UINT64_MAX: for ever.  memcached may have been restarted. */
static uint64
unnamed_patience_ns(void)
{
	if (smart_settings.cluster[0] == '\0')
		return UNNAMED_MS * UINT64CONST(1000000);
	return smart_settings.node_lost_after_s == 0 ? UINT64_MAX
												 : (uint64) smart_settings.node_lost_after_s * UINT64CONST(1000000000);
}

/* Closes a node, or opens it again, with a note why. */
static void
close_unnamed(struct smart_endpoints *endpoints, unsigned int node, bool closed)
{
	struct smart_space *space = &endpoints->client->space;

	smart_assert(node < FABRIC_NODES_MAX && endpoints->peers->launcher == MyProcPid);
	/* The note first: a node that is closed without one was retired by somebody. */
	if (closed)
		smart_extents_set_note(space, node, SMART_NODE_UNNAMED);
	smart_space_close_node(space, node, closed);
	if (!closed)
		smart_extents_set_note(space, node, 0);
	smart_moves_request();
	ereport(LOG, closed ? errmsg("memory node %u is not named any more: what is on it moves to others", node)
						: errmsg("memory node %u is named again, and stays in use", node));
}

static bool
has_other_open(const struct smart_endpoints *endpoints, unsigned int node)
{
	for (unsigned int other = 0; other < FABRIC_NODES_MAX; other++)
	{
		if (other != node && is_in_use(endpoints, other) && is_up(endpoints, other) &&
			named_place(endpoints, other) != NULL && !smart_space_node_is_closed(&endpoints->client->space, other))
			return true;
	}
	return false;
}

/* Settles whether a node of the extent map that is there is to be used further. */
static void
look_whether_named(struct smart_endpoints *endpoints, unsigned int node)
{
	uint64 now = smart_endpoints_now_ns(endpoints);
	struct smart_node_info info;

	smart_assert(node < FABRIC_NODES_MAX && unnamed_ns[node] <= now);
	if (!smart_extents_node_info(&endpoints->client->space, node, &info) || info.state != SMART_NODE_ACTIVE)
		unnamed_ns[node] = 0;
	else if (named_place(endpoints, node) != NULL)
	{
		unnamed_ns[node] = 0;
		if (info.closed && info.note == SMART_NODE_UNNAMED)
			close_unnamed(endpoints, node, false);
	}
	else if (unnamed_ns[node] == 0)
		unnamed_ns[node] = now;
	else if (is_emptied(endpoints, node))
		forget_emptied(endpoints, node);
	else if (!info.closed && is_up(endpoints, node) && now - unnamed_ns[node] >= unnamed_patience_ns() &&
			 has_other_open(endpoints, node))
		close_unnamed(endpoints, node, true);
}

bool
smart_endpoints_are_up(struct smart_endpoints *endpoints)
{
	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
	{
		if (is_in_use(endpoints, node) && !is_up(endpoints, node))
			return false;
	}
	return true;
}

/* ---- a round ---- */

void
smart_endpoints_tend(struct smart_endpoints *endpoints)
{
	uint64 end;
	bool in_time = true;
	bool all_tried = true;

	smart_assert(endpoints->peers->launcher == MyProcPid);
	follow_addresses(endpoints);
	/* Behind the question to memcached, which may take as long by itself: an endpoint that is late has to be noticed. */
	end = smart_endpoints_now_ns(endpoints) + SLOW_MS * UINT64CONST(1000000);
	for (int i = 0; i < FABRIC_NODES_MAX && in_time && !ProcDiePending; i++)
	{
		struct smart_endpoint *endpoint = &endpoints->endpoint[endpoints->next++ % FABRIC_NODES_MAX];

		if (!endpoint->used)
			continue;
		smart_endpoint_tend(endpoints, endpoint);
		in_time = smart_endpoints_now_ns(endpoints) < end;
		/* DROP DATABASE and DROP TABLESPACE wait for every process that is connected to the server. */
		if (ProcSignalBarrierPending)
			ProcessProcSignalBarrier();
	}
	for (int i = 0; i < FABRIC_NODES_MAX; i++)
		all_tried &= !endpoints->endpoint[i].used || endpoints->endpoint[i].tried;
	if (!all_tried)
		return;
	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
		look_for_node(endpoints, node);
	look_at_absent(endpoints);
	if (!smart_server_recovers())
	{
		for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
			look_whether_named(endpoints, node);
	}
	smart_peers_set_tried(endpoints->peers, true);
}

long
smart_endpoints_rest_ms(const struct smart_endpoints *endpoints)
{
	uint64 now = smart_endpoints_now_ns(endpoints);
	uint64 rest = ROUND_MS;

	for (int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		const struct smart_endpoint *endpoint = &endpoints->endpoint[i];
		uint64 from = endpoint->asked ? smart_endpoint_late_ns(endpoint) : endpoint->next_ns;

		if (endpoint->used)
			rest = Min(rest, from > now ? (from - now + 999999) / 1000000 : 0);
	}
	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
	{
		uint64 from = missed_from_ns(endpoints, node);

		if (from > now && from != UINT64_MAX)
			rest = Min(rest, (from - now + 999999) / 1000000);
	}
	smart_assert(rest <= ROUND_MS);
	return (long) rest;
}

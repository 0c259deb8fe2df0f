/*
 * endpoint.c
 *	  One address of a memory node, as the launcher sees it: connecting, leasing, asking how it is, losing it.
 *
 * Making a connection waits for a second at most.  The request for the node's state does not wait: the reply wakes
 * the launcher.  A node that hangs keeps its connections.  It is down when smart.node_down_after is over since its last
 * reply, or as much time as a statement gives it, if that is less.  A loaded node needs time for its reply, so it is
 * asked several times within that.  Then it is down as one whose connection has ended, with another generation, and has
 * been away since its last reply.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"

#include "am/nodes/endpoint.h"
#include "am/nodes/locate.h"
#include "am/nodes/reconcile.h"
#include "am/server/rebuild_table.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "am/server/tree_changes.h"
#include "am/server/validity.h"
#include "base/assert.h"
#include "compute/allocate/extents.h"

#define CONNECT_MS 1000
#define PERIOD_MS  1000  /* between two attempts; at most, between two questions */
#define QUESTIONS  8     /* within the time after which a node is down */
#define SLOW_MS    5000  /* between two attempts that took long: the others must not wait for them */
#define KNOCK_MS   10000 /* between two looks whether new sessions get in, as long as the key is the same */

static uint64
after_ms(struct smart_endpoints *endpoints, uint64 ms)
{
	return smart_endpoints_now_ns(endpoints) + ms * 1000000;
}

/* ---- the table and the log ---- */

static unsigned int
place_of(const struct smart_endpoints *endpoints, const struct smart_endpoint *endpoint)
{
	smart_assert(endpoint >= endpoints->endpoint && endpoint < endpoints->endpoint + FABRIC_NODES_MAX);
	smart_assert(endpoint->node < FABRIC_NODES_MAX);
	return endpoint->node >= 0 ? (unsigned int) endpoint->node
							   : FABRIC_NODES_MAX + (unsigned int) (endpoint - endpoints->endpoint);
}

/* A node rests while it is away: other indexes go on with the memory of other nodes. */
static void
rest(struct smart_endpoints *endpoints, const struct smart_endpoint *endpoint, bool rests)
{
	if (endpoint->node >= 0)
		smart_extents_rest_node(&endpoints->client->space, (unsigned int) endpoint->node, rests);
}

/* A session's problem says for itself where it was. */
static void
tell_problem(struct smart_peer *peer, const char *address, const char *problem)
{
	char prefix[SMART_ADDRESS_MAX + 16];

	snprintf(prefix, sizeof(prefix), "memory node %s: ", address);
	strlcpy(peer->problem, strncmp(problem, prefix, strlen(prefix)) == 0 ? problem + strlen(prefix) : problem,
			sizeof(peer->problem));
}

/* node: -1, it is not known which one it is. */
static void
log_absence(int node, const char *address, enum smart_peer_state state, const char *problem)
{
	smart_assert(state == SMART_PEER_DOWN || state == SMART_PEER_REFUSED);
	if (state == SMART_PEER_REFUSED)
		ereport(LOG, node >= 0 ? errmsg("memory node %d at %s is refused: %s", node, address, problem)
							   : errmsg("memory node at %s is refused: %s", address, problem));
	else
		ereport(LOG, node >= 0 ? errmsg("memory node %d at %s is down: %s", node, address, problem)
							   : errmsg("memory node at %s is down: %s", address, problem));
}

void
smart_endpoint_report(struct smart_endpoints *endpoints, struct smart_endpoint *endpoint, enum smart_peer_state state,
					  const char *problem)
{
	unsigned int place = place_of(endpoints, endpoint);
	struct smart_peer peer;
	bool changed = !smart_peer_get(endpoints->peers, place, &peer) || peer.state != state;
	bool was_missed = peer.missed;
	bool was_down = peer.state == SMART_PEER_DOWN;
	char address[SMART_ADDRESS_MAX];

	smart_assert(endpoint->used && (endpoint->node >= 0 || (state != SMART_PEER_UP && state != SMART_PEER_LOST)));
	smart_peer_address(endpoint->address.host, endpoint->address.port, address);
	peer.state = state;
	peer.shut = false;
	peer.missed = was_missed && state != SMART_PEER_UP;
	strlcpy(peer.host, endpoint->address.host, sizeof(peer.host));
	strlcpy(peer.port, endpoint->address.port, sizeof(peer.port));
	if (problem != NULL)
		tell_problem(&peer, address, problem);
	/* Before it can be reached: a node whose chunks rest would be asked for new ones. */
	if (state == SMART_PEER_UP)
		rest(endpoints, endpoint, false);
	smart_peer_put(endpoints->peers, place, &peer);
	if (state != SMART_PEER_UP && state != SMART_PEER_CONNECTING)
		rest(endpoints, endpoint, true);
	/* Pages have answered meanwhile. */
	if ((was_missed && !peer.missed) || (was_down && state == SMART_PEER_UP))
		smart_validity_announce_trees(&endpoints->client->space, false);
	/* Lost indexes may have waited for it, and longer and longer. */
	if (changed && state == SMART_PEER_UP)
		smart_rebuild_hasten();
	if (changed && state == SMART_PEER_UP)
		ereport(LOG, errmsg("memory node %d at %s is up", endpoint->node, address),
				errdetail("It has " UINT64_FORMAT " MB, of which " UINT64_FORMAT " MB are allocated, is reached "
						  "by %s, and knows this server as owner %016llx.",
						  peer.capacity >> 20, peer.allocated >> 20, peer.transport == WIRE_TCP ? "TCP" : "RDMA",
						  (unsigned long long) smart_server.identity));
	else if (changed && state != SMART_PEER_CONNECTING)
		log_absence(endpoint->node, address, state, peer.problem);
}

static uint64
count_lost_trees(struct smart_space *space)
{
	struct smart_tree_info info;
	uint64 cursor = 0;
	uint64 lost = 0;

	while (smart_space_next_tree(space, &cursor, &info))
		lost += info.lost;
	return lost;
}

void
smart_endpoint_give_up(struct smart_endpoints *endpoints, unsigned int node, bool forgot, const char *reason,
					   const char *explanation)
{
	struct smart_space *space = &endpoints->client->space;
	uint64 before = count_lost_trees(space);
	char address[SMART_ADDRESS_MAX];
	struct smart_peer peer;

	smart_assert(node < FABRIC_NODES_MAX && endpoints->peers->launcher == MyProcPid);
	smart_changes_foretell();
	smart_extents_lose_node(space, node);
	smart_peer_raise_generation(endpoints->peers, node);
	smart_peer_get(endpoints->peers, node, &peer);
	peer.state = SMART_PEER_LOST;
	peer.missed = false;
	strlcpy(peer.problem, reason, sizeof(peer.problem));
	smart_peer_put(endpoints->peers, node, &peer);
	smart_validity_announce_trees(space, true);
	if (peer.host[0] == '\0')
		strlcpy(address, "an address that is not known any more", sizeof(address));
	else
		smart_peer_address(peer.host, peer.port, address);
	ereport(LOG,
			forgot ? errmsg("memory node %u at %s has lost its memory", node, address)
				   : errmsg("memory node %u at %s is given up: %s", node, address, reason),
			/* While startup recovery is pending, the indexes are not yet lost: recovery finds out which ones are. */
			smart_server_recovers() ? errdetail_internal("%s", explanation)
									: errdetail("%s Indexes that had a part on it: " UINT64_FORMAT ".", explanation,
												count_lost_trees(space) - before),
			smart_settings.auto_rebuild
				? errhint("They are loaded or rebuilt in the background; smart_index_state shows how far that is.")
				: errhint("Those with a journal are loaded in the background. Rebuild the others with REINDEX; "
						  "smart_index_state shows which ones are \"lost\"."));
}

/* ---- the end of a session ---- */

static void
end_session(struct smart_endpoint *endpoint)
{
	if (endpoint->session != NULL)
		session_close(endpoint->session);
	endpoint->session = NULL;
	endpoint->asked = false;
}

/* The node has gone.  All processes check their connections to it. */
static void
lose_session(struct smart_endpoints *endpoints, struct smart_endpoint *endpoint, const char *problem)
{
	char text[SESSION_PROBLEM_MAX];

	smart_assert(endpoint->node >= 0 && endpoint->session != NULL);
	strlcpy(text, problem, sizeof(text)); /* it may be the session's */
	end_session(endpoint);
	smart_endpoint_report(endpoints, endpoint, SMART_PEER_DOWN, text);
	smart_peer_raise_generation(endpoints->peers, (unsigned int) endpoint->node);
	endpoint->next_ns = smart_endpoints_now_ns(endpoints);
}

void
smart_endpoint_remove(struct smart_endpoints *endpoints, struct smart_endpoint *endpoint)
{
	smart_assert(endpoint->used && endpoint->node < 0);
	end_session(endpoint);
	smart_peer_remove(endpoints->peers, place_of(endpoints, endpoint));
	memset(endpoint, 0, sizeof(*endpoint));
}

/* ---- making a connection ---- */

/* The transport to a node that offers these. */
static uint32
wanted_transport(uint32 offered)
{
	if (smart_settings.rdma_device[0] == '\0')
		return (offered & WIRE_RDMA) != 0 && smart_locate_has_rdma() ? WIRE_RDMA : WIRE_TCP;
	return strcmp(smart_settings.rdma_device, SMART_RDMA_NONE) == 0 ? WIRE_TCP : WIRE_RDMA;
}

/*
 * Chooses the transport to the node, whose number in the extent map is known, or -1.  SMART_UNREACHABLE: the node
 * cannot be used.  Two addresses may lead to one node; the first that does is used.
 */
static smart_status
choose_transport(struct smart_endpoints *endpoints, struct smart_endpoint *endpoint, int known, uint32 *transport,
				 char problem[SESSION_PROBLEM_MAX])
{
	uint32 offered = session_welcome(endpoint->session)->transports;
	uint32 wanted = wanted_transport(offered);
	char address[SMART_ADDRESS_MAX];

	smart_assert(endpoint->session != NULL && known < FABRIC_NODES_MAX);
	smart_assert(wanted == WIRE_TCP || wanted == WIRE_RDMA);
	*transport = wanted;
	if ((offered & wanted) == 0)
	{
		snprintf(problem, SESSION_PROBLEM_MAX, "it does not offer %s", wanted == WIRE_TCP ? "tcp" : "RDMA verbs");
		return SMART_UNREACHABLE;
	}
	for (int i = 0; known >= 0 && i < FABRIC_NODES_MAX; i++)
	{
		const struct smart_endpoint *other = &endpoints->endpoint[i];

		if (other == endpoint || other->session == NULL || other->node != known)
			continue;
		snprintf(problem, SESSION_PROBLEM_MAX, "it is memory node %d, which is connected at %s", known,
				 smart_peer_address(other->address.host, other->address.port, address));
		return SMART_UNREACHABLE;
	}
	return SMART_OK;
}

/* An address as the extent map stores it. */
static uint64
address_hash(const struct smart_address *address)
{
	char text[SMART_ADDRESS_MAX];

	smart_peer_address(address->host, address->port, text);
	return hash_bytes_extended((const unsigned char *) text, (int) strlen(text), 0);
}

bool
smart_endpoint_leads_to(const struct smart_endpoints *endpoints, const struct smart_endpoint *endpoint,
						unsigned int node)
{
	struct smart_node_info info;

	if (!endpoint->used || endpoint->node >= 0)
		return endpoint->used && endpoint->node == (int) node;
	return smart_extents_node_info(&endpoints->client->space, node, &info) &&
		   info.address == address_hash(&endpoint->address);
}

/*
 * The memory node at this address is number now (-1: one that was never met).  If it is another node than before,
 * whose region is younger than our last sight of the node before, it took that node's place.  A node that was never
 * met also took the place of nodes that were here before this launcher ran.
 */
static void
leave_node(struct smart_endpoints *endpoints, struct smart_endpoint *endpoint, int number)
{
	uint64 address = address_hash(&endpoint->address);
	struct smart_node_info info;
	struct smart_peer peer;

	smart_assert(number >= -1 && number < FABRIC_NODES_MAX);
	if (endpoint->node >= 0 && endpoint->node != number)
	{
		smart_endpoint_report(endpoints, endpoint, SMART_PEER_DOWN, "another memory node is at its address now");
		endpoints->displaced[endpoint->node] = number < 0 || endpoints->added_ns[number] > endpoint->seen_ns;
		endpoint->node = -1;
	}
	smart_assert(endpoint->node < 0 || endpoint->node == number);
	for (unsigned int node = 0; number < 0 && node < FABRIC_NODES_MAX; node++)
	{
		if (!smart_extents_node_info(&endpoints->client->space, node, &info) || info.state != SMART_NODE_ACTIVE ||
			info.address != address || !smart_peer_get(endpoints->peers, node, &peer))
			continue;
		endpoints->displaced[node] = true;
		strlcpy(peer.host, endpoint->address.host, sizeof(peer.host));
		strlcpy(peer.port, endpoint->address.port, sizeof(peer.port));
		smart_peer_put(endpoints->peers, node, &peer);
	}
}

/* Lets the endpoint stand for a node; another endpoint that stood for it does no more. */
static void
become(struct smart_endpoints *endpoints, struct smart_endpoint *endpoint, unsigned int number)
{
	smart_assert(number < FABRIC_NODES_MAX && endpoint->used && endpoint->session != NULL);
	if (endpoint->node < 0)
		smart_peer_remove(endpoints->peers, place_of(endpoints, endpoint));
	for (int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		if (endpoints->endpoint[i].used && endpoints->endpoint[i].node == (int) number)
			endpoints->endpoint[i].node = -1;
	}
	endpoint->node = (int) number;
	endpoints->displaced[number] = false;
	smart_assert(place_of(endpoints, endpoint) == number);
	smart_extents_set_address(&endpoints->client->space, number, address_hash(&endpoint->address));
}

/* Stores the state that the node has replied. */
static void
keep_state(struct smart_endpoints *endpoints, struct smart_endpoint *endpoint, const struct wire_node_status *status,
		   uint64 round_trip_ns)
{
	struct smart_peer peer;

	smart_assert(endpoint->node >= 0 && endpoint->session != NULL);
	endpoint->seen_ns = smart_endpoints_now_ns(endpoints);
	smart_peer_get(endpoints->peers, (unsigned int) endpoint->node, &peer);
	peer.capacity = status->capacity;
	peer.allocated = status->allocated;
	peer.round_trip_ns = round_trip_ns;
	smart_peer_put(endpoints->peers, (unsigned int) endpoint->node, &peer);
	smart_extents_set_room(&endpoints->client->space, (unsigned int) endpoint->node,
						   (uint32) (status->capacity / SMART_CHUNK_BYTES),
						   (uint32) ((status->capacity - Min(status->allocated, status->capacity)) /
									 SMART_CHUNK_BYTES));
}

/* Whether a chunk was given back remains unknown: no chunk is compared again until the server's next start. */
static void
note_unanswered(struct smart_endpoints *endpoints, const struct smart_endpoint *endpoint)
{
	struct smart_peer peer;

	smart_assert(endpoint->node >= 0 && endpoint->node < FABRIC_NODES_MAX);
	smart_peer_get(endpoints->peers, (unsigned int) endpoint->node, &peer);
	peer.unanswered = true;
	smart_peer_put(endpoints->peers, (unsigned int) endpoint->node, &peer);
}

/*
 * Takes the lease of the node, whose number in the extent map is known, or -1.  SMART_STALE: another server that
 * began with a copy of our extent map has used the node since, or the node's memory came back from a copy.  Then what
 * the extent map has there is gone, and the next attempt begins anew.
 */
static smart_status
take_lease(struct smart_endpoints *endpoints, struct smart_endpoint *endpoint, int known, struct wire_lease *lease)
{
	struct smart_node_info info;
	smart_status status;

	smart_assert(endpoint->session != NULL && known < FABRIC_NODES_MAX && lease->heir_of == 0);
	if (known >= 0 && smart_extents_node_info(&endpoints->client->space, (unsigned int) known, &info))
		lease->heir_of = info.leased;
	/* Without an heir the node would free what the extent map has there. */
	if (known >= 0 && lease->heir_of == 0)
		status = SMART_STALE;
	else
		status = session_lease(endpoint->session, lease, after_ms(endpoints, CONNECT_MS));
	smart_assert(status != SMART_OK || known < 0 || lease->heir_of != 0);
	if (status == SMART_STALE && known >= 0)
	{
		become(endpoints, endpoint, (unsigned int) known);
		smart_endpoint_give_up(endpoints, (unsigned int) known, false, "it is not as this server left it",
							   "A copy of this server, or a copy of what either of them had stored, has been in use.");
		endpoint->node = -1;
	}
	return status;
}

/* Reconciles the node with the extent map; later, if startup recovery is pending. */
static smart_status
reconcile(struct smart_endpoints *endpoints, struct smart_endpoint *endpoint)
{
	unsigned int node = (unsigned int) endpoint->node;
	bool unanswered = false;
	struct smart_peer peer;
	smart_status status;

	smart_assert(endpoint->node >= 0 && endpoint->session != NULL);
	endpoint->unsettled = smart_server_recovers();
	if (endpoint->unsettled)
		return SMART_OK;
	(void) smart_peer_get(endpoints->peers, node, &peer);
	status = smart_reconcile_unknown(endpoints->client, endpoint->session, node, !peer.unanswered, &unanswered);
	if (unanswered)
		note_unanswered(endpoints, endpoint);
	return status;
}

/* A memory node answers: may and can this server use it? */
static smart_status
join(struct smart_endpoints *endpoints, struct smart_endpoint *endpoint, char problem[SESSION_PROBLEM_MAX])
{
	struct smart_client *client = endpoints->client;
	const struct wire_welcome *welcome = session_welcome(endpoint->session);
	struct wire_lease lease = {.extents = smart_region_header(client->compute->region)->incarnation};
	struct wire_node_status state;
	struct smart_node_info info;
	struct smart_peer peer;
	int known = -1; /* the number that the extent map gave this region */
	unsigned int number;
	smart_status status;

	for (unsigned int node = 0; node < FABRIC_NODES_MAX && known < 0; node++)
	{
		if (smart_extents_node_info(&client->space, node, &info) && info.state == SMART_NODE_ACTIVE &&
			info.incarnation == welcome->node)
			known = (int) node;
	}
	leave_node(endpoints, endpoint, known);
	status = choose_transport(endpoints, endpoint, known, &lease.transport, problem);
	if (status != SMART_OK)
		return status;
	status = take_lease(endpoints, endpoint, known, &lease);
	if (status != SMART_OK)
	{
		strlcpy(problem, session_problem(endpoint->session), SESSION_PROBLEM_MAX);
		return status;
	}
	status = smart_extents_add_node(&client->space, welcome->node, &number);
	if (status != SMART_OK)
	{
		snprintf(problem, SESSION_PROBLEM_MAX, "the extent map has no room for it: %s", smart_status_text(status));
		return status;
	}
	smart_assert(number < FABRIC_NODES_MAX);
	if (known < 0)
	{
		endpoints->added_ns[number] = smart_endpoints_now_ns(endpoints);
		smart_peer_remove(endpoints->peers, number); /* the number may have been another one's */
	}
	smart_extents_set_lease(&client->space, number, client->compute->remote->incarnation);
	become(endpoints, endpoint, number);
	if (!smart_peer_get(endpoints->peers, number, &peer))
		peer.state = SMART_PEER_CONNECTING;
	peer.incarnation = welcome->node;
	peer.transport = lease.transport;
	smart_peer_put(endpoints->peers, number, &peer);

	/* Agree with the node on what is whose, then let the backends come. */
	status = reconcile(endpoints, endpoint);
	if (status == SMART_OK)
		status = session_node_status(endpoint->session, after_ms(endpoints, CONNECT_MS), &state);
	if (status != SMART_OK)
	{
		strlcpy(problem, session_problem(endpoint->session), SESSION_PROBLEM_MAX);
		return status;
	}
	keep_state(endpoints, endpoint, &state, session_round_trip_ns(endpoint->session));
	smart_endpoint_report(endpoints, endpoint, SMART_PEER_UP, NULL);
	return SMART_OK;
}

/* Makes a session to the address, with the key that the last look at it has found. */
static smart_status
open_session(struct smart_endpoints *endpoints, struct smart_endpoint *endpoint, struct session **session,
			 char problem[SESSION_PROBLEM_MAX])
{
	struct smart_client *client = endpoints->client;
	struct smart_remote *remote = client->compute->remote;
	struct session_options options = {
		.env = client->env,
		.secret = remote->secret,
		.hello = {.owner = remote->owner,
				  .system = remote->system,
				  .incarnation = remote->incarnation,
				  .client = client->number,
				  .pid = (uint32) MyProcPid},
		.timeout_ms = CONNECT_MS,
	};
	smart_status status = session_open(&options, endpoint->address.host, endpoint->address.port, session, problem);

	smart_assert(endpoint->used);
	endpoint->knocked_ns = smart_endpoints_now_ns(endpoints);
	if (status == SMART_OK)
		endpoint->key = hash_bytes_extended(remote->secret->key, (int) remote->secret->length, 0);
	return status;
}

static void
connect_node(struct smart_endpoints *endpoints, struct smart_endpoint *endpoint)
{
	uint64 start = smart_endpoints_now_ns(endpoints);
	char problem[SESSION_PROBLEM_MAX] = "";
	enum smart_peer_state state = SMART_PEER_DOWN;
	smart_status status = smart_locate_read_secret(problem);

	smart_assert(endpoint->used && endpoint->session == NULL && !endpoint->asked);
	if (status == SMART_OK)
		status = open_session(endpoints, endpoint, &endpoint->session, problem);
	if (status == SMART_OK)
	{
		state = SMART_PEER_REFUSED;
		status = join(endpoints, endpoint, problem);
	}
	if (ProcDiePending)
		return;
	endpoint->tried = true;
	endpoint->next_ns =
		after_ms(endpoints, smart_endpoints_now_ns(endpoints) - start > UINT64CONST(500000000) ? SLOW_MS : PERIOD_MS);
	smart_assert(status != SMART_OK || (endpoint->node >= 0 && endpoint->session != NULL));
	if (status == SMART_OK)
		return;
	end_session(endpoint);
	smart_endpoint_report(endpoints, endpoint, state, problem[0] != '\0' ? problem : smart_status_text(status));
}

/* ---- while it is connected ---- */

/* A node that has not replied for so long is down. */
static uint64
limit_ms(void)
{
	uint64 limit = (uint64) smart_settings.fabric_timeout_ms;

	if (smart_settings.node_down_after_s > 0)
		limit = Min(limit, (uint64) smart_settings.node_down_after_s * 1000);
	smart_assert(limit >= QUESTIONS);
	return limit;
}

static uint64
question_ms(void)
{
	return Min(PERIOD_MS, limit_ms() / QUESTIONS);
}

/* When a node that has been asked replied at the latest, if it hangs: it was asked so long after its last reply. */
static uint64
silent_since_ns(const struct smart_endpoint *endpoint)
{
	smart_assert(endpoint->asked);
	return endpoint->asked_ns - question_ms() * 1000000;
}

uint64
smart_endpoint_late_ns(const struct smart_endpoint *endpoint)
{
	return endpoint->asked ? silent_since_ns(endpoint) + limit_ms() * 1000000 : UINT64_MAX;
}

/* The reply has come, or it is late. */
static void
await_reply(struct smart_endpoints *endpoints, struct smart_endpoint *endpoint)
{
	struct smart_env *env = endpoints->client->env;
	struct wire_node_status state;
	const uint8_t *reply;
	uint32_t length;
	smart_status status;

	smart_assert(endpoint->asked && endpoint->session != NULL && endpoint->node >= 0);
	if (!env->wait_descriptor(env, session_descriptor(endpoint->session), false, 0))
	{
		if (smart_endpoints_now_ns(endpoints) >= smart_endpoint_late_ns(endpoint))
		{
			endpoints->away_ns[endpoint->node] = silent_since_ns(endpoint);
			lose_session(endpoints, endpoint, "it does not answer");
		}
		return;
	}
	status = session_receive(endpoint->session, after_ms(endpoints, CONNECT_MS), &reply, &length);
	endpoint->asked = false;
	if (status == SMART_OK && !wire_get_node_status(reply, length, &state))
		lose_session(endpoints, endpoint, "its reply is not one of this protocol");
	else if (status != SMART_OK)
		lose_session(endpoints, endpoint, session_problem(endpoint->session));
	else
		keep_state(endpoints, endpoint, &state, smart_endpoints_now_ns(endpoints) - endpoint->asked_ns);
}

/* Notes whether new sessions get in, and logs it if that is news; the problem is the session's, or of the key's file. */
static void
note_shut(struct smart_endpoints *endpoints, const struct smart_endpoint *endpoint, const char *problem)
{
	unsigned int node = (unsigned int) endpoint->node;
	char address[SMART_ADDRESS_MAX];
	struct smart_peer peer;
	bool was_shut;

	smart_assert(endpoint->node >= 0 && endpoint->session != NULL);
	if (!smart_peer_get(endpoints->peers, node, &peer) || (problem == NULL && !peer.shut))
		return;
	was_shut = peer.shut;
	peer.shut = problem != NULL;
	smart_peer_address(endpoint->address.host, endpoint->address.port, address);
	if (problem != NULL)
		tell_problem(&peer, address, problem);
	smart_peer_put(endpoints->peers, node, &peer);
	if (peer.shut && !was_shut)
		ereport(LOG, errmsg("memory node %u at %s does not let new sessions in: %s", node, address, peer.problem),
				errdetail("Those that are connected go on."));
	else if (was_shut && !peer.shut)
		ereport(LOG, errmsg("memory node %u at %s lets new sessions in again", node, address));
}

/*
 * A session that lasts says nothing about new ones, which need the key as it is now.  So they are tried, at once when the
 * key is another one.
 */
static void
knock(struct smart_endpoints *endpoints, struct smart_endpoint *endpoint)
{
	const struct stream_secret *secret = smart_locate_secret();
	char problem[SESSION_PROBLEM_MAX] = "";
	struct session *session;
	smart_status status = smart_locate_read_secret(problem);

	smart_assert(endpoint->node >= 0 && endpoint->session != NULL);
	if (status == SMART_OK && endpoint->key == hash_bytes_extended(secret->key, (int) secret->length, 0) &&
		smart_endpoints_now_ns(endpoints) < endpoint->knocked_ns + KNOCK_MS * UINT64CONST(1000000))
		return;
	if (status == SMART_OK)
	{
		status = open_session(endpoints, endpoint, &session, problem);
		if (status == SMART_OK)
			session_close(session);
	}
	/* Until they get in, they are tried each time. */
	if (status != SMART_OK)
		endpoint->knocked_ns = 0;
	/* A node that has gone, or is slow, is noticed elsewhere. */
	if (status == SMART_OK)
		note_shut(endpoints, endpoint, NULL);
	else if (status == SMART_UNREACHABLE && !session_is_lost(endpoint->session))
		note_shut(endpoints, endpoint, problem);
}

/* Does pending frees, and asks for the node's state when it is time. */
static void
use_session(struct smart_endpoints *endpoints, struct smart_endpoint *endpoint)
{
	bool unanswered = false;
	bool ask = false;
	smart_status status = SMART_OK;

	smart_assert(endpoint->node >= 0 && endpoint->session != NULL && !endpoint->asked);
	if (endpoint->unsettled)
		status = reconcile(endpoints, endpoint);
	if (status == SMART_OK && !endpoint->unsettled)
		status =
			smart_reconcile_pending(endpoints->client, endpoint->session, (unsigned int) endpoint->node, &unanswered);
	if (unanswered)
		note_unanswered(endpoints, endpoint);
	if (status == SMART_OK)
	{
		ask = smart_endpoints_now_ns(endpoints) >= endpoint->next_ns;
		if (ask)
			knock(endpoints, endpoint);
		if (ask)
			status = session_send(endpoint->session, WIRE_STATUS, 0);
	}
	if (status != SMART_OK)
		lose_session(endpoints, endpoint, session_problem(endpoint->session));
	else if (ask)
	{
		endpoint->asked = true;
		endpoint->asked_ns = smart_endpoints_now_ns(endpoints);
		endpoint->next_ns = after_ms(endpoints, question_ms());
	}
	smart_assert(endpoint->asked == (ask && status == SMART_OK));
}

void
smart_endpoint_tend(struct smart_endpoints *endpoints, struct smart_endpoint *endpoint)
{
	smart_assert(endpoint->used && (endpoint->session != NULL || !endpoint->asked));
	if (endpoint->session == NULL)
	{
		if (smart_endpoints_now_ns(endpoints) >= endpoint->next_ns)
			connect_node(endpoints, endpoint);
	}
	else if (endpoint->asked)
		await_reply(endpoints, endpoint);
	else if (session_is_lost(endpoint->session))
		lose_session(endpoints, endpoint, "the connection is lost");
	else
		use_session(endpoints, endpoint);
}

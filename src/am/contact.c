/*
 * contact.c
 *	  One address of a memory node, as the background worker sees it: connecting,
 *	  leasing, asking how it is, losing it.
 *
 * Making a connection waits for a second at most.  The question how the node is
 * does not wait: its answer wakes the worker.  A node that is slow, because it
 * writes a snapshot, say, is given as much time as a statement is.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"

#include "am/contact.h"
#include "am/locate.h"
#include "am/server.h"
#include "am/settings.h"
#include "am/settle.h"
#include "base/assert.h"
#include "compute/book.h"

#define CONNECT_MS 1000
#define PERIOD_MS  1000 /* between two questions, or two attempts */
#define SLOW_MS    5000 /* between two attempts that took long: the others must not wait for them */

static uint64
now_ns(struct smart_contacts *contacts)
{
	return contacts->client->env->now_ns(contacts->client->env);
}

static uint64
after_ms(struct smart_contacts *contacts, uint64 ms)
{
	return now_ns(contacts) + ms * 1000000;
}

/* ---- the table and the log ---- */

static unsigned int
place_of(const struct smart_contacts *contacts, const struct smart_contact *contact)
{
	return contact->node >= 0 ? (unsigned int) contact->node
							  : FABRIC_NODES_MAX + (unsigned int) (contact - contacts->contact);
}

static void
log_state(const struct smart_contact *contact, const struct smart_peer *peer)
{
	char address[SMART_ADDRESS_MAX];
	char number[16] = "";

	smart_peer_address(peer->host, peer->port, address);
	if (contact->node >= 0)
		snprintf(number, sizeof(number), "%d ", contact->node);
	if (peer->state == SMART_PEER_UP)
		ereport(LOG,
				(errmsg("memory node %sat %s is up", number, address),
				 errdetail("It has " UINT64_FORMAT " MB, of which " UINT64_FORMAT " MB are allocated, and is "
						   "reached by %s.",
						   peer->capacity >> 20, peer->allocated >> 20, peer->transport == WIRE_TCP ? "TCP" : "RDMA")));
	else
		ereport(LOG, (errmsg("memory node %sat %s is %s: %s", number, address, smart_peer_state_name(peer->state),
							 peer->problem)));
}

/* A session's problem says for itself where it was. */
static const char *
without_address(const struct smart_contact *contact, const char *problem)
{
	char address[SMART_ADDRESS_MAX];
	char prefix[SMART_ADDRESS_MAX + 16];
	int length;

	smart_peer_address(contact->address.host, contact->address.port, address);
	length = snprintf(prefix, sizeof(prefix), "memory node %s: ", address);
	return strncmp(problem, prefix, (size_t) length) == 0 ? problem + length : problem;
}

static void
rest(struct smart_contacts *contacts, const struct smart_contact *contact, bool rests)
{
	if (contact->node >= 0)
		smart_book_rest_node(&contacts->client->space, (unsigned int) contact->node, rests);
}

void
smart_contact_report(struct smart_contacts *contacts, struct smart_contact *contact, enum smart_peer_state state,
					 const char *problem)
{
	unsigned int place = place_of(contacts, contact);
	struct smart_peer peer;
	bool changed = !smart_peer_get(contacts->peers, place, &peer) || peer.state != state;

	peer.state = state;
	strlcpy(peer.host, contact->address.host, sizeof(peer.host));
	strlcpy(peer.port, contact->address.port, sizeof(peer.port));
	if (problem != NULL)
		strlcpy(peer.problem, without_address(contact, problem), sizeof(peer.problem));
	/* Before it can be reached: a node whose chunks rest would be asked for new ones. */
	if (state == SMART_PEER_UP)
		rest(contacts, contact, false);
	smart_peer_put(contacts->peers, place, &peer);
	/* Other indexes go on with the memory of other nodes. */
	if (state != SMART_PEER_UP && state != SMART_PEER_CONNECTING)
		rest(contacts, contact, true);
	if (changed && state != SMART_PEER_CONNECTING)
		log_state(contact, &peer);
}

/* ---- the end of a session ---- */

static void
end_session(struct smart_contact *contact)
{
	if (contact->session != NULL)
		session_close(contact->session);
	contact->session = NULL;
	contact->asked = false;
}

/* The node has gone: everybody's connections to it are in doubt. */
static void
lose_session(struct smart_contacts *contacts, struct smart_contact *contact, const char *problem)
{
	char text[SESSION_PROBLEM_MAX];

	strlcpy(text, problem, sizeof(text)); /* it may be the session's */
	end_session(contact);
	smart_contact_report(contacts, contact, SMART_PEER_DOWN, text);
	smart_peer_raise_generation(contacts->peers, (unsigned int) contact->node);
	contact->next_ns = now_ns(contacts);
}

void
smart_contact_remove(struct smart_contacts *contacts, struct smart_contact *contact)
{
	smart_assert(contact->used && contact->node < 0);
	end_session(contact);
	smart_peer_remove(contacts->peers, place_of(contacts, contact));
	memset(contact, 0, sizeof(*contact));
}

/* ---- making a connection ---- */

static smart_status
choose_transport(uint32 offered, uint32 *transport, char problem[SESSION_PROBLEM_MAX])
{
	uint32 wanted = (uint32) smart_settings.transport;

	if (wanted == SMART_TRANSPORT_AUTO)
		wanted = (offered & WIRE_RDMA) != 0 && smart_locate_has_rdma() ? WIRE_RDMA : WIRE_TCP;
	*transport = wanted;
	if ((offered & wanted) != 0)
		return SMART_OK;
	snprintf(problem, SESSION_PROBLEM_MAX, "it does not offer %s", wanted == WIRE_TCP ? "tcp" : "RDMA verbs");
	return SMART_UNREACHABLE;
}

/* Two addresses may lead to one node; the first that does is used. */
static smart_status
refuse_second_address(struct smart_contacts *contacts, struct smart_contact *contact, int number,
					  char problem[SESSION_PROBLEM_MAX])
{
	char address[SMART_ADDRESS_MAX];

	for (int i = 0; number >= 0 && i < FABRIC_NODES_MAX; i++)
	{
		const struct smart_contact *other = &contacts->contact[i];

		if (other == contact || other->session == NULL || other->node != number)
			continue;
		snprintf(problem, SESSION_PROBLEM_MAX, "it is memory node %d, which is connected at %s", number,
				 smart_peer_address(other->address.host, other->address.port, address));
		return SMART_UNREACHABLE;
	}
	return SMART_OK;
}

/*
 * Which memory node is at this address now (-1: one that was never met), if it is another one than before.  A
 * memory that is younger than our last sight of the one before took its place.
 */
static void
leave_node(struct smart_contacts *contacts, struct smart_contact *contact, int number)
{
	if (contact->node < 0 || contact->node == number)
		return;
	smart_contact_report(contacts, contact, SMART_PEER_DOWN, "another memory node is at its address now");
	contacts->displaced[contact->node] = number < 0 || contacts->added_ns[number] > contact->seen_ns;
	contact->node = -1;
}

/* An address as the book remembers it. */
static uint64
address_hash(const struct smart_address *address)
{
	char text[SMART_ADDRESS_MAX];

	smart_peer_address(address->host, address->port, text);
	return hash_bytes_extended((const unsigned char *) text, (int) strlen(text), 0);
}

/* A memory that was never met is here: memory nodes that were here before this worker ran, if there are any. */
static void
displace_former(struct smart_contacts *contacts, const struct smart_contact *contact)
{
	uint64 address = address_hash(&contact->address);
	struct smart_node_info info;
	struct smart_peer peer;

	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
	{
		if (!smart_book_node_info(&contacts->client->space, node, &info) || info.state != SMART_NODE_ACTIVE ||
			info.address != address || !smart_peer_get(contacts->peers, node, &peer))
			continue;
		contacts->displaced[node] = true;
		strlcpy(peer.host, contact->address.host, sizeof(peer.host));
		strlcpy(peer.port, contact->address.port, sizeof(peer.port));
		smart_peer_put(contacts->peers, node, &peer);
	}
}

/* Lets the contact stand for a node; another one, whose address was another one, does no more. */
static void
become(struct smart_contacts *contacts, struct smart_contact *contact, unsigned int number)
{
	if (contact->node < 0)
		smart_peer_remove(contacts->peers, place_of(contacts, contact));
	for (int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		if (contacts->contact[i].used && contacts->contact[i].node == (int) number)
			contacts->contact[i].node = -1;
	}
	contact->node = (int) number;
	contacts->displaced[number] = false;
	smart_book_set_address(&contacts->client->space, number, address_hash(&contact->address));
}

/* Stores what the node said about itself. */
static void
keep_state(struct smart_contacts *contacts, struct smart_contact *contact, const struct wire_node_status *status,
		   uint64 round_trip_ns)
{
	struct smart_peer peer;

	contact->seen_ns = now_ns(contacts);
	smart_peer_get(contacts->peers, (unsigned int) contact->node, &peer);
	peer.capacity = status->capacity;
	peer.allocated = status->allocated;
	peer.round_trip_ns = round_trip_ns;
	smart_peer_put(contacts->peers, (unsigned int) contact->node, &peer);
}

/* Whether a chunk was given back remains unknown: no chunk is compared again until the server's next start. */
static void
note_unanswered(struct smart_contacts *contacts, const struct smart_contact *contact)
{
	struct smart_peer peer;

	smart_peer_get(contacts->peers, (unsigned int) contact->node, &peer);
	peer.unanswered = true;
	smart_peer_put(contacts->peers, (unsigned int) contact->node, &peer);
}

/*
 * Another server that began with a copy of our book has used the node since, or the node's memory
 * came back from a copy: what the book says is there, is not.  The next attempt begins anew.
 */
static void
leave_foreign(struct smart_contacts *contacts, struct smart_contact *contact, int known)
{
	if (known < 0)
		return;
	become(contacts, contact, (unsigned int) known);
	smart_contacts_give_up(contacts, (unsigned int) known, "it is not as this server left it",
						   "A copy of this server, or a copy of what either of them had stored, has been in use.");
	contact->node = -1;
}

/* Takes the lease of the node, whose number in the book is known, or -1. */
static smart_status
take_lease(struct smart_contacts *contacts, struct smart_contact *contact, int known, struct wire_lease *lease)
{
	struct smart_node_info info;

	if (known >= 0 && smart_book_node_info(&contacts->client->space, (unsigned int) known, &info))
		lease->heir_of = info.leased;
	/* The node would free what the book believes to be there. */
	if (known >= 0 && lease->heir_of == 0)
		return SMART_STALE;
	return session_lease(contact->session, lease, after_ms(contacts, CONNECT_MS));
}

/* Agrees with the node on what is whose; later, if the book has yet to be recovered (gate.h). */
static smart_status
settle(struct smart_contacts *contacts, struct smart_contact *contact)
{
	unsigned int node = (unsigned int) contact->node;
	bool unanswered = false;
	struct smart_peer peer;
	smart_status status;

	contact->unsettled = smart_server_recovers();
	if (contact->unsettled)
		return SMART_OK;
	(void) smart_peer_get(contacts->peers, node, &peer);
	status = smart_settle_unknown(contacts->client, contact->session, node, !peer.unanswered, &unanswered);
	if (unanswered)
		note_unanswered(contacts, contact);
	return status;
}

/* The node has given its lease: agree with it on what is whose, then let the backends come. */
static smart_status
take_in(struct smart_contacts *contacts, struct smart_contact *contact, uint32 transport)
{
	unsigned int node = (unsigned int) contact->node;
	struct session *session = contact->session;
	struct wire_node_status state;
	struct smart_peer peer;
	smart_status status;

	if (!smart_peer_get(contacts->peers, node, &peer))
		peer.state = SMART_PEER_CONNECTING;
	peer.incarnation = session_welcome(session)->node;
	peer.transport = transport;
	smart_peer_put(contacts->peers, node, &peer);
	status = settle(contacts, contact);
	if (status == SMART_OK)
		status = session_node_status(session, after_ms(contacts, CONNECT_MS), &state);
	if (status != SMART_OK)
		return status;
	keep_state(contacts, contact, &state, session_round_trip_ns(session));
	smart_contact_report(contacts, contact, SMART_PEER_UP, NULL);
	return SMART_OK;
}

/* A memory node answers: may and can this server use it? */
static smart_status
join(struct smart_contacts *contacts, struct smart_contact *contact, char problem[SESSION_PROBLEM_MAX])
{
	struct smart_client *client = contacts->client;
	const struct wire_welcome *welcome = session_welcome(contact->session);
	struct wire_lease lease = {.book = smart_region_header(client->compute->region)->incarnation};
	int known = smart_contacts_number(contacts, welcome->node);
	unsigned int number;
	smart_status status;

	leave_node(contacts, contact, known);
	if (known < 0)
		displace_former(contacts, contact);
	status = choose_transport(welcome->transports, &lease.transport, problem);
	if (status == SMART_OK)
		status = refuse_second_address(contacts, contact, known, problem);
	if (status != SMART_OK)
		return status;
	status = take_lease(contacts, contact, known, &lease);
	if (status == SMART_STALE)
		leave_foreign(contacts, contact, known);
	if (status != SMART_OK)
	{
		strlcpy(problem, session_problem(contact->session), SESSION_PROBLEM_MAX);
		return status;
	}
	status = smart_book_add_node(&client->space, welcome->node, &number);
	if (status != SMART_OK)
	{
		snprintf(problem, SESSION_PROBLEM_MAX, "the book has no room for it: %s", smart_status_text(status));
		return status;
	}
	if (known < 0)
	{
		contacts->added_ns[number] = now_ns(contacts);
		smart_peer_remove(contacts->peers, number); /* the number may have been another one's */
	}
	smart_book_set_lease(&client->space, number, client->compute->remote->incarnation);
	become(contacts, contact, number);
	status = take_in(contacts, contact, lease.transport);
	if (status != SMART_OK)
		strlcpy(problem, session_problem(contact->session), SESSION_PROBLEM_MAX);
	return status;
}

static void
connect_node(struct smart_contacts *contacts, struct smart_contact *contact)
{
	struct smart_client *client = contacts->client;
	struct smart_remote *remote = client->compute->remote;
	struct session_options options = {
		.env = client->env,
		.secret = remote->secret,
		.hello = {.owner = remote->owner,
				  .incarnation = remote->incarnation,
				  .client = client->number,
				  .pid = (uint32) MyProcPid},
		.timeout_ms = CONNECT_MS,
	};
	uint64 start = now_ns(contacts);
	char problem[SESSION_PROBLEM_MAX] = "";
	enum smart_peer_state state = SMART_PEER_DOWN;
	smart_status status = smart_locate_read_secret(problem);

	if (status == SMART_OK)
		status = session_open(&options, contact->address.host, contact->address.port, &contact->session, problem);
	if (status == SMART_OK)
	{
		state = SMART_PEER_REFUSED;
		status = join(contacts, contact, problem);
	}
	if (ProcDiePending)
		return;
	contact->tried = true;
	contact->next_ns = after_ms(contacts, now_ns(contacts) - start > UINT64CONST(500000000) ? SLOW_MS : PERIOD_MS);
	if (status == SMART_OK)
		return;
	end_session(contact);
	smart_contact_report(contacts, contact, state, problem[0] != '\0' ? problem : smart_status_text(status));
}

/* ---- while it is connected ---- */

static bool
is_readable(struct smart_contacts *contacts, const struct smart_contact *contact)
{
	struct smart_env *env = contacts->client->env;

	return env->wait_descriptor(env, session_descriptor(contact->session), false, 0);
}

static void
take_answer(struct smart_contacts *contacts, struct smart_contact *contact)
{
	struct wire_node_status state;
	const uint8_t *answer;
	uint32_t length;
	smart_status status;

	status = session_receive(contact->session, after_ms(contacts, CONNECT_MS), &answer, &length);
	contact->asked = false;
	if (status == SMART_OK && !wire_get_node_status(answer, length, &state))
		lose_session(contacts, contact, "its answer is not one of this protocol");
	else if (status != SMART_OK)
		lose_session(contacts, contact, session_problem(contact->session));
	else
		keep_state(contacts, contact, &state, now_ns(contacts) - contact->asked_ns);
}

/* The answer has come, or it is late. */
static void
await_answer(struct smart_contacts *contacts, struct smart_contact *contact)
{
	uint64 limit = (uint64) smart_settings.fabric_timeout_ms * 1000000;

	if (is_readable(contacts, contact))
		take_answer(contacts, contact);
	else if (now_ns(contacts) - contact->asked_ns > limit)
		lose_session(contacts, contact, "it does not answer");
}

static void
ask(struct smart_contacts *contacts, struct smart_contact *contact)
{
	smart_status status = session_send(contact->session, WIRE_STATUS, 0);

	if (status != SMART_OK)
	{
		lose_session(contacts, contact, session_problem(contact->session));
		return;
	}
	contact->asked = true;
	contact->asked_ns = now_ns(contacts);
	contact->next_ns = after_ms(contacts, PERIOD_MS);
}

/* Works off duties, and asks how the node is when it is time. */
static void
use_session(struct smart_contacts *contacts, struct smart_contact *contact)
{
	bool unanswered = false;
	smart_status status = SMART_OK;

	if (contact->unsettled)
		status = settle(contacts, contact);
	if (status == SMART_OK && !contact->unsettled)
		status = smart_settle_duties(contacts->client, contact->session, (unsigned int) contact->node, &unanswered);
	if (unanswered)
		note_unanswered(contacts, contact);
	if (status != SMART_OK)
		lose_session(contacts, contact, session_problem(contact->session));
	else if (now_ns(contacts) >= contact->next_ns)
		ask(contacts, contact);
}

void
smart_contact_tend(struct smart_contacts *contacts, struct smart_contact *contact)
{
	if (contact->session == NULL)
	{
		if (now_ns(contacts) >= contact->next_ns)
			connect_node(contacts, contact);
	}
	else if (contact->asked)
		await_answer(contacts, contact);
	else if (session_is_lost(contact->session))
		lose_session(contacts, contact, "the connection is lost");
	else
		use_session(contacts, contact);
}

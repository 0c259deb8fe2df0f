/*
 * contacts.c
 *	  All addresses that the background worker looks after, and which memory node
 *	  is where.
 *
 * An address that once led to a memory node of the book is kept for as long as
 * the worker runs, even if nobody names it any more: indexes may be there.
 *
 * A memory node is given up for lost when an empty region is found at its
 * address, which the book remembers from one start of the server to the next, and
 * its own at no other one.  That a node does not answer, or is named
 * no more, says nothing about its memory.  It is given up, too, when it is there, but
 * another server with a copy of our book has used it (contact.c).
 */
#include "postgres.h"

#include "miscadmin.h"

#include "am/acceptance.h"
#include "am/contact.h"
#include "am/settings.h"
#include "base/assert.h"
#include "compute/book.h"

#define ROUND_MS 1000 /* between two rounds, at most */

int
smart_contacts_number(struct smart_contacts *contacts, uint64 incarnation)
{
	struct smart_node_info info;

	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
	{
		if (smart_book_node_info(&contacts->client->space, node, &info) && info.state == SMART_NODE_ACTIVE &&
			info.incarnation == incarnation)
			return (int) node;
	}
	return -1;
}

void
smart_contacts_init(struct smart_contacts *contacts, struct smart_client *client, struct smart_peers *peers)
{
	struct smart_node_info info;
	struct smart_peer peer;

	memset(contacts, 0, sizeof(*contacts));
	contacts->client = client;
	contacts->peers = peers;
	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
	{
		/* An earlier worker of this start of the server may have left more than we know. */
		if (smart_peer_get(peers, node, &peer) || !smart_book_node_info(&client->space, node, &info) ||
			info.state == SMART_NODE_NONE)
			continue;
		peer.state = info.state == SMART_NODE_ACTIVE ? SMART_PEER_CONNECTING : SMART_PEER_LOST;
		peer.incarnation = info.incarnation;
		smart_peer_put(peers, node, &peer);
	}
}

void
smart_contacts_forget(struct smart_contacts *contacts)
{
	__atomic_store_n(&contacts->peers->tried, false, __ATOMIC_RELEASE);
	for (int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		contacts->contact[i].node = -1;
		if (contacts->contact[i].used)
			smart_contact_remove(contacts, &contacts->contact[i]);
	}
	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
	{
		smart_peer_raise_generation(contacts->peers, node);
		smart_peer_remove(contacts->peers, node);
	}
	smart_contacts_init(contacts, contacts->client, contacts->peers);
}

/* ---- which addresses there are ---- */

static struct smart_contact *
find_contact(struct smart_contacts *contacts, const struct smart_address *address)
{
	for (int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		struct smart_contact *contact = &contacts->contact[i];

		if (contact->used && strcmp(contact->address.host, address->host) == 0 &&
			strcmp(contact->address.port, address->port) == 0)
			return contact;
	}
	return NULL;
}

static void
add_contact(struct smart_contacts *contacts, const struct smart_address *address)
{
	for (int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		struct smart_contact *contact = &contacts->contact[i];

		if (contact->used)
			continue;
		*contact = (struct smart_contact){.address = *address, .used = true, .listed = true, .node = -1};
		smart_contact_report(contacts, contact, SMART_PEER_CONNECTING, NULL);
		return;
	}
}

static void
follow_list(struct smart_contacts *contacts, const struct smart_address *addresses, unsigned int count)
{
	for (int i = 0; i < FABRIC_NODES_MAX; i++)
		contacts->contact[i].listed = false;
	for (unsigned int i = 0; i < count; i++)
	{
		struct smart_contact *contact = find_contact(contacts, &addresses[i]);

		if (contact != NULL)
			contact->listed = true;
		else
			add_contact(contacts, &addresses[i]);
	}
	for (int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		struct smart_contact *contact = &contacts->contact[i];

		if (contact->used && !contact->listed && contact->node < 0)
			smart_contact_remove(contacts, contact);
	}
}

/* ---- which nodes are missing ---- */

static bool
is_somewhere(const struct smart_contacts *contacts, unsigned int node)
{
	for (int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		if (contacts->contact[i].used && contacts->contact[i].node == (int) node)
			return true;
	}
	return false;
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
smart_contacts_give_up(struct smart_contacts *contacts, unsigned int node, const char *reason, const char *explanation)
{
	struct smart_space *space = &contacts->client->space;
	uint64 before = count_lost_trees(space);
	char address[SMART_ADDRESS_MAX];
	struct smart_peer peer;

	smart_book_lose_node(space, node);
	smart_peer_raise_generation(contacts->peers, node);
	smart_peer_get(contacts->peers, node, &peer);
	peer.state = SMART_PEER_LOST;
	strlcpy(peer.problem, reason, sizeof(peer.problem));
	smart_peer_put(contacts->peers, node, &peer);
	smart_acceptance_announce_lost(space);
	ereport(LOG, (errmsg("memory node %u at %s has lost its memory", node,
						 smart_peer_address(peer.host, peer.port, address)),
				  errdetail("%s Indexes that had a part on it: " UINT64_FORMAT ".", explanation,
							count_lost_trees(space) - before),
				  smart_settings.auto_rebuild
					  ? errhint("They are rebuilt in the background; smart_index_state shows how far that is.")
					  : errhint("Rebuild them with REINDEX; smart_indexes shows which ones are \"lost\".")));
}

/* A node of the book that no address leads to. */
static void
look_for_node(struct smart_contacts *contacts, unsigned int node)
{
	struct smart_node_info info;
	struct smart_peer peer;

	if (!smart_peer_get(contacts->peers, node, &peer) || is_somewhere(contacts, node))
		return;
	if (contacts->displaced[node])
	{
		contacts->displaced[node] = false;
		smart_contacts_give_up(contacts, node, "it came back with an empty region", "An empty region was found there.");
	}
	else if (peer.state == SMART_PEER_CONNECTING)
	{
		peer.state = SMART_PEER_DOWN;
		strlcpy(peer.problem, "it was found at none of the addresses", sizeof(peer.problem));
		smart_peer_put(contacts->peers, node, &peer);
		smart_book_rest_node(&contacts->client->space, node, true);
		ereport(LOG, (errmsg("memory node %u is down: %s", node, peer.problem),
					  errhint("Check smart.memory_nodes, smart.memcached and smart.cluster.")));
	}
	else if (peer.state == SMART_PEER_LOST &&
			 (!smart_book_node_info(&contacts->client->space, node, &info) || info.state == SMART_NODE_NONE))
		smart_peer_remove(contacts->peers, node);
}

bool
smart_contacts_are_up(struct smart_contacts *contacts)
{
	struct smart_node_info info;
	struct smart_peer peer;

	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
	{
		if (smart_book_node_info(&contacts->client->space, node, &info) && info.state == SMART_NODE_ACTIVE &&
			(!smart_peer_get(contacts->peers, node, &peer) || peer.state != SMART_PEER_UP))
			return false;
	}
	return true;
}

/* ---- a round ---- */

static bool
all_tried(const struct smart_contacts *contacts)
{
	for (int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		if (contacts->contact[i].used && !contacts->contact[i].tried)
			return false;
	}
	return true;
}

void
smart_contacts_tend(struct smart_contacts *contacts, const struct smart_address *addresses, unsigned int count)
{
	follow_list(contacts, addresses, count);
	for (int i = 0; i < FABRIC_NODES_MAX && !ProcDiePending; i++)
	{
		if (contacts->contact[i].used)
			smart_contact_tend(contacts, &contacts->contact[i]);
	}
	if (!all_tried(contacts))
		return;
	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
		look_for_node(contacts, node);
	smart_peers_tried(contacts->peers);
}

long
smart_contacts_rest_ms(const struct smart_contacts *contacts)
{
	uint64 now = contacts->client->env->now_ns(contacts->client->env);
	uint64 rest = ROUND_MS;

	for (int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		const struct smart_contact *contact = &contacts->contact[i];

		if (contact->used && !contact->asked)
			rest = Min(rest, contact->next_ns > now ? (contact->next_ns - now + 999999) / 1000000 : 0);
	}
	return (long) rest;
}

/*
 * contact.h
 *	  The background worker's connections to memory nodes: one session to each
 *	  address, for the lease, the node's state and its duties.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_CONTACT_H
#define SMART_AM_CONTACT_H

#include "am/addresses.h"
#include "am/peers.h"
#include "compute/client.h"

struct smart_contact
{
	struct smart_address address;
	bool used;
	bool listed;             /* the settings or memcached name it now */
	bool tried;              /* at least once */
	int node;                /* number of the memory node that was found here last, or -1 */
	struct session *session; /* NULL: not connected */
	bool unsettled;          /* what is whose has yet to be agreed upon: the book was not whole */
	bool asked;              /* for the node's state, and not yet answered */
	uint64 asked_ns;         /* when */
	uint64 next_ns;          /* when to try, or to ask, next */
	uint64 seen_ns;          /* when that memory node was seen here last */
};

struct smart_contacts
{
	struct smart_client *client;
	struct smart_peers *peers;
	struct smart_contact contact[FABRIC_NODES_MAX];
	uint64 added_ns[FABRIC_NODES_MAX]; /* by number: when it was met for the first time ever, 0: before this worker */
	bool displaced[FABRIC_NODES_MAX];  /* by number: a memory never met before was found where it had been */
};

/* ---- one of them (contact.c) ---- */

/* Does what is due: connects, notices that the node has gone, asks how it is, works off duties. */
extern void smart_contact_tend(struct smart_contacts *contacts, struct smart_contact *contact);

/* Ends the session, if there is one, and frees the place. */
extern void smart_contact_remove(struct smart_contacts *contacts, struct smart_contact *contact);

/* Says in the table of peers, and in the log if it is new, how the node or the address is. */
extern void smart_contact_report(struct smart_contacts *contacts, struct smart_contact *contact,
								 enum smart_peer_state state, const char *problem);

/* ---- all of them (contacts.c) ---- */

/* Begins with what the book and the table know. */
extern void
smart_contacts_init(struct smart_contacts *contacts, struct smart_client *client, struct smart_peers *peers);

/* Begins anew, with a book that has been made empty. */
extern void smart_contacts_forget(struct smart_contacts *contacts);

/* One round: these are the addresses now. */
extern void
smart_contacts_tend(struct smart_contacts *contacts, const struct smart_address *addresses, unsigned int count);

/* How long until something is due, at most a second. */
extern long smart_contacts_rest_ms(const struct smart_contacts *contacts);

/* Is every memory node that the book has, and that is not lost, up? */
extern bool smart_contacts_are_up(struct smart_contacts *contacts);

/*
 * Loses a node for good: what the book says is there, is not, for this reason, which the log
 * explains: a sentence with its full stop.
 */
extern void
smart_contacts_give_up(struct smart_contacts *contacts, unsigned int node, const char *reason, const char *explanation);

/* The number that the book gave a region's incarnation, or -1. */
extern int smart_contacts_number(struct smart_contacts *contacts, uint64 incarnation);

#endif /* SMART_AM_CONTACT_H */

/*
 * lease.h
 *	  Which server may use what an owner has here now (leases), and by which
 *	  connections (generations).
 */
#ifndef MEMNODE_LEASE_H
#define MEMNODE_LEASE_H

#include "owners.h"

/* Takes a connection in: closes those that it replaces.  WIRE_OK, WIRE_STALE. */
extern enum wire_status memnode_lease_hello(struct memnode_client *client, const struct wire_hello *hello);

/* WIRE_OK, WIRE_HELD, WIRE_FOREIGN, WIRE_UNSUPPORTED (a transport that this node has not), WIRE_FULL (too many owners). */
extern enum wire_status memnode_lease_take(struct memnode_client *client, const struct wire_lease *lease);

/* Notes of all owners with a lease that is in use that they are connected now. */
extern void memnode_lease_see(struct memnode *node);

/* Is the client's incarnation the one with the lease?  Its owner is known then. */
extern bool memnode_lease_held(const struct memnode_client *client);

#endif /* MEMNODE_LEASE_H */

/*
 * lease.h
 *	  Owners: which of them may use this node now (leases), by which connections
 *	  (generations), and what was known about them before.
 */
#ifndef MEMNODE_LEASE_H
#define MEMNODE_LEASE_H

#include "client.h"

#define MEMNODE_OWNER_UNKNOWN UINT32_MAX

/* Finishes what the process before was at when it was killed: owners being emptied are empty and forgotten then. */
extern void memnode_lease_recover(struct memnode *node);

/* Takes a connection in: closes those that it replaces.  WIRE_OK, WIRE_STALE. */
extern enum wire_status memnode_lease_hello(struct memnode_client *client, const struct wire_hello *hello);

/* WIRE_OK, WIRE_HELD, WIRE_FOREIGN, WIRE_UNSUPPORTED (a transport that this node has not), WIRE_FULL (too many owners). */
extern enum wire_status memnode_lease_take(struct memnode_client *client, const struct wire_lease *lease);

/* Is the client's incarnation the one with the lease?  Its owner is known then. */
extern bool memnode_lease_held(const struct memnode_client *client);

#endif /* MEMNODE_LEASE_H */

/*
 * owners.h
 *	  Owners: the servers of which something is kept here, each by the identity of its data directory.
 *
 * A server that never comes back, such as a standby that was thrown away, leaves what it had here.  So the node
 * remembers when an owner was connected last, and can forget one that is not connected: told so by its operator, or to
 * make room for another one.  An owner that was forgotten and comes back all the same is told so by its lease
 * (wire.h), and begins anew.
 */
#ifndef MEMNODE_OWNERS_H
#define MEMNODE_OWNERS_H

#include "client.h"

#define MEMNODE_OWNER_UNKNOWN     UINT32_MAX
#define MEMNODE_OWNER_ADDRESS_MAX 48

/* Finishes what the process before was at when it was killed: owners being emptied are empty and forgotten then. */
extern void memnode_owners_recover(struct memnode *node);

/* The record of this number, below MEMNODE_OWNERS. */
extern struct memnode_owner_record *memnode_owner_get(const struct memnode *node, uint32_t owner);
extern void memnode_owner_set_state(struct memnode_owner_record *record, enum memnode_owner_state state);

/* The number of an identity's record, or MEMNODE_OWNER_UNKNOWN. */
extern uint32_t memnode_owner_find(const struct memnode *node, uint64_t id);

/*
 * A record for the owner of a client, which has none: an unused one, or one that is not needed any more, or that of an
 * owner that can be forgotten.  MEMNODE_OWNER_UNKNOWN: there is none.
 */
extern uint32_t memnode_owner_add(struct memnode *node, const struct memnode_client *client);

/* Frees all that is an owner's; the record says that this goes on, until the caller sets another state. */
extern void memnode_owner_empty(struct memnode *node, uint32_t owner);

/* Its sessions, also those without the lease. */
extern unsigned int memnode_owner_sessions(const struct memnode *node, uint32_t owner);

/* Notes that the owner of a client that has its lease is connected now, and from where. */
extern void memnode_owner_see(const struct memnode_client *client);

/* For how many seconds an owner has not been connected, while this process ran; 0: it is. */
extern uint64_t memnode_owner_away_s(const struct memnode *node, uint32_t owner);

/* The address that it was seen at last, as text; empty: not known. */
extern void memnode_owner_address(const struct memnode_owner_record *record, char text[MEMNODE_OWNER_ADDRESS_MAX]);

/* Frees all that is an owner's, and its record.  False: it is connected, and nothing has changed. */
extern bool memnode_owner_forget(struct memnode *node, uint32_t owner);

/*
 * Forgets the owner that has been away for longest, if that is node->forget_after_s at least.  False: there is none such
 * that has anything here.
 */
extern bool memnode_owners_make_room(struct memnode *node);

#endif /* MEMNODE_OWNERS_H */

/*
 * memnode_peer.h
 *	  A memory node in this process, and clients that talk to it without sockets.
 *
 * A test that cannot go on aborts.
 */
#ifndef TEST_MEMNODE_PEER_H
#define TEST_MEMNODE_PEER_H

#include "memnode/client.h"
#include "memnode/lease.h"
#include "memnode/serve.h"

#define MEMNODE_PEER_SYSTEM UINT64_C(7412345678901234567) /* the cluster of all clients */

/* An empty region of size bytes, of incarnation 1, in memory that forked processes share. */
extern void memnode_peer_region(struct memnode_region *region, uint64_t size);
extern void memnode_peer_unmap(struct memnode_region *region);

/* A node on the region, as if it had just started; free it with memnode_close and free. */
extern struct memnode *memnode_peer_node(const struct memnode_region *region);

/* Hands a request to the client's input without serving it. */
extern void
memnode_peer_send(struct memnode_client *client, enum wire_type type, const uint8_t *payload, uint32_t length);

/* Serves what has come, and takes the next reply.  -1: there is none. */
extern int memnode_peer_receive(struct memnode_client *client, uint8_t *reply, uint32_t *length);

/* Both.  Returns the reply's status, or -1. */
extern int memnode_peer_call(struct memnode_client *client, enum wire_type type, const uint8_t *payload,
							 uint32_t length, uint8_t *reply, uint32_t *result_length);

/* Requests.  Replies that do not fit the request abort. */
extern int memnode_peer_hello(struct memnode_client *client, uint64_t owner, uint64_t incarnation, bool verbs,
							  uint32_t generation, uint32_t number);
extern int memnode_peer_lease_of(struct memnode_client *client, uint64_t extents, uint64_t heir_of, uint32_t transport);

/* The same, with the lease that is there, of whatever owner, continued. */
extern int memnode_peer_lease(struct memnode_client *client, uint64_t extents, uint32_t transport);
extern int memnode_peer_take(struct memnode_client *client, uint32_t wanted, uint32_t *chunks, uint32_t *count);
extern int memnode_peer_make_tree(struct memnode_client *client, uint64_t id, uint64_t *root);
extern int memnode_peer_status(struct memnode_client *client, struct wire_node_status *status);

/* One verb; *request as for a fabric, local included. */
extern int memnode_peer_verb(struct memnode_client *client, struct fabric_request *request);

#endif /* TEST_MEMNODE_PEER_H */

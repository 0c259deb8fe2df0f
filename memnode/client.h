/*
 * client.h
 *	  One connection, as far as it can be served without a socket: what it has
 *	  said of itself, the bytes that came, the bytes to send.
 */
#ifndef MEMNODE_CLIENT_H
#define MEMNODE_CLIENT_H

#include "node.h"

#define MEMNODE_NAME_MAX  80
#define MEMNODE_HELLO_MAX 256 /* bytes of payload that are read before HELLO */

/* Above this many bytes to send a client is not served, and nothing is read from it. */
#define MEMNODE_OUTPUT_BOUND ((size_t) 256 << 10)

/* Bytes at start..end of an allocation. */
struct memnode_buffer
{
	uint8_t *bytes;
	size_t start;
	size_t end;
	size_t capacity;
};

struct memnode_client
{
	struct memnode *node;
	struct memnode_client *next; /* in the node's list, while it is open */
	struct memnode_client *previous;
	char name[MEMNODE_NAME_MAX];  /* its address, for the log */
	bool greeted;                 /* it has said HELLO */
	bool leaving;                 /* to be closed when the last answer is sent; not served any more */
	bool outside;                 /* it has sent an address that it may not use */
	bool ended;                   /* not in the node's list any more */
	bool contested;               /* another incarnation has asked for the lease that it keeps: is its host there? */
	char reason[128];             /* why it leaves, or has ended */
	enum memnode_refusal refusal; /* the same for one that is not greeted */
	uint64_t key;                 /* the name of the one that it has shown; 0: none */
	uint32_t version;             /* of the protocol, as its HELLO says */
	struct wire_hello hello;
	uint32_t owner; /* number of its owner's record, or MEMNODE_OWNER_UNKNOWN */
	struct verbs_target_pair *pair;
	struct memnode_buffer in;
	struct memnode_buffer out;
};

/* A connection that has said nothing yet.  NULL: no memory. */
extern struct memnode_client *memnode_client_open(struct memnode *node, const char *name);

/* Destroys its queue pair, if it has one. */
extern void memnode_client_disconnect(struct memnode_client *client);

/* Its last answer is on its way: nothing else that it has sent takes effect. */
extern void memnode_client_leave(struct memnode_client *client, const char *reason);

/*
 * Takes a client out of service: nothing that it has sent takes effect from now
 * on, its queue pair is destroyed, and its buffers are freed.  Again: nothing.
 */
extern void memnode_client_end(struct memnode_client *client, const char *reason);

/* Ends it, if it has not, and frees it. */
extern void memnode_client_free(struct memnode_client *client);

/* Where the next bytes from the client go, at most *length; NULL: no memory, the client has ended. */
extern uint8_t *memnode_client_room(struct memnode_client *client, size_t *length);
extern void memnode_client_received(struct memnode_client *client, size_t length);

/*
 * The payload of the next frame, and its header; it stays until memnode_client_served.  NULL: no whole
 * frame has come, the client may not be served now, or it has ended, since what it sends is not the protocol.
 */
extern const uint8_t *memnode_client_frame(struct memnode_client *client, struct wire_header *header);

/* The frame that began with this header has been served.  The client has not ended. */
extern void memnode_client_served(struct memnode_client *client, const struct wire_header *header);

/* May more be read from the client? */
extern bool memnode_client_wants(const struct memnode_client *client);

/* What is to be sent, *length bytes (0: nothing), and that length bytes of it have been sent. */
extern const uint8_t *memnode_client_output(const struct memnode_client *client, size_t *length);
extern void memnode_client_sent(struct memnode_client *client, size_t length);

/*
 * For serving: room for an answer's frame with a payload of up to length bytes, NULL: no
 * memory, the client has ended; and the answer to request, whose payload has been put behind the header there.
 */
extern uint8_t *memnode_client_reply_room(struct memnode_client *client, uint32_t length);
extern void memnode_client_reply(struct memnode_client *client, const struct wire_header *request,
								 enum wire_status status, uint32_t length);

#endif /* MEMNODE_CLIENT_H */

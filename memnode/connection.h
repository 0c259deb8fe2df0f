/*
 * connection.h
 *	  A client's socket: moving bytes between it and the client's buffers.
 */
#ifndef MEMNODE_CONNECTION_H
#define MEMNODE_CONNECTION_H

#include "client.h"
#include "rdma/stream.h"

struct memnode_connection
{
	struct memnode_client *client;
	struct stream *stream;
	struct memnode_connection *next; /* for the loop */
	int epoll;
	uint32_t interest;    /* epoll events */
	bool shaken;          /* the TLS handshake is over */
	bool busy;            /* its turn ended before its work */
	uint64_t deadline_ns; /* it is to be ended then; 0: never */
};

/*
 * A connection over an accepted socket, which it owns from now on (also when it fails), watched
 * by epoll with itself as data.  refused: its HELLO is answered with WIRE_BUSY.  NULL: no memory.
 */
extern struct memnode_connection *
memnode_connection_open(struct memnode *node, int epoll, int descriptor, const struct stream_secret *secret,
						const char *name, bool refused);

/* Does what can be done now, within limits; sets busy if that is not all.  Afterwards the client may have ended. */
extern void memnode_connection_turn(struct memnode_connection *connection);

/* Closes the socket, and frees the client. */
extern void memnode_connection_free(struct memnode_connection *connection);

#endif /* MEMNODE_CONNECTION_H */

/*
 * serve.h
 *	  Serving a request: one frame in, one answer out.
 */
#ifndef MEMNODE_SERVE_H
#define MEMNODE_SERVE_H

#include "client.h"

/*
 * Serves a frame if a whole one has come and the client may be served; false otherwise.  The client may have
 * ended, or be leaving, afterwards; others may have ended.
 */
extern bool memnode_serve(struct memnode_client *client);

/* A request in hand: its payload, and where its answer's goes. */
struct memnode_request
{
	struct memnode_client *client;
	struct memnode *node;
	const struct wire_header *header;
	const uint8_t *payload;
	uint8_t *answer;
	uint32_t length; /* of the answer */
};

/* VERBS, which makes room for its answer, and DESCEND, whose answer has room for FABRIC_PATH_BYTES_MAX (verbs.c). */
extern enum wire_status memnode_serve_verbs(struct memnode_request *request);
extern enum wire_status memnode_serve_descent(struct memnode_request *request);

#endif /* MEMNODE_SERVE_H */

/*
 * serve.h
 *	  Serving a request: one frame in, one answer out.
 */
#ifndef MEMNODE_SERVE_H
#define MEMNODE_SERVE_H

#include "client.h"

#define MEMNODE_HELLO_MAX 256 /* bytes of payload that are read before HELLO */

/* Serves a whole frame.  The client may have ended, or be leaving, afterwards; others may have ended. */
extern void memnode_serve(struct memnode_client *client, const struct wire_header *header, const uint8_t *payload);

/* VERBS (verbs.c); *length: bytes of the answer's payload. */
extern enum wire_status memnode_serve_verbs(struct memnode_client *client, const struct wire_header *header,
											const uint8_t *payload, uint32_t *length);

/* DESCEND (offload.c); answer has room for FABRIC_PATH_BYTES_MAX. */
extern enum wire_status memnode_serve_descent(struct memnode_client *client, const struct wire_header *header,
											  const uint8_t *payload, uint8_t *answer, uint32_t *length);

#endif /* MEMNODE_SERVE_H */

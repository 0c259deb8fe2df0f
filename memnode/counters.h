/*
 * counters.h
 *	  What a node has done since it started, for its operator.
 */
#ifndef MEMNODE_COUNTERS_H
#define MEMNODE_COUNTERS_H

#include "rdma/wire.h"

/* Why a connection has not got as far as HELLO's answer. */
enum memnode_refusal
{
	MEMNODE_REFUSED_CLOSED, /* it went by itself after it had begun to speak */
	MEMNODE_REFUSED_KEY,    /* the TLS handshake failed */
	MEMNODE_REFUSED_PROTOCOL,
	MEMNODE_REFUSED_VERSION,
	MEMNODE_REFUSED_BUSY,  /* as many sessions as max-connections */
	MEMNODE_REFUSED_STALE, /* a generation that is over */
	MEMNODE_REFUSED_LATE,
	MEMNODE_REFUSED_ROOM, /* it had to make room at the door */
	MEMNODE_REFUSED_MEMORY,
	MEMNODE_REFUSALS
};

struct memnode_counters
{
	uint64_t connections; /* accepted */
	uint64_t refused[MEMNODE_REFUSALS];
	uint64_t requests[WIRE_TYPES];       /* answered, by type */
	uint64_t answers[WIRE_STATUS_COUNT]; /* by status */
	uint64_t verbs[FABRIC_VERBS];        /* of batches that were executed, */
	uint64_t verb_bytes[FABRIC_VERBS];   /* and what they moved */
	uint64_t received_bytes;             /* of messages, without what TLS adds */
	uint64_t sent_bytes;
	uint64_t reloads[2]; /* of settings and key: refused ones, and others */
};

#endif /* MEMNODE_COUNTERS_H */

/*
 * link.h
 *	  The RDMA link from inside: verbs.c makes it, batch.c carries batches.
 */
#ifndef SMART_RDMA_VERBS_LINK_H
#define SMART_RDMA_VERBS_LINK_H

#include "rdma/link.h"
#include "rdma/verbs/common.h"

#define VERBS_QUEUE_MAX    128         /* work requests of a round */
#define VERBS_BUFFER_BYTES (256 << 10) /* of a round: counts as locked memory, for each link */
#define VERBS_INLINE_MAX   512         /* a WRITE's bytes that go with its work request, if the device is able to */
#define VERBS_NUDGES_MAX   6           /* of a round (batch.c) */
#define VERBS_SPARE        (2 * VERBS_NUDGES_MAX) /* work requests: those of this round, and of the last one */

/* A request, or a part of one that is larger than the buffer, as one work request. */
struct verbs_piece
{
	struct fabric_request *request;
	uint32_t start;  /* bytes of the request before this piece */
	uint32_t length; /* bytes */
	uint32_t place;  /* in the buffer; nowhere for what is sent inline */
};

struct verbs_link
{
	struct fabric_link link; /* first */
	struct verbs_device device;
	struct ibv_comp_channel *channel;
	struct ibv_cq *completions;
	struct ibv_qp *pair;
	uint8_t *buffer; /* VERBS_BUFFER_BYTES, registered: a client's own memory is not */
	struct ibv_mr *registered;
	uint32_t queue;      /* work requests of a round; the queue pair takes VERBS_SPARE more */
	uint32_t inline_max; /* bytes */
	char place[SESSION_HOST_MAX + SESSION_PORT_MAX]; /* of the memory node, for messages */
	struct wire_queue_pair mine;
	struct wire_queue_pair theirs;

	/* The batch: what of it has not been posted yet begins at byte `done` of requests[next]. */
	struct fabric_request *requests;
	int count;
	int next;
	uint32_t done;

	/* The round under way. */
	uint32_t pieces;
	uint32_t used;   /* bytes of the buffer */
	uint32_t nudges; /* sent */
	bool fetches;    /* there is a READ or an atomic among the pieces */
	struct verbs_piece piece[VERBS_QUEUE_MAX];
	struct ibv_send_wr work[VERBS_QUEUE_MAX];
	struct ibv_sge bytes[VERBS_QUEUE_MAX];
};

/* link.h's post and finish. */
extern smart_status verbs_post(struct fabric_link *link, struct fabric_request *requests, int count);
extern smart_status verbs_finish(struct fabric_link *link, uint64_t deadline_ns);

#endif /* SMART_RDMA_VERBS_LINK_H */

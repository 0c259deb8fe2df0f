/*
 * offload.h
 *	  Cold descents that memory nodes make for this client: when they are worth
 *	  while, and what the last one brought.
 *
 * One for each client, for all its trees.  It is made when the client is opened, and
 * the services point to it.
 */
#ifndef SMART_TREE_OFFLOAD_H
#define SMART_TREE_OFFLOAD_H

#include "base/env.h"
#include "rdma/descent.h"

enum smart_offload_mode
{
	SMART_OFFLOAD_AUTO, /* where it is measured to be faster */
	SMART_OFFLOAD_ON,   /* wherever the cache does not know the way */
	SMART_OFFLOAD_OFF
};

/* What a memory node takes, as far as it was measured. */
struct smart_offload_node
{
	uint64_t trip_ns;       /* a READ, as a moving average; 0: not measured yet */
	uint64_t descent_ns;    /* a descent, likewise */
	uint64_t not_before_ns; /* it was busy, or refused: ask no sooner */
	uint32_t choices;       /* between the two, so far */
};

struct smart_offload
{
	enum smart_offload_mode mode;
	struct smart_offload_node node[FABRIC_NODES_MAX];
	struct fabric_path path; /* of the descent in hand; nothing of it outlives the search that asked for it */
};

extern void smart_offload_init(struct smart_offload *offload, enum smart_offload_mode mode);

#endif /* SMART_TREE_OFFLOAD_H */

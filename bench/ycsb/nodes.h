/*
 * nodes.h
 *	  Running memory nodes (smart-memnode): a session with each, which holds the
 *	  lease, and where clients find them.
 *
 * All runs of ycsb are one owner, so that a memory node frees what a run that
 * was killed has left there, and refuses two runs at a time.
 */
#ifndef YCSB_NODES_H
#define YCSB_NODES_H

#include "compute/client.h"
#include "rdma/remote/remote.h"
#include "options.h"

struct ycsb_nodes
{
	struct fabric_nodes shared; /* first */
	struct smart_remote remote; /* for clients */
	struct stream_secret secret;
	struct smart_env *env;
	uint32_t generation[FABRIC_NODES_MAX];
	unsigned int count;
	struct fabric_location location[YCSB_NODES_MAX];
	struct session *session[YCSB_NODES_MAX];
};

/*
 * Connects to all nodes of options->nodes and takes their leases for an extent map of this incarnation.  env
 * outlives them.  False: the reason was told on stderr; close all the same.
 */
extern bool
ycsb_nodes_open(struct ycsb_nodes *nodes, const struct ycsb_options *options, struct smart_env *env, uint64_t extents);

/* Gives the nodes numbers in the extent map; theirs are their places in the list. */
extern bool ycsb_nodes_add(struct ycsb_nodes *nodes, struct smart_space *space);

/* Tells the nodes what the extent map has yet to tell them: chunks and trees that are free. */
extern void ycsb_nodes_settle(struct ycsb_nodes *nodes, struct smart_space *space);

extern void ycsb_nodes_close(struct ycsb_nodes *nodes);

#endif /* YCSB_NODES_H */

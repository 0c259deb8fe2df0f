/*
 * supply.h
 *	  What a space with an extent map asks of memory nodes: chunks, and roots of trees.
 *
 * A client has one.  Its functions are called without any lock of locks.h held, since a reply may take as long as the
 * time limit, and the wait for it has to be interruptible.
 */
#ifndef SMART_COMPUTE_SUPPLY_H
#define SMART_COMPUTE_SUPPLY_H

#include "base/env.h"
#include "rdma/remote/remote.h"

struct smart_tree_owner;

struct smart_supply
{
	struct smart_env *env;
	struct fabric *fabric; /* reaches the blocks */
	uint32_t timeout_ms;   /* of one request, and of an allocation's wait for memory */

	/* Is it worth asking this memory node?  False: it is known to be down, fabric->problem tells. */
	bool (*reachable)(struct smart_supply *supply, unsigned int node);

	/*
	 * One chunk of zeros: its number in the node's region.  SMART_NO_SPACE: the node is
	 * full.  After SMART_UNREACHABLE, SMART_TIMEOUT, SMART_INTERRUPTED or SMART_NO_MEMORY the node may have
	 * given a chunk that no client knows of; reconciling finds it.
	 */
	smart_status (*take_chunk)(struct smart_supply *supply, unsigned int node, uint32_t *chunk);

	/*
	 * A root slot for the tree, empty.  Errors as take_chunk; SMART_NO_SPACE: the node's directory
	 * is full, and it has made nothing.
	 */
	smart_status (*make_tree)(struct smart_supply *supply, unsigned int node, uint64_t id,
							  const struct smart_tree_owner *owner, fabric_address *root);
};

/* The supply of a server: requests on the sessions of fabric, one of fabric_remote_open().  Both outlive the supply. */
extern void smart_remote_supply_init(struct smart_supply *supply, struct smart_env *env, struct fabric *fabric,
									 uint32_t timeout_ms);

#endif /* SMART_COMPUTE_SUPPLY_H */

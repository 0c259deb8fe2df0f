/*
 * mark.h
 *	  Which blocks a tree has: what its slots lead to, and nothing else.
 */
#ifndef SMART_TREE_MARK_H
#define SMART_TREE_MARK_H

#include "base/env.h"
#include "rdma/fabric.h"
#include "tree/layout.h"

/* One block of the tree: the slot that leads to it, without its F.  Anything but SMART_OK ends the walk. */
typedef smart_status (*smart_mark_fn)(void *argument, smart_slot link);

struct smart_mark
{
	struct fabric *fabric;
	struct smart_env *env;
	fabric_address root;     /* where the root slot lies */
	unsigned int tiny_nodes; /* as smart_tree_options */
	smart_mark_fn mark;
	void *argument;
	char *message; /* what is wrong, after SMART_CORRUPT */
	size_t message_size;
};

/*
 * Calls mark() for every block of a tree that no client changes meanwhile, once for each slot that leads to it, a node
 * before what hangs on it.  It READs the root slot and the nodes, several at a time, and no leaf: mark() has to see
 * to it that no block comes twice, without which the walk might not end.
 *
 * Pending and sealed leaves, frozen nodes and new blocks are as good as others: no block is reached but by one slot,
 * whatever was half done (src/README, every CAS).  SMART_CORRUPT: words that cannot be a tree's.  Errors of mark() and of
 * the fabric, SMART_INTERRUPTED, SMART_NO_MEMORY.
 */
extern smart_status smart_tree_mark(const struct smart_mark *mark);

#endif /* SMART_TREE_MARK_H */

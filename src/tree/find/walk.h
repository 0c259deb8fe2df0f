/*
 * walk.h
 *	  The memory node's side of an offloaded descent: from a link along a key to
 *	  a leaf, by loads of the memory node's own processor.
 *
 * Nothing that is asked is trusted, and nothing that is found: every block has to
 * lie where the client may READ, the number of blocks is bounded, and what does not
 * look like the node that its slot promised ends the walk.
 *
 * Nodes are loaded as a client READs one whose link it does not trust (src/README,
 * B1): header and identity, the slots, header and identity again.  Words are
 * loaded whole, each with acquire.
 */
#ifndef SMART_TREE_WALK_H
#define SMART_TREE_WALK_H

#include "rdma/descent.h"

/* The memory that a walk may look at. */
struct smart_walk_memory
{
	/* [address, address + length), multiples of 8, where the client may read all of it; NULL: it may not. */
	const uint64_t *(*find)(void *argument, fabric_address address, uint32_t length);

	/* A word of it, with acquire. */
	uint64_t (*load)(void *argument, const uint64_t *word);
	void *argument;
	bool exact; /* whatever was acknowledged before the walk began, these loads see (descent.h) */
};

/* Writes the reply, at most FABRIC_PATH_BYTES_MAX; returns its bytes.  Stays on the memory node where it begins. */
extern uint32_t
smart_walk(const struct smart_walk_memory *memory, const struct fabric_descent *descent, uint8_t *reply);

#endif /* SMART_TREE_WALK_H */

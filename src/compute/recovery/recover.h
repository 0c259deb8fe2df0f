/*
 * recover.h
 *	  Recovery of a region, or an extent map, whose server died while clients were at work.
 *
 * The trees are kept as they are: the client that meets what a dead client left half done in one mends it (src/README,
 * Death).  All that says which memory is free is made anew from the trees; recover.c tells what is trusted and what is
 * not.
 *
 *	  smart_region_check()        is it a region at all?
 *	  smart_client_open()         on fresh shared memory: epochs, pins, locks, caches
 *	  smart_space_recover()       by this client alone, before any other client opens
 *	  ... removals of what must not be there, drops of trees that no index names ...
 *	  all other clients
 *
 * It needs the file's bytes as the last process left them.  They outlive the death of any process, and not that of the
 * machine.
 */
#ifndef SMART_COMPUTE_RECOVER_H
#define SMART_COMPUTE_RECOVER_H

#include "base/env.h"
#include "compute/allocate/space.h"
#include "rdma/fabric.h"

struct smart_recovery
{
	/* Set by the caller, or zeros. */
	void (*progress)(void *argument, uint64_t done, uint64_t total); /* blocks found; total is an estimate */
	void *argument;
	unsigned int tiny_nodes; /* of smart_tree_options */

	/* Results. */
	uint64_t trees;      /* in the directory */
	uint64_t lost;       /* of them: with a part on a memory node whose memory is gone */
	uint64_t nodes;      /* internal nodes in trees */
	uint64_t leaves;     /* leaves in trees */
	uint64_t used_pages; /* that hold those */
	uint64_t gained;     /* pages that are free now and were not before */
	char message[160];   /* what is wrong, if something is */
};

/*
 * Makes the space whole again.  Each block of each tree in the directory is in use then, and no other is; there are no
 * retired ones.  Trees that were being made or dropped are in the directory with all they have, or not at all.
 * Persistent segments (segment.h) stay as they are.
 *
 * No other client may use the region, and the reclamation epochs of the space are new (smart_epoch_init with any
 * start).  fabric reaches the blocks; an extent map's memory nodes must have ended all links of the dead server before
 * (its new lease sees to that).  It needs no memory that grows with the region, but for the nodes whose turn is to
 * come: about 2 KiB for each level of a tree, times the nodes that are read together.
 *
 * It may be called again at any time, also after it was interrupted or killed: nothing that it trusts is changed.
 * Unless the result is SMART_OK the space must not be used for anything but another call.
 *
 * SMART_CORRUPT: the trees contradict each other or themselves, message tells how; then nothing in the region is to be
 * trusted, and it has to be made empty.  SMART_INTERRUPTED; SMART_NO_MEMORY (of this process); of an extent map
 * SMART_UNREACHABLE and SMART_TIMEOUT, where a memory node does not answer: call again when it does, or when it has
 * been declared lost.
 */
extern smart_status smart_space_recover(struct smart_space *space, struct fabric *fabric, struct smart_env *env,
										struct smart_recovery *recovery);

#endif /* SMART_COMPUTE_RECOVER_H */

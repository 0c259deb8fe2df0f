/*
 * local.h
 *	  The provider for memory nodes whose regions this process has mapped: plain
 *	  loads and stores, CPU atomics.
 */
#ifndef SMART_RDMA_LOCAL_H
#define SMART_RDMA_LOCAL_H

#include "base/env.h"
#include "rdma/fabric.h"

/* A mapped region.  size tells how many bytes from base on may be touched now; it never falls. */
struct fabric_local_region
{
	uint8_t *base;
	uint64_t (*size)(void *argument);
	void *argument;
};

/*
 * A fabric on regions[0..count), memory node i being regions[i]; the array is
 * copied.  The regions stay mapped for the life of the fabric.  SMART_NO_MEMORY.
 */
extern smart_status fabric_local_open(struct smart_env *env, const struct fabric_local_region *regions,
									  unsigned int count, struct fabric **fabric);

#endif /* SMART_RDMA_LOCAL_H */

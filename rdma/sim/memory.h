/*
 * memory.h
 *	  The memory of simulated memory nodes: arrays, on which verbs take effect.
 */
#ifndef SMART_RDMA_SIM_MEMORY_H
#define SMART_RDMA_SIM_MEMORY_H

#include <string.h>

#include "rdma/fabric.h"

/* Where [address, address + length) lies in memory nodes of so many bytes each; NULL: outside. */
static inline uint8_t *
sim_find(uint8_t *const *base, unsigned int nodes, uint64_t bytes, fabric_address address, uint64_t length)
{
	uint64_t offset = fabric_offset(address);

	if (fabric_node(address) >= nodes || offset >= bytes || length > bytes - offset)
		return NULL;
	return base[fabric_node(address)] + offset;
}

/* An atomic takes effect on its word. */
static inline void
sim_atomic(struct fabric_request *request, uint8_t *memory)
{
	uint64_t word;

	smart_assert(fabric_is_atomic(request) && request->remote % sizeof(word) == 0);
	memcpy(&word, memory, sizeof(word));
	request->result = word;
	if (request->verb == FABRIC_FAA)
		word += request->operand;
	else if (word == request->compare)
		word = request->operand;
	memcpy(memory, &word, sizeof(word));
}

#endif /* SMART_RDMA_SIM_MEMORY_H */

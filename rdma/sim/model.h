/*
 * model.h
 *	  What things take on the simulated cluster: every parameter of its clock, in
 *	  one table that says where the number is from (model.c).
 */
#ifndef SMART_RDMA_SIM_MODEL_H
#define SMART_RDMA_SIM_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "rdma/fabric.h"

struct sim_model
{
	uint64_t round_trip_ns; /* the way there and back, but for queues and bytes */
	uint64_t nic_rate;      /* requests a second of a NIC, on either side */
	uint64_t gbits;         /* a second on a link, each way */
	uint64_t packet_bytes;  /* headers of a packet */
	uint64_t mtu_bytes;     /* data of a packet, at most */
	uint64_t atomic_rate;   /* atomics a second that a memory node's NIC executes */
	uint64_t atomic_gap_ns; /* from one atomic to the next on the same word */
	uint64_t chip_gap_ns;   /* the same on a word in the NIC's own memory */
	uint64_t compute_cores; /* of a compute node; clients share them in turn */
	uint64_t memory_cores;  /* of a memory node */
	uint64_t operation_ns;  /* of a core: an operation of an index, without what is counted below */
	uint64_t doorbell_ns;   /* of a core: telling the NIC that there are requests */
	uint64_t request_ns;    /* of a core: writing one request */
	uint64_t poll_ns;       /* of a core: finding that a batch has completed */
	uint64_t cache_ns;      /* of a core: one look-up in the cache, or one change of it */
	uint64_t lock_ns;       /* of a core: taking or giving back a local lock */
	uint64_t message_ns;    /* of a memory node's core: receiving a message and answering it */
};

struct sim_parameter
{
	const char *name; /* of ycsb's option */
	const char *unit;
	size_t offset; /* in the model */
	uint64_t value;
	uint64_t low; /* what makes sense at all */
	uint64_t high;
	const char *meaning;
	const char *source;
};

#define SIM_PARAMETERS 17

extern const struct sim_parameter sim_parameters[SIM_PARAMETERS];

/* The table's values. */
extern void sim_model_default(struct sim_model *model);

/*
 * Bytes that a request, and its answer, take on a link with all headers: InfiniBand Architecture
 * Specification, volume 1, chapter 9 (extended transport headers).
 */
extern uint64_t sim_request_wire_bytes(const struct sim_model *model, const struct fabric_request *request);
extern uint64_t sim_answer_wire_bytes(const struct sim_model *model, const struct fabric_request *request);

/* The same of a message without extended headers. */
extern uint64_t sim_message_wire_bytes(const struct sim_model *model, uint64_t bytes);

#endif /* SMART_RDMA_SIM_MODEL_H */

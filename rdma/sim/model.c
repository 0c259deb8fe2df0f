/*
 * model.c
 *	  The parameters of the simulated cluster, and the bytes of its messages.
 *
 * "assumed" marks what no source that we have tells; doc/evidence.md says what
 * depends on it.
 */
#include "rdma/sim/model.h"

/* Extended transport headers: what follows a packet's base header (BTH). */
#define RETH_BYTES       16 /* address, key and length of a READ or WRITE */
#define AETH_BYTES       4  /* of an answer */
#define ATOMIC_ETH_BYTES 28 /* address, key and two operands */
#define ATOMIC_ACK_BYTES 8  /* the word that was there */

#define MEMBER(member) offsetof(struct sim_model, member)
#define BILLION        UINT64_C(1000000000)

const struct sim_parameter sim_parameters[SIM_PARAMETERS] = {
	{"round-trip", "ns", MEMBER(round_trip_ns), 2000, 1, BILLION, "a small request on an idle network",
	 "assumed: what the papers call a few microseconds"},
	{"nic-rate", "requests/s", MEMBER(nic_rate), 45000000, 1, BILLION, "of a NIC, on either side",
	 "SMART 3.1.2: about 45 Mops, the bound of the NIC (ConnectX-6)"},
	{"bandwidth", "Gbit/s", MEMBER(gbits), 100, 1, 10000, "of a link, each way", "SMART 5.1, DEX 8.1, DART 5.1"},
	{"packet-header", "bytes", MEMBER(packet_bytes), 26, 0, 1000, "of each packet",
	 "InfiniBand: LRH 8, BTH 12, ICRC 4, VCRC 2"},
	{"mtu", "bytes", MEMBER(mtu_bytes), 4096, 64, 65536, "data of a packet, at most", "InfiniBand: the largest one"},
	{"atomic-rate", "atomics/s", MEMBER(atomic_rate), 20000000, 1, BILLION, "of a memory node's NIC",
	 "assumed: 10 to 50 M/s are usual for ConnectX-5 and -6"},
	{"atomic-gap", "ns", MEMBER(atomic_gap_ns), 400, 0, BILLION, "between two atomics on one word",
	 "assumed: the NIC reads and writes the word over PCIe, one atomic after the other"},
	{"chip-gap", "ns", MEMBER(chip_gap_ns), 50, 0, BILLION, "between two atomics on one word of the NIC's own memory",
	 "assumed: no PCIe is in the way, which is why Sherman keeps its locks there"},
	{"compute-cores", "cores", MEMBER(compute_cores), 64, 1, 4096, "of a compute node", "SMART 5.1"},
	{"memory-cores", "cores", MEMBER(memory_cores), 1, 1, 64, "of a memory node", "SMART 5.1 (DEX 8.1: 4)"},
	{"local-work", "ns", MEMBER(operation_ns), 300, 0, BILLION, "of a core for an operation of an index", "assumed"},
	{"doorbell", "ns", MEMBER(doorbell_ns), 100, 0, BILLION, "of a core to tell the NIC of requests",
	 "assumed: a write to the device"},
	{"post", "ns", MEMBER(request_ns), 30, 0, BILLION, "of a core to write one request", "assumed"},
	{"poll", "ns", MEMBER(poll_ns), 50, 0, BILLION, "of a core to find a batch completed", "assumed"},
	{"cache-work", "ns", MEMBER(cache_ns), 60, 0, BILLION, "of a core for a look-up in the cache or a change of it",
	 "assumed: a cache line of local memory that others use, too"},
	{"lock-work", "ns", MEMBER(lock_ns), 20, 0, BILLION, "of a core to take or give back a local lock", "assumed"},
	{"message", "ns", MEMBER(message_ns), 500, 0, BILLION, "of a memory node's core to receive a message and answer it",
	 "assumed"},
};

void
sim_model_default(struct sim_model *model)
{
	for (int i = 0; i < SIM_PARAMETERS; i++)
	{
		const struct sim_parameter *parameter = &sim_parameters[i];

		smart_assert(parameter->offset == (size_t) i * sizeof(uint64_t) && parameter->low <= parameter->value &&
					 parameter->value <= parameter->high);
		*(uint64_t *) (void *) ((char *) model + parameter->offset) = parameter->value;
	}
}

_Static_assert(sizeof(struct sim_model) == SIM_PARAMETERS * sizeof(uint64_t), "a parameter is not in the table");

uint64_t
sim_message_wire_bytes(const struct sim_model *model, uint64_t bytes)
{
	uint64_t packets = bytes == 0 ? 1 : (bytes + model->mtu_bytes - 1) / model->mtu_bytes;

	smart_assert(model->mtu_bytes > 0);
	return bytes + packets * model->packet_bytes;
}

uint64_t
sim_request_wire_bytes(const struct sim_model *model, const struct fabric_request *request)
{
	if (fabric_is_atomic(request))
		return model->packet_bytes + ATOMIC_ETH_BYTES;
	return sim_message_wire_bytes(model, request->verb == FABRIC_WRITE ? request->length : 0) + RETH_BYTES;
}

uint64_t
sim_answer_wire_bytes(const struct sim_model *model, const struct fabric_request *request)
{
	if (fabric_is_atomic(request))
		return model->packet_bytes + AETH_BYTES + ATOMIC_ACK_BYTES;
	return sim_message_wire_bytes(model, request->verb == FABRIC_READ ? request->length : 0) + AETH_BYTES;
}

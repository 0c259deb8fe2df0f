/*
 * fabric.h
 *	  The fabric: how a client reaches the memory of the memory nodes.
 *
 * Shaped like RDMA verbs on reliable connections.  A client posts a batch of
 * requests; the requests of a batch that go to one memory node are executed
 * there in order, with one doorbell, and the call returns when all of them
 * have completed.  Order between memory nodes does not exist within a batch.
 *
 * A fabric object belongs to one client and is not shared between threads.
 *
 * Words that are ever the target of an atomic are changed by atomics only, and
 * all clients of a tree use one atomics domain (CPU or NIC).
 */
#ifndef SMART_RDMA_FABRIC_H
#define SMART_RDMA_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/status.h"

/*
 * A global address: memory node in bits 40..47, byte offset in that node's
 * region in bits 0..39.  Offset 0 of node 0 holds the region's header, so the
 * number 0 is never the address of a block.
 */
typedef uint64_t fabric_address;

#define FABRIC_PROBLEM_MAX 256
#define FABRIC_NODE_SHIFT  40
#define FABRIC_NODES_MAX   256
#define FABRIC_OFFSET_MASK ((UINT64_C(1) << FABRIC_NODE_SHIFT) - 1)

static inline unsigned int
fabric_node(fabric_address address)
{
	return (unsigned int) (address >> FABRIC_NODE_SHIFT) & 0xff;
}

static inline uint64_t
fabric_offset(fabric_address address)
{
	return address & FABRIC_OFFSET_MASK;
}

static inline fabric_address
fabric_make_address(unsigned int node, uint64_t offset)
{
	return ((uint64_t) node << FABRIC_NODE_SHIFT) | offset;
}

enum fabric_verb
{
	FABRIC_READ,
	FABRIC_WRITE,
	FABRIC_CAS,
	FABRIC_FAA,
	FABRIC_VERBS
};

struct fabric_request
{
	enum fabric_verb verb;
	bool fence;            /* starts only after earlier READs and atomics of this batch */
	uint32_t length;       /* bytes of a READ or WRITE, at least 1 */
	fabric_address remote; /* 8-byte aligned for atomics */
	void *local;           /* target of a READ, source of a WRITE */
	uint64_t compare;      /* CAS: the value expected */
	uint64_t operand;      /* CAS: the value to store; FAA: the number to add */
	uint64_t result;       /* atomics: the value found (set on SMART_OK) */
};

struct fabric_counters
{
	uint64_t requests[FABRIC_VERBS];
	uint64_t bytes[FABRIC_VERBS];
	uint64_t doorbells;
	uint64_t round_trips;
	uint64_t flights;          /* of these, while the client went on */
	uint64_t connections;      /* made, the first one to a node included */
	uint64_t timeouts;         /* batches given up at their time limit */
	uint64_t failures;         /* batches given up for any other reason */
	uint64_t descents;         /* asked of memory nodes (descent.h); a doorbell and a round trip each */
	uint64_t descents_busy;    /* of these, refused since the memory node had too much to do */
	uint64_t descents_stopped; /* of these, that ended before a leaf */
};

/*
 * READs that go on while their client does other things: a *flight*.  The owner keeps it, the requests and what they point to
 * until it has landed.  A fabric has one under way at most, which lands before anything else is begun.
 */
struct fabric_flight
{
	struct fabric_request *reads;
	int count;
	smart_status status; /* landed: as execute() returns it */
	bool under_way;
};

struct fabric;
struct fabric_descent;
struct fabric_path;

struct fabric_provider
{
	/*
	 * Executes requests[0..count).  SMART_OK: all completed, results are set.
	 * Otherwise (SMART_UNREACHABLE, SMART_TIMEOUT, SMART_INTERRUPTED,
	 * SMART_CORRUPT for an address outside of a region) any prefix per node
	 * may have taken effect.
	 */
	smart_status (*execute)(struct fabric *fabric, struct fabric_request *requests, int count);

	/*
	 * The same of READs, in two steps.  Not SMART_OK: nothing is under way.  NULL: this provider has no
	 * flights.
	 */
	smart_status (*depart)(struct fabric *fabric, struct fabric_request *reads, int count);
	smart_status (*land)(struct fabric *fabric, struct fabric_request *reads, int count);

	/*
	 * A direct pointer to [address, address + length), or NULL if this
	 * provider has none there.  Called when fabric_direct() finds the address
	 * outside of the window it knows; refreshes that window.  NULL: the provider has none anywhere.
	 */
	void *(*extend)(struct fabric *fabric, fabric_address address, size_t length);

	/* fabric_descend() without its counters; NULL: memory nodes make no descents. */
	smart_status (*descend)(struct fabric *fabric, unsigned int node, const struct fabric_descent *descent,
							struct fabric_path *path);

	void (*close)(struct fabric *fabric);
};

/* The part of a node's region that this client may load and store directly. */
struct fabric_window
{
	uint8_t *base; /* NULL: none */
	uint64_t size; /* bytes */
};

struct fabric
{
	const struct fabric_provider *provider;
	bool direct;                  /* every node's memory can be loaded and stored */
	struct fabric_flight *flight; /* under way; NULL: none is */
	struct fabric_counters counters;
	char problem[FABRIC_PROBLEM_MAX]; /* why the last call failed, for a report; empty: the status says it all */
	struct fabric_window window[FABRIC_NODES_MAX];
};

static inline bool
fabric_is_atomic(const struct fabric_request *request)
{
	return request->verb == FABRIC_CAS || request->verb == FABRIC_FAA;
}

/* Bytes of the memory node's that a request reads or changes. */
static inline uint32_t
fabric_bytes(const struct fabric_request *request)
{
	return fabric_is_atomic(request) ? (uint32_t) sizeof(uint64_t) : request->length;
}

/* For providers: a request has been executed. */
static inline void
fabric_count(struct fabric *fabric, const struct fabric_request *request)
{
	smart_assert(request->verb < FABRIC_VERBS);
	fabric->counters.requests[request->verb]++;
	fabric->counters.bytes[request->verb] += fabric_bytes(request);
}

/* Waits for what is under way, whoever owns it. */
static inline void
fabric_land(struct fabric *fabric)
{
	struct fabric_flight *flight = fabric->flight;

	if (smart_likely(flight == NULL))
		return;
	smart_assert(flight->under_way && flight->count > 0);
	fabric->flight = NULL;
	flight->status = fabric->provider->land(fabric, flight->reads, flight->count);
	flight->under_way = false;
}

/* Begins the READs of a flight.  Not SMART_OK: nothing is under way. */
static inline smart_status
fabric_depart(struct fabric *fabric, struct fabric_flight *flight)
{
	smart_assert(fabric->provider->depart != NULL && flight->count > 0 && !flight->under_way);
	fabric_land(fabric);
	flight->status = fabric->provider->depart(fabric, flight->reads, flight->count);
	flight->under_way = flight->status == SMART_OK;
	if (flight->under_way)
	{
		fabric->flight = flight;
		fabric->counters.flights++;
	}
	return flight->status;
}

static inline smart_status
fabric_execute(struct fabric *fabric, struct fabric_request *requests, int count)
{
	smart_assert(count > 0);
	fabric_land(fabric);
	return fabric->provider->execute(fabric, requests, count);
}

/*
 * Where [address, address + length) can be loaded and stored, or NULL: the
 * provider is remote, or the address lies outside of the region (corruption).
 * The pointer stays good for the life of the fabric.
 */
static inline void *
fabric_direct(struct fabric *fabric, fabric_address address, size_t length)
{
	const struct fabric_window *window = &fabric->window[fabric_node(address)];

	if (smart_likely(fabric_offset(address) + length <= window->size))
		return window->base + fabric_offset(address);
	return fabric->provider->extend != NULL ? fabric->provider->extend(fabric, address, length) : NULL;
}

#endif /* SMART_RDMA_FABRIC_H */

/*
 * conformance.h
 *	  What every provider must do: one set of checks for all of them.
 */
#ifndef TEST_CONFORMANCE_H
#define TEST_CONFORMANCE_H

#include "rdma/fabric.h"

struct conformance
{
	struct fabric *fabric;
	unsigned int nodes;     /* memory nodes 0..nodes-1 … */
	uint64_t offset;        /* … with this many bytes of scratch at offset, a multiple of 64 */
	uint64_t bytes;         /* at least 64 KiB; with 2 MiB, requests of more than a message's length are tried, too */
	uint64_t outside;       /* the first offset behind the scratch that is outside of the region, or 0 */
	unsigned int additions; /* of each thread; 0: as many as suit memory at hand */

	/* Another client of the same memory, for the checks with threads; NULL: none. */
	struct fabric *(*open)(struct conformance *conformance);
};

extern void conformance_check(struct conformance *conformance);

#endif /* TEST_CONFORMANCE_H */

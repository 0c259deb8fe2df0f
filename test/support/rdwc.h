/*
 * rdwc.h
 *	  What tests ask a table of read delegation and write combining.
 */
#ifndef TEST_RDWC_H
#define TEST_RDWC_H

#include "compute/coordinate/rdwc_parts.h"

/* How many times a client has learned, up to now, that the outcome of an entry is unknown. */
static inline uint64_t
test_rdwc_unknown(const struct smart_rdwc *rdwc, uint32_t client)
{
	smart_assert(client < rdwc->clients);
	return rdwc->line[client].unknown;
}

#endif /* TEST_RDWC_H */

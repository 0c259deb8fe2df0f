/*
 * rdwc_stat.h
 *	  What sessions shared at the leaves of memory nodes, since the last reset.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_RDWC_STAT_H
#define SMART_AM_RDWC_STAT_H

#include "port/atomics.h"

#include "compute/rdwc.h"

/* In shared memory: the counters as they were at the last reset. */
struct smart_rdwc_base
{
	pg_atomic_uint64 counter[SMART_RDWC_COUNTERS]; /* in the order of struct smart_rdwc_counters */
	pg_atomic_uint64 reset_at;                     /* a TimestampTz */
};

extern void smart_rdwc_base_init(struct smart_rdwc_base *base);

#endif /* SMART_AM_RDWC_STAT_H */

/*
 * fabric_stat.h
 *	  What all processes of the server did on the fabric.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_FABRIC_STAT_H
#define SMART_AM_FABRIC_STAT_H

#include "port/atomics.h"

#include "rdma/fabric.h"

/* The members of struct fabric_counters, which all are 8 bytes, one after another. */
#define SMART_FABRIC_TOTALS (sizeof(struct fabric_counters) / sizeof(uint64))

/* In shared memory; cumulative since the last reset. */
struct smart_fabric_totals
{
	pg_atomic_uint64 total[SMART_FABRIC_TOTALS];
	pg_atomic_uint64 reset_at; /* a TimestampTz */
};

extern void smart_fabric_totals_init(struct smart_fabric_totals *totals);

/*
 * Adds what this process has done since it was called last.  Called at the end of each
 * transaction once smart_fabric_stat_begin() was, and when the process exits.
 */
extern void smart_fabric_stat_flush(void);
extern void smart_fabric_stat_begin(void);

#endif /* SMART_AM_FABRIC_STAT_H */

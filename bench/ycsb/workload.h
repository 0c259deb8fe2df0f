/*
 * workload.h
 *	  What the clients of one run do: which operations on which records.
 */
#ifndef YCSB_WORKLOAD_H
#define YCSB_WORKLOAD_H

#include "cluster.h"
#include "measure.h"

/*
 * Which records the tree has: those below a number that rises as inserts end.  Inserts take numbers in order, but end
 * in any order; a record may be asked for when it and all before it are there.
 */
#define YCSB_WINDOW (1u << 16) /* records that an insert may be behind another one */

struct ycsb_records
{
	uint64_t next;              /* taken so far */
	uint64_t present;           /* all below are there */
	uint64_t piggyback;         /* entries that were inserted beside them, or are about to be */
	uint32_t advancing;         /* a client raises it */
	uint8_t ended[YCSB_WINDOW]; /* by number: the insert has ended, and present is not yet above it */
};

/* The number of a record to insert.  Waits for an insert that is too far behind. */
extern uint64_t ycsb_records_take(struct ycsb_records *records, struct smart_env *env);

/* Acquire: a client that sees the number finds the entries.  Partner: ycsb_records_end. */
static inline uint64_t
ycsb_records_present(const struct ycsb_records *records)
{
	return __atomic_load_n(&records->present, __ATOMIC_ACQUIRE);
}

/* The number of an entry to insert beside a record. */
static inline uint64_t
ycsb_records_take_beside(struct ycsb_records *records)
{
	return __atomic_fetch_add(&records->piggyback, 1, __ATOMIC_RELAXED);
}

/* Its insert has ended. */
extern void ycsb_records_end(struct ycsb_records *records, uint64_t record);

/* One run, shared by its clients. */
struct ycsb_task
{
	const struct ycsb_options *options;
	enum ycsb_workload workload;
	unsigned int clients;
	uint64_t operations; /* in all */
	uint64_t seed;       /* of this run */
	struct ycsb_records *records;
	struct ycsb_measure *measure; /* of each client */
	uint64_t *ended_ns;           /* by client */
	int failed;                   /* a client has given up, and said why */
};

/* A client's part of the run; argument: the task. */
extern void ycsb_work_off(struct ycsb_client *client, void *argument);

#endif /* YCSB_WORKLOAD_H */

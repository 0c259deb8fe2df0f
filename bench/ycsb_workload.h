/*
 * ycsb_workload.h
 *	  What the clients of one run do: which operations on which records.
 */
#ifndef YCSB_WORKLOAD_H
#define YCSB_WORKLOAD_H

#include "ycsb_cluster.h"
#include "ycsb_measure.h"
#include "ycsb_records.h"

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

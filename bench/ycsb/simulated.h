/*
 * simulated.h
 *	  Clients on the simulated cluster: coroutines that share one virtual clock.
 */
#ifndef YCSB_SIMULATED_H
#define YCSB_SIMULATED_H

#include "rdma/sim/timed.h"
#include "cluster.h"

/* A client; what an index needs besides stands behind it. */
struct ycsb_simulated
{
	struct ycsb_client client; /* first */
	struct ycsb_env env;       /* in virtual time */
	struct sim_timed_client timed;
	ycsb_body body;
	void *argument;
	bool ended;
};

static inline struct ycsb_simulated *
ycsb_simulated_of(struct ycsb_client *client)
{
	return (struct ycsb_simulated *) client;
}

/* The next client of a cluster: its environment, its fabric and its number.  Its index is the caller's to tell. */
extern void ycsb_simulated_init(struct ycsb_simulated *mine, struct ycsb_cluster *cluster, struct sim_timed *clock,
								const struct ycsb_options *options, unsigned int number);

/* To be called when no client runs. */
extern void ycsb_simulated_close(struct ycsb_simulated *mine);

/* What ycsb_cluster has of these names. */
extern bool ycsb_simulated_run(struct ycsb_cluster *cluster, unsigned int clients, ycsb_body body, void *argument);
extern void ycsb_simulated_work(struct ycsb_client *client);

#endif /* YCSB_SIMULATED_H */

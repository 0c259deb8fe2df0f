/*
 * ycsb_sim.h
 *	  Compute nodes and clients of the simulated cluster, for its own files.
 */
#ifndef YCSB_SIM_H
#define YCSB_SIM_H

#include "compute/rdwc_services.h"
#include "rdma/sim_timed.h"
#include "ycsb_cluster.h"

struct compute_node
{
	struct smart_cache *cache; /* NULL: none */
	struct sim_timed_lock lock[SMART_LOCK_LEAVES];
	struct smart_rdwc *rdwc;            /* NULL: none */
	struct smart_leaf_locks leaf_locks; /* with RDWC: instead of the others */
};

struct sim_client
{
	struct ycsb_client client; /* first */
	struct smart_env env;
	struct smart_services services;
	struct smart_rdwc_member member; /* with RDWC */
	struct sim_timed_client timed;
	struct sim_cluster *sim;
	struct compute_node *compute;
	unsigned int number; /* among those of the compute node */
	uint64_t random;
	ycsb_body body;
	void *argument;
	bool ended;
};

#define YCSB_OWNER(type, member, pointer) ((type *) (void *) ((char *) (pointer) -offsetof(type, member)))

static inline struct sim_client *
ycsb_sim_client(struct smart_services *services)
{
	return YCSB_OWNER(struct sim_client, services, services);
}

#endif /* YCSB_SIM_H */

/*
 * client.h
 *	  A compute node and its clients, on one memory node that is mapped.
 */
#ifndef SMART_COMPUTE_CLIENT_H
#define SMART_COMPUTE_CLIENT_H

#include "base/env.h"
#include "compute/epoch.h"
#include "compute/interlock.h"
#include "compute/locks.h"
#include "compute/region.h"
#include "compute/space.h"
#include "rdma/fabric.h"
#include "tree/services.h"

/* What the clients of a compute node share; each process has its own copy of these pointers. */
struct smart_compute
{
	struct smart_region *region;
	struct smart_epoch_shared *epoch;
	struct smart_interlock_shared *interlock;
	struct smart_lock_table *locks;
};

struct smart_client
{
	struct smart_services services; /* first: the services' functions find the client by it */
	struct fabric *fabric;
	struct smart_env *env;
	struct smart_compute *compute;
	struct smart_space space;
	unsigned int number; /* among the compute node's clients */
};

/*
 * Opens a client for the process or thread `owner` (not 0).  compute and env
 * outlive it.  SMART_NO_MEMORY; SMART_NO_SPACE if all lines are claimed.
 */
extern smart_status
smart_client_open(struct smart_compute *compute, struct smart_env *env, uint64_t owner, struct smart_client **client);

/* Lets go of what the client holds, and frees it. */
extern void smart_client_close(struct smart_client *client);

/* The services of a client (services.c). */
extern void smart_services_init(struct smart_services *services);

#endif /* SMART_COMPUTE_CLIENT_H */

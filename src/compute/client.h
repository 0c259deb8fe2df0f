/*
 * client.h
 *	  A compute node and its clients: on the one memory node that they have mapped (embedded), or on memory nodes of
 *	  other hosts, by way of an extent map.
 */
#ifndef SMART_COMPUTE_CLIENT_H
#define SMART_COMPUTE_CLIENT_H

#include "base/env.h"
#include "compute/allocate/region.h"
#include "compute/allocate/space.h"
#include "compute/allocate/supply.h"
#include "compute/cache/cache.h"
#include "compute/coordinate/epoch.h"
#include "compute/coordinate/leaf_locks.h"
#include "compute/coordinate/locks.h"
#include "compute/coordinate/pins.h"
#include "compute/coordinate/rdwc.h"
#include "rdma/fabric.h"
#include "tree/find/offload.h"
#include "tree/services.h"

/* How memory nodes are reached; as fabric_remote_options. */
struct smart_remote
{
	struct fabric_nodes *nodes;         /* numbered as in the extent map */
	const struct stream_secret *secret; /* NULL: none */
	uint64_t owner;                     /* these two as HELLO has them (rdma/wire.h) */
	uint64_t system;
	uint64_t incarnation;
	uint32_t timeout_ms; /* that a client begins with */
};

/* What the clients of a compute node share; each process has its own copy of these pointers. */
struct smart_compute
{
	struct smart_region *region;
	struct smart_epoch_shared *epoch;
	struct smart_pins_shared *pins;
	struct smart_lock_table *locks;
	struct smart_remote *remote;         /* NULL: embedded; else region is an extent map */
	struct smart_leaf_locks *leaf_locks; /* NULL: leaves are locked by locks, as in an embedded one */
	struct smart_cache *cache;           /* NULL: none, as in an embedded one, where the tree itself is at hand */
	struct smart_rdwc *rdwc;             /* NULL: none, as in an embedded one; needs leaf_locks */
};

struct smart_client
{
	struct smart_services services; /* first: the services' functions find the client by it */
	struct fabric *fabric;
	struct smart_env *env;
	struct smart_compute *compute;
	struct smart_space space;
	struct smart_supply supply;      /* unused in an embedded client, */
	struct smart_offload offload;    /* as this, */
	struct smart_rdwc_member member; /* and this, in the compute node's RDWC */
	unsigned int number;             /* among the compute node's clients */
};

/*
 * Opens a client for the process or thread `owner` (not 0).  compute and env
 * outlive it.  Memory nodes are connected when they are first needed.
 * SMART_NO_MEMORY; SMART_NO_SPACE if all lines are claimed.
 */
extern smart_status
smart_client_open(struct smart_compute *compute, struct smart_env *env, uint64_t owner, struct smart_client **client);

/* Gives up what the client holds (pins, its line, its sessions), and frees it. */
extern void smart_client_close(struct smart_client *client);

/* Another limit of batches and of waits for memory from now on; nothing happens in an embedded client. */
extern void smart_client_set_timeout(struct smart_client *client, uint32_t timeout_ms);

/* Trees of fewer pages lie on one memory node each as long as this client adds to them; SMART_SMALL_PAGES at first. */
extern void smart_client_set_spread(struct smart_client *client, uint32_t small_pages);

/* Which descents are left to memory nodes from now on; auto at first.  Nothing happens without a cache. */
extern void smart_client_set_offload(struct smart_client *client, enum smart_offload_mode mode);

/* Sets the services of a client whose compute, env and number are set; smart_client_open() does it. */
extern void smart_services_init(struct smart_services *services);

#endif /* SMART_COMPUTE_CLIENT_H */

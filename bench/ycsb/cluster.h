/*
 * cluster.h
 *	  Where the tree of a benchmark lives: memory nodes, compute nodes and their
 *	  clients, simulated (sim.c) or real (real.c).
 */
#ifndef YCSB_CLUSTER_H
#define YCSB_CLUSTER_H

#include "compute/cache/cache.h"
#include "compute/coordinate/rdwc.h"
#include "tree/tree.h"
#include "measure.h"
#include "options.h"
#include "team.h"

struct ycsb_cluster;

/* A client and its handle on the tree. */
struct ycsb_client
{
	struct ycsb_cluster *cluster;
	unsigned int number;
	struct smart_env *env;
	struct fabric *fabric;
	struct smart_tree *tree;
};

typedef void (*ycsb_body)(struct ycsb_client *client, void *argument);

struct ycsb_cluster
{
	unsigned int clients; /* numbered in turn over the compute nodes */
	struct ycsb_client **client;

	/* Runs body in the first so many clients at the same time; returns when all have ended. */
	void (*run)(struct ycsb_cluster *cluster, unsigned int clients, ycsb_body body, void *argument);

	/* The local work of an operation, where time is virtual; NULL: it takes the time that it takes. */
	void (*work)(struct ycsb_client *client);

	/* Of all caches, added up; 0 where there is none. */
	void (*cache_use)(struct ycsb_cluster *cluster, struct ycsb_cache_use *use);

	void (*close)(struct ycsb_cluster *cluster);
};

/* An empty tree on a cluster with all its clients.  NULL: what failed is told on stderr. */
extern struct ycsb_cluster *ycsb_sim_open(const struct ycsb_options *options);

/*
 * Likewise; compute nodes other than the first are processes, which go on in here.  shared has room for
 * ycsb_real_bytes(), and whatever the bodies of its runs use in common lies there.
 */
extern struct ycsb_cluster *ycsb_real_open(const struct ycsb_options *options, struct ycsb_shared *shared);
extern size_t ycsb_real_bytes(const struct ycsb_options *options);

/* The options of the tree's handle, but for id and root; backend is the client's number and 1. */
extern struct smart_tree_options
ycsb_tree_options(const struct ycsb_options *options, uint32_t lease, unsigned int client);

/* Zeros or not; to be freed. */
extern void *ycsb_allocate_table(size_t bytes);

/* The cache and the RDWC table of a compute node, where the options want them.  False: no memory; free what there is. */
extern bool ycsb_open_tables(const struct ycsb_options *options, unsigned int clients, uint64_t seed,
							 struct smart_cache **cache, struct smart_rdwc **rdwc);

/* Tells on stderr; false. */
extern bool ycsb_complain(const char *what, smart_status status);

/* The environment of a thread. */
struct ycsb_env
{
	struct smart_env env; /* first */
	uint64_t random;      /* the state of its random numbers */
};

extern void ycsb_env_init(struct ycsb_env *env, uint64_t seed);

#endif /* YCSB_CLUSTER_H */

/*
 * ycsb_member.h
 *	  What one process of a real cluster has: a compute node, and the clients
 *	  that are its threads.
 */
#ifndef YCSB_MEMBER_H
#define YCSB_MEMBER_H

#include <pthread.h>

#include "compute/client.h"
#include "ycsb_cluster.h"
#include "ycsb_env.h"
#include "ycsb_nodes.h"

struct ycsb_member
{
	const struct ycsb_options *options;
	struct ycsb_shared *shared;
	unsigned int self;           /* the process's number */
	unsigned int clients;        /* in all */
	struct ycsb_client **client; /* by number; NULL: another process's */
	struct ycsb_cluster *cluster;
	struct ycsb_env env; /* the process's own */
	struct smart_compute compute;
	struct smart_region region; /* max_size 0: not yet mapped */
	struct smart_lock_table locks;
	pthread_mutex_t *mutex;   /* SMART_LOCK_COUNT, shared; NULL: not yet made */
	struct ycsb_nodes *nodes; /* shared; NULL: this program's memory */
};

/* Shared memory that preparing takes, at most. */
extern size_t ycsb_member_bytes(const struct ycsb_options *options);

/*
 * Makes what the processes of a cluster share, before they part: locks, region or book, leases, epochs.
 * options, shared and cluster are set.  False, here and below: what failed is told on stderr.
 */
extern bool ycsb_member_prepare(struct ycsb_member *member);

/* Makes the process's own: cache, local leaf locks, clients.  self is set. */
extern bool ycsb_member_open(struct ycsb_member *member);

/* Opens the tree in all clients of the process. */
extern bool ycsb_member_open_tree(struct ycsb_member *member, uint64_t tree, fabric_address root);

/* Runs body in those of the first so many clients that are this process's. */
extern void ycsb_member_run(struct ycsb_member *member, unsigned int clients, ycsb_body body, void *argument);

/* Of this process's cache. */
extern void ycsb_member_cache_use(struct ycsb_member *member, struct ycsb_cache_use *use);

/* Of the process's first client. */
extern struct smart_space *ycsb_member_space(struct ycsb_member *member);

/* What open made; and, in the process that is left, what prepare made. */
extern void ycsb_member_close(struct ycsb_member *member);
extern void ycsb_member_release(struct ycsb_member *member);

/* Tells on stderr; false. */
extern bool ycsb_complain(const char *what, smart_status status);

#endif /* YCSB_MEMBER_H */

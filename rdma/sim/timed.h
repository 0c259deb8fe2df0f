/*
 * timed.h
 *	  The simulated fabric in virtual time: a cluster of memory nodes and compute
 *	  nodes that runs in one thread, and whose every run with one seed is the same.
 *
 * What takes time: the network (half a round trip each way), the memory node's
 * NIC (so many requests a second), the links of both sides (so many bits a
 * second, each way), a fenced request (which leaves when the READs and atomics
 * before it have come back), and what a client says it works locally.  Queues
 * are first come, first served.
 *
 * What does not: the compute nodes' processors, of which every client has one;
 * the headers of messages.  And a request takes effect at one moment, when it
 * arrives: the tests' simulated fabric tears READs, this one does not.
 */
#ifndef SMART_RDMA_SIM_TIMED_H
#define SMART_RDMA_SIM_TIMED_H

#include "rdma/fabric.h"
#include "rdma/sim/coroutine.h"

#define SIM_TIMED_NODES_MAX   64 /* of either kind */
#define SIM_TIMED_CLIENTS_MAX 4096

struct sim_timed_options
{
	unsigned int memory_nodes;
	unsigned int compute_nodes;
	uint64_t bytes;                     /* of every memory node's region */
	uint8_t *base[SIM_TIMED_NODES_MAX]; /* 8-byte aligned */
	uint64_t round_trip_ns;             /* of a small request on an idle network */
	uint64_t nic_rate;                  /* requests a second of a memory node's NIC */
	uint64_t gbits;                     /* a second on a link, each way */
};

/* Times within are in picoseconds: a NIC's request takes some 22 ns, a byte on its link 80 ps. */
struct sim_timed_nic
{
	uint64_t next_request_ps; /* when it can begin with another request */
	uint64_t in_free_ps;      /* when what was sent before has passed the link */
	uint64_t out_free_ps;
};

struct sim_timed_client
{
	struct fabric fabric; /* first: the provider gets at the rest from here */
	struct sim_timed *cluster;
	unsigned int compute_node;
	struct coroutine coroutine;
	void (*body)(void *argument);
	void *argument;
	uint64_t wakes_ps; /* while it waits for a time */
	uint64_t order;    /* among those that wake at the same time */
	struct sim_timed_client *next_waiter;
};

/* Excludes clients from each other, in the order in which they came; takes no time.  All zeros: free. */
struct sim_timed_lock
{
	struct sim_timed_client *holder;
	struct sim_timed_client *first; /* of those that wait */
	struct sim_timed_client *last;
};

struct sim_timed
{
	struct sim_timed_options options;
	uint64_t now_ps;
	uint64_t order;
	struct sim_timed_client *running; /* NULL: the program itself */
	struct coroutine main;
	unsigned int waiting;
	struct sim_timed_client *heap[SIM_TIMED_CLIENTS_MAX]; /* clients that wait for a time; the next one first */
	struct sim_timed_nic memory_nic[SIM_TIMED_NODES_MAX];
	struct sim_timed_nic compute_nic[SIM_TIMED_NODES_MAX];
};

/* The clock begins at 0.  The options are copied; the regions outlive the cluster. */
extern void sim_timed_init(struct sim_timed *cluster, const struct sim_timed_options *options);

/* A client of one of the compute nodes; its fabric is client->fabric.  To be closed when it has ended. */
extern void
sim_timed_client_init(struct sim_timed_client *client, struct sim_timed *cluster, unsigned int compute_node);
extern void sim_timed_client_close(struct sim_timed_client *client);

/*
 * Lets the client run body(argument) from now on; run returns when all clients
 * that were started have come to their ends.  Outside of run the program may use
 * a client's fabric as its own: it waits for what it asks for.  One cluster
 * runs at a time.
 */
extern void sim_timed_start(struct sim_timed_client *client, void (*body)(void *argument), void *argument);
extern void sim_timed_run(struct sim_timed *cluster);

/* Virtual time since the beginning. */
extern uint64_t sim_timed_now_ns(const struct sim_timed *cluster);

/* The client works, or sleeps, for so long. */
extern void sim_timed_pass(struct sim_timed_client *client, uint64_t ns);

extern void sim_timed_acquire(struct sim_timed_client *client, struct sim_timed_lock *lock);
extern void sim_timed_release(struct sim_timed_client *client, struct sim_timed_lock *lock);

#endif /* SMART_RDMA_SIM_TIMED_H */

/*
 * timed.h
 *	  The simulated fabric in virtual time: a cluster of memory nodes and compute
 *	  nodes that runs in one thread, and whose every run with one seed is the same.
 *
 * What takes time, by the model's numbers (model.h): the network (half a round
 * trip each way); the NICs of both sides (so many requests a second); the links
 * of both sides (so many bits a second, each way, headers included); atomics
 * (so many a second on a memory node's NIC, and one after the other on one
 * word, which also holds up what follows in its batch); a fenced request (which
 * leaves when the READs and atomics before it have come back, and counts as a
 * round trip of its own); the cores of a compute node, which its clients share:
 * posting requests, finding that they have completed, and what a client says
 * it computes; the cores of a memory node, which answer messages.  Queues are
 * first come, first served, and nothing is preempted.
 *
 * With two copies each change is sent to another memory node, too: a WRITE, and the new word of an atomic as a
 * WRITE.  Copies take time, and are counted; there is no memory behind them, and nothing looks at what an atomic
 * came to before its copy is sent.  So they tell what copies would cost, and not how they would be kept right.
 *
 * What does not: what a NIC does not find in its caches; more READs and atomics
 * in flight than a queue pair allows; retransmissions.  And a request takes effect
 * at one moment, when it arrives: the tests' simulated fabric tears READs, this
 * one does not.
 */
#ifndef SMART_RDMA_SIM_TIMED_H
#define SMART_RDMA_SIM_TIMED_H

#include "rdma/fabric.h"
#include "rdma/sim/coroutine.h"
#include "rdma/sim/model.h"

#define SIM_TIMED_NODES_MAX   64 /* of either kind */
#define SIM_TIMED_CLIENTS_MAX 4096
#define SIM_TIMED_WORDS       65536 /* places for words that were the target of an atomic lately; of each memory node */

struct sim_timed_options
{
	unsigned int memory_nodes;
	unsigned int compute_nodes;
	uint64_t bytes;                     /* of every memory node's region */
	uint64_t chip_bytes;                /* of these, the first so many lie in its NIC */
	uint8_t *base[SIM_TIMED_NODES_MAX]; /* 8-byte aligned */
	unsigned int copies;                /* of each block, on nodes one behind the other: 1 or 2 */
	bool colocated;                     /* memory node i and compute node i are one machine with one NIC */
	struct sim_model model;
};

/* Times within are in picoseconds: a NIC's request takes some 22 ns, a byte on its link 80 ps. */
struct sim_timed_nic
{
	uint64_t next_request_ps; /* when it can begin with another request */
	uint64_t in_free_ps;      /* when what was sent before has passed the link */
	uint64_t out_free_ps;
};

/* A word, and when it can be the target of another atomic. */
struct sim_timed_word
{
	uint64_t offset;
	uint64_t free_ps;
};

/* What a memory node has besides its memory and its NIC. */
struct sim_timed_memory
{
	uint64_t next_atomic_ps;
	uint64_t core_free_ps[SIM_TIMED_NODES_MAX];
	struct sim_timed_word word[SIM_TIMED_WORDS];
};

struct sim_timed_client
{
	struct fabric fabric; /* first: the provider gets at the rest from here */
	struct sim_timed *cluster;
	unsigned int compute_node;
	unsigned int core; /* of the compute node's */
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
	uint64_t patience; /* waits of clients until run ends without them; 0: it does not */
	unsigned int waiting;
	struct sim_timed_client *heap[SIM_TIMED_CLIENTS_MAX]; /* clients that wait for a time; the next one first */
	struct sim_timed_nic memory_nic[SIM_TIMED_NODES_MAX];
	struct sim_timed_nic compute_nic[SIM_TIMED_NODES_MAX];
	unsigned int compute_clients[SIM_TIMED_NODES_MAX]; /* so far */
	uint64_t *core_free_ps;                            /* of all compute nodes, one after the other */
	struct sim_timed_memory *memory;                   /* of all memory nodes */
};

/* The clock begins at 0.  The options are copied; the regions outlive the cluster.  False: no memory. */
extern bool sim_timed_init(struct sim_timed *cluster, const struct sim_timed_options *options);

extern void sim_timed_close(struct sim_timed *cluster);

/* A client of one of the compute nodes, on that node's next core; its fabric is client->fabric.  To be closed when it has ended. */
extern void
sim_timed_client_init(struct sim_timed_client *client, struct sim_timed *cluster, unsigned int compute_node);
extern void sim_timed_client_close(struct sim_timed_client *client);

/*
 * Lets the client run body(argument) from now on; run returns when all clients
 * that were started have come to their ends.  Outside of run the program may use
 * a client's fabric as its own: it waits for what it asks for.  One cluster
 * runs at a time.
 *
 * While clients run, or before that, the program may say how many more waits of all clients it has patience for:
 * then run returns without those that have not ended, which are never resumed, and can be closed.
 */
extern void sim_timed_start(struct sim_timed_client *client, void (*body)(void *argument), void *argument);
extern void sim_timed_run(struct sim_timed *cluster);
extern void sim_timed_have_patience(struct sim_timed *cluster, uint64_t waits);

/* Virtual time since the beginning. */
extern uint64_t sim_timed_now_ns(const struct sim_timed *cluster);

/* The client sleeps for so long, or works on its core, when that is free. */
extern void sim_timed_pass(struct sim_timed_client *client, uint64_t ns);
extern void sim_timed_compute(struct sim_timed_client *client, uint64_t ns);

/*
 * Sends a message of so many bytes to a memory node, one of whose cores works on it for so long (besides
 * what a message takes), calls serve(argument) at the end of that, and sends an answer; returns with it.
 * Counted as a descent.
 */
struct sim_timed_message
{
	unsigned int node;
	uint64_t bytes;
	uint64_t answer_bytes;
	uint64_t work_ns;
	void (*serve)(void *argument);
	void *argument;
};

extern void sim_timed_call(struct sim_timed_client *client, const struct sim_timed_message *message);

extern void sim_timed_acquire(struct sim_timed_client *client, struct sim_timed_lock *lock);
extern void sim_timed_release(struct sim_timed_client *client, struct sim_timed_lock *lock);

#endif /* SMART_RDMA_SIM_TIMED_H */

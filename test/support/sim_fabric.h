/*
 * sim_fabric.h
 *	  The simulated fabric: memory nodes are arrays, and every 8-byte piece of
 *	  a verb is a point at which a scheduler may let another client run.
 *
 * What the hardware may do and this provider does: the pieces of a READ or
 * WRITE happen in any order; requests to different memory nodes of one batch
 * interleave; a WRITE or an atomic overtakes an earlier READ or atomic of its
 * queue pair unless it is fenced; a completion gets lost after some of the
 * batch took effect.  What it never does: tear an aligned 8-byte word, reorder
 * what follows a WRITE, reorder READs.
 *
 * A second flavour has direct access: there every pointer that a client asks
 * for is a scheduling point, and loads and stores in between happen at once.
 */
#ifndef TEST_SIM_FABRIC_H
#define TEST_SIM_FABRIC_H

#include "rdma/descent.h"

#define SIM_NODES_MAX 4

struct sim_memory
{
	unsigned int nodes;
	uint64_t bytes;               /* of every node's region, a multiple of 8 */
	uint8_t *base[SIM_NODES_MAX]; /* 64-byte aligned */
};

/* The scheduler's side; all of it is called in the client's own context. */
struct sim_control
{
	/* Before every piece and every atomic. */
	void (*yield)(void *argument);
	uint64_t (*random)(void *argument);
	/* Does this batch lose its completion?  NULL: never. */
	bool (*fails)(void *argument);
	/* After a request took effect; NULL: no observer. */
	void (*observe)(void *argument, const struct fabric_request *request);
	/* A descent by a memory node, with a yield before every word that it loads; NULL: they make none. */
	smart_status (*descend)(void *argument, const struct fabric_descent *descent, struct fabric_path *path);
	void *argument;
};

#define SIM_SHUFFLE_MAX 16  /* pieces up to which every order can come */
#define SIM_FLIGHT_MAX  256 /* READs */

/* A request under way. */
struct progress
{
	struct fabric_request *request;
	uint8_t *memory; /* of the memory node, at request->remote */
	uint32_t pieces;
	uint32_t done;
	uint32_t first; /* long requests: piece number = first + n * stride mod pieces */
	uint32_t stride;
	uint8_t order[SIM_SHUFFLE_MAX];
};

struct sim_fabric
{
	struct fabric fabric; /* first: the provider gets at the rest from here */
	const struct sim_memory *memory;
	const struct sim_control *control;
	struct progress flight[SIM_FLIGHT_MAX];
};

/* Makes sim a client of memory; nothing is allocated and nothing has to be closed. */
extern struct fabric *sim_fabric_init(struct sim_fabric *sim, const struct sim_memory *memory,
									  const struct sim_control *control, bool direct);

#endif /* TEST_SIM_FABRIC_H */

/*
 * epoch.h
 *	  The clients of a compute node and their reclamation epochs (I6).
 */
#ifndef SMART_COMPUTE_EPOCH_H
#define SMART_COMPUTE_EPOCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "base/status.h"

#define SMART_CLIENTS_MAX (1u << 18)
#define SMART_CLIENT_NONE UINT32_MAX

/* A block retired at epoch e may be used again once the epoch is e + this. */
#define SMART_EPOCH_GRACE 2

/*
 * One client's line.  owner: changed by CAS when claimed, stored 0 when given
 * up.  epoch: stored by the owner only; 0 outside of an operation.
 */
struct smart_epoch_line
{
	uint64_t owner; /* process or thread id, 0: free */
	uint64_t epoch;
	uint64_t unused[6];
};

struct smart_epoch_shared
{
	uint64_t epoch; /* CAS by one; never below SMART_EPOCH_GRACE + 1 */
	uint64_t unused0[7];
	uint32_t clients; /* lines; fixed */
	uint32_t claimed; /* no line at or above this was ever claimed; only rises */
	uint64_t unused1[7];
	struct smart_epoch_line line[];
};

extern size_t smart_epoch_size(unsigned int clients);

/* start: the epoch to begin with, at least the stamps that are already in the region plus SMART_EPOCH_GRACE. */
extern void smart_epoch_init(struct smart_epoch_shared *shared, unsigned int clients, uint64_t start);

/* A free line for this owner, or SMART_CLIENT_NONE.  Lock-free. */
extern unsigned int smart_epoch_claim(struct smart_epoch_shared *shared, uint64_t owner);
extern void smart_epoch_unclaim(struct smart_epoch_shared *shared, unsigned int client);

/* The owner that claimed the line, or 0. */
extern uint64_t smart_epoch_owner(const struct smart_epoch_shared *shared, unsigned int client);

/* Wait-free, all three; see epoch.c for why they are right. */
extern void smart_epoch_enter(struct smart_epoch_shared *shared, unsigned int client);
extern void smart_epoch_leave(struct smart_epoch_shared *shared, unsigned int client);
extern uint64_t smart_epoch_now(const struct smart_epoch_shared *shared);

/* Raises the epoch by one if every open operation has seen it; true if any client raised it.  One pass over the lines. */
extern bool smart_epoch_try_advance(struct smart_epoch_shared *shared);

/*
 * Waits until every operation has ended that is open now, for a client that is in none: what it has unlinked may be used
 * again (I6).  SMART_INTERRUPTED; SMART_TIMEOUT: one of them does not end.
 */
extern smart_status smart_epoch_await(struct smart_epoch_shared *shared, struct smart_env *env);

#endif /* SMART_COMPUTE_EPOCH_H */

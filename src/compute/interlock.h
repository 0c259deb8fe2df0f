/*
 * interlock.h
 *	  The vacuum interlock: nobody checks a row's TID after bulk delete gave it up.
 *
 * This is not the reclamation epoch.  A scan that looks at the heap (or at the
 * visibility map) some time after it read a TID holds the tree from before it
 * reads the leaf until the last TID of the batch has been checked.  Bulk delete removes its
 * entries, advances the number, and returns only when no hold on its tree is
 * older than that number:
 *
 *	  number = smart_interlock_advance(interlock);
 *	  while ((client = smart_interlock_holder(interlock, tree, number, 0)) != SMART_CLIENT_NONE)
 *		  sleep until somebody lets go, at most some milliseconds
 *
 * The numbers of all trees come from one counter: a number is a point in time.
 */
#ifndef SMART_COMPUTE_INTERLOCK_H
#define SMART_COMPUTE_INTERLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compute/epoch.h"

#define SMART_HOLDS_PER_CLIENT 7 /* more of them share one hold on every tree */

/* Returned for a hold that found no place of its own. */
#define SMART_HOLD_OVERFLOW SMART_HOLDS_PER_CLIENT

/* Stored by the holding client only; tree 0: unused. */
struct smart_hold
{
	uint64_t tree;
	uint64_t number;
};

struct smart_interlock_line
{
	struct smart_hold hold[SMART_HOLDS_PER_CLIENT];
	uint64_t overflow;        /* holds beyond those; they hold every tree … */
	uint64_t overflow_number; /* … since this number, the oldest one's */
};

struct smart_interlock_shared
{
	uint64_t number;
	uint64_t waiters; /* bulk deletes that sleep; a hint */
	uint64_t unused[6];
	uint32_t clients;
	uint32_t padding[15];
	struct smart_interlock_line line[];
};

extern size_t smart_interlock_size(unsigned int clients);
extern void smart_interlock_init(struct smart_interlock_shared *shared, unsigned int clients);

/*
 * Holds tree for this client (its number in the compute node: smart_client.number);
 * returns what leave wants back.  What the caller reads from the tree afterwards
 * is safe.  Holds are counted: the same tree may be held several times.  Wait-free, never fails.
 */
extern unsigned int smart_interlock_enter(struct smart_interlock_shared *shared, unsigned int client, uint64_t tree);

/* True: somebody sleeps and should be woken. */
extern bool smart_interlock_leave(struct smart_interlock_shared *shared, unsigned int client, unsigned int hold);

/* Lets go of all that a client holds (its exit; the end of a transaction that failed).  Result as of leave. */
extern bool smart_interlock_leave_all(struct smart_interlock_shared *shared, unsigned int client);

/* A new number; holds entered before have a lower one. */
extern uint64_t smart_interlock_advance(struct smart_interlock_shared *shared);

/* The first client from `from` on that holds tree under a number below `number`, or SMART_CLIENT_NONE. */
extern unsigned int
smart_interlock_holder(const struct smart_interlock_shared *shared, uint64_t tree, uint64_t number, unsigned int from);

/*
 * Around a sleep of bulk delete, so that leave tells whom to wake.  A leave at
 * the same moment may miss it: sleep with a limit.
 */
extern void smart_interlock_begin_wait(struct smart_interlock_shared *shared);
extern void smart_interlock_end_wait(struct smart_interlock_shared *shared);

#endif /* SMART_COMPUTE_INTERLOCK_H */

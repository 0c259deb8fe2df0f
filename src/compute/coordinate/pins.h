/*
 * pins.h
 *	  Vacuum pins: no scan checks a row's TID after bulk delete gave it up.
 *
 * A vacuum pin is not the reclamation epoch.  A scan that looks at the heap (or at the visibility map) some time after
 * it read a TID pins the tree from before it reads the leaf until the last TID of the batch has been checked.  Bulk
 * delete removes its entries, advances the number, and returns only when no pin on its tree is older than that number:
 *
 *	  number = smart_pins_advance(pins);
 *	  while ((client = smart_pins_holder(pins, tree, number, 0)) != SMART_CLIENT_NONE)
 *		  sleep until a client unpins, at most some milliseconds
 *
 * The numbers of all trees come from one counter: a number is a point in time.
 */
#ifndef SMART_COMPUTE_PINS_H
#define SMART_COMPUTE_PINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compute/coordinate/epoch.h"

#define SMART_PINS_PER_CLIENT 7 /* more of them share one pin on every tree */

/* Returned for a pin that found no place of its own. */
#define SMART_PIN_OVERFLOW SMART_PINS_PER_CLIENT

/* A pin.  Stored by its client only; tree 0: unused. */
struct smart_pin
{
	uint64_t tree;
	uint64_t number;
};

struct smart_pins_line
{
	struct smart_pin hold[SMART_PINS_PER_CLIENT];
	uint64_t overflow;        /* pins beyond those; they pin every tree … */
	uint64_t overflow_number; /* … since this number, the oldest one's */
};

struct smart_pins_shared
{
	uint64_t number;
	uint64_t waiters; /* bulk deletes that sleep; a hint */
	uint64_t unused[6];
	uint32_t clients;
	uint32_t padding[15];
	struct smart_pins_line line[];
};

extern size_t smart_pins_size(unsigned int clients);
extern void smart_pins_init(struct smart_pins_shared *shared, unsigned int clients);

/*
 * Pins a tree for this client (its number in the compute node: smart_client.number);
 * returns what leave wants back.  What the caller reads from the tree afterwards
 * is safe.  Pins are counted: the same tree may be pinned several times.  Wait-free, never fails.
 */
extern unsigned int smart_pins_enter(struct smart_pins_shared *shared, unsigned int client, uint64_t tree);

/* True: a bulk delete sleeps and should be woken. */
extern bool smart_pins_leave(struct smart_pins_shared *shared, unsigned int client, unsigned int hold);

/* Ends all pins of a client (its exit; the end of a transaction that failed).  Result as of leave. */
extern bool smart_pins_leave_all(struct smart_pins_shared *shared, unsigned int client);

/* A new number; pins entered before have a lower one. */
extern uint64_t smart_pins_advance(struct smart_pins_shared *shared);

/* The first client from `from` on that pins tree under a number below `number`, or SMART_CLIENT_NONE. */
extern unsigned int
smart_pins_holder(const struct smart_pins_shared *shared, uint64_t tree, uint64_t number, unsigned int from);

/*
 * Around a sleep of bulk delete, so that leave tells that there is one to wake.  A leave at
 * the same moment may miss it: sleep with a limit.
 */
extern void smart_pins_begin_wait(struct smart_pins_shared *shared);
extern void smart_pins_end_wait(struct smart_pins_shared *shared);

#endif /* SMART_COMPUTE_PINS_H */

/*
 * gate.h
 *	  The gate before the region: closed at a start that was not preceded by a clean
 *	  stop, until what the dead server has left is made good.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_GATE_H
#define SMART_AM_GATE_H

#include "port/atomics.h"
#include "storage/condition_variable.h"

#include "compute/client.h"

/* In shared memory. */
struct smart_gate
{
	pg_atomic_uint32 state;
	ConditionVariable changed;
};

extern void smart_gate_init(struct smart_gate *gate);

/* Closes it: the region is an earlier server's, and what that has left is to be made good.  In the postmaster. */
extern void smart_gate_close(struct smart_gate *gate);

/* In any process: has what there was to do been done? */
extern bool smart_gate_is_open(struct smart_gate *gate);

/*
 * Returns when the gate is open.  The first to come of those who may open it does what there is to do, and the others
 * wait; both can be interrupted, and then the next one begins from the start.  The client must not be used for anything
 * before.  Errors: as an insert; CONNECTION_FAILURE if nobody who may has opened it for as long as one waits for a
 * memory node.
 */
extern void smart_gate_pass(struct smart_gate *gate, struct smart_client *client, bool may_open);

#endif /* SMART_AM_GATE_H */

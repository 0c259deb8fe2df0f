/*
 * startup.h
 *	  Startup recovery: after a start that was not preceded by a clean stop, the region is closed until what the
 *	  dead server has left is made good.
 *
 * The state is in shared memory (shared.h); lifecycle.c closes the region.
 */
#ifndef SMART_AM_STARTUP_H
#define SMART_AM_STARTUP_H

#include "compute/client.h"

/*
 * Returns when startup recovery is done.  The first process that may recover does, and the others wait; both can be
 * interrupted, and then the next process begins from the start.  The client must not be used for anything before.
 * Errors: as an insert; CONNECTION_FAILURE if this process may not recover and no other has done so within
 * smart.fabric_timeout.
 */
extern void smart_startup_await(struct smart_client *client, bool may_recover);

/*
 * With memory nodes, before they have been found: the launcher notes what a later start has to know if this one ends before
 * recovery.  Nothing if none is pending.
 */
extern void smart_startup_begin(void);

#endif /* SMART_AM_STARTUP_H */

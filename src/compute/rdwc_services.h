/*
 * rdwc_services.h
 *	  What the tree asks of read delegation and write combining, for any kind of
 *	  client: a server's, or a simulated one.
 *
 * How a client waits is its environment's affair: a pause of a process, of virtual
 * time, or a scheduling point.
 */
#ifndef SMART_COMPUTE_RDWC_SERVICES_H
#define SMART_COMPUTE_RDWC_SERVICES_H

#include "compute/leaf_locks.h"
#include "compute/rdwc.h"
#include "tree/services.h"

/* A client among those of its compute node. */
struct smart_rdwc_member
{
	struct smart_rdwc_caller caller; /* rdwc may be NULL: leaf locks only */
	struct smart_leaf_locks *locks;
	unsigned int (*lock_of)(fabric_address leaf); /* a number for smart_leaf_lock_take */
	bool alone;                                   /* waits for nobody's READs and appends; may change at any time */
};

/*
 * Sets the services that lock leaves, and, if there is a table, those of RDWC.  member
 * is the client's, and outlives the services.
 */
extern void smart_rdwc_services_init(struct smart_services *services, struct smart_rdwc_member *member);

#endif /* SMART_COMPUTE_RDWC_SERVICES_H */

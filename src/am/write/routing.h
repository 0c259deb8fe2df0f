/*
 * routing.h
 *	  INSERT ... ON CONFLICT through a partitioned table.
 */
#ifndef SMART_AM_WRITE_ROUTING_H
#define SMART_AM_WRITE_ROUTING_H

#include "nodes/execnodes.h"

/*
 * Has the partitions that rows are routed to made ready before the executor does it, since it would refuse unique smart
 * indexes.  To be called when the statement has been started, in the context of its query.
 */
extern void smart_routing_prepare(ModifyTableState *modify);

/* Called once, when the library is loaded: sets a hook. */
extern void smart_routing_init(void);

#endif /* SMART_AM_WRITE_ROUTING_H */

/*
 * verbs.h
 *	  The RDMA link beyond link.h: which device it uses, and how it is made
 *	  without a session.
 */
#ifndef SMART_RDMA_VERBS_H
#define SMART_RDMA_VERBS_H

#include "rdma/link.h"

/*
 * The device of this process's links from now on.  device: its name, copied; NULL or "": the
 * first that has a port that is up, and atomics.  port: 0 for the first that is up.
 * gid_index: -1 to choose by itself.  Not while another thread opens a link.
 */
extern void verbs_set_device(const char *device, int port, int gid_index);

/*
 * The two steps of verbs_link_open, which hands *mine to the memory node and what comes
 * back to the second step.  A link whose second step has failed has to be closed;
 * link->problem tells why.
 */
extern smart_status verbs_link_prepare(struct smart_env *env, unsigned int node, struct wire_queue_pair *mine,
									   struct fabric_link **link, char problem[SESSION_PROBLEM_MAX]);
extern smart_status verbs_link_connect(struct fabric_link *link, const struct wire_queue_pair *theirs);

#endif /* SMART_RDMA_VERBS_H */

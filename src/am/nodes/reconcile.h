/*
 * reconcile.h
 *	  Reconciling a memory node with the extent map.
 */
#ifndef SMART_AM_RECONCILE_H
#define SMART_AM_RECONCILE_H

#include "compute/client.h"

/*
 * Lets a memory node free what it keeps for this server and the extent map does not have: trees, and chunks if asked
 * to.  *unanswered is set if chunks were to be freed and the node did not confirm it: then chunks must not be
 * compared again until the next start of the server.
 */
extern smart_status smart_reconcile_unknown(struct smart_client *client, struct session *session, unsigned int node,
											bool chunks, bool *unanswered);

/* Does some of the node's pending frees; *unanswered as above. */
extern smart_status
smart_reconcile_pending(struct smart_client *client, struct session *session, unsigned int node, bool *unanswered);

#endif /* SMART_AM_RECONCILE_H */

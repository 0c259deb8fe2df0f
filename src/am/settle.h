/*
 * settle.h
 *	  Bringing a memory node and the book to agreement.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_SETTLE_H
#define SMART_AM_SETTLE_H

#include "compute/client.h"

/*
 * Gives back what a memory node keeps for this server without the book's
 * knowing: trees, and chunks if asked to.  *unanswered is set if chunks
 * were given back and the node did not say so: chunks must not be compared again then, until the next
 * start of the server.
 */
extern smart_status smart_settle_unknown(struct smart_client *client, struct session *session, unsigned int node,
										 bool chunks, bool *unanswered);

/* Works off the node's duties, some of them; *unanswered as above. */
extern smart_status
smart_settle_duties(struct smart_client *client, struct session *session, unsigned int node, bool *unanswered);

#endif /* SMART_AM_SETTLE_H */

/*
 * reconcile.c
 *	  Reconciling a memory node with the extent map.
 *
 * A request to free a chunk is sent once only.  If the reply is lost, the request may take effect at any time, and a
 * second one could hit the chunk after a client has got it anew.  A chunk that the node did not free stays unused
 * until the next start of the server, after which the lease keeps all requests of this one out.  So the extent map
 * forgets a chunk before the node is told.
 *
 * Ids of trees are never used again: dropping one twice does no harm.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "am/nodes/reconcile.h"
#include "am/server/shared.h"
#include "base/assert.h"
#include "compute/allocate/extents.h"

#define REQUEST_MS 1000
#define FREES_ONCE 256 /* then it is the other nodes' turn */

/* Frees those of the node's chunks that the extent map does not have. */
static smart_status
reconcile_chunks(struct smart_client *client, struct session *session, unsigned int node, uint32_t *given,
				 bool *unanswered)
{
	uint32_t chunks[WIRE_LIST_MAX];
	uint32_t from = 0;
	uint32_t count;
	smart_status status;

	do
	{
		uint32_t unknown = 0;

		status = session_list_chunks(session, from, smart_deadline_ns(client->env, REQUEST_MS), chunks, &count);
		if (status != SMART_OK || count == 0)
			break;
		from = chunks[count - 1] + 1;
		for (uint32_t i = 0; i < count; i++)
		{
			if (!smart_extents_has_chunk(&client->space, node, chunks[i]))
				chunks[unknown++] = chunks[i];
		}
		if (unknown == 0)
			continue;
		status = session_give_chunks(session, chunks, unknown, smart_deadline_ns(client->env, REQUEST_MS));
		*given += unknown;
		*unanswered |= status != SMART_OK;
	} while (status == SMART_OK && count == WIRE_LIST_MAX);
	return status;
}

static smart_status
reconcile_trees(struct smart_client *client, struct session *session, uint32_t *dropped)
{
	struct wire_tree trees[WIRE_LIST_MAX];
	uint64_t cursor = 0;
	uint32_t count;
	smart_status status;

	do
	{
		status = session_list_trees(session, &cursor, smart_deadline_ns(client->env, REQUEST_MS), trees, &count);
		for (uint32_t i = 0; status == SMART_OK && i < count; i++)
		{
			if (smart_extents_has_tree(&client->space, trees[i].id))
				continue;
			status = session_drop_tree(session, trees[i].id, smart_deadline_ns(client->env, REQUEST_MS));
			(*dropped)++;
		}
	} while (status == SMART_OK && cursor != 0);
	return status;
}

smart_status
smart_reconcile_unknown(struct smart_client *client, struct session *session, unsigned int node, bool chunks,
						bool *unanswered)
{
	uint32_t given = 0;
	uint32_t dropped = 0;
	smart_status status = SMART_OK;

	smart_assert(node < FABRIC_NODES_MAX && !smart_server_recovers());
	if (chunks)
		status = reconcile_chunks(client, session, node, &given, unanswered);
	if (status == SMART_OK)
		status = reconcile_trees(client, session, &dropped);
	smart_assert(chunks || given == 0);
	if (given + dropped > 0)
		ereport(LOG, errmsg("memory node %u was told to free what no index uses: %u chunks, %u trees", node, given,
							dropped));
	return status;
}

smart_status
smart_reconcile_pending(struct smart_client *client, struct session *session, unsigned int node, bool *unanswered)
{
	struct smart_pending_free pending;
	smart_status status = SMART_OK;

	smart_assert(node < FABRIC_NODES_MAX && !smart_server_recovers());
	for (int i = 0; i < FREES_ONCE && status == SMART_OK && !ProcDiePending; i++)
	{
		if (!smart_pending_next(&client->space, node, &pending))
			break;
		if (pending.kind == SMART_PENDING_GIVE_CHUNK)
		{
			smart_pending_done(&client->space, &pending);
			smart_assert(!smart_extents_has_chunk(&client->space, node, pending.chunk));
			status = session_give_chunks(session, &pending.chunk, 1, smart_deadline_ns(client->env, REQUEST_MS));
			*unanswered |= status != SMART_OK;
		}
		else
		{
			status = session_drop_tree(session, pending.tree, smart_deadline_ns(client->env, REQUEST_MS));
			if (status == SMART_OK)
				smart_pending_done(&client->space, &pending);
		}
	}
	return status;
}

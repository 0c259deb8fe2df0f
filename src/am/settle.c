/*
 * settle.c
 *	  Bringing a memory node and the book to agreement.
 *
 * A chunk is given back once and never again, whatever comes of it: if
 * the answer is lost, nobody knows when the request takes effect, and a second
 * one could meet the chunk when a client has got it anew.  A chunk that the node did not take
 * back stays unused until the next start of the server, when no request of this one can
 * come any more (the lease sees to that).  So the book forgets a chunk before
 * the node is told.
 *
 * Ids of trees are never used again: dropping one twice does no harm.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "am/settle.h"
#include "base/assert.h"
#include "compute/book.h"

#define REQUEST_MS  1000
#define DUTIES_ONCE 256 /* then the other nodes have their turn */

static uint64
deadline(struct smart_client *client)
{
	return client->env->now_ns(client->env) + (uint64) REQUEST_MS * 1000000;
}

/* Frees those of the listed chunks that the book does not have. */
static smart_status
give_unknown(struct smart_client *client, struct session *session, unsigned int node, const uint32_t *chunks,
			 uint32_t count, uint32_t *given, bool *unanswered)
{
	uint32_t unknown[WIRE_LIST_MAX];
	uint32_t nunknown = 0;
	smart_status status;

	for (uint32_t i = 0; i < count; i++)
	{
		if (!smart_book_has_chunk(&client->space, node, chunks[i]))
			unknown[nunknown++] = chunks[i];
	}
	if (nunknown == 0)
		return SMART_OK;
	status = session_give_chunks(session, unknown, nunknown, deadline(client));
	*given += nunknown;
	*unanswered |= status != SMART_OK;
	return status;
}

static smart_status
settle_chunks(struct smart_client *client, struct session *session, unsigned int node, uint32_t *given,
			  bool *unanswered)
{
	uint32_t chunks[WIRE_LIST_MAX];
	uint32_t from = 0;
	uint32_t count;
	smart_status status;

	do
	{
		status = session_list_chunks(session, from, deadline(client), chunks, &count);
		if (status != SMART_OK || count == 0)
			break;
		status = give_unknown(client, session, node, chunks, count, given, unanswered);
		from = chunks[count - 1] + 1;
	} while (status == SMART_OK && count == WIRE_LIST_MAX);
	return status;
}

static smart_status
settle_trees(struct smart_client *client, struct session *session, uint32_t *dropped)
{
	struct wire_tree trees[WIRE_LIST_MAX];
	uint64_t cursor = 0;
	uint32_t count;
	smart_status status;

	do
	{
		status = session_list_trees(session, &cursor, deadline(client), trees, &count);
		for (uint32_t i = 0; status == SMART_OK && i < count; i++)
		{
			if (smart_book_has_tree(&client->space, trees[i].id))
				continue;
			status = session_drop_tree(session, trees[i].id, deadline(client));
			(*dropped)++;
		}
	} while (status == SMART_OK && cursor != 0);
	return status;
}

smart_status
smart_settle_unknown(struct smart_client *client, struct session *session, unsigned int node, bool chunks,
					 bool *unanswered)
{
	uint32_t given = 0;
	uint32_t dropped = 0;
	smart_status status = SMART_OK;

	if (chunks)
		status = settle_chunks(client, session, node, &given, unanswered);
	if (status == SMART_OK)
		status = settle_trees(client, session, &dropped);
	if (given + dropped > 0)
		ereport(LOG, (errmsg("memory node %u was told to free what no index uses: %u chunks, %u trees", node, given,
							 dropped)));
	return status;
}

smart_status
smart_settle_duties(struct smart_client *client, struct session *session, unsigned int node, bool *unanswered)
{
	struct smart_duty duty;
	smart_status status = SMART_OK;

	for (int i = 0; i < DUTIES_ONCE && status == SMART_OK && !ProcDiePending; i++)
	{
		if (!smart_book_next_duty(&client->space, node, &duty))
			break;
		if (duty.kind == SMART_DUTY_GIVE_CHUNK)
		{
			smart_book_duty_done(&client->space, &duty);
			status = session_give_chunks(session, &duty.chunk, 1, deadline(client));
			*unanswered |= status != SMART_OK;
		}
		else
		{
			status = session_drop_tree(session, duty.tree, deadline(client));
			if (status == SMART_OK)
				smart_book_duty_done(&client->space, &duty);
		}
	}
	return status;
}

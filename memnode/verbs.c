/*
 * verbs.c
 *	  Executing a batch of verbs that came as a message.
 *
 * The addresses of the whole batch are checked first, so that a batch with a bad one has
 * no effect.  The verbs themselves are what they are on an embedded memory node (rdma/local.c):
 * whole words, atomics by the CPU, in order.
 *
 * A READ beside the client's own chunks is no fault, since a cache of nodes may
 * lead to a chunk that was given back: it brings zeros, which are neither a node nor
 * a leaf, and never what another client keeps there.
 */
#include <string.h>

#include "base/assert.h"
#include "log.h"
#include "serve.h"

static bool
is_atomic(const struct fabric_request *request)
{
	return request->verb == FABRIC_CAS || request->verb == FABRIC_FAA;
}

static bool
owns(const struct memnode_client *client, const struct fabric_request *request)
{
	uint64_t length = is_atomic(request) ? sizeof(uint64_t) : request->length;

	return memnode_chunks_cover(&client->node->chunks, client->owner, request->remote, length);
}

static bool
is_allowed(const struct memnode_client *client, const struct fabric_request *request)
{
	if (request->verb == FABRIC_READ)
		return memnode_chunks_inside(&client->node->chunks, request->remote, request->length);
	return owns(client, request) && (!is_atomic(request) || request->remote % sizeof(uint64_t) == 0);
}

static bool
batch_allowed(struct memnode_client *client, const struct fabric_request *requests, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
	{
		if (!is_allowed(client, &requests[i]))
		{
			/* Once: who sends one of these may send many. */
			memnode_log(client->outside ? SMART_LOG_DEBUG : SMART_LOG_WARNING,
						"%s: refused a verb at offset %llu of %llu bytes, not in its chunks or not aligned",
						client->name, (unsigned long long) requests[i].remote, (unsigned long long) requests[i].length);
			client->outside = true;
			return false;
		}
	}
	return true;
}

/* Where the answer's bytes go; a READ brings them there by itself. */
static void
place_reads(struct fabric_request *requests, uint32_t count, uint8_t *answer)
{
	for (uint32_t i = 0; i < count; i++)
	{
		if (requests[i].verb == FABRIC_READ)
			requests[i].local = answer;
		answer += wire_verb_answer_bytes(&requests[i]);
	}
}

/* What lies in nobody's chunks, or another's, is not looked at. */
static bool
is_foreign(const struct memnode_client *client, const struct fabric_request *request)
{
	return request->verb == FABRIC_READ && !owns(client, request);
}

/* In order; foreign READs bring zeros. */
static smart_status
execute(const struct memnode_client *client, struct fabric_request *requests, uint32_t count)
{
	smart_status status = SMART_OK;
	uint32_t next;

	for (uint32_t i = 0; i < count && status == SMART_OK; i = next)
	{
		next = i + 1;
		if (is_foreign(client, &requests[i]))
		{
			memset(requests[i].local, 0, requests[i].length);
			continue;
		}
		while (next < count && !is_foreign(client, &requests[next]))
			next++;
		status = fabric_execute(client->node->fabric, &requests[i], (int) (next - i));
	}
	return status;
}

static void
put_results(const struct fabric_request *requests, uint32_t count, uint8_t *answer)
{
	for (uint32_t i = 0; i < count; i++)
	{
		if (is_atomic(&requests[i]))
			wire_put_u64(answer, requests[i].result);
		answer += wire_verb_answer_bytes(&requests[i]);
	}
}

enum wire_status
memnode_serve_verbs(struct memnode_client *client, const struct wire_header *header, const uint8_t *payload,
					uint32_t *length)
{
	struct memnode *node = client->node;
	struct fabric_request *requests = node->requests;
	uint32_t answer_bytes;
	uint32_t count;
	uint8_t *answer;
	smart_status status;

	if (!wire_get_verbs(payload, header->length, requests, &count, &answer_bytes))
		return WIRE_BAD;
	if (!batch_allowed(client, requests, count))
		return WIRE_OUTSIDE;
	answer = memnode_client_answer_room(client, answer_bytes);
	if (answer == NULL)
		return WIRE_BAD;
	place_reads(requests, count, answer);
	status = execute(client, requests, count);
	smart_assert(status == SMART_OK);
	if (status != SMART_OK)
		return WIRE_OUTSIDE;
	put_results(requests, count, answer);
	node->verbs_served++;
	*length = answer_bytes;
	return WIRE_OK;
}

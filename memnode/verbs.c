/*
 * verbs.c
 *	  Executing a batch of verbs that came as a message.
 *
 * The addresses of the whole batch are checked first, so that a batch with a bad one has
 * no effect.  The verbs themselves are what they are on an embedded memory node (rdma/local.c):
 * whole words, atomics by the CPU, in order.
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
batch_inside(struct memnode_client *client, const struct fabric_request *requests, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
	{
		uint64_t length = is_atomic(&requests[i]) ? sizeof(uint64_t) : requests[i].length;

		if (!memnode_chunks_cover(&client->node->chunks, client->owner, requests[i].remote, length) ||
			(is_atomic(&requests[i]) && requests[i].remote % sizeof(uint64_t) != 0))
		{
			/* Once: who sends one of these may send many. */
			memnode_log(client->outside ? SMART_LOG_DEBUG : SMART_LOG_WARNING,
						"%s: refused a verb at offset %llu of %llu bytes, not in its chunks or not aligned",
						client->name, (unsigned long long) requests[i].remote, (unsigned long long) length);
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
	if (!batch_inside(client, requests, count))
		return WIRE_OUTSIDE;
	answer = memnode_client_answer_room(client, answer_bytes);
	if (answer == NULL)
		return WIRE_BAD;
	place_reads(requests, count, answer);
	status = fabric_execute(node->fabric, requests, (int) count);
	smart_assert(status == SMART_OK);
	if (status != SMART_OK)
		return WIRE_OUTSIDE;
	put_results(requests, count, answer);
	node->verbs_served++;
	*length = answer_bytes;
	return WIRE_OK;
}

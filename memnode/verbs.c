/*
 * verbs.c
 *	  What the node's processor does in the memory of clients: batches of verbs that come as
 *	  messages, and descents.
 *
 * The addresses of a whole batch are checked first, so that a batch with a bad one has no effect.  The verbs
 * themselves are what they are on an embedded memory node (rdma/local.c): whole words, atomics by the CPU, in order.
 *
 * A READ outside the client's own chunks is no fault, since a cache of nodes may lead to a chunk that was given
 * back: it brings zeros, which are neither a node nor a leaf, and never what another client keeps there.
 *
 * A descent, for which the node walks a tree by its own loads, is worth while if it spares round trips and the node
 * has time.  Where verbs come as messages it always has: a descent takes the place of several of them, and a client
 * that is refused would send these instead.  Where they come by RDMA they do without this process, and a client that
 * has to wait for it had better go on by itself.  How long it has waited is known at least: since the round of requests
 * began in which its turn has come.
 */
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "log.h"
#include "serve.h"
#include "tree/find/walk.h"

#define WAIT_MAX_NS UINT64_C(200000) /* some dozens of round trips by RDMA */

/* ---- batches ---- */

static bool
owns(const struct memnode_client *client, const struct fabric_request *request)
{
	return memnode_chunks_cover(&client->node->chunks, client->owner, request->remote, fabric_bytes(request));
}

/* What lies in no client's chunks, or in another client's, is not looked at. */
static bool
is_foreign(const struct memnode_client *client, const struct fabric_request *request)
{
	return request->verb == FABRIC_READ && !owns(client, request);
}

/* In order; foreign READs bring zeros.  Each READ's bytes go where the answer has them. */
static smart_status
execute(const struct memnode_client *client, struct fabric_request *requests, uint32_t count, uint8_t *answer)
{
	smart_status status = SMART_OK;
	uint32_t next;

	smart_assert(count > 0 && count <= WIRE_BATCH_MAX);
	for (uint32_t i = 0; i < count; answer += wire_verb_reply_bytes(&requests[i++]))
	{
		if (requests[i].verb == FABRIC_READ)
			requests[i].local = answer;
	}
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
		smart_assert(next > i && next <= count);
		status = fabric_execute(client->node->fabric, &requests[i], (int) (next - i));
	}
	return status;
}

enum wire_status
memnode_serve_verbs(struct memnode_request *request)
{
	struct memnode_client *client = request->client;
	struct memnode *node = request->node;
	struct fabric_request *requests = node->requests;
	uint32_t result_bytes;
	uint32_t count;
	uint8_t *answer;
	smart_status status;

	if (!client->hello.verbs)
		return WIRE_BAD;
	smart_assert(client->owner < MEMNODE_OWNERS);
	if (node->region.owners[client->owner].transport != WIRE_TCP)
		return WIRE_UNSUPPORTED;
	if (!wire_get_verbs(request->payload, request->header->length, requests, &count, &result_bytes))
		return WIRE_BAD;
	for (uint32_t i = 0; i < count; i++)
	{
		bool aligned = !fabric_is_atomic(&requests[i]) || requests[i].remote % sizeof(uint64_t) == 0;

		if (requests[i].verb == FABRIC_READ
				? memnode_chunks_inside(&node->chunks, requests[i].remote, requests[i].length)
				: aligned && owns(client, &requests[i]))
			continue;
		/* Once: a client that sends one of these may send many. */
		memnode_log(client->outside ? SMART_LOG_DEBUG : SMART_LOG_WARNING,
					"%s: refused a verb at offset %llu of %llu bytes, not in its chunks or not aligned", client->name,
					(unsigned long long) requests[i].remote, (unsigned long long) requests[i].length);
		client->outside = true;
		return WIRE_OUTSIDE;
	}
	answer = memnode_client_reply_room(client, result_bytes);
	if (answer == NULL)
		return WIRE_BAD;
	status = execute(client, requests, count, answer);
	smart_assert(status == SMART_OK);
	if (status != SMART_OK)
		return WIRE_OUTSIDE;
	for (uint32_t i = 0; i < count; answer += wire_verb_reply_bytes(&requests[i++]))
	{
		if (fabric_is_atomic(&requests[i]))
			wire_put_u64(answer, requests[i].result);
		node->counters.verbs[requests[i].verb]++;
		node->counters.verb_bytes[requests[i].verb] += fabric_bytes(&requests[i]);
	}
	request->length = result_bytes;
	return WIRE_OK;
}

/* ---- descents ---- */

/* What lies in the client's own chunks, as for its READs. */
static const uint64_t *
find_words(void *argument, fabric_address address, uint32_t length)
{
	const struct memnode_client *client = argument;
	uint64_t offset = fabric_offset(address);

	if (offset % sizeof(uint64_t) != 0 || !memnode_chunks_cover(&client->node->chunks, client->owner, offset, length))
		return NULL;
	return (const uint64_t *) (const void *) (client->node->region.base + offset);
}

static uint64_t
load_word(void *argument, const uint64_t *word)
{
	return smart_load_acquire(word);
}

enum wire_status
memnode_serve_descent(struct memnode_request *request)
{
	struct memnode *node = request->node;
	bool by_rdma = node->region.owners[request->client->owner].transport == WIRE_RDMA;
	struct smart_walk_memory memory = {.find = find_words,
									   .load = load_word,
									   .argument = request->client,
									   .exact = !by_rdma};
	struct fabric_descent descent;

	smart_assert(request->client->owner < MEMNODE_OWNERS);
	if (!request->client->hello.verbs || !fabric_descent_get(request->payload, request->header->length, &descent))
		return WIRE_BAD;
	if (by_rdma && node->round_ns != 0 && smart_clock_ns() - node->round_ns > WAIT_MAX_NS)
	{
		request->length = fabric_path_begin(request->answer);
		fabric_path_end(request->answer, FABRIC_PATH_BUSY, false);
	}
	else
		request->length = smart_walk(&memory, &descent, request->answer);
	smart_assert(request->length <= FABRIC_PATH_BYTES_MAX);
	return WIRE_OK;
}

/*
 * offload.c
 *	  Descents for clients: the node's processor walks a tree by its own loads.
 *
 * That is worth while if it spares round trips and the node has time.  Where verbs
 * come as messages it always has: a descent takes the place of several of them, and
 * a client that is refused would send these instead.  Where they come by RDMA they
 * do without this process, and a client that has to wait for it had better go on by
 * itself.  How long it has waited is known at least: since the round of requests
 * began in which its turn has come.
 */
#include "base/bytes.h"
#include "serve.h"
#include "tree/walk.h"

#define WAIT_MAX_NS UINT64_C(200000) /* some dozens of round trips by RDMA */

static bool
by_rdma(const struct memnode_client *client)
{
	return client->node->region.owners[client->owner].transport == WIRE_RDMA;
}

static bool
too_busy(const struct memnode_client *client)
{
	const struct memnode *node = client->node;

	return by_rdma(client) && node->round_ns != 0 && memnode_now_ns() - node->round_ns > WAIT_MAX_NS;
}

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
memnode_serve_descent(struct memnode_client *client, const struct wire_header *header, const uint8_t *payload,
					  uint8_t *answer, uint32_t *length)
{
	struct smart_walk_memory memory = {.find = find_words,
									   .load = load_word,
									   .argument = client,
									   .exact = !by_rdma(client)};
	struct fabric_descent descent;

	if (!fabric_descent_get(payload, header->length, &descent))
		return WIRE_BAD;
	if (too_busy(client))
	{
		*length = fabric_path_begin(answer);
		fabric_path_end(answer, FABRIC_PATH_BUSY, false);
	}
	else
		*length = smart_walk(&memory, &descent, answer);
	return WIRE_OK;
}

/*
 * serve.c
 *	  Serving requests: which clients may ask, and what each request does.
 */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "lease.h"
#include "log.h"
#include "rdma/descent.h"
#include "serve.h"

#define TAKE_MAX    64u /* chunks in one answer, */
#define CLEARED_MAX 8u  /* and those of them that have to be filled with zeros: others wait meanwhile */
#define CHUNK_MB    (WIRE_CHUNK_BYTES >> 20)

/* The longest payload of an answer other than those to VERBS and DESCEND. */
#define ANSWER_MAX (16 + WIRE_LIST_MAX * (16 + WIRE_OWNER_BYTES))

/* ---- connections ---- */

static enum wire_status
serve_hello(struct memnode_request *request)
{
	struct memnode *node = request->node;
	struct memnode_client *client = request->client;
	struct wire_welcome welcome = {.node = node->region.header->incarnation, .transports = node->transports};
	struct wire_hello hello;
	enum wire_status status;

	if (client->greeted || !wire_get_hello(request->payload, request->header->length, &client->version, &hello))
		return WIRE_BAD;
	if (!wire_knows(client->version))
		return WIRE_UNSUPPORTED;
	if (node->client_max > 0 && node->greeted_count >= node->client_max)
		return WIRE_BUSY;
	status = memnode_lease_hello(client, &hello);
	if (status != WIRE_OK)
		return status;
	node->greeted_count++;
	smart_assert(client->greeted && node->greeted_count <= node->client_count);
	memnode_log(SMART_LOG_DEBUG, "%s: connected, owner %016llx, pid %u, %s", client->name,
				(unsigned long long) hello.owner, hello.pid, hello.verbs ? "for verbs" : "control");
	welcome.version = client->version;
	welcome.capacity = (uint64_t) memnode_chunks_capacity(&node->chunks) * WIRE_CHUNK_BYTES;
	welcome.allocated = (uint64_t) memnode_chunks_allocated(&node->chunks) * WIRE_CHUNK_BYTES;
	request->length = wire_put_welcome(request->answer, &welcome);
	return WIRE_OK;
}

static enum wire_status
serve_lease(struct memnode_request *request)
{
	struct wire_lease lease;

	if (!wire_get_lease(request->payload, request->header->length, &lease))
		return WIRE_BAD;
	return memnode_lease_take(request->client, &lease);
}

static enum wire_status
serve_connect(struct memnode_request *request)
{
	struct memnode_client *client = request->client;
	struct wire_queue_pair theirs;
	struct wire_queue_pair ours;
	char problem[FABRIC_PROBLEM_MAX];

	smart_assert(client->owner < MEMNODE_OWNERS);
	if (!client->hello.verbs || client->pair != NULL ||
		!wire_get_queue_pair(request->payload, request->header->length, &theirs))
		return WIRE_BAD;
	/* A lease outlives a node that had RDMA before it was started again. */
	if (request->node->target == NULL || request->node->region.owners[client->owner].transport != WIRE_RDMA)
		return WIRE_UNSUPPORTED;
	if (verbs_target_connect(request->node->target, &theirs, &ours, &client->pair, problem) != SMART_OK)
	{
		memnode_log(SMART_LOG_WARNING, "%s: no queue pair: %s", client->name, problem);
		return WIRE_UNSUPPORTED;
	}
	request->length = wire_put_queue_pair(request->answer, &ours);
	return WIRE_OK;
}

/* ---- chunks ---- */

/* Says once that the node is full, and again after it was not. */
static void
note_room(struct memnode *node)
{
	bool full = node->chunks.zero == 0 && node->chunks.free == 0;

	if (full && !node->full_said)
		memnode_log(SMART_LOG_WARNING, "the last of %u chunks of %u MB is handed out",
					memnode_chunks_capacity(&node->chunks), CHUNK_MB);
	node->full_said = full;
}

/* Takes up to so many chunks for the client; returns how many. */
static uint32_t
take_chunks(struct memnode_request *request, uint32_t wanted)
{
	struct memnode *node = request->node;
	uint32_t count = 0;
	uint32_t clearings = 0;
	bool cleared;

	smart_assert(wanted > 0);
	while (count < wanted && count < TAKE_MAX && clearings < CLEARED_MAX)
	{
		node->numbers[count] =
			memnode_chunks_take(&node->chunks, request->client->owner, MEMNODE_CHUNK_BLOCKS, &cleared);
		if (node->numbers[count] == 0)
			break;
		count++;
		clearings += cleared;
	}
	smart_assert(count <= wanted && count <= TAKE_MAX);
	return count;
}

static enum wire_status
serve_chunks_take(struct memnode_request *request)
{
	struct memnode *node = request->node;
	uint32_t wanted;
	uint32_t count;

	if (!wire_get_u32(request->payload, request->header->length, &wanted) || wanted == 0)
		return WIRE_BAD;
	count = take_chunks(request, wanted);
	if (count == 0 && memnode_owners_make_room(node))
		count = take_chunks(request, wanted);
	note_room(node);
	smart_assert(node->chunks.own[request->client->owner] >= count);
	if (count == 0)
		return WIRE_FULL;
	memnode_log(SMART_LOG_DEBUG, "%s: %u chunks for owner %016llx", request->client->name, count,
				(unsigned long long) request->client->hello.owner);
	request->length = wire_put_chunks(request->answer, node->numbers, count);
	return WIRE_OK;
}

/* A chunk that is not the owner's any more has been given before, by a request whose answer was lost. */
static enum wire_status
serve_chunks_give(struct memnode_request *request)
{
	struct memnode *node = request->node;
	uint32_t count;

	if (!wire_get_chunks(request->payload, request->header->length, node->numbers, &count))
		return WIRE_BAD;
	for (uint32_t i = 0; i < count; i++)
		memnode_chunks_give(&node->chunks, request->client->owner, MEMNODE_CHUNK_BLOCKS, node->numbers[i]);
	note_room(node);
	return WIRE_OK;
}

static enum wire_status
serve_chunks_list(struct memnode_request *request)
{
	struct memnode *node = request->node;
	uint32_t from;
	uint32_t count;

	if (!wire_get_u32(request->payload, request->header->length, &from))
		return WIRE_BAD;
	count = memnode_chunks_list(&node->chunks, request->client->owner, from, WIRE_LIST_MAX, node->numbers);
	request->length = wire_put_chunks(request->answer, node->numbers, count);
	return WIRE_OK;
}

/* ---- trees ---- */

static enum wire_status
serve_tree_make(struct memnode_request *request)
{
	struct memnode *node = request->node;
	const struct memnode_tree_record *record;
	struct wire_tree tree;
	smart_status status = SMART_OK;

	if (!wire_get_tree(request->payload, request->header->length, &tree) || tree.root != 0)
		return WIRE_BAD;
	record = memnode_trees_find(&node->trees, request->client->owner, tree.id);
	if (record == NULL)
		status = memnode_trees_make(&node->trees, request->client->owner, tree.id, tree.description, &record);
	if (status == SMART_NO_SPACE && memnode_owners_make_room(node))
		status = memnode_trees_make(&node->trees, request->client->owner, tree.id, tree.description, &record);
	if (status != SMART_OK)
	{
		memnode_log(SMART_LOG_WARNING, "%s: no room for a tree of owner %016llx", request->client->name,
					(unsigned long long) request->client->hello.owner);
		return WIRE_FULL;
	}
	note_room(node);
	smart_assert(record->used == 1 && record->id == tree.id && record->owner == request->client->owner);
	tree.root = record->root;
	memcpy(tree.description, record->description, sizeof(tree.description));
	request->length = wire_put_tree(request->answer, &tree);
	return WIRE_OK;
}

static enum wire_status
serve_tree_drop(struct memnode_request *request)
{
	uint64_t id;

	if (!wire_get_u64(request->payload, request->header->length, &id))
		return WIRE_BAD;
	memnode_trees_drop(&request->node->trees, request->client->owner, id);
	smart_assert(memnode_trees_find(&request->node->trees, request->client->owner, id) == NULL);
	return WIRE_OK;
}

static enum wire_status
serve_trees_list(struct memnode_request *request)
{
	struct memnode *node = request->node;
	uint64_t cursor;
	uint32_t count;

	if (!wire_get_u64(request->payload, request->header->length, &cursor))
		return WIRE_BAD;
	count = memnode_trees_list(&node->trees, request->client->owner, &cursor, node->list);
	request->length = wire_put_trees(request->answer, cursor, node->list, count);
	return WIRE_OK;
}

/* ---- state ---- */

static enum wire_status
serve_status(struct memnode_request *request)
{
	struct memnode *node = request->node;
	uint32_t owner = request->client->owner;
	struct wire_node_status status = {.capacity = (uint64_t) memnode_chunks_capacity(&node->chunks) * WIRE_CHUNK_BYTES,
									  .allocated =
										  (uint64_t) memnode_chunks_allocated(&node->chunks) * WIRE_CHUNK_BYTES,
									  .trees = node->trees.count,
									  .connections = node->client_count,
									  .own_chunks = owner == MEMNODE_OWNER_UNKNOWN ? 0 : node->chunks.own[owner],
									  .own_trees = owner == MEMNODE_OWNER_UNKNOWN ? 0 : node->trees.own[owner],
									  .uptime_ms = (smart_clock_ns() - node->started_ns) / 1000000,
									  .requests = node->counters.requests[WIRE_VERBS]};

	if (request->header->length != 0)
		return WIRE_BAD;
	request->length = wire_put_node_status(request->answer, &status);
	return WIRE_OK;
}

/* ---- all of them ---- */

static const struct
{
	enum wire_status (*serve)(struct memnode_request *request);
	bool needs_lease;
	uint32_t answer_max;
} kinds[WIRE_TYPES] = {
	[WIRE_HELLO] = {serve_hello, false, 64},
	[WIRE_LEASE] = {serve_lease, false, 0},
	[WIRE_CHUNKS_TAKE] = {serve_chunks_take, true, ANSWER_MAX},
	[WIRE_CHUNKS_GIVE] = {serve_chunks_give, true, 0},
	[WIRE_CHUNKS_LIST] = {serve_chunks_list, true, ANSWER_MAX},
	[WIRE_TREE_MAKE] = {serve_tree_make, true, 64},
	[WIRE_TREE_DROP] = {serve_tree_drop, true, 0},
	[WIRE_TREES_LIST] = {serve_trees_list, true, ANSWER_MAX},
	[WIRE_STATUS] = {serve_status, false, 64},
	[WIRE_VERBS] = {memnode_serve_verbs, true, 0},
	[WIRE_CONNECT] = {serve_connect, true, 64},
	[WIRE_DESCEND] = {memnode_serve_descent, true, FABRIC_PATH_BYTES_MAX},
};

/* Why a connection is closed after this answer. */
static const char *
reason_of(const struct memnode_client *client, enum wire_status status, enum memnode_refusal *refusal)
{
	static char version[80];

	smart_assert(status != WIRE_OK && status < WIRE_STATUS_COUNT);
	switch (status)
	{
		case WIRE_BUSY:
			*refusal = MEMNODE_REFUSED_BUSY;
			return "there are as many connections as max-connections allows";
		case WIRE_UNSUPPORTED:
			*refusal = MEMNODE_REFUSED_VERSION;
			snprintf(version, sizeof(version), "it speaks version %u of the protocol, and this node %d and %d",
					 client->version, WIRE_VERSION_BEFORE, WIRE_VERSION);
			return version;
		case WIRE_STALE:
			*refusal = MEMNODE_REFUSED_STALE;
			return "its generation is over";
		default:
			*refusal = MEMNODE_REFUSED_PROTOCOL;
			return "it has sent a request that is none";
	}
}

bool
memnode_serve(struct memnode_client *client)
{
	struct wire_header header;
	struct memnode_request request = {.client = client, .node = client->node, .header = &header};
	enum wire_status status;

	request.payload = memnode_client_frame(client, &header);
	if (request.payload == NULL)
		return false;
	smart_assert(header.type != 0 && header.type < WIRE_TYPES && !client->ended && !client->leaving);
	request.answer = memnode_client_reply_room(client, kinds[header.type].answer_max);
	if (request.answer == NULL)
		return true;
	if (header.type != WIRE_HELLO && !client->greeted)
		status = WIRE_BAD;
	else if (kinds[header.type].needs_lease && !memnode_lease_held(client))
		status = WIRE_FENCED;
	else
		status = kinds[header.type].serve(&request);
	if (client->ended)
		return true;
	if (status == WIRE_BAD && client->greeted)
		memnode_log(SMART_LOG_WARNING, "%s: a request that is none (type %u, %u bytes)", client->name, header.type,
					header.length);
	smart_assert(client->greeted || status != WIRE_OK);
	smart_assert(status < WIRE_STATUS_COUNT);
	client->node->counters.requests[header.type]++;
	client->node->counters.answers[status]++;
	memnode_client_reply(client, &header, status, status == WIRE_OK ? request.length : 0);
	if (status == WIRE_BAD || !client->greeted)
		memnode_client_leave(client, reason_of(client, status, &client->refusal));
	memnode_client_served(client, &header);
	return true;
}

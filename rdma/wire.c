/*
 * wire.c
 *	  Writing and checking the messages of the protocol.
 *
 * The other side of a connection may send anything: every get looks at the
 * length first, and unused bytes must be zero, so that they can get a meaning.
 */
#include <string.h>

#include "base/assert.h"
#include "rdma/wire.h"

/* ---- numbers ---- */

static uint8_t *
put(uint8_t *bytes, uint64_t number, unsigned int width)
{
	for (unsigned int i = 0; i < width; i++)
		bytes[i] = (uint8_t) (number >> (8 * i));
	return bytes + width;
}

static uint64_t
get(const uint8_t **bytes, unsigned int width)
{
	uint64_t number = 0;

	for (unsigned int i = 0; i < width; i++)
		number |= (uint64_t) (*bytes)[i] << (8 * i);
	*bytes += width;
	return number;
}

uint32_t
wire_put_u32(uint8_t *bytes, uint32_t number)
{
	put(bytes, number, 4);
	return 4;
}

bool
wire_get_u32(const uint8_t *bytes, uint32_t length, uint32_t *number)
{
	if (length != 4)
		return false;
	*number = (uint32_t) get(&bytes, 4);
	return true;
}

uint32_t
wire_put_u64(uint8_t *bytes, uint64_t number)
{
	put(bytes, number, 8);
	return 8;
}

bool
wire_get_u64(const uint8_t *bytes, uint32_t length, uint64_t *number)
{
	if (length != 8)
		return false;
	*number = get(&bytes, 8);
	return true;
}

/* ---- frames ---- */

void
wire_put_header(uint8_t *bytes, const struct wire_header *header)
{
	smart_assert(header->length <= WIRE_PAYLOAD_MAX);
	bytes = put(bytes, header->length, 4);
	bytes = put(bytes, header->type, 1);
	bytes = put(bytes, 0, 1);
	bytes = put(bytes, header->status, 2);
	put(bytes, header->number, 8);
}

bool
wire_get_header(const uint8_t *bytes, bool answer, struct wire_header *header)
{
	uint8_t unused;

	header->length = (uint32_t) get(&bytes, 4);
	header->type = (uint8_t) get(&bytes, 1);
	unused = (uint8_t) get(&bytes, 1);
	header->status = (uint16_t) get(&bytes, 2);
	header->number = get(&bytes, 8);
	if (header->length > WIRE_PAYLOAD_MAX || unused != 0 || header->status >= WIRE_STATUS_COUNT)
		return false;
	if (((header->type & WIRE_REPLY) != 0) != answer)
		return false;
	header->type &= (uint8_t) ~WIRE_REPLY;
	return header->type != 0 && header->type < WIRE_TYPES && (answer || header->status == 0);
}

/* ---- connections ---- */

#define HELLO_BYTES 40

uint32_t
wire_put_hello(uint8_t *bytes, const struct wire_hello *hello)
{
	bytes = put(bytes, WIRE_MAGIC, 4);
	bytes = put(bytes, WIRE_VERSION, 4);
	bytes = put(bytes, hello->owner, 8);
	bytes = put(bytes, hello->incarnation, 8);
	bytes = put(bytes, hello->generation, 4);
	bytes = put(bytes, hello->client, 4);
	bytes = put(bytes, hello->pid, 4);
	bytes = put(bytes, hello->verbs, 1);
	put(bytes, 0, 3);
	return HELLO_BYTES;
}

/* Magic and version come first in every version of the protocol. */
bool
wire_get_hello(const uint8_t *bytes, uint32_t length, struct wire_hello *hello, bool *version_known)
{
	uint8_t verbs;

	if (length < 8 || get(&bytes, 4) != WIRE_MAGIC)
		return false;
	*version_known = get(&bytes, 4) == WIRE_VERSION;
	if (!*version_known)
		return true;
	if (length != HELLO_BYTES)
		return false;
	hello->owner = get(&bytes, 8);
	hello->incarnation = get(&bytes, 8);
	hello->generation = (uint32_t) get(&bytes, 4);
	hello->client = (uint32_t) get(&bytes, 4);
	hello->pid = (uint32_t) get(&bytes, 4);
	verbs = (uint8_t) get(&bytes, 1);
	hello->verbs = verbs == 1;
	return verbs <= 1 && get(&bytes, 3) == 0;
}

#define WELCOME_BYTES 40

uint32_t
wire_put_welcome(uint8_t *bytes, const struct wire_welcome *welcome)
{
	bytes = put(bytes, welcome->node, 8);
	bytes = put(bytes, welcome->capacity, 8);
	bytes = put(bytes, welcome->allocated, 8);
	bytes = put(bytes, WIRE_CHUNK_BYTES, 4);
	bytes = put(bytes, welcome->transports, 4);
	bytes = put(bytes, WIRE_VERSION, 4);
	put(bytes, 0, 4);
	return WELCOME_BYTES;
}

bool
wire_get_welcome(const uint8_t *bytes, uint32_t length, struct wire_welcome *welcome)
{
	bool fits;

	if (length != WELCOME_BYTES)
		return false;
	welcome->node = get(&bytes, 8);
	welcome->capacity = get(&bytes, 8);
	welcome->allocated = get(&bytes, 8);
	fits = get(&bytes, 4) == WIRE_CHUNK_BYTES;
	welcome->transports = (uint32_t) get(&bytes, 4);
	fits = get(&bytes, 4) == WIRE_VERSION && fits;
	return fits && get(&bytes, 4) == 0 && welcome->node != 0 && welcome->allocated <= welcome->capacity;
}

#define LEASE_BYTES 24

uint32_t
wire_put_lease(uint8_t *bytes, const struct wire_lease *lease)
{
	bytes = put(bytes, lease->extents, 8);
	bytes = put(bytes, lease->heir_of, 8);
	bytes = put(bytes, lease->transport, 4);
	put(bytes, 0, 4);
	return LEASE_BYTES;
}

bool
wire_get_lease(const uint8_t *bytes, uint32_t length, struct wire_lease *lease)
{
	if (length != LEASE_BYTES)
		return false;
	lease->extents = get(&bytes, 8);
	lease->heir_of = get(&bytes, 8);
	lease->transport = (uint32_t) get(&bytes, 4);
	return get(&bytes, 4) == 0 && lease->extents != 0 &&
		   (lease->transport == WIRE_TCP || lease->transport == WIRE_RDMA);
}

#define NODE_STATUS_BYTES 64

uint32_t
wire_put_node_status(uint8_t *bytes, const struct wire_node_status *status)
{
	bytes = put(bytes, status->capacity, 8);
	bytes = put(bytes, status->allocated, 8);
	bytes = put(bytes, status->trees, 8);
	bytes = put(bytes, status->connections, 8);
	bytes = put(bytes, status->own_chunks, 8);
	bytes = put(bytes, status->own_trees, 8);
	bytes = put(bytes, status->uptime_ms, 8);
	put(bytes, status->requests, 8);
	return NODE_STATUS_BYTES;
}

bool
wire_get_node_status(const uint8_t *bytes, uint32_t length, struct wire_node_status *status)
{
	if (length != NODE_STATUS_BYTES)
		return false;
	status->capacity = get(&bytes, 8);
	status->allocated = get(&bytes, 8);
	status->trees = get(&bytes, 8);
	status->connections = get(&bytes, 8);
	status->own_chunks = get(&bytes, 8);
	status->own_trees = get(&bytes, 8);
	status->uptime_ms = get(&bytes, 8);
	status->requests = get(&bytes, 8);
	return status->allocated <= status->capacity;
}

#define QUEUE_PAIR_BYTES 48

uint32_t
wire_put_queue_pair(uint8_t *bytes, const struct wire_queue_pair *pair)
{
	memcpy(bytes, pair->gid, sizeof(pair->gid));
	bytes = put(bytes + sizeof(pair->gid), pair->base, 8);
	bytes = put(bytes, pair->limit, 8);
	bytes = put(bytes, pair->number, 4);
	bytes = put(bytes, pair->psn, 4);
	bytes = put(bytes, pair->rkey, 4);
	bytes = put(bytes, pair->lid, 2);
	bytes = put(bytes, pair->mtu, 1);
	put(bytes, pair->reads, 1);
	return QUEUE_PAIR_BYTES;
}

bool
wire_get_queue_pair(const uint8_t *bytes, uint32_t length, struct wire_queue_pair *pair)
{
	if (length != QUEUE_PAIR_BYTES)
		return false;
	memcpy(pair->gid, bytes, sizeof(pair->gid));
	bytes += sizeof(pair->gid);
	pair->base = get(&bytes, 8);
	pair->limit = get(&bytes, 8);
	pair->number = (uint32_t) get(&bytes, 4);
	pair->psn = (uint32_t) get(&bytes, 4);
	pair->rkey = (uint32_t) get(&bytes, 4);
	pair->lid = (uint16_t) get(&bytes, 2);
	pair->mtu = (uint8_t) get(&bytes, 1);
	pair->reads = (uint8_t) get(&bytes, 1);
	/* A queue pair's number and a first packet's have 24 bits; 1..5 are 256 to 4096 bytes. */
	return pair->number >> 24 == 0 && pair->psn >> 24 == 0 && pair->mtu >= 1 && pair->mtu <= 5 && pair->reads >= 1;
}

/* ---- lists ---- */

uint32_t
wire_put_chunks(uint8_t *bytes, const uint32_t *chunks, uint32_t count)
{
	smart_assert(count <= WIRE_LIST_MAX);
	bytes = put(bytes, count, 4);
	for (uint32_t i = 0; i < count; i++)
		bytes = put(bytes, chunks[i], 4);
	return 4 + 4 * count;
}

bool
wire_get_chunks(const uint8_t *bytes, uint32_t length, uint32_t *chunks, uint32_t *count)
{
	uint64_t listed;

	if (length < 4)
		return false;
	listed = get(&bytes, 4);
	if (listed > WIRE_LIST_MAX || length != 4 + 4 * listed)
		return false;
	for (uint64_t i = 0; i < listed; i++)
		chunks[i] = (uint32_t) get(&bytes, 4);
	*count = (uint32_t) listed;
	return true;
}

#define TREE_BYTES (16 + WIRE_OWNER_BYTES)

uint32_t
wire_put_tree(uint8_t *bytes, const struct wire_tree *tree)
{
	bytes = put(bytes, tree->id, 8);
	bytes = put(bytes, tree->root, 8);
	memcpy(bytes, tree->description, WIRE_OWNER_BYTES);
	return TREE_BYTES;
}

bool
wire_get_tree(const uint8_t *bytes, uint32_t length, struct wire_tree *tree)
{
	if (length != TREE_BYTES)
		return false;
	tree->id = get(&bytes, 8);
	tree->root = get(&bytes, 8);
	memcpy(tree->description, bytes, WIRE_OWNER_BYTES);
	return tree->id != 0;
}

#define TREES_HEAD_BYTES 16

uint32_t
wire_put_trees(uint8_t *bytes, uint64_t cursor, const struct wire_tree *trees, uint32_t count)
{
	smart_assert(count <= WIRE_LIST_MAX);
	bytes = put(bytes, cursor, 8);
	bytes = put(bytes, count, 4);
	bytes = put(bytes, 0, 4);
	for (uint32_t i = 0; i < count; i++)
		bytes += wire_put_tree(bytes, &trees[i]);
	return TREES_HEAD_BYTES + TREE_BYTES * count;
}

bool
wire_get_trees(const uint8_t *bytes, uint32_t length, uint64_t *cursor, struct wire_tree *trees, uint32_t *count)
{
	uint64_t next;
	uint64_t listed;

	if (length < TREES_HEAD_BYTES)
		return false;
	next = get(&bytes, 8);
	listed = get(&bytes, 4);
	if (get(&bytes, 4) != 0 || listed > WIRE_LIST_MAX || length != TREES_HEAD_BYTES + TREE_BYTES * listed)
		return false;
	for (uint64_t i = 0; i < listed; i++, bytes += TREE_BYTES)
		if (!wire_get_tree(bytes, TREE_BYTES, &trees[i]))
			return false;
	*cursor = next;
	*count = (uint32_t) listed;
	return true;
}

/* ---- verbs ---- */

#define VERBS_HEAD_BYTES 8

uint32_t
wire_verb_request_bytes(const struct fabric_request *request)
{
	return WIRE_VERB_BYTES + (request->verb == FABRIC_WRITE ? request->length : 0);
}

uint32_t
wire_verb_reply_bytes(const struct fabric_request *request)
{
	if (request->verb == FABRIC_READ)
		return request->length;
	return fabric_is_atomic(request) ? sizeof(uint64_t) : 0;
}

static uint8_t *
put_verb(uint8_t *bytes, const struct fabric_request *request)
{
	bool atomic = fabric_is_atomic(request);

	bytes = put(bytes, request->verb, 1);
	bytes = put(bytes, request->fence, 1);
	bytes = put(bytes, 0, 2);
	bytes = put(bytes, atomic ? sizeof(uint64_t) : request->length, 4);
	bytes = put(bytes, fabric_offset(request->remote), 8);
	bytes = put(bytes, request->verb == FABRIC_CAS ? request->compare : 0, 8);
	return put(bytes, atomic ? request->operand : 0, 8);
}

uint32_t
wire_put_verbs(uint8_t *bytes, struct fabric_request *const *picked, uint32_t count)
{
	uint8_t *at = bytes;

	smart_assert(count >= 1 && count <= WIRE_BATCH_MAX);
	at = put(at, count, 4);
	at = put(at, 0, 4);
	for (uint32_t i = 0; i < count; i++)
		at = put_verb(at, picked[i]);
	for (uint32_t i = 0; i < count; i++)
	{
		if (picked[i]->verb != FABRIC_WRITE)
			continue;
		memcpy(at, picked[i]->local, picked[i]->length);
		at += picked[i]->length;
	}
	smart_assert(at - bytes <= (ptrdiff_t) WIRE_PAYLOAD_MAX);
	return (uint32_t) (at - bytes);
}

/* One verb of a VERBS payload; false: it is none. */
static bool
get_verb(const uint8_t *bytes, struct fabric_request *request)
{
	uint8_t verb = (uint8_t) get(&bytes, 1);
	uint8_t fence = (uint8_t) get(&bytes, 1);
	bool unused = get(&bytes, 2) != 0;

	if (verb >= FABRIC_VERBS || fence > 1 || unused)
		return false;
	*request = (struct fabric_request){.verb = (enum fabric_verb) verb, .fence = fence == 1};
	request->length = (uint32_t) get(&bytes, 4);
	request->remote = get(&bytes, 8);
	request->compare = get(&bytes, 8);
	request->operand = get(&bytes, 8);
	if (request->remote > FABRIC_OFFSET_MASK || request->length == 0 || request->length > WIRE_PAYLOAD_MAX)
		return false;
	return !fabric_is_atomic(request) || request->length == sizeof(uint64_t);
}

bool
wire_get_verbs(const uint8_t *bytes, uint32_t length, struct fabric_request *requests, uint32_t *count,
			   uint32_t *result_bytes)
{
	const uint8_t *head = bytes;
	uint64_t verbs;
	uint64_t data;
	uint64_t answer = 0;

	if (length < VERBS_HEAD_BYTES)
		return false;
	verbs = get(&head, 4);
	if (get(&head, 4) != 0 || verbs == 0 || verbs > WIRE_BATCH_MAX ||
		length < VERBS_HEAD_BYTES + verbs * WIRE_VERB_BYTES)
		return false;
	data = VERBS_HEAD_BYTES + verbs * WIRE_VERB_BYTES;
	for (uint64_t i = 0; i < verbs; i++)
	{
		struct fabric_request *request = &requests[i];

		if (!get_verb(head + i * WIRE_VERB_BYTES, request))
			return false;
		answer += wire_verb_reply_bytes(request);
		if (request->verb != FABRIC_WRITE)
			continue;
		if (request->length > length - data)
			return false;
		request->local = (void *) (uintptr_t) (bytes + data);
		data += request->length;
	}
	if (data != length || answer > WIRE_PAYLOAD_MAX)
		return false;
	*count = (uint32_t) verbs;
	*result_bytes = (uint32_t) answer;
	return true;
}

const char *
wire_status_text(enum wire_status status)
{
	static const char *const text[WIRE_STATUS_COUNT] = {
		[WIRE_OK] = "success",
		[WIRE_BAD] = "the memory node did not understand the request",
		[WIRE_UNSUPPORTED] = "the memory node has another version of the protocol, or not this transport",
		[WIRE_HELD] = "the memory node is used by another server of the same database cluster",
		[WIRE_FENCED] = "the memory node has given this server's lease to a later start of it, or to none",
		[WIRE_STALE] = "the connection is of an older generation",
		[WIRE_FULL] = "the memory node is full",
		[WIRE_OUTSIDE] = "the address is not in this server's memory",
		[WIRE_BUSY] = "the memory node has as many connections as it allows",
		[WIRE_FOREIGN] = "another copy of this server has used the memory node meanwhile",
	};

	if ((unsigned int) status >= WIRE_STATUS_COUNT)
		return "unknown status";
	return text[status];
}

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
	smart_assert(width < sizeof(number) ? number >> (8 * width) == 0 : width == sizeof(number));
	memcpy(bytes, &number, width);
	return bytes + width;
}

static uint64_t
get(const uint8_t **bytes, unsigned int width)
{
	uint64_t number = 0;

	smart_assert(width <= sizeof(number));
	memcpy(&number, *bytes, width);
	*bytes += width;
	return number;
}

/* Payloads that lie in a message as they lie in memory. */
static uint32_t
put_whole(uint8_t *bytes, const void *message, size_t size)
{
	smart_assert(size <= WIRE_PAYLOAD_MAX);
	memcpy(bytes, message, size);
	return (uint32_t) size;
}

static bool
get_whole(const uint8_t *bytes, uint32_t length, void *message, size_t size)
{
	if (length != size)
		return false;
	memcpy(message, bytes, size);
	return true;
}

uint32_t
wire_put_u32(uint8_t *bytes, uint32_t number)
{
	return put_whole(bytes, &number, sizeof(number));
}

bool
wire_get_u32(const uint8_t *bytes, uint32_t length, uint32_t *number)
{
	return get_whole(bytes, length, number, sizeof(*number));
}

uint32_t
wire_put_u64(uint8_t *bytes, uint64_t number)
{
	return put_whole(bytes, &number, sizeof(number));
}

bool
wire_get_u64(const uint8_t *bytes, uint32_t length, uint64_t *number)
{
	return get_whole(bytes, length, number, sizeof(*number));
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

#define HELLO_HEAD_BYTES 8

/* How much of the struct a HELLO of this version has. */
static size_t
hello_bytes(uint32_t version)
{
	smart_assert(wire_knows(version));
	return version == WIRE_VERSION ? sizeof(struct wire_hello) : offsetof(struct wire_hello, system);
}

uint32_t
wire_put_hello(uint8_t *bytes, uint32_t version, const struct wire_hello *hello)
{
	smart_assert(wire_knows(version));
	bytes = put(bytes, WIRE_MAGIC, 4);
	bytes = put(bytes, version, 4);
	return HELLO_HEAD_BYTES + put_whole(bytes, hello, hello_bytes(version));
}

bool
wire_get_hello(const uint8_t *bytes, uint32_t length, uint32_t *version, struct wire_hello *hello)
{
	if (length < HELLO_HEAD_BYTES || get(&bytes, 4) != WIRE_MAGIC)
		return false;
	*version = (uint32_t) get(&bytes, 4);
	if (!wire_knows(*version))
		return true;
	if (!get_whole(bytes, length - HELLO_HEAD_BYTES, hello, hello_bytes(*version)))
		return false;
	if (*version == WIRE_VERSION_BEFORE)
		hello->system = hello->owner;
	return hello->verbs <= 1 && hello->unused[0] == 0 && hello->unused[1] == 0 && hello->unused[2] == 0;
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
	bytes = put(bytes, welcome->version, 4);
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
	welcome->version = (uint32_t) get(&bytes, 4);
	return fits && wire_knows(welcome->version) && get(&bytes, 4) == 0 && welcome->node != 0 &&
		   welcome->allocated <= welcome->capacity;
}

uint32_t
wire_put_lease(uint8_t *bytes, const struct wire_lease *lease)
{
	return put_whole(bytes, lease, sizeof(*lease));
}

bool
wire_get_lease(const uint8_t *bytes, uint32_t length, struct wire_lease *lease)
{
	return get_whole(bytes, length, lease, sizeof(*lease)) && lease->unused == 0 && lease->extents != 0 &&
		   (lease->transport == WIRE_TCP || lease->transport == WIRE_RDMA);
}

uint32_t
wire_put_node_status(uint8_t *bytes, const struct wire_node_status *status)
{
	return put_whole(bytes, status, sizeof(*status));
}

bool
wire_get_node_status(const uint8_t *bytes, uint32_t length, struct wire_node_status *status)
{
	return get_whole(bytes, length, status, sizeof(*status)) && status->allocated <= status->capacity;
}

uint32_t
wire_put_queue_pair(uint8_t *bytes, const struct wire_queue_pair *pair)
{
	return put_whole(bytes, pair, sizeof(*pair));
}

/* A queue pair's number and a first packet's have 24 bits; an MTU of 1..5 is one of 256 to 4096 bytes. */
bool
wire_get_queue_pair(const uint8_t *bytes, uint32_t length, struct wire_queue_pair *pair)
{
	return get_whole(bytes, length, pair, sizeof(*pair)) && pair->number >> 24 == 0 && pair->psn >> 24 == 0 &&
		   pair->mtu >= 1 && pair->mtu <= 5 && pair->reads >= 1;
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

uint32_t
wire_put_tree(uint8_t *bytes, const struct wire_tree *tree)
{
	return put_whole(bytes, tree, sizeof(*tree));
}

bool
wire_get_tree(const uint8_t *bytes, uint32_t length, struct wire_tree *tree)
{
	return get_whole(bytes, length, tree, sizeof(*tree)) && tree->id != 0;
}

#define TREES_HEAD_BYTES 16

uint32_t
wire_put_trees(uint8_t *bytes, uint64_t cursor, const struct wire_tree *trees, uint32_t count)
{
	smart_assert(count <= WIRE_LIST_MAX);
	bytes = put(bytes, cursor, 8);
	bytes = put(bytes, count, 4);
	bytes = put(bytes, 0, 4);
	return TREES_HEAD_BYTES + put_whole(bytes, trees, count * sizeof(*trees));
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
	if (get(&bytes, 4) != 0 || listed > WIRE_LIST_MAX || length != TREES_HEAD_BYTES + listed * sizeof(*trees))
		return false;
	for (uint64_t i = 0; i < listed; i++, bytes += sizeof(*trees))
		if (!wire_get_tree(bytes, sizeof(*trees), &trees[i]))
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
		[WIRE_UNSUPPORTED] = "the memory node does not know this version of the protocol, or has not this transport",
		[WIRE_HELD] = "the memory node is used by another server of the same identity: one of the two is a copy",
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

/*
 * client.c
 *	  Connections and their buffers.
 *
 * A client's memory is bounded: a frame in, and an answer above the output bound.
 * Buffers shrink when they are empty, since most clients are idle.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "client.h"
#include "log.h"
#include "owners.h"

#define BUFFER_BYTES ((size_t) 16 << 10) /* of one that is in use */
#define BUFFER_KEPT  ((size_t) 64 << 10) /* longer ones do not stay when they are empty */

/* ---- buffers ---- */

static void
buffer_free(struct memnode_buffer *buffer)
{
	free(buffer->bytes);
	*buffer = (struct memnode_buffer){0};
}

/* Makes room for length bytes behind end.  False: no memory. */
static bool
buffer_reserve(struct memnode_buffer *buffer, size_t length)
{
	size_t used = buffer->end - buffer->start;
	size_t capacity = buffer->capacity > 0 ? buffer->capacity : BUFFER_BYTES;
	uint8_t *bytes;

	smart_assert(buffer->start <= buffer->end && buffer->end <= buffer->capacity);
	if (buffer->end + length <= buffer->capacity)
		return true;
	if (buffer->start > 0)
	{
		memmove(buffer->bytes, buffer->bytes + buffer->start, used);
		buffer->start = 0;
		buffer->end = used;
	}
	if (used + length <= buffer->capacity)
		return true;
	while (capacity < used + length)
		capacity *= 2;
	bytes = realloc(buffer->bytes, capacity);
	if (bytes == NULL)
		return false;
	buffer->bytes = bytes;
	buffer->capacity = capacity;
	smart_assert(buffer->start == 0 && buffer->end + length <= buffer->capacity);
	return true;
}

static void
buffer_consume(struct memnode_buffer *buffer, size_t length)
{
	smart_assert(buffer->start <= buffer->end && buffer->end <= buffer->capacity);
	smart_assert(length <= buffer->end - buffer->start);
	buffer->start += length;
	if (buffer->start < buffer->end)
		return;
	buffer->start = buffer->end = 0;
	if (buffer->capacity > BUFFER_KEPT)
		buffer_free(buffer);
}

/* ---- life ---- */

struct memnode_client *
memnode_client_open(struct memnode *node, const char *name)
{
	struct memnode_client *client = calloc(1, sizeof(*client));

	if (client == NULL)
		return NULL;
	client->node = node;
	node->counters.connections++;
	client->owner = MEMNODE_OWNER_UNKNOWN;
	snprintf(client->name, sizeof(client->name), "%s", name);
	client->next = node->clients;
	if (node->clients != NULL)
	{
		smart_assert(node->clients->previous == NULL);
		node->clients->previous = client;
	}
	node->clients = client;
	node->client_count++;
	smart_assert(node->clients == client && client->previous == NULL);
	return client;
}

void
memnode_client_disconnect(struct memnode_client *client)
{
	if (client->pair != NULL)
		verbs_target_disconnect(client->pair);
	client->pair = NULL;
}

/* The first reason is the one that counts. */
static void
note_reason(struct memnode_client *client, const char *reason)
{
	if (client->reason[0] == '\0')
		snprintf(client->reason, sizeof(client->reason), "%s", reason);
}

void
memnode_client_leave(struct memnode_client *client, const char *reason)
{
	memnode_client_disconnect(client);
	smart_assert(!client->ended && client->pair == NULL);
	client->leaving = true;
	note_reason(client, reason);
}

void
memnode_client_end(struct memnode_client *client, const char *reason)
{
	struct memnode *node = client->node;

	if (client->ended)
		return;
	client->ended = true;
	note_reason(client, reason);
	memnode_client_disconnect(client);
	buffer_free(&client->in);
	buffer_free(&client->out);
	smart_assert(node->client_count > 0 && (client->previous == NULL) == (node->clients == client));
	if (client->previous != NULL)
		client->previous->next = client->next;
	else
		node->clients = client->next;
	if (client->next != NULL)
		client->next->previous = client->previous;
	node->client_count--;
	node->greeted_count -= client->greeted;
	node->client_ended = true;
	smart_assert((node->client_count == 0) == (node->clients == NULL));
	memnode_log(SMART_LOG_DEBUG, "%s: disconnected, %s", client->name, client->reason);
}

void
memnode_client_free(struct memnode_client *client)
{
	memnode_client_end(client, "it is not needed any more");
	smart_assert(client->ended && client->pair == NULL && client->in.bytes == NULL && client->out.bytes == NULL);
	free(client);
}

/* ---- input ---- */

/* The bytes of the frame at the front of the input; 0: not even its header is there. */
static size_t
frame_bytes(const struct memnode_client *client)
{
	const struct memnode_buffer *in = &client->in;
	struct wire_header header;

	smart_assert(in->start <= in->end && in->end <= in->capacity);
	if (in->end - in->start < WIRE_HEADER_BYTES)
		return 0;
	/* A header that is none is found when it is served: its length then does not matter. */
	if (!wire_get_header(in->bytes + in->start, false, &header))
		return WIRE_HEADER_BYTES;
	return WIRE_HEADER_BYTES + header.length;
}

uint8_t *
memnode_client_room(struct memnode_client *client, size_t *length)
{
	struct memnode_buffer *in = &client->in;
	size_t used = in->end - in->start;
	size_t frame = frame_bytes(client);
	size_t wanted = frame > used ? frame - used : 1;

	smart_assert(!client->ended);
	if (!buffer_reserve(in, wanted))
	{
		client->refusal = MEMNODE_REFUSED_MEMORY;
		memnode_client_end(client, "no memory is left");
		return NULL;
	}
	*length = in->capacity - in->end;
	smart_assert(*length >= wanted);
	return in->bytes + in->end;
}

void
memnode_client_received(struct memnode_client *client, size_t length)
{
	smart_assert(!client->ended);
	smart_assert(client->in.end + length <= client->in.capacity);
	client->in.end += length;
	client->node->counters.received_bytes += length;
}

bool
memnode_client_wants(const struct memnode_client *client)
{
	return !client->ended && !client->leaving && client->out.end - client->out.start < MEMNODE_OUTPUT_BOUND;
}

const uint8_t *
memnode_client_frame(struct memnode_client *client, struct wire_header *header)
{
	const struct memnode_buffer *in = &client->in;
	const uint8_t *bytes;
	size_t frame;

	if (!memnode_client_wants(client))
		return NULL;
	frame = frame_bytes(client);
	if (frame == 0)
		return NULL;
	bytes = in->bytes + in->start;
	if (!wire_get_header(bytes, false, header))
	{
		if (client->greeted)
			memnode_log(SMART_LOG_WARNING, "%s: what it sends is not this node's protocol", client->name);
		client->refusal = MEMNODE_REFUSED_PROTOCOL;
		memnode_client_end(client, "what it sends is not this node's protocol");
		return NULL;
	}
	if (!client->greeted && header->length > MEMNODE_HELLO_MAX)
	{
		client->refusal = MEMNODE_REFUSED_PROTOCOL;
		memnode_client_end(client, "it does not begin with a HELLO");
		return NULL;
	}
	return in->end - in->start < frame ? NULL : bytes + WIRE_HEADER_BYTES;
}

void
memnode_client_served(struct memnode_client *client, const struct wire_header *header)
{
	smart_assert(!client->ended);
	buffer_consume(&client->in, WIRE_HEADER_BYTES + (size_t) header->length);
}

/* ---- output ---- */

const uint8_t *
memnode_client_output(const struct memnode_client *client, size_t *length)
{
	*length = client->out.end - client->out.start;
	return *length > 0 ? client->out.bytes + client->out.start : NULL;
}

void
memnode_client_sent(struct memnode_client *client, size_t length)
{
	buffer_consume(&client->out, length);
	client->node->counters.sent_bytes += length;
}

uint8_t *
memnode_client_reply_room(struct memnode_client *client, uint32_t length)
{
	smart_assert(!client->ended && length <= WIRE_PAYLOAD_MAX);
	if (!buffer_reserve(&client->out, WIRE_HEADER_BYTES + (size_t) length))
	{
		client->refusal = MEMNODE_REFUSED_MEMORY;
		memnode_client_end(client, "no memory is left");
		return NULL;
	}
	return client->out.bytes + client->out.end + WIRE_HEADER_BYTES;
}

void
memnode_client_reply(struct memnode_client *client, const struct wire_header *request, enum wire_status status,
					 uint32_t length)
{
	struct wire_header header = {.length = length,
								 .type = request->type | WIRE_REPLY,
								 .status = (uint16_t) status,
								 .number = request->number};

	smart_assert(!client->ended && status < WIRE_STATUS_COUNT);
	smart_assert(request->type != 0 && request->type < WIRE_TYPES);
	smart_assert(status == WIRE_OK || length == 0);
	smart_assert(client->out.end + WIRE_HEADER_BYTES + length <= client->out.capacity);
	wire_put_header(client->out.bytes + client->out.end, &header);
	client->out.end += WIRE_HEADER_BYTES + length;
}

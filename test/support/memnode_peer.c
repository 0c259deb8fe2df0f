/*
 * memnode_peer.c
 *	  A memory node and its clients without sockets, for tests.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "support/memnode_peer.h"
#include "support/must.h"

static uint8_t scratch[WIRE_PAYLOAD_MAX];
static uint8_t reply_bytes[WIRE_PAYLOAD_MAX];

void
memnode_peer_region(struct memnode_region *region, uint64_t size)
{
	uint64_t boot[2];
	void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	must(base != MAP_FAILED, "mmap");
	must(memnode_region_boot(boot), "boot identification");
	memnode_region_plan(region, base, size);
	memnode_region_format(region, 1, boot, true);
	memnode_region_publish(region);
}

void
memnode_peer_unmap(struct memnode_region *region)
{
	munmap(region->base, region->size);
}

struct memnode *
memnode_peer_node(const struct memnode_region *region)
{
	struct memnode *node = malloc(sizeof(*node));

	must(node != NULL && memnode_open(node, region, WIRE_TCP) == SMART_OK, "memnode_open");
	return node;
}

void
memnode_peer_send(struct memnode_client *client, enum wire_type type, const uint8_t *payload, uint32_t length)
{
	struct wire_header header = {.length = length, .type = (uint8_t) type, .number = 1};
	uint8_t bytes[WIRE_HEADER_BYTES];
	size_t sent = 0;
	size_t room;

	wire_put_header(bytes, &header);
	while (sent < WIRE_HEADER_BYTES + (size_t) length)
	{
		uint8_t *to = memnode_client_room(client, &room);
		size_t from = sent < WIRE_HEADER_BYTES ? sent : sent - WIRE_HEADER_BYTES;
		size_t left = sent < WIRE_HEADER_BYTES ? WIRE_HEADER_BYTES - sent : length - from;

		must(to != NULL && room > 0, "memnode_client_room");
		if (room > left)
			room = left;
		memcpy(to, (sent < WIRE_HEADER_BYTES ? bytes : payload) + from, room);
		memnode_client_received(client, room);
		sent += room;
	}
}

int
memnode_peer_receive(struct memnode_client *client, uint8_t *reply, uint32_t *length)
{
	struct wire_header header;
	const uint8_t *bytes;
	size_t waiting;

	while (!client->ended && memnode_serve(client))
		continue;
	if (client->ended)
		return -1;
	bytes = memnode_client_output(client, &waiting);
	if (waiting == 0)
		return -1;
	must(waiting >= WIRE_HEADER_BYTES && wire_get_header(bytes, true, &header), "no reply");
	must(waiting >= WIRE_HEADER_BYTES + header.length && header.number == 1, "half a reply");
	memcpy(reply, bytes + WIRE_HEADER_BYTES, header.length);
	*length = header.length;
	memnode_client_sent(client, WIRE_HEADER_BYTES + header.length);
	return header.status;
}

int
memnode_peer_call(struct memnode_client *client, enum wire_type type, const uint8_t *payload, uint32_t length,
				  uint8_t *reply, uint32_t *result_length)
{
	memnode_peer_send(client, type, payload, length);
	return memnode_peer_receive(client, reply, result_length);
}

int
memnode_peer_hello(struct memnode_client *client, uint64_t owner, uint64_t incarnation, bool verbs, uint32_t generation,
				   uint32_t number)
{
	struct wire_hello hello = {.owner = owner,
							   .system = MEMNODE_PEER_SYSTEM,
							   .incarnation = incarnation,
							   .generation = generation,
							   .client = number,
							   .pid = 1,
							   .verbs = verbs};
	struct wire_welcome welcome;
	uint32_t length;
	int status = memnode_peer_call(client, WIRE_HELLO, scratch, wire_put_hello(scratch, WIRE_VERSION, &hello),
								   reply_bytes, &length);

	must(status != WIRE_OK || wire_get_welcome(reply_bytes, length, &welcome), "welcome");
	return status;
}

int
memnode_peer_lease(struct memnode_client *client, uint64_t extents, uint32_t transport)
{
	const struct memnode_owner_record *owners = client->node->region.owners;
	uint64_t heir_of = 0;

	if (client->owner != MEMNODE_OWNER_UNKNOWN && owners[client->owner].extents == extents)
		heir_of = owners[client->owner].incarnation;
	return memnode_peer_lease_of(client, extents, heir_of, transport);
}

int
memnode_peer_lease_of(struct memnode_client *client, uint64_t extents, uint64_t heir_of, uint32_t transport)
{
	struct wire_lease lease = {.extents = extents, .heir_of = heir_of, .transport = transport};
	uint32_t length;

	return memnode_peer_call(client, WIRE_LEASE, scratch, wire_put_lease(scratch, &lease), reply_bytes, &length);
}

int
memnode_peer_take(struct memnode_client *client, uint32_t wanted, uint32_t *chunks, uint32_t *count)
{
	uint32_t length;
	int status =
		memnode_peer_call(client, WIRE_CHUNKS_TAKE, scratch, wire_put_u32(scratch, wanted), reply_bytes, &length);

	must(status != WIRE_OK || wire_get_chunks(reply_bytes, length, chunks, count), "chunks");
	return status;
}

int
memnode_peer_make_tree(struct memnode_client *client, uint64_t id, uint64_t *root)
{
	struct wire_tree tree = {.id = id, .description = "a tree"};
	uint32_t length;
	int status =
		memnode_peer_call(client, WIRE_TREE_MAKE, scratch, wire_put_tree(scratch, &tree), reply_bytes, &length);

	must(status != WIRE_OK || wire_get_tree(reply_bytes, length, &tree), "tree");
	if (status == WIRE_OK)
		*root = tree.root;
	return status;
}

int
memnode_peer_status(struct memnode_client *client, struct wire_node_status *status)
{
	uint32_t length;
	int result = memnode_peer_call(client, WIRE_STATUS, scratch, 0, reply_bytes, &length);

	must(result != WIRE_OK || wire_get_node_status(reply_bytes, length, status), "status");
	return result;
}

int
memnode_peer_verb(struct memnode_client *client, struct fabric_request *request)
{
	uint32_t length;
	int status =
		memnode_peer_call(client, WIRE_VERBS, scratch, wire_put_verbs(scratch, &request, 1), reply_bytes, &length);

	if (status != WIRE_OK)
		return status;
	must(length == wire_verb_reply_bytes(request), "reply to a verb");
	if (request->verb == FABRIC_READ)
		memcpy(request->local, reply_bytes, length);
	else if (length == sizeof(uint64_t))
		must(wire_get_u64(reply_bytes, length, &request->result), "result");
	return status;
}

/*
 * serve_fuzz.c
 *	  Any bytes, and any requests, sent to a memory node: libFuzzer drives the
 *	  frame server on a small region, without sockets.
 *
 * The first byte of an input chooses.  Even: the rest is one connection's stream as it
 * came.  Odd: the rest is a program; each step picks one of four connections
 * and makes a request of few small numbers, so that HELLO, LEASE and chunks of one's own are
 * reached at once; steps also send raw bytes, close and open connections, and put nodes into a
 * connection's own chunks, for descents to walk through.
 *
 * Another owner has a chunk and a tree of its own, and keeps a connection.  What must be true:
 * - verbs and descents touch no chunk but those of the connection's owner: while they are
 *   served, all others are poisoned (AddressSanitizer), and the private part must not change;
 * - a descent changes nothing at all, and its reply can be taken apart;
 * - after each input the private part is sound, and says what the node believes;
 * - the other owner has what it had.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sanitizer/asan_interface.h>

#include "base/crc32c.h"
#include "memnode/log.h"
#include "rdma/descent.h"
#include "support/memnode_peer.h"
#include "support/must.h"
#include "tree/layout.h"

#define SIZE      MEMNODE_SIZE_MIN
#define CLIENTS   4u
#define BYSTANDER UINT64_C(0x5eed5eed5eed5eed)
#define PATTERN   0x5a
#define PLANT     14 /* the kind of step that puts a node somewhere */

extern int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct memnode_region region;
static struct memnode *node;
static struct memnode_client *clients[CLIENTS];
static struct memnode_client *bystander;
static uint32_t bystander_chunk;
static uint64_t bystander_root;
static uint64_t boot[2];
static uint8_t private_before[SIZE];

/* ---- the input ---- */

struct input
{
	const uint8_t *bytes;
	size_t left;
};

static uint64_t
next(struct input *input, unsigned int width)
{
	uint64_t number = 0;

	for (unsigned int i = 0; i < width && input->left > 0; i++, input->bytes++, input->left--)
		number |= (uint64_t) *input->bytes << (8 * i);
	return number;
}

/* ---- what must be true ---- */

/* An input that knows the bystander's numbers may do as it likes with what is the bystander's. */
static bool
impersonated(void)
{
	for (unsigned int i = 0; i < CLIENTS; i++)
	{
		if (clients[i]->greeted && clients[i]->hello.owner == BYSTANDER)
			return true;
	}
	return false;
}

static void
check_bystander(void)
{
	const uint8_t *bytes = region.base + (uint64_t) bystander_chunk * WIRE_CHUNK_BYTES;
	const struct memnode_tree_record *tree;

	must(!bystander->ended, "another owner's client closed the bystander's connection");
	must(memnode_lease_held(bystander), "the bystander lost its lease");
	must(bytes[0] == PATTERN && memcmp(bytes, bytes + 1, WIRE_CHUNK_BYTES - 1) == 0, "the bystander's chunk changed");
	tree = memnode_trees_find(&node->trees, bystander->owner, 1);
	must(tree != NULL && tree->root == bystander_root, "the bystander's tree is gone");
	must(*(uint64_t *) (region.base + bystander_root) == smart_slot_make_empty(0, 255), "the bystander's root changed");
}

/* A process that opened the region now would believe the same. */
static void
check_private_part(void)
{
	static struct memnode again;

	must(memnode_region_kind(region.header, SIZE) == MEMNODE_REGION_SAME, "the header is none");
	must(memnode_region_fault(&region, boot) == NULL, "the private part is not sound");
	must(memnode_open(&again, &region, WIRE_TCP) == SMART_OK, "the private part cannot be opened");
	must(again.chunks.zero == node->chunks.zero && again.chunks.free == node->chunks.free,
		 "free chunks are miscounted");
	must(memcmp(again.chunks.own, node->chunks.own, sizeof(again.chunks.own)) == 0, "chunks are miscounted");
	must(memcmp(again.chunks.roots, node->chunks.roots, sizeof(again.chunks.roots)) == 0, "root chunks are miscounted");
	must(again.trees.count == node->trees.count, "trees are miscounted");
	must(memcmp(again.trees.own, node->trees.own, sizeof(again.trees.own)) == 0, "an owner's trees are miscounted");
	memnode_close(&again);
}

static void
poison_others(const struct memnode_client *client, bool poison)
{
	for (uint32_t chunk = region.first_chunk; chunk < region.chunk_count; chunk++)
	{
		uint32_t word = region.chunks[chunk];
		bool owned = memnode_chunk_use(word) == MEMNODE_CHUNK_BLOCKS || memnode_chunk_use(word) == MEMNODE_CHUNK_ROOTS;
		uint8_t *bytes = region.base + (uint64_t) chunk * WIRE_CHUNK_BYTES;

		if (!poison)
			ASAN_UNPOISON_MEMORY_REGION(bytes, WIRE_CHUNK_BYTES);
		else if (!owned || memnode_chunk_owner(word) != client->owner)
			ASAN_POISON_MEMORY_REGION(bytes, WIRE_CHUNK_BYTES);
	}
}

/* ---- serving ---- */

/* Does a frame come next that reaches the region?  Then everything but the owner's chunks is out of bounds. */
static bool
reach_next(const struct memnode_client *client, enum wire_type *type)
{
	if (client->in.end - client->in.start < WIRE_HEADER_BYTES || !memnode_lease_held(client))
		return false;
	*type = (enum wire_type) client->in.bytes[client->in.start + 4];
	return *type == WIRE_VERBS || *type == WIRE_DESCEND;
}

/* A sum over what the client could change. */
static uint32_t
sum_of_chunks(const struct memnode_client *client)
{
	uint32_t sum = 0;

	for (uint32_t chunk = region.first_chunk; chunk < region.chunk_count; chunk++)
	{
		if (memnode_chunks_cover(&node->chunks, client->owner, (uint64_t) chunk * WIRE_CHUNK_BYTES, 1))
			sum = smart_crc32c(sum, region.base + (uint64_t) chunk * WIRE_CHUNK_BYTES, WIRE_CHUNK_BYTES);
	}
	return sum;
}

static bool
serve_one(struct memnode_client *client)
{
	size_t bytes = (size_t) region.first_chunk * WIRE_CHUNK_BYTES;
	enum wire_type type;
	uint32_t sum = 0;
	bool served;

	if (!reach_next(client, &type))
		return memnode_serve(client);
	if (type == WIRE_DESCEND)
		sum = sum_of_chunks(client);
	memcpy(private_before, region.base, bytes);
	poison_others(client, true);
	served = memnode_serve(client);
	poison_others(client, false);
	must(memcmp(private_before, region.base, bytes) == 0, "a verb changed the private part");
	must(type != WIRE_DESCEND || client->ended || sum == sum_of_chunks(client), "a descent changed something");
	return served;
}

/* What the client would read: replies have to be frames of this protocol. */
static void
take_answers(struct memnode_client *client)
{
	static struct fabric_path path;
	struct wire_header header;
	const uint8_t *bytes;
	size_t length;

	while (!client->ended && (bytes = memnode_client_output(client, &length), length > 0))
	{
		must(length >= WIRE_HEADER_BYTES && wire_get_header(bytes, true, &header), "a reply is none");
		must(length >= WIRE_HEADER_BYTES + (size_t) header.length, "a reply is cut off");
		must(header.status == WIRE_OK || header.length == 0, "a refusal has a payload");
		must(header.type != WIRE_DESCEND || header.status != WIRE_OK ||
				 fabric_path_get(bytes + WIRE_HEADER_BYTES, header.length, &path),
			 "a path is none");
		memnode_client_sent(client, WIRE_HEADER_BYTES + header.length);
	}
}

static void
send_bytes(struct memnode_client *client, const uint8_t *bytes, size_t length)
{
	while (memnode_client_wants(client) && length > 0)
	{
		size_t room;
		uint8_t *to = memnode_client_room(client, &room);

		must(to != NULL && room > 0, "no room for input");
		if (room > length)
			room = length;
		memcpy(to, bytes, room);
		memnode_client_received(client, room);
		bytes += room;
		length -= room;
		while (serve_one(client))
			continue;
		take_answers(client);
	}
	must(client->in.capacity <= 2 * (WIRE_HEADER_BYTES + (size_t) WIRE_PAYLOAD_MAX), "the input buffer has no bound");
}

static void
reopen(unsigned int number)
{
	if (clients[number] != NULL)
		memnode_client_free(clients[number]);
	clients[number] = memnode_client_open(node, "fuzz");
	must(clients[number] != NULL, "no client");
}

/* ---- programs ---- */

/* An offset in or around some chunk. */
static uint64_t
make_offset(struct input *input)
{
	uint64_t chunk = next(input, 1) % (region.chunk_count + 2);
	uint64_t within = next(input, 2);

	/* Half of them at the chunk's end. */
	if ((within & 1) != 0)
		within = WIRE_CHUNK_BYTES - (within >> 1) % 64;
	return chunk * WIRE_CHUNK_BYTES + (within >> 1) * 8 + next(input, 1) % 64 / 56;
}

static uint32_t
make_verbs(struct input *input, uint8_t *payload)
{
	static struct fabric_request requests[16];
	static struct fabric_request *picked[16];
	static uint8_t source[1 << 16];
	uint32_t count = 1 + (uint32_t) next(input, 1) % 16;

	for (uint32_t i = 0; i < count; i++)
	{
		requests[i] = (struct fabric_request){.verb = (enum fabric_verb)(next(input, 1) % FABRIC_VERBS),
											  .remote = make_offset(input),
											  .length = 1 + (uint32_t) next(input, 2),
											  .operand = next(input, 1),
											  .compare = next(input, 1),
											  .local = source};
		if (requests[i].remote > FABRIC_OFFSET_MASK)
			requests[i].remote = 0;
		picked[i] = &requests[i];
	}
	return wire_put_verbs(payload, picked, count);
}

/* A slot of any kind, to one of a few places of some chunk. */
static smart_slot
make_slot(struct input *input)
{
	uint8_t bits = (uint8_t) next(input, 1);
	uint64_t place = next(input, 1) % (region.chunk_count + 1) * WIRE_CHUNK_BYTES + bits % 8 * 4096;
	smart_slot slot = smart_slot_make_node(bits >> 7, 1 + bits / 8 % SMART_NODE_KINDS, place);

	if ((bits & 64) != 0)
		slot = bits % 8 == 7 ? smart_slot_make_empty(0, bits) : smart_slot_make_leaf(0, 1 + bits % 127, place);
	return slot | (next(input, 1) == 1 ? SMART_SLOT_FROZEN : 0);
}

/* WRITEs a node that looks like one: its depth and slots are the input's. */
static uint32_t
make_plant(struct input *input, uint8_t *payload)
{
	static uint64_t words[SMART_NODE_WORDS_MAX];
	uint8_t bits = (uint8_t) next(input, 1);
	unsigned int kind = 1 + bits / 8 % SMART_NODE_KINDS;
	struct fabric_request write = {.verb = FABRIC_WRITE, .local = words, .length = smart_kind_slots(kind) * 8 + 16};
	struct fabric_request *picked = &write;

	write.remote = next(input, 1) % (region.chunk_count + 1) * WIRE_CHUNK_BYTES + bits % 8 * 4096;
	memset(words, 0, sizeof(words));
	words[0] = smart_node_header_make((bits & 64) != 0 ? SMART_NEW : SMART_LIVE, kind, next(input, 1) % 16, 0);
	for (unsigned int i = 0; i < 3; i++)
		words[SMART_NODE_HEAD_WORDS + i] = make_slot(input);
	return wire_put_verbs(payload, &picked, 1);
}

static uint32_t
make_descent(struct input *input, uint8_t *payload)
{
	static const uint8_t key[64];
	smart_slot link = make_slot(input);
	struct fabric_descent descent = {.link = next(input, 1) % 2 == 0 ? 0 : link,
									 .root = smart_slot_address(make_slot(input)),
									 .arrived = (uint16_t) (next(input, 1) % 16),
									 .key_length = (uint16_t) (1 + next(input, 1) % sizeof(key)),
									 .pad = (uint8_t) next(input, 1),
									 .key = key};

	return fabric_descent_put(payload, &descent);
}

static uint32_t
make_chunks(struct input *input, uint8_t *payload)
{
	uint32_t numbers[8];
	uint32_t count = (uint32_t) next(input, 1) % 9;

	for (uint32_t i = 0; i < count; i++)
		numbers[i] = (uint32_t) next(input, 1) % (region.chunk_count + 2);
	return wire_put_chunks(payload, numbers, count);
}

static uint32_t
make_hello(struct input *input, uint8_t *payload)
{
	uint8_t bits = (uint8_t) next(input, 1);
	struct wire_hello hello = {.owner = 1 + (bits & 1),
							   .incarnation = 1 + (bits >> 1 & 1),
							   .generation = bits >> 2 & 3,
							   .client = bits >> 4 & 3,
							   .verbs = (bits & 64) != 0};

	return wire_put_hello(payload, bits & 128 ? WIRE_VERSION_BEFORE : WIRE_VERSION, &hello);
}

static uint32_t
make_payload(struct input *input, enum wire_type type, uint8_t *payload)
{
	uint8_t bits = (uint8_t) next(input, 1);
	struct wire_lease lease = {.extents = 1 + (bits & 1),
							   .heir_of = bits >> 4 & 3,
							   .transport = (bits & 14) == 14 ? WIRE_RDMA : WIRE_TCP};
	struct wire_tree tree = {.id = 1 + next(input, 1) % 8};

	switch (type)
	{
		case WIRE_HELLO:
			return make_hello(input, payload);
		case WIRE_LEASE:
			return wire_put_lease(payload, &lease);
		case WIRE_CHUNKS_TAKE:
			return wire_put_u32(payload, (uint32_t) next(input, 1) % 4);
		case WIRE_CHUNKS_GIVE:
			return make_chunks(input, payload);
		case WIRE_CHUNKS_LIST:
			return wire_put_u32(payload, (uint32_t) next(input, 1));
		case WIRE_TREE_MAKE:
			return wire_put_tree(payload, &tree);
		case WIRE_TREE_DROP:
		case WIRE_TREES_LIST:
			return wire_put_u64(payload, tree.id);
		case WIRE_VERBS:
			return make_verbs(input, payload);
		case WIRE_DESCEND:
			return make_descent(input, payload);
		case WIRE_CONNECT:
			memset(payload, 1, 48);
			return 48;
		default:
			return 0;
	}
}

/* Another length of the payload, or another byte somewhere. */
static void
damage(struct input *input, uint8_t *frame, struct wire_header *header)
{
	uint8_t how = (uint8_t) next(input, 1);

	if (how < 64)
		header->length = how < 8 && header->length > 0 ? header->length - 1 : header->length + how;
	wire_put_header(frame, header);
	if (how >= 64)
		frame[next(input, 2) % (WIRE_HEADER_BYTES + header->length)] ^= how;
}

static void
step(struct input *input)
{
	static uint8_t frame[WIRE_HEADER_BYTES + WIRE_PAYLOAD_MAX];
	uint8_t code = (uint8_t) next(input, 1);
	unsigned int number = code % CLIENTS;
	unsigned int kind = code / CLIENTS % 16;
	struct wire_header header = {.type = kind == PLANT ? WIRE_VERBS : (uint8_t) kind, .number = 7};

	if (kind == 0)
		reopen(number);
	else if (kind < WIRE_TYPES || kind == PLANT)
	{
		header.length = kind == PLANT ? make_plant(input, frame + WIRE_HEADER_BYTES)
									  : make_payload(input, (enum wire_type) kind, frame + WIRE_HEADER_BYTES);
		if (code >= 192)
			damage(input, frame, &header);
		else
			wire_put_header(frame, &header);
		send_bytes(clients[number], frame, WIRE_HEADER_BYTES + header.length);
	}
	else
	{
		size_t length = next(input, 1);

		if (length > input->left)
			length = input->left;
		send_bytes(clients[number], input->bytes, length);
		input->bytes += length;
		input->left -= length;
	}
}

/* ---- an input ---- */

static void
set_up(void)
{
	uint32_t count;

	if (region.base == NULL)
	{
		memnode_log_set_level(SMART_LOG_WARNING + 1);
		must(memnode_region_boot(boot), "boot identification");
		memnode_peer_region(&region, SIZE);
	}
	memnode_region_format(&region, 1, boot, false);
	memnode_region_publish(&region);
	node = memnode_peer_node(&region);
	bystander = memnode_client_open(node, "bystander");
	must(memnode_peer_hello(bystander, BYSTANDER, BYSTANDER, true, 0, 0) == WIRE_OK &&
			 memnode_peer_lease(bystander, 1, WIRE_TCP) == WIRE_OK &&
			 memnode_peer_take(bystander, 1, &bystander_chunk, &count) == WIRE_OK &&
			 memnode_peer_make_tree(bystander, 1, &bystander_root) == WIRE_OK,
		 "the bystander has no place");
	memset(region.base + (uint64_t) bystander_chunk * WIRE_CHUNK_BYTES, PATTERN, WIRE_CHUNK_BYTES);
	for (unsigned int i = 0; i < CLIENTS; i++)
		reopen(i);
}

static void
tear_down(void)
{
	for (unsigned int i = 0; i < CLIENTS; i++)
	{
		memnode_client_free(clients[i]);
		clients[i] = NULL;
	}
	memnode_client_free(bystander);
	memnode_close(node);
	free(node);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	bool program = (next(&input, 1) & 1) != 0;
	bool trusted;

	set_up();
	if (!program)
		send_bytes(clients[0], input.bytes, input.left);
	else
	{
		while (input.left > 0)
			step(&input);
	}
	trusted = impersonated();
	if (!trusted)
		check_bystander();
	check_private_part();
	tear_down();
	return 0;
}

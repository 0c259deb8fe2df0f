/*
 * memnode_descent_test.c
 *	  Descents that a memory node makes, request by request: what the reply brings,
 *	  where the walk ends, and what a client may not reach.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rdma/descent.h"
#include "support/check.h"
#include "support/memnode_peer.h"
#include "tree/layout.h"

#define SIZE     MEMNODE_SIZE_MIN
#define OWNER    1
#define NUMBER   5 /* of the memory node, as its client says */
#define LEAF     4 /* units */
#define FAR_NODE 6
#define KEY      "abcdef"

static struct memnode_region region;
static struct memnode *node;
static struct memnode_client *client;
static uint64_t chunk;   /* offset of the client's chunk */
static uint64_t foreign; /* of another owner's */
static struct fabric_path path;

/* ---- blocks ---- */

static fabric_address
address(unsigned int unit)
{
	return fabric_make_address(NUMBER, chunk + (uint64_t) unit * SMART_UNIT);
}

static uint64_t *
words(unsigned int unit)
{
	return (uint64_t *) (void *) (region.base + chunk + (uint64_t) unit * SMART_UNIT);
}

/* A node at depth with one slot for all bytes, or (a node's) for the key's. */
static smart_slot
make_node(unsigned int unit, unsigned int pk, unsigned int kind, unsigned int depth, unsigned int arrived,
		  smart_slot slot)
{
	uint64_t *block = words(unit);
	uint64_t partial = 0;

	memset(block, 0, smart_kind_bytes(kind));
	for (unsigned int i = depth < SMART_NODE_PARTIAL_MAX ? 0 : depth - SMART_NODE_PARTIAL_MAX; i < depth; i++)
		partial = (partial << 8) | (uint8_t) KEY[i];
	block[0] = smart_node_header_make(SMART_LIVE, kind, depth, partial);
	block[1] = 42;
	block[2] = slot;
	if (kind == SMART_NODE_256)
	{
		block[2] = smart_slot_make_empty(0, 255);
		block[2 + smart_slot_pk(slot)] = slot;
	}
	return smart_slot_make_node(pk, kind, address(unit));
}

/* Root's word at unit 0, a node at 1 and another at 8, a leaf at 80. */
static void
make_tree(void)
{
	smart_slot leaf = smart_slot_make_leaf('b', LEAF, address(80));
	smart_slot below = make_node(8, 'a', SMART_NODE_256, 1, 1, leaf);

	memset(words(80), 0x33, LEAF * SMART_UNIT);
	*words(0) = make_node(1, 0, SMART_NODE_6, 0, 0, below);
}

/* ---- asking ---- */

static int
call(const uint8_t *request, uint32_t length)
{
	static uint8_t reply[WIRE_PAYLOAD_MAX];
	uint32_t reply_length;
	int status = memnode_peer_call(client, WIRE_DESCEND, request, length, reply, &reply_length);

	if (status == WIRE_OK)
		CHECK(fabric_path_get(reply, reply_length, &path));
	return status;
}

static int
ask(smart_slot link, fabric_address root, unsigned int arrived, const char *key)
{
	uint8_t request[FABRIC_DESCENT_BYTES_MAX];
	struct fabric_descent descent = {.link = link,
									 .root = root,
									 .arrived = (uint16_t) arrived,
									 .key_length = (uint16_t) strlen(key),
									 .key = (const uint8_t *) key};

	return call(request, fabric_descent_put(request, &descent));
}

/* From the root: how it ends, and after how many blocks. */
static bool
ends(enum fabric_path_end end, unsigned int blocks)
{
	return ask(0, address(0), 0, KEY) == WIRE_OK && path.end == end && path.count == blocks;
}

static bool
brings(unsigned int block, smart_slot link, unsigned int unit, uint32_t length)
{
	return path.block[block].link == link && path.block[block].length == length &&
		   memcmp(path.block[block].bytes, words(unit), length) == 0;
}

/* ---- ways to their ends ---- */

static void
test_path(void)
{
	smart_slot upper;
	smart_slot lower;

	make_tree();
	upper = *words(0);
	lower = words(1)[2];
	CHECK(ends(FABRIC_PATH_LEAF, 4) && path.exact);
	CHECK(brings(0, 0, 0, 8) && brings(1, upper, 1, 64) && brings(2, lower, 8, 258 * 8));
	CHECK(brings(3, smart_slot_make_leaf('b', LEAF, address(80)), 80, LEAF * SMART_UNIT));
	/* From a node on. */
	CHECK(ask(lower, 0, 1, KEY) == WIRE_OK && path.end == FABRIC_PATH_LEAF && path.count == 2);
	CHECK(brings(0, lower, 8, 258 * 8));
	/* To nothing. */
	words(8)[2 + 'b'] = smart_slot_make_empty('b', 'c');
	CHECK(ends(FABRIC_PATH_EMPTY, 3));
	*words(0) = smart_slot_make_empty(0, 255);
	CHECK(ends(FABRIC_PATH_EMPTY, 1));
	*words(0) = smart_slot_make_leaf(0, LEAF, address(80));
	CHECK(ends(FABRIC_PATH_LEAF, 2));
}

static bool
stops_with_slot(smart_slot slot)
{
	make_tree();
	words(8)[2 + 'b'] = slot;
	return ends(FABRIC_PATH_STOPPED, 3);
}

static bool
stops_with_header(uint64_t header)
{
	make_tree();
	words(8)[0] = header;
	return ends(FABRIC_PATH_STOPPED, 2);
}

/* What changes this moment, or is none of this tree, ends a walk. */
static void
test_stops(void)
{
	CHECK(stops_with_slot(smart_slot_make_leaf('b', LEAF, address(80)) | SMART_SLOT_FROZEN));
	CHECK(stops_with_slot(smart_slot_make_empty('b', 'c') | SMART_SLOT_FROZEN));
	CHECK(stops_with_slot(smart_slot_make_leaf('b', LEAF, fabric_make_address(FAR_NODE, chunk))));
	CHECK(stops_with_slot(smart_slot_make_leaf('b', LEAF, fabric_make_address(NUMBER, foreign))));
	CHECK(stops_with_slot(smart_slot_make_leaf('b', LEAF, fabric_make_address(NUMBER, 0))));
	CHECK(stops_with_slot(smart_slot_make_leaf('b', LEAF, address(WIRE_CHUNK_BYTES / SMART_UNIT - 1))));
	CHECK(stops_with_slot(smart_slot_make_leaf('b', LEAF, SMART_SLOT_ADDRESS_MASK & ~UINT64_C(0xff0000000000))));
	CHECK(stops_with_slot(smart_slot_make_node('b', SMART_NODE_14, fabric_make_address(FAR_NODE, chunk))));
	CHECK(stops_with_slot(smart_slot_make_node('b', SMART_NODE_14, address(80)))); /* a leaf's bytes */
	CHECK(stops_with_slot(smart_slot_make_node('b', SMART_NODE_6, address(1))));   /* upwards */
	CHECK(stops_with_header(smart_node_header_make(SMART_NEW, SMART_NODE_256, 1, 'a')));
	CHECK(stops_with_header(smart_node_header_make(SMART_DEAD, SMART_NODE_256, 1, 'a')));
	CHECK(stops_with_header(smart_node_header_make(SMART_LIVE, SMART_NODE_126, 1, 'a')));
	CHECK(stops_with_header(smart_node_header_make(SMART_LIVE, SMART_NODE_256, 0, 0)));
	CHECK(stops_with_header(smart_node_header_make(SMART_LIVE, SMART_NODE_256, 7, 0)));
	make_tree();
	words(1)[2] = smart_slot_with_pk(words(1)[2], 'A'); /* a node for another byte */
	CHECK(ends(FABRIC_PATH_STOPPED, 2));
	words(1)[2] = smart_slot_make_empty(0, 'a' - 1); /* ends before the byte: torn */
	CHECK(ends(FABRIC_PATH_STOPPED, 2));
	*words(0) = 0;
	CHECK(ends(FABRIC_PATH_STOPPED, 1));
	/* A node whose compressed bytes are others: the client has to see it. */
	make_tree();
	words(1)[2] = make_node(8, 'a', SMART_NODE_256, 2, 1, smart_slot_make_leaf('c', LEAF, address(80)));
	words(8)[0] = smart_node_header_make(SMART_LIVE, SMART_NODE_256, 2, 'X');
	CHECK(ends(FABRIC_PATH_STOPPED, 3));
}

/* Nodes one below the other: the reply is bounded, and shows how to go on. */
static void
test_bounds(void)
{
	static char key[200];

	memset(key, 'k', sizeof(key) - 1);
	for (unsigned int depth = 0; depth < 100; depth++)
	{
		uint64_t *block = words(100 + depth);

		memset(block, 0, SMART_UNIT);
		block[0] = smart_node_header_make(SMART_LIVE, SMART_NODE_6, depth, depth == 0 ? 0 : 'k');
		block[2] = smart_slot_make_node('k', SMART_NODE_6, address(101 + depth));
	}
	*words(0) = smart_slot_make_node(0, SMART_NODE_6, address(100));
	CHECK(ask(0, address(0), 0, key) == WIRE_OK && path.end == FABRIC_PATH_STOPPED);
	CHECK(path.count == FABRIC_PATH_BLOCKS_MAX);
	/* A node that leads to itself. */
	words(101)[2] = smart_slot_make_node('k', SMART_NODE_6, address(101));
	CHECK(ask(0, address(0), 0, key) == WIRE_OK && path.end == FABRIC_PATH_STOPPED && path.count == 3);
	/* Many large ones: as many as there is room for. */
	for (unsigned int depth = 0; depth < 20; depth++)
	{
		uint64_t *block = words(400 + 40 * depth);

		memset(block, 0, smart_kind_bytes(SMART_NODE_256));
		block[0] = smart_node_header_make(SMART_LIVE, SMART_NODE_256, depth, depth == 0 ? 0 : 'k');
		block[2 + 'k'] = smart_slot_make_node('k', SMART_NODE_256, address(440 + 40 * depth));
	}
	*words(0) = smart_slot_make_node(0, SMART_NODE_256, address(400));
	CHECK(ask(0, address(0), 0, key) == WIRE_OK && path.end == FABRIC_PATH_STOPPED);
	CHECK(path.count ==
		  (FABRIC_PATH_BYTES_MAX - FABRIC_PATH_HEAD_BYTES - 24) / (258 * 8 + FABRIC_BLOCK_HEAD_BYTES) + 1);
}

/* ---- permissions ---- */

static void
test_begins(void)
{
	make_tree();
	CHECK(ask(0, fabric_make_address(NUMBER, foreign), 0, KEY) == WIRE_OK && path.count == 0);
	CHECK(path.end == FABRIC_PATH_STOPPED);
	CHECK(ask(0, fabric_make_address(NUMBER, 8), 0, KEY) == WIRE_OK && path.count == 0);
	CHECK(ask(0, FABRIC_OFFSET_MASK - 7, 0, KEY) == WIRE_OK && path.count == 0);
	/* Links that lead to no node. */
	CHECK(ask(smart_slot_make_leaf(0, LEAF, address(80)), 0, 0, KEY) == WIRE_OK && path.count == 0);
	CHECK(ask(smart_slot_make_node(0, SMART_NODE_6, address(1)) | UINT64_C(7) << SMART_SLOT_SIZE_SHIFT, 0, 0, KEY) ==
			  WIRE_OK &&
		  path.count == 0);
	CHECK(ask(SMART_SLOT_FROZEN, 0, 0, KEY) == WIRE_OK && path.count == 0);
	/* Farther than the key reaches. */
	CHECK(ask(*words(0), 0, 4000, KEY) == WIRE_OK && path.count == 0 && path.end == FABRIC_PATH_STOPPED);
}

/* Each in a connection of its own, which it ends. */
static void
test_malformed(void)
{
	static const struct
	{
		uint32_t length;
		unsigned int at;
		uint8_t value;
	} cases[] = {{32, 0, 0}, {0, 0, 0}, {37, 0, 0}, {39, 0, 0}, {38, 8, 1}, {38, 18, 5}, {38, 21, 1}, {38, 31, 1}};
	uint8_t good[FABRIC_DESCENT_BYTES_MAX] = {0};
	struct fabric_descent descent = {.root = address(0), .key_length = 6, .key = (const uint8_t *) KEY};
	uint32_t length = fabric_descent_put(good, &descent);

	CHECK(length == 38);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		uint8_t bad[sizeof(good)];

		memcpy(bad, good, sizeof(good));
		if (cases[i].at > 0)
			bad[cases[i].at] = cases[i].value;
		memnode_client_free(client);
		client = memnode_client_open(node, "test");
		CHECK(memnode_peer_hello(client, OWNER, OWNER, true, 0, 0) == WIRE_OK && call(good, length) == WIRE_OK);
		CHECK(call(bad, cases[i].length) == WIRE_BAD && client->leaving);
	}
	/* A connection for control only. */
	memnode_client_free(client);
	client = memnode_client_open(node, "test");
	CHECK(memnode_peer_hello(client, OWNER, OWNER, false, 0, 0) == WIRE_OK && call(good, length) == WIRE_BAD);
}

/* Where verbs go by RDMA, what comes are hints, and a request that waited too long is refused. */
static void
test_rdma(void)
{
	make_tree();
	region.owners[client->owner].transport = WIRE_RDMA;
	CHECK(ends(FABRIC_PATH_LEAF, 3) && !path.exact);
	node->round_ns = smart_clock_ns() - 1000000000;
	CHECK(ends(FABRIC_PATH_BUSY, 0));
	region.owners[client->owner].transport = WIRE_TCP;
	node->round_ns = smart_clock_ns() - 1000000000;
	CHECK(ends(FABRIC_PATH_LEAF, 4) && path.exact);
	node->round_ns = 0;
}

static uint64_t
open_owner(uint64_t owner, struct memnode_client **opened)
{
	uint32_t number = 0;
	uint32_t count;

	*opened = memnode_client_open(node, "test");
	CHECK(memnode_peer_hello(*opened, owner, owner, true, 0, 0) == WIRE_OK);
	CHECK(memnode_peer_lease(*opened, 1, WIRE_TCP) == WIRE_OK);
	CHECK(memnode_peer_take(*opened, 1, &number, &count) == WIRE_OK);
	return (uint64_t) number * WIRE_CHUNK_BYTES;
}

int
main(void)
{
	struct memnode_client *other;

	memnode_peer_region(&region, SIZE);
	node = memnode_peer_node(&region);
	chunk = open_owner(OWNER, &client);
	foreign = open_owner(OWNER + 1, &other);
	test_path();
	test_stops();
	test_bounds();
	test_begins();
	test_rdma();
	test_malformed();
	memnode_client_free(client);
	memnode_client_free(other);
	memnode_close(node);
	free(node);
	memnode_peer_unmap(&region);
	return check_finish();
}

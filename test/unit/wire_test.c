/*
 * wire_test.c
 *	  The protocol's messages: what is written is read back, on the bytes that
 *	  wire.h tells, and nothing of another length or with unused bits is a message.
 */
#include <stdlib.h>
#include <string.h>

#include "rdma/wire.h"
#include "support/check.h"
#include "support/env_thread.h"

static uint64_t seed = 7;

static uint64_t
random_number(void)
{
	return test_random(&seed);
}

static void
check_header(void)
{
	struct wire_header header = {1000, WIRE_VERBS, WIRE_OK, 0x1122334455667788};
	struct wire_header found;
	uint8_t bytes[WIRE_HEADER_BYTES];

	wire_put_header(bytes, &header);
	CHECK(memcmp(bytes, "\xe8\x03\0\0\x0a\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11", WIRE_HEADER_BYTES) == 0);
	CHECK(wire_get_header(bytes, false, &found));
	CHECK(found.length == 1000 && found.type == WIRE_VERBS && found.status == WIRE_OK && found.number == header.number);
	CHECK(!wire_get_header(bytes, true, &found));
	bytes[6] = WIRE_FULL;
	CHECK(!wire_get_header(bytes, false, &found));
	bytes[4] |= WIRE_REPLY;
	CHECK(wire_get_header(bytes, true, &found) && found.type == WIRE_VERBS && found.status == WIRE_FULL);
	CHECK(!wire_get_header(bytes, false, &found));
	bytes[6] = WIRE_STATUS_COUNT;
	CHECK(!wire_get_header(bytes, true, &found));
	bytes[6] = WIRE_OK;
	bytes[5] = 1;
	CHECK(!wire_get_header(bytes, true, &found));
	bytes[5] = 0;
	bytes[2] = 0x10; /* length 0x1003e8 > WIRE_PAYLOAD_MAX */
	CHECK(!wire_get_header(bytes, true, &found));
	bytes[2] = 0;
	bytes[4] = WIRE_REPLY;
	CHECK(!wire_get_header(bytes, true, &found));
	bytes[4] = WIRE_REPLY | WIRE_TYPES;
	CHECK(!wire_get_header(bytes, true, &found));
}

static void
check_hello(void)
{
	struct wire_hello hello = {random_number(), random_number(), 17, 4711, 12345, 1, {0}, random_number()};
	struct wire_hello found;
	uint32_t version;
	uint8_t bytes[64] = {0};
	uint32_t length = wire_put_hello(bytes, WIRE_VERSION_BEFORE, &hello);

	CHECK(length == 40);
	CHECK(wire_get_hello(bytes, length, &version, &found) && version == WIRE_VERSION_BEFORE);
	CHECK(found.owner == hello.owner && found.system == hello.owner && found.pid == 12345 && found.verbs);
	CHECK(!wire_get_hello(bytes, length + 8, &version, &found));
	length = wire_put_hello(bytes, WIRE_VERSION, &hello);
	CHECK(length == 48);
	CHECK(wire_get_hello(bytes, length, &version, &found) && version == WIRE_VERSION);
	CHECK(found.system == hello.system && found.system != found.owner);
	CHECK(found.owner == hello.owner && found.incarnation == hello.incarnation && found.generation == 17);
	CHECK(found.client == 4711 && found.pid == 12345 && found.verbs);
	CHECK(!wire_get_hello(bytes, length - 1, &version, &found) && !wire_get_hello(bytes, length + 1, &version, &found));
	CHECK(!wire_get_hello(bytes, 7, &version, &found));
	bytes[36] = 2;
	CHECK(!wire_get_hello(bytes, length, &version, &found));
	bytes[36] = 0;
	bytes[39] = 1;
	CHECK(!wire_get_hello(bytes, length, &version, &found));
	bytes[39] = 0;
	bytes[4] = WIRE_VERSION + 1;
	CHECK(wire_get_hello(bytes, 64, &version, &found) && version == WIRE_VERSION + 1 && !wire_knows(version));
	bytes[4] = WIRE_VERSION_BEFORE - 1;
	CHECK(wire_get_hello(bytes, 8, &version, &found) && version == WIRE_VERSION_BEFORE - 1 && !wire_knows(version));
	bytes[0] ^= 1;
	CHECK(!wire_get_hello(bytes, length, &version, &found));
}

static void
check_welcome(void)
{
	struct wire_welcome welcome = {random_number() | 1, 100 << 20, 2 << 20, WIRE_TCP | WIRE_RDMA, WIRE_VERSION};
	struct wire_welcome found;
	uint8_t bytes[64] = {0};
	uint32_t length = wire_put_welcome(bytes, &welcome);

	CHECK(length == 40 && wire_get_welcome(bytes, length, &found));
	CHECK(found.node == welcome.node && found.capacity == welcome.capacity && found.allocated == welcome.allocated);
	CHECK(found.transports == welcome.transports && found.version == WIRE_VERSION);
	bytes[32] = WIRE_VERSION_BEFORE;
	CHECK(wire_get_welcome(bytes, length, &found) && found.version == WIRE_VERSION_BEFORE);
	bytes[32] = WIRE_VERSION + 1;
	CHECK(!wire_get_welcome(bytes, length, &found));
	CHECK(!wire_get_welcome(bytes, length - 1, &found) && !wire_get_welcome(bytes, length + 1, &found));
	welcome.allocated = welcome.capacity + 1;
	wire_put_welcome(bytes, &welcome);
	CHECK(!wire_get_welcome(bytes, length, &found));
	welcome.allocated = 0;
	welcome.node = 0;
	wire_put_welcome(bytes, &welcome);
	CHECK(!wire_get_welcome(bytes, length, &found));
}

static void
check_lease_and_status(void)
{
	struct wire_lease lease = {random_number() | 1, random_number(), WIRE_RDMA, 0};
	struct wire_lease found_lease;
	struct wire_node_status status = {8, 7, 3, 4, 5, 6, 2, 1};
	struct wire_node_status found;
	uint8_t bytes[80] = {0};
	uint32_t length = wire_put_lease(bytes, &lease);

	CHECK(length == 24 && wire_get_lease(bytes, length, &found_lease));
	CHECK(found_lease.extents == lease.extents && found_lease.heir_of == lease.heir_of &&
		  found_lease.transport == WIRE_RDMA);
	CHECK(!wire_get_lease(bytes, length + 1, &found_lease));
	lease.transport = 3;
	wire_put_lease(bytes, &lease);
	CHECK(!wire_get_lease(bytes, length, &found_lease));
	length = wire_put_node_status(bytes, &status);
	CHECK(length == 64 && wire_get_node_status(bytes, length, &found));
	CHECK(memcmp(&found, &status, sizeof(status)) == 0 && !wire_get_node_status(bytes, length - 1, &found));
	status.allocated = 9;
	wire_put_node_status(bytes, &status);
	CHECK(!wire_get_node_status(bytes, length, &found));
}

static void
check_queue_pair(void)
{
	struct wire_queue_pair pair = {{1, 2, 3}, random_number(), random_number(), 0xabcdef, 0x123456, 99, 7, 3, 16};
	struct wire_queue_pair found;
	uint8_t bytes[64] = {0};
	uint32_t length = wire_put_queue_pair(bytes, &pair);

	CHECK(length == 48 && wire_get_queue_pair(bytes, length, &found));
	CHECK(memcmp(found.gid, pair.gid, 16) == 0 && found.base == pair.base && found.limit == pair.limit);
	CHECK(found.number == pair.number && found.psn == pair.psn && found.rkey == 99 && found.lid == 7 && found.mtu == 3);
	CHECK(found.reads == 16);
	CHECK(!wire_get_queue_pair(bytes, length - 1, &found));
	pair.mtu = 6;
	wire_put_queue_pair(bytes, &pair);
	CHECK(!wire_get_queue_pair(bytes, length, &found));
	pair.mtu = 5;
	pair.reads = 0;
	wire_put_queue_pair(bytes, &pair);
	CHECK(!wire_get_queue_pair(bytes, length, &found));
	pair.reads = 1;
	pair.number = 1u << 24;
	wire_put_queue_pair(bytes, &pair);
	CHECK(!wire_get_queue_pair(bytes, length, &found));
}

static void
check_lists(void)
{
	static uint8_t bytes[WIRE_PAYLOAD_MAX];
	static struct wire_tree trees[WIRE_LIST_MAX];
	static struct wire_tree found_trees[WIRE_LIST_MAX];
	uint32_t chunks[WIRE_LIST_MAX];
	uint32_t found[WIRE_LIST_MAX];
	uint32_t count;
	uint32_t length;
	uint64_t cursor;

	for (uint32_t i = 0; i < WIRE_LIST_MAX; i++)
	{
		chunks[i] = (uint32_t) random_number();
		trees[i].id = random_number() | 1;
		trees[i].root = random_number();
		memset(trees[i].description, (int) i, WIRE_OWNER_BYTES);
	}
	length = wire_put_chunks(bytes, chunks, WIRE_LIST_MAX);
	CHECK(wire_get_chunks(bytes, length, found, &count) && count == WIRE_LIST_MAX);
	CHECK(memcmp(found, chunks, sizeof(chunks)) == 0 && !wire_get_chunks(bytes, length - 4, found, &count));
	wire_put_u32(bytes, WIRE_LIST_MAX + 1);
	CHECK(!wire_get_chunks(bytes, length + 4, found, &count) && !wire_get_chunks(bytes, 3, found, &count));
	CHECK(wire_get_chunks(bytes, wire_put_chunks(bytes, chunks, 0), found, &count) && count == 0);
	length = wire_put_trees(bytes, 88, trees, WIRE_LIST_MAX);
	CHECK(wire_get_trees(bytes, length, &cursor, found_trees, &count) && count == WIRE_LIST_MAX && cursor == 88);
	CHECK(memcmp(found_trees, trees, sizeof(trees)) == 0);
	CHECK(!wire_get_trees(bytes, length - 1, &cursor, found_trees, &count));
	length = wire_put_trees(bytes, 0, trees, 0);
	CHECK(wire_get_trees(bytes, length, &cursor, found_trees, &count) && count == 0 && cursor == 0);
	trees[0].id = 0;
	length = wire_put_trees(bytes, 0, trees, 1);
	CHECK(!wire_get_trees(bytes, length, &cursor, found_trees, &count));
}

/* A batch of all verbs; its bytes. */
static uint32_t
make_batch(uint8_t *bytes, struct fabric_request *requests, uint8_t *data, uint32_t count)
{
	struct fabric_request *picked[WIRE_BATCH_MAX];

	for (uint32_t i = 0; i < count; i++)
	{
		enum fabric_verb verb = (enum fabric_verb)(i % FABRIC_VERBS);
		bool atomic = verb == FABRIC_CAS || verb == FABRIC_FAA;

		requests[i] = (struct fabric_request){
			.verb = verb,
			.fence = i % 3 == 0,
			.length = atomic ? 8 : 1 + (uint32_t) (random_number() % 200),
			.remote = fabric_make_address(3, (random_number() & FABRIC_OFFSET_MASK) / 2),
			.local = data,
			.compare = verb == FABRIC_CAS ? random_number() : 0,
			.operand = atomic ? random_number() : 0,
		};
		picked[i] = &requests[i];
	}
	return wire_put_verbs(bytes, picked, count);
}

static bool
same_verb(const struct fabric_request *sent, const struct fabric_request *found)
{
	return found->verb == sent->verb && found->fence == sent->fence && found->length == sent->length &&
		   found->remote == fabric_offset(sent->remote) && found->compare == sent->compare &&
		   found->operand == sent->operand &&
		   (sent->verb == FABRIC_WRITE ? memcmp(found->local, sent->local, sent->length) == 0 : found->local == NULL);
}

static void
check_verbs(void)
{
	static uint8_t bytes[WIRE_PAYLOAD_MAX];
	static struct fabric_request sent[WIRE_BATCH_MAX];
	static struct fabric_request found[WIRE_BATCH_MAX];
	uint8_t data[200];
	uint32_t counts[] = {1, 2, 3, 4, 100, WIRE_BATCH_MAX};

	for (unsigned int i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t) random_number();
	for (unsigned int i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
	{
		uint32_t length = make_batch(bytes, sent, data, counts[i]);
		uint32_t expected = 8;
		uint32_t expected_bytes = 0;
		uint32_t count = 0;
		uint32_t reply_bytes = 0;

		for (uint32_t j = 0; j < counts[i]; j++)
		{
			expected += wire_verb_request_bytes(&sent[j]);
			expected_bytes += wire_verb_reply_bytes(&sent[j]);
		}
		CHECK(length == expected);
		CHECK(wire_get_verbs(bytes, length, found, &count, &reply_bytes));
		CHECK(count == counts[i] && reply_bytes == expected_bytes);
		for (uint32_t j = 0; j < count; j++)
			CHECK(same_verb(&sent[j], &found[j]));
		CHECK(!wire_get_verbs(bytes, length - 1, found, &count, &reply_bytes));
		CHECK(!wire_get_verbs(bytes, length + 1, found, &count, &reply_bytes));
	}
}

/* Changes one field of a batch of one READ, at this byte. */
static bool
read_with(unsigned int at, uint8_t value)
{
	uint8_t bytes[8 + WIRE_VERB_BYTES];
	struct fabric_request request = {.verb = FABRIC_READ, .length = 64, .remote = 128};
	struct fabric_request *picked = &request;
	struct fabric_request found;
	uint32_t count;
	uint32_t reply_bytes;

	CHECK(wire_put_verbs(bytes, &picked, 1) == sizeof(bytes));
	bytes[at] = value;
	return wire_get_verbs(bytes, sizeof(bytes), &found, &count, &reply_bytes);
}

static void
check_bad_verbs(void)
{
	CHECK(read_with(8, FABRIC_READ));
	CHECK(!read_with(0, 0) && !read_with(0, 2) && !read_with(3, 0xff) && !read_with(4, 1));
	CHECK(!read_with(8, FABRIC_VERBS) && !read_with(8, 0xff));
	CHECK(!read_with(8, FABRIC_WRITE)); /* without its bytes */
	CHECK(!read_with(8, FABRIC_CAS));   /* of 64 bytes */
	CHECK(read_with(9, 1) && !read_with(9, 2) && !read_with(10, 1));
	CHECK(!read_with(12, 0) && !read_with(15, 1));
	CHECK(read_with(20, 0xff) && !read_with(21, 1)); /* beyond 40 bits */
}

/* Whatever arrives: a reply, never a read behind it (the sanitizers look). */
static void
check_noise(void)
{
	static struct fabric_request requests[WIRE_BATCH_MAX];
	static struct wire_tree trees[WIRE_LIST_MAX];
	uint32_t chunks[WIRE_LIST_MAX];

	for (unsigned int i = 0; i < 20000; i++)
	{
		uint32_t length = (uint32_t) (random_number() % 200);
		uint8_t *bytes = malloc(length + 1);
		uint32_t count = 0;
		uint32_t reply_bytes = 0;
		uint64_t cursor;

		for (uint32_t j = 0; j < length; j++)
			bytes[j] = random_number() % 4 == 0 ? (uint8_t) random_number() : 0;
		if (length > 0 && i % 2 == 0)
			bytes[0] = 1 + (uint8_t) (i % 5);
		if (wire_get_verbs(bytes, length, requests, &count, &reply_bytes))
			CHECK(count > 0 && reply_bytes <= WIRE_PAYLOAD_MAX);
		(void) wire_get_chunks(bytes, length, chunks, &count);
		(void) wire_get_trees(bytes, length, &cursor, trees, &count);
		free(bytes);
	}
}

int
main(void)
{
	check_header();
	check_hello();
	check_welcome();
	check_lease_and_status();
	check_queue_pair();
	check_lists();
	check_verbs();
	check_bad_verbs();
	check_noise();
	for (int status = 0; status <= WIRE_STATUS_COUNT; status++)
		CHECK(wire_status_text((enum wire_status) status)[0] != '\0');
	return check_finish();
}

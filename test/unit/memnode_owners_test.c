/*
 * memnode_owners_test.c
 *	  Several servers on one memory node: each has chunks, trees and a lease of its own under its identity, and one that
 *	  does not come back is forgotten, when its operator says so or where there is no room otherwise.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "memnode/log.h"
#include "support/check.h"
#include "support/memnode_peer.h"

#define SIZE    ((uint64_t) 32 << 20)
#define PRIMARY UINT64_C(0xa11ce)
#define STANDBY UINT64_C(0xb0b)
#define DAY_S   86400u
#define NS      UINT64_C(1000000000)

static struct memnode_region region;
static struct memnode *node;

/* A client that has its owner's lease. */
static struct memnode_client *
connect(const char *name, uint64_t owner, uint64_t incarnation, bool verbs)
{
	struct memnode_client *client = memnode_client_open(node, name);

	CHECK(memnode_peer_hello(client, owner, incarnation, verbs, 1, 0) == WIRE_OK);
	CHECK(memnode_peer_lease(client, owner, WIRE_TCP) == WIRE_OK);
	return client;
}

static uint64_t
take_chunk(struct memnode_client *client)
{
	uint32_t chunk;
	uint32_t count;

	CHECK(memnode_peer_take(client, 1, &chunk, &count) == WIRE_OK && count == 1);
	return (uint64_t) chunk * WIRE_CHUNK_BYTES;
}

static int
add(struct memnode_client *client, uint64_t address, uint64_t number)
{
	struct fabric_request request = {.verb = FABRIC_FAA, .remote = address, .length = 8, .operand = number};

	return memnode_peer_verb(client, &request);
}

static uint64_t
read_word(struct memnode_client *client, uint64_t address)
{
	uint64_t word = UINT64_MAX;
	struct fabric_request request = {.verb = FABRIC_READ, .remote = address, .length = 8, .local = &word};

	CHECK(memnode_peer_verb(client, &request) == WIRE_OK);
	return word;
}

static uint32_t
list_chunks(struct memnode_client *client, uint32_t chunks[WIRE_LIST_MAX])
{
	static uint8_t answer[WIRE_PAYLOAD_MAX];
	uint8_t from[4];
	uint32_t length;
	uint32_t count = 0;

	CHECK(memnode_peer_call(client, WIRE_CHUNKS_LIST, from, wire_put_u32(from, 0), answer, &length) == WIRE_OK);
	CHECK(wire_get_chunks(answer, length, chunks, &count));
	return count;
}

static uint64_t
own_trees(struct memnode_client *client)
{
	struct wire_node_status status = {0};

	CHECK(memnode_peer_status(client, &status) == WIRE_OK);
	return status.own_trees;
}

/* The process ends, and another one goes on with the region. */
static void
restart(void)
{
	memnode_close(node);
	free(node);
	node = memnode_peer_node(&region);
}

static void
free_all(struct memnode_client **clients, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		memnode_client_free(clients[i]);
	CHECK(node->client_count == 0);
}

/* Lets an owner that is not connected be one of days ago, while the node ran. */
static void
age(uint64_t id, uint64_t seconds)
{
	memnode_owner_get(node, memnode_owner_find(node, id))->seen = (uint64_t) time(NULL) - seconds;
	node->started_ns = smart_clock_ns() - seconds * NS;
}

static void
test_side_by_side(void)
{
	struct memnode_client *primary = connect("10.0.0.1:4711", PRIMARY, 1, true);
	struct memnode_client *standby = connect("10.0.0.2:4711", STANDBY, 1, true);
	struct memnode_client *copy = memnode_client_open(node, "10.0.0.3:4711");
	struct memnode_client *later;
	uint64_t theirs = take_chunk(standby);
	uint64_t mine = take_chunk(primary);
	uint32_t chunks[WIRE_LIST_MAX];
	uint8_t bytes[16];
	uint32_t length;
	uint64_t root;
	uint64_t other_root;

	/* Trees of one id, and chunks: each has its own. */
	CHECK(memnode_peer_make_tree(primary, 1, &root) == WIRE_OK);
	CHECK(memnode_peer_make_tree(standby, 1, &other_root) == WIRE_OK);
	CHECK(root != other_root && own_trees(primary) == 1 && own_trees(standby) == 1);
	CHECK(add(primary, mine, 5) == WIRE_OK && add(standby, theirs, 7) == WIRE_OK);
	CHECK(list_chunks(primary, chunks) == 1 && chunks[0] == mine / WIRE_CHUNK_BYTES);
	CHECK(list_chunks(standby, chunks) == 1 && chunks[0] == theirs / WIRE_CHUNK_BYTES);

	/* Neither reads, changes, frees or drops what is the other's. */
	CHECK(read_word(standby, theirs) == 7 && read_word(standby, mine) == 0 && read_word(standby, root) == 0);
	CHECK(add(standby, mine, 1) == WIRE_OUTSIDE && add(standby, root, 1) == WIRE_OUTSIDE);
	chunks[0] = (uint32_t) (mine / WIRE_CHUNK_BYTES);
	CHECK(memnode_peer_call(standby, WIRE_CHUNKS_GIVE, bytes, wire_put_chunks(bytes, chunks, 1), bytes, &length) ==
		  WIRE_OK);
	CHECK(memnode_peer_call(standby, WIRE_TREE_DROP, bytes, wire_put_u64(bytes, 1), bytes, &length) == WIRE_OK);
	CHECK(read_word(primary, mine) == 5 && own_trees(primary) == 1 && own_trees(standby) == 0);

	/* Two that claim one identity are told apart, whoever else is there; generations are of one identity. */
	CHECK(memnode_peer_hello(copy, PRIMARY, 2, false, 0, 0) == WIRE_OK);
	CHECK(memnode_peer_lease(copy, PRIMARY, WIRE_TCP) == WIRE_HELD && primary->contested && !standby->contested);
	later = memnode_client_open(node, "10.0.0.2:4712");
	CHECK(memnode_peer_hello(later, STANDBY, 1, true, 9, 1) == WIRE_OK && standby->ended && !primary->ended);
	free_all((struct memnode_client *[]){primary, standby, copy, later}, 4);

	/* Both are there after a restart of the node, and one that begins anew does not touch the other. */
	restart();
	standby = memnode_client_open(node, "10.0.0.2:4711");
	CHECK(memnode_peer_hello(standby, STANDBY, 2, true, 0, 0) == WIRE_OK);
	CHECK(memnode_peer_lease_of(standby, 77, 0, WIRE_TCP) == WIRE_OK && list_chunks(standby, chunks) == 0);
	primary = connect("10.0.0.1:4711", PRIMARY, 3, true);
	CHECK(list_chunks(primary, chunks) == 1 && read_word(primary, mine) == 5 && own_trees(primary) == 1);
	free_all((struct memnode_client *[]){primary, standby}, 2);
}

/* A client of the version before has its cluster's identifier for an identity. */
static void
test_version_before(void)
{
	struct memnode_client *client = memnode_client_open(node, "[fe80::1%eth0]:4711");
	struct wire_hello hello = {.owner = 4712, .incarnation = 1, .system = 4713};
	uint8_t bytes[64];
	uint32_t length = wire_put_hello(bytes, WIRE_VERSION_BEFORE, &hello);
	const struct memnode_owner_record *record;
	char address[MEMNODE_OWNER_ADDRESS_MAX];

	CHECK(memnode_peer_call(client, WIRE_HELLO, bytes, length, bytes, &length) == WIRE_OK);
	CHECK(memnode_peer_lease(client, 1, WIRE_TCP) == WIRE_OK);
	record = memnode_owner_get(node, client->owner);
	CHECK(record->id == 4712 && record->system == 4712);
	memnode_owner_address(record, address);
	CHECK(strcmp(address, "fe80::1") == 0);
	memnode_client_free(client);
}

static void
test_seen(void)
{
	struct memnode_client *client = connect("10.0.0.1:4711", PRIMARY, 10, false);
	struct memnode_owner_record *record = memnode_owner_get(node, client->owner);
	uint64_t now = (uint64_t) time(NULL);
	char address[MEMNODE_OWNER_ADDRESS_MAX];

	CHECK(record->seen >= now && record->system == MEMNODE_PEER_SYSTEM);
	memnode_owner_address(record, address);
	CHECK(strcmp(address, "10.0.0.1") == 0);
	record->seen = 1;
	memnode_lease_see(node);
	CHECK(record->seen >= now && memnode_owner_away_s(node, client->owner) == 0);
	memnode_client_end(client, "test");
	record->seen = 1;
	memnode_lease_see(node);
	CHECK(record->seen == 1);
	/* Nobody is away for longer than the node has looked, nor because a clock was set back. */
	CHECK(memnode_owner_away_s(node, client->owner) < DAY_S);
	age(PRIMARY, DAY_S);
	CHECK(memnode_owner_away_s(node, client->owner) >= DAY_S);
	record->seen = now + DAY_S;
	CHECK(memnode_owner_away_s(node, client->owner) == 0);
	memnode_client_free(client);
	memset(record->address, 0, sizeof(record->address));
	memnode_owner_address(record, address);
	CHECK(address[0] == '\0');
}

static void
test_forget(void)
{
	struct memnode_client *primary = connect("10.0.0.1:4711", PRIMARY, 20, true);
	struct memnode_client *standby = connect("10.0.0.2:4711", STANDBY, 20, false);
	uint32_t chunks[WIRE_LIST_MAX];
	uint32_t before = memnode_chunks_allocated(&node->chunks);
	uint32_t owner = standby->owner;
	uint64_t mine = take_chunk(primary);
	uint64_t root;

	CHECK(add(primary, mine, 3) == WIRE_OK);
	take_chunk(standby);
	CHECK(memnode_peer_make_tree(standby, 8, &root) == WIRE_OK);
	CHECK(!memnode_owner_forget(node, owner) && own_trees(standby) == 1);
	memnode_client_free(standby);
	CHECK(memnode_owner_forget(node, owner));
	CHECK(memnode_owner_find(node, STANDBY) == MEMNODE_OWNER_UNKNOWN);
	CHECK(memnode_chunks_allocated(&node->chunks) == before + 1);
	CHECK(read_word(primary, mine) == 3 && list_chunks(primary, chunks) == 2);

	/* It comes back all the same: what it knows of is gone, and it is told so. */
	standby = memnode_client_open(node, "10.0.0.2:4711");
	CHECK(memnode_peer_hello(standby, STANDBY, 21, false, 0, 0) == WIRE_OK);
	CHECK(memnode_peer_lease_of(standby, STANDBY, 20, WIRE_TCP) == WIRE_FOREIGN);
	CHECK(memnode_peer_lease_of(standby, STANDBY, 0, WIRE_TCP) == WIRE_OK && list_chunks(standby, chunks) == 0);
	free_all((struct memnode_client *[]){primary, standby}, 2);
}

static int
take_all(struct memnode_client *client)
{
	uint32_t chunks[WIRE_LIST_MAX];
	uint32_t count;
	int status;

	while ((status = memnode_peer_take(client, WIRE_LIST_MAX, chunks, &count)) == WIRE_OK)
		CHECK(count > 0);
	return status;
}

static void
test_make_room(void)
{
	struct memnode_client *primary = connect("10.0.0.1:4711", PRIMARY, 30, true);
	struct memnode_client *gone = connect("10.0.0.9:4711", 9, 30, false);
	struct memnode_client *longer = connect("10.0.0.8:4711", 8, 30, false);
	struct memnode_client *held = connect("10.0.0.7:4711", 7, 30, false);
	uint64_t root;

	node->forget_after_s = DAY_S;
	take_chunk(gone);
	take_chunk(longer);
	take_chunk(held);
	memnode_client_free(gone);
	memnode_client_free(longer);
	CHECK(take_all(primary) == WIRE_FULL);
	age(7, 3 * DAY_S); /* its lease is held all the same */
	age(9, 2 * DAY_S);
	age(8, 3 * DAY_S);
	node->forget_after_s = 0;
	CHECK(take_all(primary) == WIRE_FULL && memnode_peer_make_tree(held, 1, &root) == WIRE_FULL);
	node->forget_after_s = 4 * DAY_S;
	CHECK(take_all(primary) == WIRE_FULL && memnode_owner_find(node, 8) != MEMNODE_OWNER_UNKNOWN);

	/* One at a time, and who has been away for longest first. */
	node->forget_after_s = DAY_S;
	CHECK(memnode_peer_make_tree(held, 1, &root) == WIRE_OK);
	CHECK(memnode_owner_find(node, 8) == MEMNODE_OWNER_UNKNOWN && memnode_owner_find(node, 9) != MEMNODE_OWNER_UNKNOWN);
	take_chunk(primary);
	CHECK(memnode_owner_find(node, 9) == MEMNODE_OWNER_UNKNOWN);
	CHECK(take_all(primary) == WIRE_FULL && memnode_owner_find(node, 7) == held->owner && own_trees(held) == 1);
	free_all((struct memnode_client *[]){primary, held}, 2);
}

int
main(void)
{
	memnode_log_set_level(SMART_LOG_WARNING + 1);
	memnode_peer_region(&region, SIZE);
	node = memnode_peer_node(&region);
	test_side_by_side();
	test_version_before();
	test_seen();
	test_forget();
	test_make_room();
	memnode_close(node);
	free(node);
	memnode_peer_unmap(&region);
	return check_finish();
}

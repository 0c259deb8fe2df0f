/*
 * memnode_lease_test.c
 *	  Leases and generations of a memory node: which clients are let in, which are closed, and
 *	  that what a closed connection has sent never takes effect.
 */
#include <stdlib.h>
#include <string.h>

#include "memnode/log.h"
#include "support/check.h"
#include "support/memnode_peer.h"

#define SIZE ((uint64_t) 32 << 20)
#define OWN  UINT64_C(7071)
#define ELSE UINT64_C(7072)

static struct memnode_region region;
static struct memnode *node;

static struct memnode_client *
connect(uint64_t owner, uint64_t incarnation, bool verbs, uint32_t generation, uint32_t number)
{
	struct memnode_client *client = memnode_client_open(node, "test");

	CHECK(memnode_peer_hello(client, owner, incarnation, verbs, generation, number) == WIRE_OK);
	return client;
}

/* Frees what has ended, and the rest. */
static void
disconnect_all(struct memnode_client **clients, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		memnode_client_free(clients[i]);
	CHECK(node->clients == NULL && node->client_count == 0);
}

/* A word in a fresh chunk of the client. */
static uint64_t
take_word(struct memnode_client *client)
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

/* Sends an addition and leaves it unserved. */
static void
send_add(struct memnode_client *client, uint64_t address, uint64_t number)
{
	struct fabric_request request = {.verb = FABRIC_FAA, .remote = address, .length = 8, .operand = number};
	struct fabric_request *picked = &request;
	uint8_t payload[256];

	memnode_peer_send(client, WIRE_VERBS, payload, wire_put_verbs(payload, &picked, 1));
}

static uint64_t
word_at(uint64_t address)
{
	return *(uint64_t *) (region.base + address);
}

static void
test_order_of_requests(void)
{
	struct memnode_client *client = memnode_client_open(node, "test");
	struct memnode_client *early = memnode_client_open(node, "test");
	struct wire_node_status status;
	uint8_t bytes[64];
	uint32_t length;
	uint32_t chunk;
	uint32_t count;

	/* Something else than HELLO first closes the connection. */
	CHECK(memnode_peer_call(early, WIRE_STATUS, bytes, 0, bytes, &length) == WIRE_BAD && early->leaving);
	CHECK(memnode_peer_hello(client, OWN, 1, true, 0, 1) == WIRE_OK);
	CHECK(memnode_peer_status(client, &status) == WIRE_OK && status.own_chunks == 0 && status.connections == 2);
	CHECK(memnode_peer_take(client, 1, &chunk, &count) == WIRE_FENCED);
	CHECK(add(client, (uint64_t) region.first_chunk * WIRE_CHUNK_BYTES, 1) == WIRE_FENCED);
	CHECK(memnode_peer_lease(client, 5, WIRE_RDMA) == WIRE_UNSUPPORTED);
	CHECK(memnode_peer_lease(client, 5, WIRE_TCP) == WIRE_OK);
	CHECK(memnode_peer_take(client, 1, &chunk, &count) == WIRE_OK && count == 1);
	CHECK(memnode_peer_status(client, &status) == WIRE_OK && status.own_chunks == 1 &&
		  status.allocated == WIRE_CHUNK_BYTES);
	CHECK(memnode_peer_hello(client, OWN, 1, true, 0, 1) == WIRE_BAD && client->leaving);
	disconnect_all((struct memnode_client *[]){early, client}, 2);
}

static void
test_lease_is_held(void)
{
	struct memnode_client *one = connect(OWN, 1, false, 0, 0);
	struct memnode_client *backend = connect(OWN, 1, true, 0, 1);
	struct memnode_client *two = connect(OWN, 2, false, 0, 0);
	struct memnode_client *other = connect(ELSE, 2, false, 0, 0);
	uint32_t chunk;
	uint32_t count;
	uint64_t root;

	CHECK(memnode_peer_lease(one, 5, WIRE_TCP) == WIRE_OK);
	CHECK(memnode_peer_make_tree(one, 1, &root) == WIRE_OK);
	CHECK(!one->contested && !backend->contested && !node->contested);
	CHECK(memnode_peer_lease(two, 5, WIRE_TCP) == WIRE_HELD);
	CHECK(one->contested && backend->contested && node->contested && !two->contested && !other->contested);
	CHECK(memnode_peer_take(two, 1, &chunk, &count) == WIRE_FENCED);
	CHECK(memnode_peer_lease(other, 5, WIRE_TCP) == WIRE_OK);
	CHECK(memnode_peer_lease(one, 5, WIRE_TCP) == WIRE_OK);

	/* Any connection of the incarnation keeps its lease. */
	memnode_client_end(one, "test");
	CHECK(memnode_peer_lease(two, 5, WIRE_TCP) == WIRE_HELD);
	memnode_client_end(backend, "test");
	CHECK(memnode_peer_lease(two, 5, WIRE_TCP) == WIRE_OK);
	CHECK(node->trees.count == 1);
	disconnect_all((struct memnode_client *[]){one, backend, two, other}, 4);
}

/* A connection that is being closed for what it sent keeps nothing. */
static void
test_leaving(void)
{
	struct memnode_client *one = connect(OWN, 30, false, 0, 0);
	struct memnode_client *two = connect(OWN, 31, false, 0, 0);
	uint8_t bytes[16] = {0};
	uint32_t length;

	CHECK(memnode_peer_lease(one, 5, WIRE_TCP) == WIRE_OK);
	CHECK(memnode_peer_call(one, WIRE_LEASE, bytes, 3, bytes, &length) == WIRE_BAD && one->leaving && !one->ended);
	CHECK(memnode_peer_lease(two, 5, WIRE_TCP) == WIRE_OK);
	disconnect_all((struct memnode_client *[]){one, two}, 2);
}

/* An incarnation that lost its lease can say HELLO again, and nothing more. */
static void
test_fenced(void)
{
	struct memnode_client *one = connect(OWN, 3, false, 0, 0);
	struct memnode_client *two;
	struct memnode_client *late;
	uint64_t word;

	CHECK(memnode_peer_lease(one, 5, WIRE_TCP) == WIRE_OK);
	word = take_word(one);
	memnode_client_end(one, "test");
	two = connect(OWN, 4, false, 0, 0);
	CHECK(memnode_peer_lease(two, 5, WIRE_TCP) == WIRE_OK);
	late = connect(OWN, 3, true, 9, 1);
	CHECK(add(late, word, 1) == WIRE_FENCED && word_at(word) == 0);
	CHECK(memnode_peer_lease(late, 5, WIRE_TCP) == WIRE_HELD);
	disconnect_all((struct memnode_client *[]){one, two, late}, 3);
}

static void
test_new_book(void)
{
	struct memnode_client *one = connect(OWN, 5, false, 0, 0);
	struct memnode_client *backend = connect(OWN, 5, true, 0, 1);
	struct memnode_client *other = connect(ELSE, 5, false, 0, 0);
	struct wire_node_status status;
	uint64_t root;

	CHECK(memnode_peer_lease(other, 1, WIRE_TCP) == WIRE_OK);
	CHECK(memnode_peer_make_tree(other, 1, &root) == WIRE_OK);
	take_word(other);
	CHECK(memnode_peer_lease(one, 5, WIRE_TCP) == WIRE_OK);
	CHECK(memnode_peer_make_tree(one, 1, &root) == WIRE_OK);
	take_word(one);
	CHECK(memnode_peer_lease(one, 6, WIRE_TCP) == WIRE_OK);
	CHECK(backend->ended && !other->ended);
	CHECK(memnode_peer_status(one, &status) == WIRE_OK && status.own_chunks == 0 && status.own_trees == 0);
	CHECK(memnode_peer_status(other, &status) == WIRE_OK && status.own_chunks == 1 && status.own_trees == 1);
	disconnect_all((struct memnode_client *[]){one, backend, other}, 3);
}

/* Extent map and memory that have not gone the same way: one of them is a copy, or came back from one. */
static void
test_foreign(void)
{
	struct memnode_client *one = connect(OWN, 40, false, 0, 0);
	struct memnode_client *two;
	struct memnode_client *copy;
	struct wire_node_status status;
	uint64_t root;

	CHECK(memnode_peer_lease_of(one, 7, 0, WIRE_TCP) == WIRE_OK);
	CHECK(memnode_peer_make_tree(one, 1, &root) == WIRE_OK);
	/* Once more, by the client that has it. */
	CHECK(memnode_peer_lease_of(one, 7, 0, WIRE_TCP) == WIRE_OK);
	memnode_client_end(one, "test");
	two = connect(OWN, 41, false, 0, 0);
	CHECK(memnode_peer_lease_of(two, 7, 40, WIRE_TCP) == WIRE_OK);
	CHECK(memnode_peer_status(two, &status) == WIRE_OK && status.own_trees == 1);
	memnode_client_end(two, "test");

	/* It does not know of two's lease, and changes nothing until it claims nothing. */
	copy = connect(OWN, 42, false, 0, 0);
	CHECK(memnode_peer_lease_of(copy, 7, 40, WIRE_TCP) == WIRE_FOREIGN && !copy->leaving);
	CHECK(memnode_peer_make_tree(copy, 2, &root) == WIRE_FENCED);
	CHECK(memnode_peer_status(copy, &status) == WIRE_OK && status.own_trees == 1);
	CHECK(memnode_peer_lease_of(copy, 7, 0, WIRE_TCP) == WIRE_OK);
	CHECK(memnode_peer_status(copy, &status) == WIRE_OK && status.own_trees == 0);
	disconnect_all((struct memnode_client *[]){one, two, copy}, 3);
}

/* What the client continues was freed meanwhile, for another extent map or because nobody had anything here. */
static void
test_foreign_extents(void)
{
	struct memnode_client *one = connect(OWN, 50, false, 0, 0);
	struct memnode_client *copy;
	struct memnode_client *again;
	struct wire_node_status status;
	uint64_t root;

	CHECK(memnode_peer_lease_of(one, 9, 0, WIRE_TCP) == WIRE_OK);
	CHECK(memnode_peer_make_tree(one, 1, &root) == WIRE_OK);
	memnode_client_end(one, "test");
	copy = connect(OWN, 51, false, 0, 0);
	CHECK(memnode_peer_lease_of(copy, 10, 0, WIRE_TCP) == WIRE_OK);
	CHECK(memnode_peer_make_tree(copy, 2, &root) == WIRE_OK);
	memnode_client_end(copy, "test");

	again = connect(OWN, 50, false, 0, 0);
	CHECK(memnode_peer_lease_of(again, 9, 50, WIRE_TCP) == WIRE_FOREIGN && !again->leaving);
	CHECK(memnode_peer_status(again, &status) == WIRE_OK && status.own_trees == 1);
	CHECK(memnode_peer_lease_of(again, 9, 0, WIRE_TCP) == WIRE_OK);
	CHECK(memnode_peer_status(again, &status) == WIRE_OK && status.own_trees == 0);
	disconnect_all((struct memnode_client *[]){one, copy, again}, 3);

	one = connect(4711, 50, false, 0, 0);
	CHECK(memnode_peer_lease_of(one, 9, 50, WIRE_TCP) == WIRE_FOREIGN);
	CHECK(memnode_peer_lease_of(one, 9, 0, WIRE_TCP) == WIRE_OK);
	memnode_client_free(one);
}

/* The heart: a higher generation closes the lower ones and drops what they have sent. */
static void
test_generations(void)
{
	struct memnode_client *control = connect(OWN, 8, false, 0, 0);
	struct memnode_client *ghost;
	struct memnode_client *other;
	struct memnode_client *next;
	struct memnode_client *stale = memnode_client_open(node, "test");
	uint64_t word;

	CHECK(memnode_peer_lease(control, 6, WIRE_TCP) == WIRE_OK);
	word = take_word(control);
	ghost = connect(OWN, 8, true, 1, 1);
	other = connect(OWN, 8, true, 1, 2);
	CHECK(add(ghost, word, 1) == WIRE_OK && add(other, word, 1) == WIRE_OK && word_at(word) == 2);
	send_add(ghost, word, 100);
	send_add(other, word, 100);
	next = connect(OWN, 8, true, 2, 3);
	CHECK(ghost->ended && other->ended && !control->ended);
	CHECK(memnode_serve(ghost) == false && word_at(word) == 2);
	CHECK(add(next, word, 1) == WIRE_OK && word_at(word) == 3);
	CHECK(memnode_peer_hello(stale, OWN, 8, true, 1, 4) == WIRE_STALE && stale->leaving);
	CHECK(!next->ended);
	disconnect_all((struct memnode_client *[]){control, ghost, other, next, stale}, 5);
}

/* A client that has connected again is not to be overtaken by its own older connection. */
static void
test_same_client(void)
{
	struct memnode_client *control = connect(OWN, 9, false, 0, 0);
	struct memnode_client *first;
	struct memnode_client *second;
	struct memnode_client *other;
	uint64_t word;

	CHECK(memnode_peer_lease(control, 6, WIRE_TCP) == WIRE_OK);
	word = take_word(control);
	first = connect(OWN, 9, true, 4, 1);
	other = connect(OWN, 9, true, 4, 2);
	send_add(first, word, 100);
	second = connect(OWN, 9, true, 4, 1);
	CHECK(first->ended && !other->ended && !second->ended);
	CHECK(add(second, word, 1) == WIRE_OK && word_at(word) == 1);
	disconnect_all((struct memnode_client *[]){control, first, second, other}, 4);
}

/* Connections that came before the lease obey the highest of their generations. */
static void
test_generations_before_lease(void)
{
	struct memnode_client *low = connect(OWN, 10, true, 1, 1);
	struct memnode_client *high = connect(OWN, 10, true, 3, 2);
	struct memnode_client *control = connect(OWN, 10, false, 0, 0);
	struct memnode_client *stale = memnode_client_open(node, "test");

	CHECK(!low->ended);
	CHECK(memnode_peer_lease(control, 6, WIRE_TCP) == WIRE_OK);
	CHECK(low->ended && !high->ended);
	CHECK(memnode_peer_hello(stale, OWN, 10, true, 2, 4) == WIRE_STALE);
	/* A connection that was refused does not keep the lease. */
	memnode_client_end(control, "test");
	memnode_client_end(high, "test");
	memnode_client_free(control);
	control = connect(OWN, 11, false, 0, 0);
	CHECK(memnode_peer_lease(control, 6, WIRE_TCP) == WIRE_OK);
	disconnect_all((struct memnode_client *[]){low, high, control, stale}, 4);
}

/* After a restart of the node: the lease is still the incarnation's, so its clients go on at once. */
static void
test_restart(void)
{
	struct memnode_client *control = connect(OWN, 12, false, 0, 0);
	struct memnode_client *backend;
	struct memnode_client *rival;
	uint64_t word;

	CHECK(memnode_peer_lease(control, 6, WIRE_TCP) == WIRE_OK);
	word = take_word(control);
	memnode_client_free(control);
	memnode_close(node);
	free(node);
	node = memnode_peer_node(&region);
	backend = connect(OWN, 12, true, 0, 1);
	CHECK(add(backend, word, 3) == WIRE_OK && word_at(word) == 3);
	rival = connect(OWN, 13, false, 0, 0);
	CHECK(memnode_peer_lease(rival, 6, WIRE_TCP) == WIRE_HELD);
	disconnect_all((struct memnode_client *[]){backend, rival}, 2);
}

/* More owners than records: those that have nothing here give way. */
static void
test_many_owners(void)
{
	struct memnode_client *client;
	struct memnode_client *keeper = connect(99, 1, false, 0, 0);
	uint64_t word;

	CHECK(memnode_peer_lease(keeper, 1, WIRE_TCP) == WIRE_OK);
	word = take_word(keeper);
	memnode_client_free(keeper);
	for (uint64_t owner = 100; owner < 100 + 2 * MEMNODE_OWNERS; owner++)
	{
		client = connect(owner, 1, false, 0, 0);
		CHECK(memnode_peer_lease(client, 1, WIRE_TCP) == WIRE_OK);
		memnode_client_free(client);
	}
	keeper = connect(99, 1, true, 0, 0);
	CHECK(add(keeper, word, 1) == WIRE_OK && word_at(word) == 1);
	memnode_client_free(keeper);
}

/* A connection above the limit is told so; requests to a full node as well. */
static void
test_refused(void)
{
	struct memnode_client *greedy = connect(OWN, 20, false, 0, 0);
	struct memnode_client *client = memnode_client_open(node, "test");
	uint32_t chunks[WIRE_LIST_MAX];
	uint32_t count;
	uint64_t root;
	int status;

	node->client_max = 1;
	CHECK(memnode_peer_hello(client, OWN, 20, false, 0, 0) == WIRE_BUSY && client->leaving);
	CHECK(strstr(client->reason, "max-connections") != NULL);
	node->client_max = 0;
	CHECK(memnode_peer_lease(greedy, 7, WIRE_TCP) == WIRE_OK);
	while ((status = memnode_peer_take(greedy, WIRE_LIST_MAX, chunks, &count)) == WIRE_OK)
		CHECK(count > 0);
	CHECK(status == WIRE_FULL);
	CHECK(memnode_peer_make_tree(greedy, 1, &root) == WIRE_FULL);
	disconnect_all((struct memnode_client *[]){client, greedy}, 2);
}

int
main(void)
{
	memnode_log_set_level(SMART_LOG_WARNING + 1);
	memnode_peer_region(&region, SIZE);
	node = memnode_peer_node(&region);
	test_order_of_requests();
	test_lease_is_held();
	test_leaving();
	test_fenced();
	test_new_book();
	test_foreign();
	test_foreign_extents();
	test_generations();
	test_same_client();
	test_generations_before_lease();
	test_restart();
	test_many_owners();
	test_refused();
	memnode_close(node);
	free(node);
	memnode_peer_unmap(&region);
	return check_finish();
}

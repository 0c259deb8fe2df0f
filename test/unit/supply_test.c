/*
 * supply_test.c
 *	  A compute node with an extent map on real memory nodes: chunks and trees come from
 *	  daemons, a tree grows there, and what is not needed goes back.
 */
#include <stdlib.h>
#include <string.h>

#include "compute/allocate/extents.h"
#include "compute/recovery/recover.h"
#include "support/check.h"
#include "support/memnodes.h"
#include "support/node.h"
#include "tree/tree.h"

#define NODES      2
#define ENTRIES    2500
#define TIMEOUT_MS 20000
#define PAGE_LEAF  SMART_CLASS_LEAF(64) /* a slab of one page, one block */

static const struct smart_tree_owner no_owner = {.backend = -1};

static struct test_memnodes *daemons;
static struct test_node *node;
static struct smart_remote remote;
static struct env_thread thread;
static struct smart_client *client;

static void
open_all(void)
{
	unsigned int number;

	daemons = test_memnodes_open(NODES, true);
	node = test_book_open(2, 0, 2);
	remote = (struct smart_remote){
		.nodes = &daemons->shared,
		.secret = &daemons->secret,
		.owner = test_session_options(daemons, &thread.env, true).hello.owner,
		.incarnation = daemons->incarnation,
		.timeout_ms = TIMEOUT_MS,
	};
	node->compute.remote = &remote;
	env_thread_init(&thread, 1);
	CHECK(smart_client_open(&node->compute, &thread.env, 4711, &client) == SMART_OK);
	for (unsigned int i = 0; i < NODES; i++)
	{
		CHECK(smart_extents_add_node(&client->space, daemons->node[i].incarnation, &number) == SMART_OK && number == i);
		/* So little that a tree of some chunks is spread. */
		smart_extents_set_room(&client->space, i, 4, 4);
	}
}

static void
close_all(void)
{
	char message[200];

	CHECK(smart_space_verify(&client->space, message, sizeof(message)) == SMART_OK);
	smart_client_close(client);
	CHECK(thread.allocations == 0);
	test_node_close(node);
	test_memnodes_close(daemons);
}

static uint64_t
deadline(void)
{
	return thread.env.now_ns(&thread.env) + TIMEOUT_MS * UINT64_C(1000000);
}

/* What the server's worker does with pending frees. */
static void
work_off(unsigned int number)
{
	struct session *control = daemons->node[number].control;
	struct smart_pending_free pending;
	smart_status status = SMART_OK;

	while (status == SMART_OK && smart_pending_next(&client->space, number, &pending))
	{
		status = pending.kind == SMART_PENDING_GIVE_CHUNK ? session_give_chunks(control, &pending.chunk, 1, deadline())
														  : session_drop_tree(control, pending.tree, deadline());
		CHECK(status == SMART_OK && session_welcome(control)->node == pending.incarnation);
		smart_pending_done(&client->space, &pending);
	}
}

/* The chunks and trees that a daemon lists for us are those that the extent map has there; the test took one chunk itself. */
static void
compare(unsigned int number, uint32_t trees_expected)
{
	struct session *control = daemons->node[number].control;
	uint32_t chunks[WIRE_LIST_MAX];
	struct wire_tree trees[WIRE_LIST_MAX];
	struct smart_node_info info;
	uint64_t cursor = 0;
	uint32_t count;

	CHECK(smart_extents_node_info(&client->space, number, &info));
	CHECK(info.chunks > 0 && info.trees == trees_expected);
	CHECK(session_list_chunks(control, 0, deadline(), chunks, &count) == SMART_OK && count == info.chunks + 1);
	for (uint32_t i = 0; i < count; i++)
		CHECK(smart_extents_has_chunk(&client->space, number, chunks[i]) ==
			  (chunks[i] != daemons->offset / SMART_CHUNK_BYTES));
	CHECK(session_list_trees(control, &cursor, deadline(), trees, &count) == SMART_OK && count == trees_expected);
	for (uint32_t i = 0; i < count; i++)
		CHECK(smart_extents_has_tree(&client->space, trees[i].id) &&
			  memcmp(trees[i].description, &no_owner, sizeof(no_owner)) == 0);
}

/* The server dies, and another one finds the extent map: the blocks of its trees, and no others, are in use. */
static void
recover(const struct smart_verify_report *report)
{
	struct smart_recovery recovery = {.message = ""};
	uint64_t blocks = report->leaves;
	char message[200] = "";

	for (unsigned int kind = 1; kind <= SMART_NODE_KINDS; kind++)
		blocks += report->nodes[kind];
	smart_client_close(client);
	smart_epoch_init(node->compute.epoch, 2, 0);
	CHECK(smart_client_open(&node->compute, &thread.env, 4712, &client) == SMART_OK);
	/* Not as long as a memory node does not answer. */
	test_memnode_freeze(daemons, 1);
	smart_client_set_timeout(client, 200);
	CHECK(smart_space_recover(&client->space, client->fabric, &thread.env, &recovery) == SMART_TIMEOUT);
	test_memnode_thaw(daemons, 1);
	smart_client_set_timeout(client, TIMEOUT_MS);
	CHECK(smart_space_recover(&client->space, client->fabric, &thread.env, &recovery) == SMART_OK);
	CHECK(recovery.trees == 1 && recovery.nodes + recovery.leaves == blocks);
	CHECK(smart_space_verify(&client->space, message, sizeof(message)) == SMART_OK);
}

static void
test_tree(void)
{
	struct smart_tree_options options = {.leaf_size = 4096, .fixed_length = 1000};
	struct smart_verify_report report;
	struct smart_tree *tree;
	char message[200];
	uint64_t random = 5;
	uint64_t pages[FABRIC_NODES_MAX];
	bool added;

	CHECK(smart_space_create_tree(&client->space, &no_owner, &options.id, &options.root) == SMART_OK);
	CHECK(smart_tree_open(client->fabric, &thread.env, &client->services, &options, &tree) == SMART_OK);
	for (unsigned int i = 0; i < ENTRIES; i++)
	{
		uint8_t entry[1000] = {0};
		uint64_t key = test_random(&random);

		memcpy(entry, &key, sizeof(key));
		CHECK(smart_tree_insert(tree, entry, sizeof(entry), sizeof(entry), &added) == SMART_OK && added);
	}
	CHECK(smart_tree_verify(tree, NULL, NULL, &report, message, sizeof(message)) == SMART_OK);
	CHECK(smart_space_tree_nodes(&client->space, options.id, pages) && pages[0] > 0 && pages[1] > 0);
	smart_tree_close(tree);
	recover(&report);
	compare(0, 1);
	compare(1, 0);
	CHECK(smart_space_drop_tree(&client->space, options.id));
	work_off(0);
	work_off(1);
	compare(0, 0);
	compare(1, 0);
}

static void
test_chunks(void)
{
	struct smart_space_usage usage;
	fabric_address root;
	fabric_address block;
	uint64_t id;

	CHECK(smart_space_create_tree(&client->space, &no_owner, &id, &root) == SMART_OK);
	for (unsigned int i = 0; i < 8 * SMART_CHUNK_PAGES; i++)
		CHECK(smart_space_allocate(&client->space, id, PAGE_LEAF, &block) == SMART_OK);
	smart_space_usage(&client->space, &usage);
	CHECK(usage.size >= 8 * SMART_CHUNK_BYTES);
	CHECK(smart_space_drop_tree(&client->space, id));
	for (unsigned int i = 0; i < NODES; i++)
	{
		work_off(i);
		compare(i, 0);
	}
	/* Few are kept for what comes next. */
	smart_space_usage(&client->space, &usage);
	CHECK(usage.size <= 5 * SMART_CHUNK_BYTES && usage.used == 0);
}

/* A daemon that does not answer ends the wait for memory; one that is gone is passed over. */
static void
test_failures(void)
{
	fabric_address root;
	fabric_address block;
	uint64_t id;
	unsigned int count = 0;
	smart_status status;

	CHECK(smart_space_create_tree(&client->space, &no_owner, &id, &root) == SMART_OK);
	while (smart_space_allocate(&client->space, id, PAGE_LEAF, &block) == SMART_OK && count < 2 * SMART_CHUNK_PAGES)
		count++;
	CHECK(count == 2 * SMART_CHUNK_PAGES);
	for (unsigned int i = 0; i < NODES; i++)
		test_memnode_freeze(daemons, i);
	smart_client_set_timeout(client, 200);
	do
		status = smart_space_allocate(&client->space, id, PAGE_LEAF, &block);
	while (status == SMART_OK);
	CHECK(status == SMART_TIMEOUT && client->fabric->problem[0] != '\0');
	CHECK(smart_space_create_tree(&client->space, &no_owner, &id, &root) != SMART_OK);
	for (unsigned int i = 0; i < NODES; i++)
		test_memnode_thaw(daemons, i);
	smart_client_set_timeout(client, TIMEOUT_MS);
	CHECK(smart_space_create_tree(&client->space, &no_owner, &id, &root) == SMART_OK);
	/* The root that was given up is a pending free. */
	work_off(0);
	work_off(1);

	test_memnode_kill(daemons, 0);
	for (unsigned int i = 0; i < 4; i++)
		CHECK(smart_space_create_tree(&client->space, &no_owner, &id, &root) == SMART_OK && fabric_node(root) == 1);
	test_memnode_kill(daemons, 1);
	CHECK(smart_space_create_tree(&client->space, &no_owner, &id, &root) == SMART_UNREACHABLE);
	CHECK(client->fabric->problem[0] != '\0');
}

int
main(void)
{
	open_all();
	test_tree();
	test_chunks();
	test_failures();
	close_all();
	return check_finish();
}

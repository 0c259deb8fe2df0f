/*
 * extents_test.c
 *	  An extent map gets chunks from memory nodes, passes over those that are full
 *	  or do not answer, finds every page, gives chunks back, and is whole again after
 *	  a restart.  (What it shares with a region: space_test.c.)
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compute/allocate/extents_parts.h"
#include "support/check.h"
#include "support/node.h"
#include "tree/tree.h"

#define PAGE_LEAF   SMART_CLASS_LEAF(64) /* a slab of one page, one block */
#define FULL_CHUNKS 14                   /* of two nodes; more than an extent map keeps for itself */
#define FULL_PAGES  (FULL_CHUNKS * SMART_CHUNK_PAGES - SMART_SPARE_PAGES)

static bool
whole(struct test_client *client)
{
	char message[200] = "";

	return smart_space_verify(&client->client->space, message, sizeof(message)) == SMART_OK && message[0] == '\0';
}

/* Allocates blocks of a page each; how many. */
static unsigned int
allocate_pages(struct test_client *client, uint64_t tree, unsigned int count, smart_status expected)
{
	fabric_address block;
	unsigned int done = 0;
	smart_status status = SMART_OK;

	while (done < count && (status = smart_space_allocate(&client->client->space, tree, PAGE_LEAF, &block)) == SMART_OK)
		done++;
	CHECK(status == expected);
	return done;
}

static uint32_t
chunks_of(struct test_client *client, unsigned int node)
{
	struct smart_node_info info = {0};

	CHECK(smart_extents_node_info(&client->client->space, node, &info) && info.state == SMART_NODE_ACTIVE);
	return info.chunks;
}

/* ---- addresses ---- */

static void
test_addresses(void)
{
	struct test_node *node = test_book_open(2, 3, 40);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	const struct smart_region_header *header = smart_region_header(&node->region);
	fabric_address root;
	uint64_t tree = test_tree_create(client, &root);
	unsigned int taken = 0;

	CHECK(smart_page_of(space, root) == 0 && smart_page_of(space, fabric_make_address(2, 5 << 20)) == 0);
	allocate_pages(client, tree, 40 * SMART_CHUNK_PAGES, SMART_OK);
	CHECK(header->remote_chunks >= 40);
	for (uint32_t chunk = SMART_HOME_CHUNKS; chunk < SMART_HOME_CHUNKS + header->remote_chunks; chunk++)
		for (uint32_t i = 0; i < SMART_CHUNK_PAGES; i++)
		{
			uint32_t page = chunk * SMART_CHUNK_PAGES + i;
			fabric_address address = smart_page_address(space, page);

			CHECK(address % SMART_PAGE_BYTES == 0 && smart_page_of(space, address) == page);
			CHECK(smart_page_of(space, address + SMART_PAGE_BYTES - 1) == page);
			CHECK(fabric_offset(address) / SMART_CHUNK_BYTES < 40);
			CHECK(node->memory->node[fabric_node(address)].taken[fabric_offset(address) / SMART_CHUNK_BYTES]);
		}
	/* And no other page. */
	for (unsigned int i = 0; i < 3; i++)
		for (uint64_t place = 0; place < SMART_PLACES; place++)
		{
			bool known = smart_page_of(space, fabric_make_address(i, place * SMART_CHUNK_BYTES)) != 0;

			CHECK(known == (place > 0 && place < 40 && node->memory->node[i].taken[place]));
			taken += known;
		}
	CHECK(taken == header->remote_chunks);
	CHECK(smart_page_of(space, fabric_make_address(77, SMART_CHUNK_BYTES)) == 0);
	CHECK(whole(client));
	test_client_close(client);
	test_node_close(node);
}

/* ---- growth ---- */

static void
test_turns(void)
{
	struct test_node *node = test_book_open(2, 3, 4);
	struct test_client *client = test_client_open(node, 1);
	fabric_address root;
	uint64_t tree = test_tree_create(client, &root);
	uint64_t pages[FABRIC_NODES_MAX];
	uint64_t deadline_ns = UINT64_MAX;

	/* A client that finds that others have made room meanwhile asks for no more. */
	allocate_pages(client, tree, 1, SMART_OK);
	CHECK(smart_extents_storage.grow(&client->client->space, smart_record_find(&client->client->space, tree), 0,
									 &deadline_ns) == SMART_OK);
	CHECK(chunks_of(client, 0) + chunks_of(client, 1) + chunks_of(client, 2) == 1);
	/* For these nodes it is a large tree. */
	for (unsigned int i = 1; i <= 6; i++)
		allocate_pages(client, tree, SMART_CHUNK_PAGES, SMART_OK);
	for (unsigned int i = 0; i < 3; i++)
		CHECK(chunks_of(client, i) >= 2);
	CHECK(smart_space_tree_nodes(&client->client->space, tree, pages));
	CHECK(pages[0] + pages[1] + pages[2] == 6 * SMART_CHUNK_PAGES + 1 && pages[3] == 0 && pages[0] > 0 && pages[1] > 0);
	/* Nine chunks in all, less the spare pages. */
	CHECK(allocate_pages(client, tree, UINT32_MAX, SMART_NO_SPACE) == 3 * SMART_CHUNK_PAGES - SMART_SPARE_PAGES - 1);
	CHECK(strstr(client->client->fabric->problem, "full") != NULL);
	CHECK(whole(client));
	test_client_close(client);
	test_node_close(node);
}

static void
test_passed_over(void)
{
	struct test_node *node = test_book_open(2, 3, 9);
	struct test_client *client = test_client_open(node, 1);
	struct test_memory *memory = node->memory;
	fabric_address root;
	uint64_t tree = test_tree_create(client, &root);

	/* A full one and one that is down: the third gives all. */
	memory->node[0].chunks = 2;
	memory->node[1].down = true;
	CHECK(allocate_pages(client, tree, 5 * SMART_CHUNK_PAGES, SMART_OK) == 5 * SMART_CHUNK_PAGES);
	CHECK(chunks_of(client, 0) == 1 && chunks_of(client, 1) == 0 && chunks_of(client, 2) == 5);
	CHECK(memory->node[1].requests == 0);
	/* The other two full: the one that does not answer is the reason. */
	memory->node[2].chunks = 6;
	CHECK(allocate_pages(client, tree, UINT32_MAX, SMART_UNREACHABLE) < 2 * SMART_CHUNK_PAGES);
	memory->node[1].down = false;
	memory->node[1].silent = true;
	CHECK(allocate_pages(client, tree, 1, SMART_TIMEOUT) == 0);
	memory->node[1].silent = false;
	CHECK(allocate_pages(client, tree, 1, SMART_OK) == 1 && chunks_of(client, 1) == 1);
	CHECK(whole(client));
	test_client_close(client);
	test_node_close(node);
}

static void
test_no_nodes(void)
{
	struct test_node *node = test_book_open(2, 0, 2);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	struct smart_tree_owner owner = {.backend = -1};
	struct smart_node_info info;
	struct smart_pending_free pending;
	fabric_address root;
	uint64_t id;

	CHECK(smart_space_create_tree(space, &owner, &id, &root) == SMART_UNREACHABLE);
	CHECK(strstr(client->client->fabric->problem, "no memory node") != NULL);
	CHECK(!smart_extents_node_info(space, 0, &info) && !smart_pending_next(space, 0, &pending));
	smart_extents_lose_node(space, 0);
	CHECK(!smart_extents_has_chunk(space, 0, 1) && !smart_extents_has_tree(space, 5));
	CHECK(whole(client));
	test_client_close(client);
	test_node_close(node);
}

/* Nothing is taken from a memory node that the extent map's file has no room for. */
static smart_status
grow_no_heads(struct smart_region *region, uint64_t old_size, uint64_t new_size)
{
	region->grow_errno = ENOSPC;
	return SMART_DISK_FULL;
}

static void
test_disk_full(void)
{
	struct test_node *node = test_book_open(2, 2, 90);
	struct test_client *client = test_client_open(node, 1);
	smart_status (*real_grow)(struct smart_region *, uint64_t, uint64_t) = node->region.grow;
	fabric_address root;
	uint64_t tree = test_tree_create(client, &root);
	unsigned long requests;

	allocate_pages(client, tree, SMART_CHUNK_PAGES, SMART_OK);
	node->region.grow = grow_no_heads;
	CHECK(allocate_pages(client, tree, UINT32_MAX, SMART_DISK_FULL) ==
		  (SMART_HEADS_A_STEP - 1) * SMART_CHUNK_PAGES - SMART_SPARE_PAGES);
	requests = node->memory->node[0].requests + node->memory->node[1].requests;
	CHECK(allocate_pages(client, tree, 1, SMART_DISK_FULL) == 0);
	CHECK(node->memory->node[0].requests + node->memory->node[1].requests == requests);
	node->region.grow = real_grow;
	CHECK(allocate_pages(client, tree, SMART_CHUNK_PAGES, SMART_OK) == SMART_CHUNK_PAGES);
	CHECK(whole(client));
	test_client_close(client);
	test_node_close(node);
}

/* ---- small and large trees ---- */

static void
test_small_trees(void)
{
	struct test_node *node = test_book_open(2, 3, 40);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	struct smart_space_usage usage;
	fabric_address root;
	fabric_address block;
	uint64_t id[1000];
	unsigned int trees[3] = {0};

	for (unsigned int i = 0; i < 1000; i++)
	{
		id[i] = test_tree_create(client, &root);
		CHECK(*(uint64_t *) test_node_at(node, root) == smart_tree_empty_root());
		CHECK(smart_space_allocate(space, id[i], SMART_CLASS_LEAF(8), &block) == SMART_OK);
		CHECK(fabric_node(block) == fabric_node(root));
		trees[fabric_node(root)]++;
		CHECK(smart_space_tree_bytes(space, id[i]) <= 2 * SMART_PAGE_BYTES);
	}
	smart_space_usage(space, &usage);
	for (unsigned int i = 0; i < 3; i++)
		CHECK(trees[i] >= 332 && trees[i] <= 335);
	CHECK(usage.used == 1000 * SMART_PAGE_BYTES && usage.size == 3 * SMART_CHUNK_BYTES && usage.own > 0);
	for (unsigned int i = 0; i < 1000; i++)
		CHECK(smart_space_drop_tree(space, id[i]));
	CHECK(whole(client));
	CHECK(test_work_off_duties(client) == 0);
	for (unsigned int i = 0; i < 3; i++)
		CHECK(node->memory->node[i].tree_count == 0 && chunks_of(client, i) == 1);
	CHECK(whole(client));
	test_client_close(client);
	test_node_close(node);
}

static void
test_chunks_given_back(void)
{
	struct test_node *node = test_book_open(2, 2, 40);
	struct test_client *client = test_client_open(node, 1);
	struct test_memory *memory = node->memory;
	struct smart_space *space = &client->client->space;
	struct smart_pending_free pending;
	uint32_t taken;
	fabric_address root;
	uint64_t tree = test_tree_create(client, &root);
	uint64_t keep = test_tree_create(client, &root);

	allocate_pages(client, keep, 1, SMART_OK);
	allocate_pages(client, tree, 20 * SMART_CHUNK_PAGES, SMART_OK);
	CHECK(smart_space_drop_tree(space, tree));
	CHECK(whole(client));
	/* No node is told before the pending frees are worked off, and a node that is down keeps its own. */
	taken = memory->node[0].taken_count + memory->node[1].taken_count;
	CHECK(taken >= 21 && taken <= 22);
	memory->node[1].down = true;
	CHECK(test_work_off_duties(client) == 1);
	CHECK(!smart_pending_next(space, 0, &pending) && smart_pending_next(space, 1, &pending));
	CHECK(whole(client));
	memory->node[1].down = false;
	CHECK(test_work_off_duties(client) == 0 && !smart_pending_next(space, 1, &pending));
	CHECK(memory->node[0].taken_count + memory->node[1].taken_count == 1 + SMART_EMPTY_CHUNKS);
	CHECK(memory->node[0].taken_count == chunks_of(client, 0) && memory->node[1].taken_count == chunks_of(client, 1));
	/* The numbers serve again; what comes back holds zeros. */
	tree = test_tree_create(client, &root);
	for (unsigned int i = 0; i < 20 * SMART_CHUNK_PAGES; i++)
	{
		CHECK(smart_space_allocate(space, tree, PAGE_LEAF, &root) == SMART_OK);
		CHECK(((uint64_t *) test_node_at(node, root))[SMART_PAGE_BYTES / 8 - 1] == 0);
	}
	CHECK(smart_region_header(&node->region)->remote_chunks == taken);
	CHECK(whole(client) && memory->outside == 0);
	test_client_close(client);
	test_node_close(node);
}

/* Used pages on a node that is down cannot be cleared: they wait for it, and hold zeros then. */
static void
test_clear(void)
{
	struct test_node *node = test_book_open(2, 1, 3);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	fabric_address root;
	fabric_address block;
	uint64_t tree = test_tree_create(client, &root);

	for (unsigned int i = 0; i < 2 * SMART_CHUNK_PAGES - SMART_SPARE_PAGES; i++)
	{
		CHECK(smart_space_allocate(space, tree, PAGE_LEAF, &block) == SMART_OK);
		memset(test_node_at(node, block), 0x77, SMART_PAGE_BYTES);
	}
	CHECK(smart_space_drop_tree(space, tree));
	tree = test_tree_create(client, &root);
	node->memory->node[0].down = true;
	for (unsigned int i = 0; i < 40; i++)
		CHECK(smart_space_allocate(space, tree, SMART_CLASS_LEAF(127), &block) == SMART_UNREACHABLE);
	CHECK(whole(client));
	node->memory->node[0].down = false;
	for (unsigned int i = 0; i < 400; i++)
	{
		const uint8_t *bytes;

		CHECK(smart_space_allocate(space, tree, SMART_CLASS_LEAF(127), &block) == SMART_OK);
		bytes = test_node_at(node, block);
		for (unsigned int j = 0; j < SMART_LEAF_BYTES_MAX; j++)
			if (bytes[j] != 0 && !CHECK(bytes[j] == 0))
				break;
	}
	CHECK(whole(client) && node->memory->outside == 0);
	test_client_close(client);
	test_node_close(node);
}

/* ---- full nodes, and chunks that are leaving them ---- */

/* Two full nodes, whose only tree has been dropped. */
static struct test_client *
open_full(struct test_node **node)
{
	struct test_client *client;
	fabric_address root;
	fabric_address block;
	uint64_t tree;

	*node = test_book_open(2, 2, FULL_CHUNKS / 2 + 1);
	client = test_client_open(*node, 1);
	tree = test_tree_create(client, &root);
	for (unsigned int i = 0; i < FULL_PAGES; i++)
	{
		CHECK(smart_space_allocate(&client->client->space, tree, PAGE_LEAF, &block) == SMART_OK);
		memset(test_node_at(*node, block), 0x77, SMART_PAGE_BYTES);
	}
	CHECK(allocate_pages(client, tree, 1, SMART_NO_SPACE) == 0);
	CHECK(smart_space_drop_tree(&client->client->space, tree));
	return client;
}

/* Chunks that are leaving are used again, as long as no client is about to tell their nodes. */
static void
test_taken_back(void)
{
	struct test_node *node;
	struct test_client *client = open_full(&node);
	struct smart_space *space = &client->client->space;
	struct smart_pending_free pending;
	fabric_address block;
	uint64_t tree = test_tree_create(client, &block);

	CHECK(whole(client) && smart_pending_next(space, 0, &pending) && pending.kind == SMART_PENDING_GIVE_CHUNK);
	for (unsigned int i = 0; i < FULL_PAGES - SMART_CHUNK_PAGES; i++)
	{
		CHECK(smart_space_allocate(space, tree, PAGE_LEAF, &block) == SMART_OK);
		CHECK(((uint64_t *) test_node_at(node, block))[SMART_PAGE_BYTES / 8 - 1] == 0);
		CHECK(fabric_node(block) != 0 || fabric_offset(block) / SMART_CHUNK_BYTES != pending.chunk);
	}
	CHECK(whole(client));
	CHECK(node->memory->node[0].taken_count == FULL_CHUNKS / 2 && node->memory->node[1].taken_count == FULL_CHUNKS / 2);
	/* The node hears of the one: there are no others to be told of, and it is had again. */
	CHECK(test_work_off_duties(client) == 0 && node->memory->node[0].taken_count == FULL_CHUNKS / 2 - 1);
	CHECK(node->memory->node[1].taken_count == FULL_CHUNKS / 2);
	allocate_pages(client, tree, SMART_CHUNK_PAGES, SMART_OK);
	CHECK(allocate_pages(client, tree, 1, SMART_NO_SPACE) == 0);
	CHECK(whole(client) && node->memory->outside == 0);
	test_client_close(client);
	test_node_close(node);
}

/* A node that rests has its own back when it answers again. */
static void
test_resting_keep_theirs(void)
{
	struct test_node *node;
	struct test_client *client = open_full(&node);
	fabric_address root;
	uint64_t tree = test_tree_create(client, &root);

	smart_extents_rest_node(&client->client->space, 0, true);
	smart_extents_rest_node(&client->client->space, 1, true);
	CHECK(allocate_pages(client, tree, 1, SMART_NO_SPACE) == 0);
	smart_extents_rest_node(&client->client->space, 0, false);
	allocate_pages(client, tree, SMART_CHUNK_PAGES, SMART_OK);
	CHECK(whole(client) && node->memory->outside == 0);
	test_client_close(client);
	test_node_close(node);
}

static unsigned int asked_times;
static struct smart_pending_free on_its_way;

/* The node hears of the chunk when it has said three times that it is full. */
static void
hear_late(struct test_memory *memory, unsigned int number)
{
	if (++asked_times == 4)
		CHECK(test_memory_give_chunk(memory, on_its_way.node, on_its_way.chunk));
}

/* Of the last chunk that leaves its node hears at this moment: a client that wants it waits for that. */
static void
test_on_its_way(void)
{
	struct test_node *node;
	struct test_client *client = open_full(&node);
	struct smart_space *space = &client->client->space;
	fabric_address root;
	uint64_t tree = test_tree_create(client, &root);

	CHECK(smart_pending_next(space, 0, &on_its_way) && on_its_way.kind == SMART_PENDING_GIVE_CHUNK);
	smart_pending_done(space, &on_its_way);
	allocate_pages(client, tree, FULL_PAGES - SMART_CHUNK_PAGES, SMART_OK);
	asked_times = 0;
	node->memory->asked = hear_late;
	allocate_pages(client, tree, 1, SMART_OK);
	CHECK(asked_times >= 4 && whole(client) && node->memory->outside == 0);
	node->memory->asked = NULL;
	test_client_close(client);
	test_node_close(node);
}

/* ---- a clean restart ---- */

static void
test_again(void)
{
	struct test_node *node = test_book_open(2, 2, 40);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	const char *message = "";
	struct smart_pending_free pending[2];
	fabric_address root;
	fabric_address found;
	unsigned int number;
	uint64_t tree = test_tree_create(client, &root);
	uint64_t other = test_tree_create(client, &found);

	allocate_pages(client, tree, 5 * SMART_CHUNK_PAGES, SMART_OK);
	allocate_pages(client, other, 12 * SMART_CHUNK_PAGES, SMART_OK);
	CHECK(smart_space_drop_tree(space, other));
	CHECK(smart_pending_next(space, 0, &pending[0]) && smart_pending_next(space, 1, &pending[1]));
	test_client_close(client);
	smart_region_unmap(&node->region);
	CHECK(smart_extent_map(&node->region, node->region.fd) == SMART_OK);
	CHECK(smart_region_check(&node->region, &message) == SMART_OK);
	client = test_client_open(node, 1);
	space = &client->client->space;
	CHECK(whole(client));
	CHECK(smart_space_find_tree(space, tree, &found) && found == root && !smart_space_find_tree(space, other, &found));
	for (unsigned int i = 0; i < 2; i++)
	{
		struct smart_pending_free now;

		CHECK(smart_extents_add_node(space, node->memory->node[i].incarnation, &number) == SMART_OK && number == i);
		CHECK(smart_pending_next(space, i, &now) && memcmp(&now, &pending[i], sizeof(now)) == 0);
	}
	CHECK(test_work_off_duties(client) == 0);
	for (unsigned int i = 0; i < 2; i++)
		for (uint32_t chunk = 1; chunk < 40; chunk++)
			CHECK(smart_extents_has_chunk(space, i, chunk) == node->memory->node[i].taken[chunk]);
	allocate_pages(client, tree, 5 * SMART_CHUNK_PAGES, SMART_OK);
	CHECK(whole(client));
	test_client_close(client);
	test_node_close(node);
}

/* ---- a real tree ---- */

static bool
count_entry(void *argument, const uint8_t *entry, size_t length)
{
	++*(unsigned int *) argument;
	return true;
}

static void
test_tree(void)
{
	struct test_node *node = test_book_open(2, 3, 5);
	struct test_client *client = test_client_open(node, 1);
	struct smart_tree_options options = {.leaf_size = 512, .fixed_length = 14};
	struct smart_verify_report report;
	struct smart_tree *tree;
	uint64_t pages[FABRIC_NODES_MAX];
	char message[200] = "";
	unsigned int entries = 0;
	uint64_t random = 5;
	bool added;

	options.id = test_tree_create(client, &options.root);
	CHECK(smart_tree_open(client->client->fabric, &client->thread.env, &client->client->services, &options, &tree) ==
		  SMART_OK);
	for (unsigned int i = 0; i < 100000; i++)
	{
		uint8_t entry[14] = {0};
		uint64_t key = test_random(&random);

		memcpy(entry, &key, sizeof(key));
		CHECK(smart_tree_insert(tree, entry, sizeof(entry), sizeof(entry), &added) == SMART_OK && added);
	}
	CHECK(smart_tree_verify(tree, count_entry, &entries, &report, message, sizeof(message)) == SMART_OK);
	CHECK(entries == 100000);
	CHECK(smart_space_tree_nodes(&client->client->space, options.id, pages) && pages[0] > 0 && pages[1] > 0);
	CHECK(whole(client) && node->memory->outside == 0);
	smart_tree_close(tree);
	test_client_close(client);
	test_node_close(node);
}

int
main(void)
{
	test_addresses();
	test_turns();
	test_passed_over();
	test_no_nodes();
	test_disk_full();
	test_small_trees();
	test_chunks_given_back();
	test_clear();
	test_taken_back();
	test_resting_keep_theirs();
	test_on_its_way();
	test_again();
	test_tree();
	return check_finish();
}

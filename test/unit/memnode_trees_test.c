/*
 * memnode_trees_test.c
 *	  The memory node's directory of trees: many of them, against a plain list.
 */
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/memnode_peer.h"
#include "tree/layout.h"

#define SIZE   ((uint64_t) 32 << 20)
#define OWNERS 3u
#define IDS    2000u
#define STEPS  20000u

static struct memnode_region region;
static struct memnode_chunks chunks;
static struct memnode_trees trees;
static uint64_t roots[OWNERS][IDS]; /* 0: there is no such tree */
static uint64_t state = 42;

static uint32_t
below(uint32_t limit)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t) ((state >> 33) % limit);
}

static void
describe(uint8_t description[WIRE_OWNER_BYTES], uint32_t owner, uint64_t id)
{
	for (unsigned int i = 0; i < WIRE_OWNER_BYTES; i++)
		description[i] = (uint8_t) (owner + id * 7 + i);
}

static uint64_t
slot_at(uint64_t root)
{
	return *(uint64_t *) (region.base + root);
}

static void
make(uint32_t owner, uint64_t id)
{
	uint8_t description[WIRE_OWNER_BYTES];
	const struct memnode_tree_record *tree;

	describe(description, owner, id);
	CHECK(memnode_trees_make(&trees, owner, id, description, &tree) == SMART_OK);
	CHECK(tree->root % MEMNODE_ROOT_BYTES == 0 && memnode_chunks_cover(&chunks, owner, tree->root, MEMNODE_ROOT_BYTES));
	CHECK(slot_at(tree->root) == smart_slot_make_empty(0, 255));
	/* The tree's own mark, by which a root that two trees share would be found. */
	*(uint64_t *) (region.base + tree->root) = owner * UINT64_C(1000003) + id;
	roots[owner][id] = tree->root;
}

static void
check_one(uint32_t owner, uint64_t id)
{
	uint8_t description[WIRE_OWNER_BYTES];
	const struct memnode_tree_record *tree = memnode_trees_find(&trees, owner, id);

	CHECK((tree != NULL) == (roots[owner][id] != 0));
	if (tree == NULL)
		return;
	describe(description, owner, id);
	CHECK(tree->root == roots[owner][id] && slot_at(tree->root) == owner * UINT64_C(1000003) + id);
	CHECK(memcmp(tree->description, description, sizeof(description)) == 0);
}

static uint32_t
check_owner(uint32_t owner)
{
	static struct wire_tree list[WIRE_LIST_MAX];
	uint64_t cursor = 0;
	uint32_t expected = 0;
	uint32_t listed = 0;
	uint32_t count;

	for (uint64_t id = 1; id < IDS; id++)
	{
		check_one(owner, id);
		expected += roots[owner][id] != 0;
	}
	do
	{
		count = memnode_trees_list(&trees, owner, &cursor, list);
		for (uint32_t i = 0; i < count; i++)
			CHECK(list[i].id < IDS && roots[owner][list[i].id] == list[i].root);
		listed += count;
	} while (cursor != 0);
	CHECK(listed == expected && trees.own[owner] == expected);
	CHECK((chunks.roots[owner] > 0) == (expected > 0));
	return expected;
}

static void
check_all(void)
{
	uint32_t expected = 0;

	for (uint32_t owner = 0; owner < OWNERS; owner++)
		expected += check_owner(owner);
	CHECK(trees.count == expected);
}

static void
test_random(void)
{
	for (uint32_t step = 0; step < STEPS; step++)
	{
		uint32_t owner = below(OWNERS);
		uint64_t id = 1 + below(IDS - 1);

		if (roots[owner][id] == 0)
			make(owner, id);
		else
		{
			CHECK(memnode_trees_drop(&trees, owner, id));
			CHECK(!memnode_trees_drop(&trees, owner, id));
			roots[owner][id] = 0;
		}
	}
	check_all();
}

/* The next process finds the same trees. */
static void
test_open_again(void)
{
	memnode_trees_close(&trees);
	memnode_chunks_open(&chunks, &region);
	CHECK(memnode_trees_open(&trees, &region, &chunks) == SMART_OK);
	check_all();
}

static void
test_drop_all(void)
{
	memnode_trees_drop_all(&trees, 1);
	memnode_chunks_give_all(&chunks, 1);
	memset(roots[1], 0, sizeof(roots[1]));
	check_all();
	make(1, 5);
	check_all();
	for (uint32_t owner = 0; owner < OWNERS; owner++)
	{
		for (uint64_t id = 1; id < IDS; id++)
		{
			if (roots[owner][id] != 0)
				CHECK(memnode_trees_drop(&trees, owner, id));
		}
	}
	memset(roots, 0, sizeof(roots));
	check_all();
	CHECK(memnode_chunks_allocated(&chunks) == 0);
}

/* Two records with one root are no directory; a full one says so. */
static void
test_limits(void)
{
	uint8_t description[WIRE_OWNER_BYTES] = {0};
	const struct memnode_tree_record *tree;
	struct memnode_trees other;
	uint64_t id = 1;
	bool cleared;

	while (memnode_trees_make(&trees, 7, id, description, &tree) == SMART_OK)
		id++;
	CHECK(id - 1 == region.tree_count && trees.own[7] == region.tree_count);
	CHECK(memnode_trees_drop(&trees, 7, 99));
	CHECK(memnode_trees_make(&trees, 8, 99, description, &tree) == SMART_OK);
	region.owners[7].state = region.owners[8].state = MEMNODE_OWNER_KNOWN;
	region.trees[0].root = region.trees[1].root;
	CHECK(memnode_trees_open(&other, &region, &chunks) == SMART_CORRUPT);
	region.trees[0].root = region.trees[1].root - MEMNODE_ROOT_BYTES;
	memnode_trees_drop_all(&trees, 7);
	memnode_trees_drop_all(&trees, 8);
	memnode_chunks_give_all(&chunks, 7);
	memnode_chunks_give_all(&chunks, 8);

	/* Without a chunk there is no root, without a root no tree. */
	while (memnode_chunks_take(&chunks, 7, MEMNODE_CHUNK_BLOCKS, &cleared) != 0)
		continue;
	CHECK(memnode_trees_make(&trees, 7, 1, description, &tree) == SMART_NO_SPACE && trees.count == 0);
}

int
main(void)
{
	memnode_peer_region(&region, SIZE);
	memnode_chunks_open(&chunks, &region);
	CHECK(memnode_trees_open(&trees, &region, &chunks) == SMART_OK);
	test_random();
	test_open_again();
	test_drop_all();
	test_limits();
	memnode_trees_close(&trees);
	memnode_peer_unmap(&region);
	return check_finish();
}

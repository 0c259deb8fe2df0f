/*
 * space_test.c
 *	  The memory of a region, and of an extent map with three memory nodes, against a plain
 *	  model: no block handed out twice, none used again under a reader's eyes,
 *	  nothing lost.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compute/allocate/extents.h"
#include "compute/allocate/slab.h"
#include "compute/allocate/trees.h"
#include "support/check.h"
#include "support/node.h"

#define MB (UINT64_C(1) << 20)

#define BOOK_NODES 3

/* A compute node on a region of max_size, or with memory nodes that have as much together. */
static struct test_node *
open_node(bool extents, uint64_t max_size)
{
	if (!extents)
		return test_node_open(4, max_size);
	return test_book_open(4, BOOK_NODES, (uint32_t) (max_size / BOOK_NODES / SMART_CHUNK_BYTES) + 1);
}

/* ---- the model: one entry per unit of the region, or of each memory node's ---- */

#define MODEL_BYTES (64 * MB)
#define NODE_UNITS  (MODEL_BYTES / SMART_UNIT)
#define MODEL_UNITS (BOOK_NODES * NODE_UNITS)
#define TREES       5
#define LIVE_MAX    20000

struct live
{
	fabric_address block;
	unsigned int tree;
	smart_class class;
	uint64_t pattern;
};

static uint8_t in_use[MODEL_UNITS];  /* 1: part of a live block */
static uint8_t watched[MODEL_UNITS]; /* 1: was live when the reader entered */
static struct live live[LIVE_MAX];
static unsigned int live_count;
static uint64_t state = 1;

static const smart_class classes[] = {SMART_CLASS_LEAF(1),  SMART_CLASS_LEAF(3),  SMART_CLASS_LEAF(8),
									  SMART_CLASS_LEAF(12), SMART_CLASS_LEAF(65), SMART_CLASS_LEAF(127),
									  SMART_CLASS_NODE(1),  SMART_CLASS_NODE(3),  SMART_CLASS_NODE(6)};

static uint64_t *
words(struct test_node *node, fabric_address block)
{
	return test_node_at(node, block);
}

static unsigned int
pattern_words(smart_class class)
{
	return smart_class_bytes(class) / 8;
}

static bool
pattern_good(struct test_node *node, const struct live *block)
{
	for (unsigned int i = 0; i < pattern_words(block->class); i++)
		if (words(node, block->block)[i] != block->pattern)
			return false;
	return true;
}

static uint64_t
first_unit(fabric_address block)
{
	return fabric_node(block) * NODE_UNITS + fabric_offset(block) / SMART_UNIT;
}

static bool
mark_units(uint8_t *map, fabric_address block, smart_class class, uint8_t from, uint8_t to)
{
	uint64_t first = first_unit(block);

	for (unsigned int i = 0; i < smart_class_bytes(class) / SMART_UNIT; i++)
	{
		if (map[first + i] != from)
			return false;
		map[first + i] = to;
	}
	return true;
}

static bool
units_are(const uint8_t *map, fabric_address block, smart_class class, uint8_t value)
{
	uint64_t first = first_unit(block);

	for (unsigned int i = 0; i < smart_class_bytes(class) / SMART_UNIT; i++)
		if (map[first + i] != value)
			return false;
	return true;
}

static void
model_allocate(struct test_node *node, struct smart_space *space, const uint64_t *trees)
{
	struct live *block = &live[live_count];
	smart_status status;

	if (live_count == LIVE_MAX)
		return;
	block->tree = (unsigned int) (test_random(&state) % TREES);
	block->class = classes[test_random(&state) % (sizeof(classes) / sizeof(classes[0]))];
	block->pattern = test_random(&state);
	status = smart_space_allocate(space, trees[block->tree], block->class, &block->block);
	if (status == SMART_NO_SPACE)
		return;
	CHECK(status == SMART_OK);
	CHECK(block->block % SMART_UNIT == 0 &&
		  fabric_offset(block->block) + smart_class_bytes(block->class) <= MODEL_BYTES);
	CHECK(mark_units(in_use, block->block, block->class, 0, 1));
	CHECK(units_are(watched, block->block, block->class, 0));
	for (unsigned int i = 0; i < pattern_words(block->class); i++)
		words(node, block->block)[i] = block->pattern;
	live_count++;
}

static void
model_retire(struct test_node *node, struct smart_space *space, const uint64_t *trees)
{
	unsigned int which;

	if (live_count == 0)
		return;
	which = (unsigned int) (test_random(&state) % live_count);
	CHECK(pattern_good(node, &live[which]));
	CHECK(mark_units(in_use, live[which].block, live[which].class, 1, 0));
	smart_space_retire(space, trees[live[which].tree], live[which].class, live[which].block);
	live[which] = live[--live_count];
}

/* A reader enters and leaves at random; what was in use when it entered must stay away from others. */
static void
model_reader(struct test_client *reader, bool *inside)
{
	struct smart_services *services = &reader->client->services;

	if (*inside)
	{
		memset(watched, 0, sizeof(watched));
		services->leave(services);
	}
	else
	{
		services->enter(services);
		memcpy(watched, in_use, sizeof(watched));
	}
	*inside = !*inside;
}

static void
test_model(bool extents, uint64_t seed)
{
	struct test_node *node = open_node(extents, MODEL_BYTES);
	struct test_client *writer = test_client_open(node, seed);
	struct test_client *reader = test_client_open(node, seed + 1);
	struct smart_space *space = &writer->client->space;
	struct smart_space_usage before;
	struct smart_space_usage after;
	uint64_t trees[TREES];
	fabric_address root;
	char message[200] = "";
	bool inside = false;

	state = seed;
	live_count = 0;
	memset(in_use, 0, sizeof(in_use));
	memset(watched, 0, sizeof(watched));
	for (unsigned int i = 0; i < TREES; i++)
		trees[i] = test_tree_create(writer, &root);
	smart_space_usage(space, &before);
	for (unsigned int step = 0; step < 60000; step++)
	{
		/* Tides, so that slabs fill and empty. */
		unsigned int allocate_of_16 = step / 8000 % 2 == 0 ? 11 : 4;

		if (test_random(&state) % 16 < allocate_of_16)
			model_allocate(node, space, trees);
		else
			model_retire(node, space, trees);
		if (test_random(&state) % 64 == 0)
			model_reader(reader, &inside);
		if (extents && test_random(&state) % 512 == 0)
			CHECK(test_work_off_duties(writer) == 0);
		if (step % 5000 == 0 && !CHECK(smart_space_verify(space, message, sizeof(message)) == SMART_OK))
			CHECK(strcmp(message, "") == 0);
	}
	if (inside)
		model_reader(reader, &inside);
	while (live_count > 0)
		model_retire(node, space, trees);
	for (unsigned int i = 0; i < TREES; i++)
	{
		struct smart_tree_info info;

		smart_space_reclaim(space, trees[i]);
		CHECK(smart_space_tree_info(space, trees[i], &info) && info.pages == 0 && info.slabs == 0);
	}
	smart_space_usage(space, &after);
	/* Only the new chunks' own pages. */
	if (extents)
		CHECK(after.used == 0 && node->memory->outside == 0);
	else
		CHECK(after.used - before.used == (smart_region_header(&node->region)->home.chunks - 1) *
											  SMART_CHUNK_FIRST_PAGE * (uint64_t) SMART_PAGE_BYTES);
	CHECK(smart_space_verify(space, message, sizeof(message)) == SMART_OK);
	test_client_close(reader);
	test_client_close(writer);
	test_node_close(node);
}

/* ---- single properties ---- */

static void
test_geometry(void)
{
	for (unsigned int class = 1; class < SMART_CLASSES; class ++)
	{
		unsigned int order;
		unsigned int blocks;
		unsigned int room;

		if (class == 128)
			continue;
		blocks = smart_slab_geometry((smart_class) class, &order);
		room = SMART_PAGE_BYTES << order;
		CHECK(order < SMART_PAGE_ORDERS && blocks >= 1 && blocks <= 64);
		CHECK(blocks * smart_class_bytes((smart_class) class) <= room);
		CHECK((room - blocks * smart_class_bytes((smart_class) class)) * 8 < room);
	}
}

static void
test_type_stable(bool extents)
{
	struct test_node *node = open_node(extents, 64 * MB);
	struct test_client *writer = test_client_open(node, 1);
	struct test_client *reader = test_client_open(node, 2);
	struct smart_space *space = &writer->client->space;
	fabric_address root;
	fabric_address first;
	fabric_address other;
	uint64_t tree = test_tree_create(writer, &root);

	/* While a reader is inside, neither the block nor its page serves anything else. */
	CHECK(smart_space_allocate(space, tree, SMART_CLASS_LEAF(8), &first) == SMART_OK);
	reader->client->services.enter(&reader->client->services);
	smart_space_retire(space, tree, SMART_CLASS_LEAF(8), first);
	for (unsigned int i = 0; i < 2000; i++)
	{
		CHECK(smart_space_allocate(space, tree, i % 2 ? SMART_CLASS_NODE(1) : SMART_CLASS_LEAF(8), &other) == SMART_OK);
		CHECK(other != first && (i % 2 == 0 || other / SMART_PAGE_BYTES != first / SMART_PAGE_BYTES));
		smart_space_retire(space, tree, i % 2 ? SMART_CLASS_NODE(1) : SMART_CLASS_LEAF(8), other);
	}
	reader->client->services.leave(&reader->client->services);
	smart_space_reclaim(space, tree);
	CHECK(smart_space_tree_bytes(space, tree) == sizeof(struct smart_record));
	/* Now its page may hold nodes. */
	CHECK(smart_space_allocate(space, tree, SMART_CLASS_NODE(1), &other) == SMART_OK);
	CHECK(other / SMART_PAGE_BYTES == first / SMART_PAGE_BYTES);
	CHECK(*words(node, other) == 0);
	test_client_close(reader);
	test_client_close(writer);
	test_node_close(node);
}

static void
test_directory(bool extents)
{
	struct test_node *node = open_node(extents, 64 * MB);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	struct smart_space_usage before;
	struct smart_space_usage after;
	struct smart_tree_info info;
	uint64_t id[1000];
	fabric_address root[1000];
	fabric_address found;
	uint64_t cursor = 0;
	uint64_t again;
	unsigned int count = 0;
	char message[200];

	CHECK(!smart_space_find_tree(space, 5, &found) && !smart_space_drop_tree(space, 5));
	smart_space_usage(space, &before);
	for (unsigned int i = 0; i < 1000; i++)
		id[i] = test_tree_create(client, &root[i]);
	smart_space_usage(space, &after);
	CHECK(after.trees == 1000 && after.used - before.used <= (extents ? 0 : 1000 * 4096));
	for (unsigned int i = 0; i < 1000; i++)
	{
		CHECK(smart_space_find_tree(space, id[i], &found) && found == root[i] && found % 64 == 0);
		CHECK(*words(node, found) == smart_slot_make_empty(0, 255));
		CHECK(smart_space_tree_bytes(space, id[i]) <= 4096);
	}
	while (smart_space_next_tree(space, &cursor, &info))
		count++;
	CHECK(count == 1000);

	/* A record that serves again is another tree with an id of its own. */
	CHECK(smart_space_drop_tree(space, id[500]) && !smart_space_drop_tree(space, id[500]));
	again = test_tree_create(client, &found);
	CHECK((extents || found == root[500]) && again != id[500] && smart_space_tree_info(space, again, &info) &&
		  info.id == again);
	CHECK(!smart_space_find_tree(space, id[500], &found) && smart_space_tree_bytes(space, id[500]) == 0);
	CHECK(smart_space_allocate(space, id[500], SMART_CLASS_LEAF(1), &found) == SMART_CORRUPT);
	for (unsigned int i = 0; i < 1000; i++)
		CHECK(again != id[i]);
	CHECK(smart_space_verify(space, message, sizeof(message)) == SMART_OK);
	test_client_close(client);
	test_node_close(node);
}

/* A note for all trees of a database: not for those of another, nor for one that gets the record of a tree that has gone. */
static void
test_notes(bool extents)
{
	struct test_node *node = open_node(extents, 64 * MB);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	uint64_t id[20];
	uint64_t note;
	fabric_address root;

	for (uint32_t i = 0; i < 20; i++)
	{
		struct smart_tree_owner owner = {.database = 7 + i % 2, .relation = i, .backend = -1, .creator = 1};

		CHECK(smart_space_create_tree(space, &owner, &id[i], &root) == SMART_OK);
		CHECK(smart_space_put_note(space, id[i], 2, i));
	}
	CHECK(smart_space_drop_tree(space, id[0]));
	smart_space_put_notes(space, 7, 1, 99);
	smart_space_put_notes(space, 9, 1, 98);
	for (uint32_t i = 1; i < 20; i++)
	{
		CHECK(smart_space_get_note(space, id[i], 1, &note) && note == (i % 2 == 0 ? 99 : 0));
		CHECK(smart_space_get_note(space, id[i], 2, &note) && note == i);
	}
	id[0] = test_tree_create(client, &root);
	CHECK(smart_space_get_note(space, id[0], 1, &note) && note == 0);
	CHECK(!smart_space_put_note(space, id[0] + 1000, 1, 5));
	test_client_close(client);
	test_node_close(node);
}

/* Trees are visited once each while others come and go. */
static void
test_iteration(bool extents)
{
	struct test_node *node = open_node(extents, 64 * MB);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	struct smart_tree_info info;
	uint64_t stays[50];
	unsigned int seen[50] = {0};
	uint64_t cursor = 0;
	fabric_address root;

	for (unsigned int i = 0; i < 50; i++)
	{
		stays[i] = test_tree_create(client, &root);
		(void) test_tree_create(client, &root);
	}
	while (smart_space_next_tree(space, &cursor, &info))
	{
		bool mine = false;

		for (unsigned int i = 0; i < 50; i++)
			if (stays[i] == info.id)
			{
				seen[i]++;
				mine = true;
			}
		if (!mine)
			CHECK(smart_space_drop_tree(space, info.id));
		(void) test_tree_create(client, &root);
		if (smart_region_header(&node->region)->last_tree > 2000)
			break;
	}
	for (unsigned int i = 0; i < 50; i++)
		CHECK(seen[i] == 1);
	test_client_close(client);
	test_node_close(node);
}

static void
test_drop(bool extents)
{
	struct test_node *node = open_node(extents, 64 * MB);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	struct smart_space_usage before;
	struct smart_space_usage after;
	fabric_address root;
	fabric_address block;
	uint64_t keep = test_tree_create(client, &root);
	uint64_t tree = test_tree_create(client, &root);
	char message[200];

	CHECK(smart_space_allocate(space, keep, SMART_CLASS_LEAF(8), &block) == SMART_OK);
	smart_space_usage(space, &before);
	/* Full, partly free and retired slabs of every class, within one chunk. */
	for (unsigned int i = 0; i < 200; i++)
	{
		smart_class class = classes[i % (sizeof(classes) / sizeof(classes[0]))];

		CHECK(smart_space_allocate(space, tree, class, &block) == SMART_OK);
		if (i % 3 == 0)
			smart_space_retire(space, tree, class, block);
	}
	CHECK(smart_space_tree_bytes(space, tree) > 200 * 64);
	CHECK(smart_space_drop_tree(space, tree));
	smart_space_usage(space, &after);
	CHECK(after.used == before.used && after.trees == 1);
	CHECK(smart_space_verify(space, message, sizeof(message)) == SMART_OK);
	test_client_close(client);
	test_node_close(node);
}

/* ---- no room ---- */

static uint64_t grow_limit;

static smart_status (*real_grow)(struct smart_region *region, uint64_t old_size, uint64_t new_size);

static smart_status
grow_to_limit(struct smart_region *region, uint64_t old_size, uint64_t new_size)
{
	region->grow_errno = ENOSPC;
	return new_size > grow_limit ? SMART_DISK_FULL : real_grow(region, old_size, new_size);
}

static smart_status
allocate_spared(struct smart_space *space, uint64_t tree, enum smart_space_purpose purpose)
{
	fabric_address block;

	return smart_space_allocate_spared(space, tree, SMART_CLASS_LEAF(64), purpose, &block);
}

/* Allocates blocks until there is no room; how many. */
static unsigned int
fill(struct smart_space *space, uint64_t tree, fabric_address *block, smart_status expected)
{
	unsigned int count = 0;
	smart_status status;

	while ((status = smart_space_allocate(space, tree, SMART_CLASS_LEAF(64), &block[count])) == SMART_OK)
		count++;
	CHECK(status == expected);
	return count;
}

static void
test_no_room(bool extents, bool disk)
{
	uint64_t room = 18 * MB;
	struct test_node *node = open_node(extents, disk ? 64 * MB : room);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	smart_status expected = disk ? SMART_DISK_FULL : SMART_NO_SPACE;
	fabric_address *block = calloc(room / 4096 + 1, sizeof(*block));
	struct smart_space_usage usage;
	fabric_address root;
	uint64_t first = test_tree_create(client, &root);
	uint64_t second = test_tree_create(client, &root);
	unsigned int count;
	char message[200];

	real_grow = node->region.grow;
	grow_limit = room;
	if (disk)
		node->region.grow = grow_to_limit;
	count = fill(space, first, block, expected);
	CHECK(count > room / 4096 * 9 / 10);
	smart_space_usage(space, &usage);
	CHECK(usage.size == room);
	CHECK(smart_space_allocate(space, second, SMART_CLASS_LEAF(8), &root) == expected);
	CHECK(smart_space_verify(space, message, sizeof(message)) == SMART_OK);

	/* What one tree has retired serves another. */
	for (unsigned int i = 0; i < 10; i++)
		smart_space_retire(space, first, SMART_CLASS_LEAF(64), block[--count]);
	for (unsigned int i = 0; i < 10 * 8; i++)
		CHECK(smart_space_allocate(space, second, SMART_CLASS_LEAF(8), &root) == SMART_OK);
	CHECK(smart_space_allocate(space, second, SMART_CLASS_LEAF(8), &root) == expected);

	/* The last pages are for clients that remove, and of these the last ones for what must not fail. */
	space->removing = true;
	for (unsigned int i = 0; i < SMART_SPARE_PAGES - SMART_MEND_PAGES; i++)
		CHECK(smart_space_allocate(space, second, SMART_CLASS_LEAF(64), &root) == SMART_OK);
	CHECK(smart_space_allocate(space, second, SMART_CLASS_LEAF(64), &root) == expected);
	space->removing = false;
	for (unsigned int i = 0; i < SMART_MEND_PAGES - SMART_STANDBY_PAGES; i++)
		CHECK(allocate_spared(space, second, SMART_SPACE_MEND) == SMART_OK);
	CHECK(allocate_spared(space, second, SMART_SPACE_MEND) == expected);
	for (unsigned int i = 0; i < SMART_STANDBY_PAGES; i++)
		CHECK(allocate_spared(space, second, SMART_SPACE_STANDBY) == SMART_OK);
	CHECK(allocate_spared(space, second, SMART_SPACE_STANDBY) == expected);

	/* And when there is room again, all goes on. */
	if (disk)
	{
		grow_limit = 64 * MB;
		CHECK(smart_space_allocate(space, second, SMART_CLASS_LEAF(8), &root) == SMART_OK);
	}
	CHECK(smart_space_drop_tree(space, first));
	CHECK(smart_space_allocate(space, second, SMART_CLASS_LEAF(127), &root) == SMART_OK);
	CHECK(smart_space_verify(space, message, sizeof(message)) == SMART_OK);
	free(block);
	test_client_close(client);
	test_node_close(node);
}

/* ---- a reserve ---- */

/* Pages for blocks until there are none; returns how many. */
static uint32_t
take_all(struct smart_space *space, uint64_t tree)
{
	fabric_address block;
	uint32_t count = 0;

	while (smart_space_allocate(space, tree, SMART_CLASS_LEAF(64), &block) == SMART_OK)
		count++;
	return count;
}

/* The last part of what a region may grow to is for clients that use the reserve; and it is not kept as memory until then. */
static void
test_reserve(void)
{
	const uint32_t reserved = 2000;
	struct test_node *node = test_node_open(1, 64 * MB);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	struct smart_space_usage usage;
	fabric_address root;
	uint64_t tree = test_tree_create(client, &root);
	uint32_t count;

	space->reserved_pages = reserved;
	smart_space_usage(space, &usage);
	CHECK(usage.size < usage.max_size / 2);
	count = take_all(space, tree);
	CHECK(count < usage.max_size / SMART_PAGE_BYTES - reserved);
	CHECK(take_all(space, tree) == 0);
	space->uses_reserve = true;
	count = take_all(space, tree); /* of these pages some are the space's own */
	CHECK(count <= reserved && count > reserved / 2);
	space->uses_reserve = false;
	CHECK(smart_space_drop_tree(space, tree));
	tree = test_tree_create(client, &root);
	CHECK(take_all(space, tree) > 0);
	test_client_close(client);
	test_node_close(node);
}

/* ---- a region that is closed and mapped again ---- */

static void
test_again(bool extents)
{
	struct test_node *node = open_node(extents, 64 * MB);
	struct test_client *client = test_client_open(node, 1);
	struct smart_space *space = &client->client->space;
	struct smart_region_header *header;
	fabric_address root;
	fabric_address found;
	fabric_address block;
	uint64_t tree = test_tree_create(client, &root);
	const char *message = "";
	char sentence[200];
	uint64_t epoch;
	uint64_t max_size;

	for (unsigned int i = 0; i < 300; i++)
	{
		CHECK(smart_space_allocate(space, tree, SMART_CLASS_LEAF(8), &block) == SMART_OK);
		smart_space_retire(space, tree, SMART_CLASS_LEAF(8), block);
		(void) smart_epoch_try_advance(node->compute.epoch);
	}
	epoch = smart_epoch_now(node->compute.epoch);
	CHECK(epoch > 100);
	test_client_close(client);
	smart_region_unmap(&node->region);
	CHECK((extents ? smart_extent_map(&node->region, node->region.fd)
				   : smart_region_map(&node->region, node->region.fd, 64 * MB)) == SMART_OK);
	CHECK(smart_region_check(&node->region, &message) == SMART_OK);
	smart_epoch_init(node->compute.epoch, 4, epoch + SMART_EPOCH_GRACE);
	client = test_client_open(node, 1);
	space = &client->client->space;
	CHECK(smart_space_find_tree(space, tree, &found) && found == root);
	smart_space_reclaim(space, tree);
	CHECK(smart_space_tree_bytes(space, tree) == sizeof(struct smart_record));
	CHECK(smart_space_verify(space, sentence, sizeof(sentence)) == SMART_OK);
	test_client_close(client);

	/* What is not a region is not taken for one. */
	header = smart_region_header(&node->region);
	header->incarnation ^= 4;
	CHECK(smart_region_check(&node->region, &message) == SMART_CORRUPT && message != NULL);
	header->incarnation ^= 4;
	header->version++;
	CHECK(smart_region_check(&node->region, &message) == SMART_CORRUPT);
	header->version--;
	/* The file ends before the last chunk, or the last head. */
	header->size += extents ? 0 : SMART_CHUNK_BYTES;
	header->heads += extents ? SMART_HEADS_A_STEP : 0;
	CHECK(smart_region_check(&node->region, &message) == SMART_CORRUPT);
	header->size -= extents ? 0 : SMART_CHUNK_BYTES;
	header->heads -= extents ? SMART_HEADS_A_STEP : 0;
	CHECK(smart_region_check(&node->region, &message) == SMART_OK);
	max_size = node->region.max_size;
	node->region.max_size = 4 * MB;
	CHECK(smart_region_check(&node->region, &message) == SMART_NO_SPACE);
	node->region.max_size = max_size;
	/* Nor a region for an extent map, or an extent map for a region. */
	node->region.extents = !extents;
	CHECK(smart_region_check(&node->region, &message) == SMART_CORRUPT);
	node->region.extents = extents;
	test_node_close(node);
}

int
main(void)
{
	test_geometry();
	for (int extents = 0; extents <= 1; extents++)
	{
		for (uint64_t seed = 1; seed <= 4; seed++)
			test_model(extents, seed);
		test_type_stable(extents);
		test_directory(extents);
		test_notes(extents);
		test_iteration(extents);
		test_drop(extents);
		test_no_room(extents, false);
		test_again(extents);
	}
	test_no_room(false, true);
	test_reserve();
	return check_finish();
}

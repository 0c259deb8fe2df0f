/*
 * recover_test.c
 *	  Recovery of a region, and of an extent map with three memory nodes: all that it makes
 *	  anew is filled with garbage first, so that none of it can have been trusted.
 *
 * recover_kill_test.c has processes that are killed at any moment.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compute/allocate/extents_parts.h"
#include "compute/allocate/segment.h"
#include "compute/recovery/recover.h"
#include "support/check.h"
#include "support/node.h"
#include "tree/fault.h"
#include "tree/tree.h"

#define MB    (UINT64_C(1) << 20)
#define NODES 3
#define TREES 3
#define KEYS  3000

static const struct smart_tree_owner no_owner = {.database = 7, .relation = 9, .backend = -1};

/* A compute node with trees of known content. */
struct bench
{
	struct test_node *node;
	struct test_client *client;
	struct smart_space *space;
	uint64_t id[TREES];
	uint8_t present[TREES][KEYS];
	uint64_t state;
};

static struct smart_tree *
open_tree(struct bench *bench, unsigned int which)
{
	struct smart_tree_options options = {.id = bench->id[which], .leaf_size = 256, .fixed_length = 8};
	struct smart_tree *tree = NULL;

	CHECK(smart_space_find_tree(bench->space, bench->id[which], &options.root));
	CHECK(smart_tree_open(bench->client->client->fabric, bench->client->client->env, &bench->client->client->services,
						  &options, &tree) == SMART_OK);
	return tree;
}

static void
make_key(unsigned int key, uint8_t bytes[8])
{
	uint64_t hash = (key + 1) * UINT64_C(0x9e3779b97f4a7c15);

	memcpy(bytes, &hash, 8);
}

/* Puts keys in and takes some out. */
static void
change(struct bench *bench, unsigned int which, unsigned int steps)
{
	struct smart_tree *tree = open_tree(bench, which);
	uint8_t bytes[8];

	for (unsigned int i = 0; i < steps; i++)
	{
		unsigned int key = (unsigned int) (test_random(&bench->state) % KEYS);
		bool done = false;

		make_key(key, bytes);
		if (test_random(&bench->state) % 3 != 0)
		{
			CHECK(smart_tree_insert(tree, bytes, 8, 8, &done) == SMART_OK && done == !bench->present[which][key]);
			bench->present[which][key] = 1;
		}
		else
		{
			CHECK(smart_tree_remove(tree, bytes, 8, &done) == SMART_OK && done == bench->present[which][key]);
			bench->present[which][key] = 0;
		}
	}
	smart_tree_close(tree);
}

static struct bench *
open_bench(bool extents, uint64_t seed)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	fabric_address root;

	bench->node = extents ? test_book_open(4, NODES, 16) : test_node_open(4, 64 * MB);
	bench->client = test_client_open(bench->node, seed);
	bench->space = &bench->client->client->space;
	bench->state = seed;
	for (unsigned int i = 0; i < TREES; i++)
	{
		CHECK(smart_space_create_tree(bench->space, &no_owner, &bench->id[i], &root) == SMART_OK);
		change(bench, i, 4 * KEYS);
	}
	return bench;
}

static void
close_bench(struct bench *bench)
{
	test_client_close(bench->client);
	test_node_close(bench->node);
	free(bench);
}

/* The server is gone, and with it all that was not in the region. */
static void
crash(struct bench *bench)
{
	test_client_close(bench->client);
	smart_epoch_init(bench->node->compute.epoch, 4, 0);
	smart_pins_init(bench->node->compute.pins, 4);
	bench->client = test_client_open(bench->node, ++bench->state);
	bench->space = &bench->client->client->space;
}

static smart_status
recover(struct bench *bench, struct smart_recovery *recovery)
{
	struct smart_client *client = bench->client->client;

	memset(recovery, 0, sizeof(*recovery));
	return smart_space_recover(&client->space, client->fabric, client->env, recovery);
}

static uint32_t
remote_end(const struct bench *bench)
{
	return bench->node->region.extents ? SMART_HOME_CHUNKS + smart_region_header(&bench->node->region)->remote_chunks
									   : 0;
}

/* ---- garbage ---- */

static void
fill(struct bench *bench, void *memory, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *) memory)[i] = (uint8_t) test_random(&bench->state);
}

static void
damage_chunk(struct bench *bench, uint32_t number)
{
	struct smart_region *region = &bench->node->region;
	struct smart_chunk *chunk = smart_chunk_at(region, number);

	fill(bench, chunk->free, sizeof(chunk->free));
	fill(bench, &chunk->next, 4 * sizeof(uint32_t)); /* next, previous, list, free_pages */
	fill(bench, smart_chunk_memory(region, number) + SMART_PAGE_BYTES, SMART_CHUNK_PAGES * sizeof(struct smart_slab));
}

static void
damage_records(struct bench *bench)
{
	struct smart_region *region = &bench->node->region;
	struct smart_region_header *header = smart_region_header(region);

	for (uint32_t i = smart_record_next(region, 0); i != 0; i = smart_record_next(region, i))
	{
		struct smart_record *record = smart_record_at(region, i);

		fill(bench, &record->next, sizeof(record->next));
		fill(bench, &record->pages, 2 * sizeof(uint64_t));
		fill(bench, &record->queue_head, offsetof(struct smart_record, dropped) - 192);
	}
	if (header->buckets_page != 0)
		fill(bench, smart_page_memory(region, header->buckets_page), 4 * SMART_PAGE_BYTES);
	fill(bench, &header->free_record, 2 * sizeof(uint32_t)); /* and trees */
}

static void
damage_extent_map(struct bench *bench)
{
	struct smart_region *extents = &bench->node->region;
	struct smart_region_header *header = smart_region_header(extents);

	fill(bench, &header->blocks, sizeof(header->blocks));
	fill(bench, &header->unused_chunk, 3 * sizeof(uint32_t)); /* unused_chunk, empty_chunks, map_reserve */
	header->growing = true;
	header->growing_node = 1;
	for (unsigned int i = 0; i < NODES; i++)
	{
		struct smart_extents_node *entry = smart_extents_node_at(extents, i);
		const uint32_t *pages = smart_page_memory(extents, entry->map);

		fill(bench, &entry->chunks, 16 + sizeof(uint64_t)); /* to pages_used */
		for (unsigned int j = 0; entry->map != 0 && j < SMART_PLACES_A_PAGE; j++)
			if (pages[j] != 0)
				fill(bench, smart_page_memory(extents, pages[j]), SMART_PAGE_BYTES);
	}
}

static void
damage(struct bench *bench)
{
	struct smart_region *region = &bench->node->region;
	struct smart_region_header *header = smart_region_header(region);

	for (uint32_t i = 0; i < header->home.chunks; i++)
		damage_chunk(bench, i);
	for (uint32_t i = SMART_HOME_CHUNKS; i < remote_end(bench); i++)
		damage_chunk(bench, i);
	damage_records(bench);
	fill(bench, header->home.list, sizeof(header->home.list) + sizeof(uint32_t)); /* and used */
	if (region->extents)
		damage_extent_map(bench);
}

/* ---- what has to be true ---- */

static uint64_t
blocks_in(const struct bench *bench, uint32_t chunk)
{
	const struct smart_region *region = &bench->node->region;
	uint64_t blocks = 0;

	for (unsigned int i = smart_chunk_first_page(region, chunk); i < SMART_CHUNK_PAGES; i++)
	{
		const struct smart_slab *slab = smart_slab_at(region, chunk * SMART_CHUNK_PAGES + i);

		if (slab->record != 0)
			blocks += slab->blocks - (unsigned int) __builtin_popcountll(slab->free | slab->retired);
	}
	return blocks;
}

/* Blocks that are in use, as the slabs have it. */
static uint64_t
blocks_in_use(const struct bench *bench)
{
	uint64_t blocks = 0;

	for (uint32_t i = 0; i < smart_region_header(&bench->node->region)->home.chunks; i++)
		blocks += blocks_in(bench, i);
	for (uint32_t i = SMART_HOME_CHUNKS; i < remote_end(bench); i++)
		blocks += blocks_in(bench, i);
	return blocks;
}

static bool
is_present(void *argument, const uint8_t *entry, size_t length)
{
	uint64_t *found = argument;

	CHECK(length == 8);
	++*found;
	return true;
}

/* Checks a tree; its blocks. */
static uint64_t
check_tree(struct bench *bench, unsigned int which)
{
	struct smart_tree *tree = open_tree(bench, which);
	struct smart_verify_report report;
	uint64_t found = 0;
	uint64_t expected = 0;
	uint64_t blocks;
	uint8_t bytes[8];
	char message[200] = "";
	bool there;

	if (!CHECK(smart_tree_verify(tree, is_present, &found, &report, message, sizeof(message)) == SMART_OK))
		fprintf(stderr, "%s\n", message);
	for (unsigned int key = 0; key < KEYS; key++)
	{
		make_key(key, bytes);
		CHECK(smart_tree_lookup(tree, bytes, 8, &there) == SMART_OK && there == bench->present[which][key]);
		expected += bench->present[which][key];
	}
	CHECK(found == expected);
	blocks = report.leaves;
	for (unsigned int kind = 1; kind <= SMART_NODE_KINDS; kind++)
		blocks += report.nodes[kind];
	smart_tree_close(tree);
	return blocks;
}

static void
whole(struct bench *bench)
{
	char message[200] = "";

	if (!CHECK(smart_space_verify(bench->space, message, sizeof(message)) == SMART_OK))
		fprintf(stderr, "%s\n", message);
}

/* Everything is as it should be after a recovery: no block is lost, none has two purposes. */
static void
check_all(struct bench *bench, const struct smart_recovery *recovery, unsigned int trees)
{
	uint64_t blocks = 0;

	CHECK(recovery->message[0] == '\0' && recovery->trees == trees && recovery->lost == 0);
	whole(bench);
	for (unsigned int i = 0; i < TREES; i++)
		blocks += check_tree(bench, i);
	CHECK(blocks == recovery->nodes + recovery->leaves && blocks == blocks_in_use(bench));
	for (unsigned int i = 0; i < TREES; i++)
	{
		change(bench, i, KEYS);
		(void) check_tree(bench, i);
	}
	whole(bench);
}

/* ---- tests ---- */

static void
count_progress(void *argument, uint64_t done, uint64_t total)
{
	uint64_t *last = argument;

	CHECK(done > *last);
	*last = done;
}

/* All that is made anew is garbage; blocks that no slot leads to and retired ones are lost until then. */
static void
test_anew(bool extents, uint64_t seed)
{
	struct bench *bench = open_bench(extents, seed);
	struct smart_recovery recovery;
	struct smart_tree_info info;
	fabric_address block;
	uint64_t last = 0;

	for (unsigned int i = 0; i < 500; i++)
		CHECK(smart_space_allocate(bench->space, bench->id[i % TREES], (smart_class) (i % 8 + 1), &block) == SMART_OK);
	crash(bench);
	damage(bench);
	memset(&recovery, 0, sizeof(recovery));
	recovery.progress = count_progress;
	recovery.argument = &last;
	CHECK(smart_space_recover(bench->space, bench->client->client->fabric, bench->client->client->env, &recovery) ==
		  SMART_OK);
	CHECK(last == recovery.used_pages && recovery.used_pages > 0);
	check_all(bench, &recovery, TREES);
	CHECK(smart_space_tree_info(bench->space, bench->id[2], &info) &&
		  memcmp(&info.owner, &no_owner, sizeof(no_owner)) == 0);
	close_bench(bench);
}

/* What was lost is counted, and there again. */
static void
test_gain(bool extents)
{
	struct bench *bench = open_bench(extents, 5);
	struct smart_recovery recovery;
	struct smart_space_usage before;
	struct smart_space_usage after;
	fabric_address block;

	for (unsigned int i = 0; i < 100; i++)
		CHECK(smart_space_allocate(bench->space, bench->id[0], SMART_CLASS_LEAF(64), &block) == SMART_OK);
	smart_space_usage(bench->space, &before);
	crash(bench);
	CHECK(recover(bench, &recovery) == SMART_OK);
	smart_space_usage(bench->space, &after);
	CHECK(recovery.gained >= 100 && recovery.gained * SMART_PAGE_BYTES == before.used - after.used);
	crash(bench);
	CHECK(recover(bench, &recovery) == SMART_OK && recovery.gained == 0);
	check_all(bench, &recovery, TREES);
	close_bench(bench);
}

/* Trees that were being made or dropped. */
static void
test_half_trees(bool extents)
{
	struct bench *bench = open_bench(extents, 6);
	struct smart_region_header *header = smart_region_header(&bench->node->region);
	struct smart_recovery recovery;
	struct smart_tree_info info;
	fabric_address root;
	uint64_t dropped;
	uint64_t unnamed;
	uint32_t number;

	CHECK(smart_space_create_tree(bench->space, &no_owner, &dropped, &root) == SMART_OK);
	/* One more than fill a page of records. */
	CHECK(smart_space_create_tree(bench->space, &no_owner, &unnamed, &root) == SMART_OK);
	CHECK(smart_space_create_tree(bench->space, &no_owner, &unnamed, &root) == SMART_OK);
	CHECK(smart_space_allocate(bench->space, dropped, SMART_CLASS_LEAF(9), &root) == SMART_OK);
	/* Dropping had taken the id away; making had not given it yet. */
	smart_record_at(&bench->node->region, smart_record_find(bench->space, dropped))->id = 0;
	number = header->free_record;
	header->free_record = smart_record_at(&bench->node->region, number)->next;
	header->last_tree++;
	crash(bench);
	damage(bench);
	CHECK(recover(bench, &recovery) == SMART_OK);
	CHECK(!smart_space_find_tree(bench->space, dropped, &root));
	CHECK(smart_space_find_tree(bench->space, unnamed, &root));
	CHECK(smart_space_tree_info(bench->space, unnamed, &info) && info.slabs == 0);
	check_all(bench, &recovery, TREES + 2);
	CHECK(smart_space_drop_tree(bench->space, unnamed));
	whole(bench);
	/* A new tree has a new id. */
	CHECK(smart_space_create_tree(bench->space, &no_owner, &dropped, &root) == SMART_OK && dropped != unnamed + 1);
	close_bench(bench);
}

static void
test_kept(bool extents)
{
	struct bench *bench = open_bench(extents, 7);
	struct smart_region *region = &bench->node->region;
	struct smart_recovery recovery;
	uint8_t *piece;
	uint8_t *other;

	CHECK(smart_segment(region, 3) == NULL);
	CHECK(smart_space_segment(bench->space, 3) == SMART_OK);
	piece = smart_segment(region, 3);
	CHECK(piece != NULL && smart_segment(region, 2) == NULL);
	for (unsigned int i = 0; i < SMART_SEGMENT_BYTES; i++)
		CHECK(piece[i] == 0);
	memset(piece, 0xa5, SMART_SEGMENT_BYTES);
	CHECK(smart_space_segment(bench->space, 3) == SMART_OK && smart_segment(region, 3) == piece && piece[0] == 0xa5);
	CHECK(smart_space_segment(bench->space, SMART_SEGMENT_MAX - 1) == SMART_OK);
	whole(bench);
	crash(bench);
	damage(bench);
	CHECK(recover(bench, &recovery) == SMART_OK);
	CHECK(smart_segment(region, 3) == piece && smart_segment(region, SMART_SEGMENT_MAX - 1) != NULL);
	CHECK(smart_space_segment(bench->space, 4) == SMART_OK);
	other = smart_segment(region, 4);
	for (unsigned int i = 0; i < SMART_SEGMENT_BYTES; i++)
		CHECK(other[i] == 0);
	check_all(bench, &recovery, TREES);
	for (unsigned int i = 0; i < SMART_SEGMENT_BYTES; i++)
		CHECK(piece[i] == 0xa5);
	close_bench(bench);
}

/* Interrupted, out of memory, killed: the next call does it all. */
static void
test_again(bool extents)
{
	struct bench *bench = open_bench(extents, 8);
	struct smart_recovery recovery;

	crash(bench);
	damage(bench);
	bench->client->thread.stop = true;
	CHECK(recover(bench, &recovery) == SMART_INTERRUPTED);
	bench->client->thread.stop = false;
	bench->client->thread.fail_one_in = 1;
	CHECK(recover(bench, &recovery) == SMART_NO_MEMORY);
	bench->client->thread.fail_one_in = 0;
	crash(bench);
	CHECK(recover(bench, &recovery) == SMART_OK);
	check_all(bench, &recovery, TREES);
	close_bench(bench);
}

/* Words that no operation of ours can have written. */
static void
test_corrupt(bool extents)
{
	struct bench *bench = open_bench(extents, 9);
	struct smart_recovery recovery;
	fabric_address first = 0;
	fabric_address second = 0;
	uint64_t *word;
	uint64_t old;

	CHECK(smart_space_find_tree(bench->space, bench->id[0], &first));
	CHECK(smart_space_find_tree(bench->space, bench->id[1], &second));
	crash(bench);
	/* Two trees with one root node; a node of no kind; a root that leads out of the region; a node that is dead. */
	word = test_node_at(bench->node, second);
	old = *word;
	*word = *(uint64_t *) test_node_at(bench->node, first);
	CHECK(recover(bench, &recovery) == SMART_CORRUPT && recovery.message[0] != '\0');
	*word = smart_slot_address(old) | UINT64_C(7) << SMART_SLOT_SIZE_SHIFT;
	CHECK(recover(bench, &recovery) == SMART_CORRUPT && recovery.message[0] != '\0');
	*word = smart_slot_with_pk(smart_slot_make_leaf(0, 3, fabric_make_address(0, UINT64_C(1) << 39)), 0);
	CHECK(recover(bench, &recovery) == SMART_CORRUPT && recovery.message[0] != '\0');
	*word = old;
	word = test_node_at(bench->node, smart_slot_address(old));
	*word = smart_node_with_state(*word, SMART_DEAD);
	CHECK(recover(bench, &recovery) == SMART_CORRUPT && recovery.message[0] != '\0');
	*word = smart_node_with_state(*word, SMART_LIVE);
	CHECK(recover(bench, &recovery) == SMART_OK);
	check_all(bench, &recovery, TREES);
	close_bench(bench);
}

/* A recovery that passes something over does not go unnoticed by check_all's count. */
static void
test_control(bool extents)
{
	struct bench *bench = open_bench(extents, 10);
	struct smart_recovery recovery;
	uint64_t blocks = 0;

	crash(bench);
	smart_fault_active = SMART_FAULT_missmark;
	CHECK(recover(bench, &recovery) == SMART_OK);
	smart_fault_active = SMART_FAULT_none;
	for (unsigned int i = 0; i < TREES; i++)
		blocks += check_tree(bench, i);
	CHECK(blocks > recovery.nodes + recovery.leaves && blocks > blocks_in_use(bench));
	CHECK(recover(bench, &recovery) == SMART_OK);
	check_all(bench, &recovery, TREES);
	close_bench(bench);
}

int
main(void)
{
	for (int extents = 0; extents <= 1; extents++)
	{
		for (uint64_t seed = 1; seed <= 3; seed++)
			test_anew(extents, seed);
		test_gain(extents);
		test_half_trees(extents);
		test_kept(extents);
		test_again(extents);
		test_corrupt(extents);
		test_control(extents);
	}
	return check_finish();
}

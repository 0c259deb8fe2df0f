/*
 * trees.c
 *	  The directory of trees.
 *
 * Records and root slots are found again after a restart; the hash table, the
 * list of free records and the maps of free root slots are made from them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tree/layout.h"
#include "trees.h"

#define ROOTS_A_CHUNK (WIRE_CHUNK_BYTES / MEMNODE_ROOT_BYTES)
#define LIST_RECORDS  (1u << 16) /* looked at in one go */

/* Which root slots of a chunk are taken. */
struct memnode_root_chunk
{
	struct memnode_root_chunk *next;
	uint32_t chunk;
	uint32_t used;
	uint64_t taken[ROOTS_A_CHUNK / 64];
};

static uint32_t
bucket_of(const struct memnode_trees *trees, uint32_t owner, uint64_t id)
{
	/* Fibonacci hashing; the high bits are the mixed ones. */
	uint64_t mixed = (id + owner * UINT64_C(0xff51afd7ed558ccd)) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t) ((mixed >> 32) % trees->region->tree_count);
}

/* ---- root slots ---- */

static struct memnode_root_chunk *
add_root_chunk(struct memnode_trees *trees, uint32_t owner, uint32_t chunk)
{
	struct memnode_root_chunk *roots = calloc(1, sizeof(*roots));

	smart_assert(trees->region->chunks[chunk] == memnode_chunk_word(MEMNODE_CHUNK_ROOTS, owner));
	if (roots == NULL)
		return NULL;
	roots->chunk = chunk;
	roots->next = trees->roots[owner];
	trees->roots[owner] = roots;
	return roots;
}

static struct memnode_root_chunk *
root_chunk_of(const struct memnode_trees *trees, uint32_t owner, uint64_t root)
{
	struct memnode_root_chunk *roots = trees->roots[owner];

	while (roots->chunk != root / WIRE_CHUNK_BYTES)
		roots = roots->next;
	return roots;
}

static uint64_t
take_root(struct memnode_root_chunk *roots)
{
	unsigned int word = 0;
	unsigned int bit;

	smart_assert(roots->used < ROOTS_A_CHUNK);
	while (roots->taken[word] == UINT64_MAX)
		word++;
	smart_assert(word < ROOTS_A_CHUNK / 64);
	bit = (unsigned int) __builtin_ctzll(~roots->taken[word]);
	roots->taken[word] |= UINT64_C(1) << bit;
	roots->used++;
	return (uint64_t) roots->chunk * WIRE_CHUNK_BYTES + (uint64_t) (word * 64 + bit) * MEMNODE_ROOT_BYTES;
}

/* Gives a chunk of roots back that has none; *link leads to it. */
static void
give_root_chunk(struct memnode_trees *trees, uint32_t owner, struct memnode_root_chunk **link)
{
	struct memnode_root_chunk *roots = *link;
	bool given;

	smart_assert(roots->used == 0);
	*link = roots->next;
	given = memnode_chunks_give(trees->chunks, owner, MEMNODE_CHUNK_ROOTS, roots->chunk);
	smart_assert(given);
	(void) given;
	free(roots);
}

static void
give_root(struct memnode_trees *trees, uint32_t owner, uint64_t root)
{
	struct memnode_root_chunk *roots = root_chunk_of(trees, owner, root);
	uint64_t number = root % WIRE_CHUNK_BYTES / MEMNODE_ROOT_BYTES;
	struct memnode_root_chunk **link = &trees->roots[owner];

	smart_assert(roots->used > 0 && (roots->taken[number / 64] >> (number % 64) & 1) != 0);
	roots->taken[number / 64] &= ~(UINT64_C(1) << (number % 64));
	if (--roots->used > 0)
		return;
	while (*link != roots)
		link = &(*link)->next;
	give_root_chunk(trees, owner, link);
}

static smart_status
find_free_root(struct memnode_trees *trees, uint32_t owner, uint64_t *root)
{
	struct memnode_root_chunk *roots = trees->roots[owner];
	uint32_t chunk;
	bool cleared;

	while (roots != NULL && roots->used == ROOTS_A_CHUNK)
		roots = roots->next;
	if (roots == NULL)
	{
		chunk = memnode_chunks_take(trees->chunks, owner, MEMNODE_CHUNK_ROOTS, &cleared);
		if (chunk == 0)
			return SMART_NO_SPACE;
		roots = add_root_chunk(trees, owner, chunk);
		if (roots == NULL)
		{
			memnode_chunks_give(trees->chunks, owner, MEMNODE_CHUNK_ROOTS, chunk);
			return SMART_NO_MEMORY;
		}
	}
	*root = take_root(roots);
	return SMART_OK;
}

/* ---- opening ---- */

static bool
adopt_tree(struct memnode_trees *trees, uint32_t number)
{
	const struct memnode_tree_record *record = &trees->region->trees[number];
	uint32_t bucket = bucket_of(trees, record->owner, record->id);
	struct memnode_root_chunk *roots = root_chunk_of(trees, record->owner, record->root);
	uint64_t place = record->root % WIRE_CHUNK_BYTES / MEMNODE_ROOT_BYTES;

	smart_assert(number < trees->region->tree_count);
	if ((roots->taken[place / 64] >> (place % 64) & 1) != 0 ||
		memnode_trees_find(trees, record->owner, record->id) != NULL)
		return false;
	roots->taken[place / 64] |= UINT64_C(1) << (place % 64);
	roots->used++;
	trees->next[number] = trees->bucket[bucket];
	trees->bucket[bucket] = number + 1;
	trees->own[record->owner]++;
	trees->count++;
	return true;
}

smart_status
memnode_trees_open(struct memnode_trees *trees, struct memnode_region *region, struct memnode_chunks *chunks)
{
	smart_status status = SMART_OK;

	memset(trees, 0, sizeof(*trees));
	trees->region = region;
	trees->chunks = chunks;
	trees->bucket = calloc(region->tree_count, sizeof(*trees->bucket));
	trees->next = calloc(region->tree_count, sizeof(*trees->next));
	if (trees->bucket == NULL || trees->next == NULL)
		status = SMART_NO_MEMORY;
	for (uint32_t chunk = region->first_chunk; chunk < region->chunk_count && status == SMART_OK; chunk++)
	{
		uint32_t word = region->chunks[chunk];

		if (memnode_chunk_use(word) == MEMNODE_CHUNK_ROOTS &&
			add_root_chunk(trees, memnode_chunk_owner(word), chunk) == NULL)
			status = SMART_NO_MEMORY;
	}
	/* Downwards, so that the list of free records begins with the lowest. */
	for (uint32_t number = region->tree_count; number-- > 0 && status == SMART_OK;)
	{
		if (region->trees[number].used == 0)
		{
			trees->next[number] = trees->free_record;
			trees->free_record = number + 1;
		}
		else if (!adopt_tree(trees, number))
			status = SMART_CORRUPT;
	}
	if (status != SMART_OK)
	{
		memnode_trees_close(trees);
		return status;
	}
	smart_assert(trees->count <= region->tree_count);
	for (uint32_t owner = 0; owner < MEMNODE_OWNERS; owner++)
	{
		struct memnode_root_chunk **link = &trees->roots[owner];

		while (*link != NULL)
		{
			if ((*link)->used > 0)
				link = &(*link)->next;
			else
				give_root_chunk(trees, owner, link);
		}
		smart_assert((trees->own[owner] == 0) == (trees->roots[owner] == NULL));
	}
	return SMART_OK;
}

static void
forget_root_chunks(struct memnode_trees *trees, uint32_t owner)
{
	while (trees->roots[owner] != NULL)
	{
		struct memnode_root_chunk *roots = trees->roots[owner];

		trees->roots[owner] = roots->next;
		free(roots);
	}
}

void
memnode_trees_close(struct memnode_trees *trees)
{
	for (uint32_t owner = 0; owner < MEMNODE_OWNERS; owner++)
		forget_root_chunks(trees, owner);
	free(trees->bucket);
	free(trees->next);
	trees->bucket = trees->next = NULL;
}

/* ---- trees ---- */

const struct memnode_tree_record *
memnode_trees_find(const struct memnode_trees *trees, uint32_t owner, uint64_t id)
{
	uint32_t number = trees->bucket[bucket_of(trees, owner, id)];

	for (; number != 0; number = trees->next[number - 1])
	{
		const struct memnode_tree_record *record = &trees->region->trees[number - 1];

		if (record->id == id && record->owner == owner)
			return record;
	}
	return NULL;
}

smart_status
memnode_trees_make(struct memnode_trees *trees, uint32_t owner, uint64_t id,
				   const uint8_t description[WIRE_OWNER_BYTES], const struct memnode_tree_record **tree)
{
	uint32_t number = trees->free_record;
	uint32_t bucket = bucket_of(trees, owner, id);
	struct memnode_tree_record *record;
	uint64_t *root;
	smart_status status;

	smart_assert(owner < MEMNODE_OWNERS);
	smart_assert(memnode_trees_find(trees, owner, id) == NULL);
	if (number == 0)
		return SMART_NO_SPACE;
	record = &trees->region->trees[number - 1];
	smart_assert(record->used == 0);
	status = find_free_root(trees, owner, &record->root);
	if (status != SMART_OK)
		return status;
	smart_assert(trees->region->chunks[record->root / WIRE_CHUNK_BYTES] ==
				 memnode_chunk_word(MEMNODE_CHUNK_ROOTS, owner));
	root = (uint64_t *) (trees->region->base + record->root);
	memset(root, 0, MEMNODE_ROOT_BYTES);
	*root = smart_slot_make_empty(0, 255);
	record->id = id;
	record->owner = owner;
	memcpy(record->description, description, WIRE_OWNER_BYTES);
	/* Release: for the process that adopts the region after this one. */
	__atomic_store_n(&record->used, 1, __ATOMIC_RELEASE);
	trees->free_record = trees->next[number - 1];
	trees->next[number - 1] = trees->bucket[bucket];
	trees->bucket[bucket] = number;
	trees->own[owner]++;
	trees->count++;
	smart_assert(memnode_trees_find(trees, owner, id) == record && trees->count <= trees->region->tree_count);
	*tree = record;
	return SMART_OK;
}

/* Takes a record, which is in its bucket, out of use. */
static void
forget(struct memnode_trees *trees, uint32_t number)
{
	struct memnode_tree_record *record = &trees->region->trees[number - 1];
	uint32_t *link = &trees->bucket[bucket_of(trees, record->owner, record->id)];

	smart_assert(record->used == 1 && trees->count > 0 && trees->own[record->owner] > 0);
	__atomic_store_n(&record->used, 0, __ATOMIC_RELEASE);
	while (*link != number)
		link = &trees->next[*link - 1];
	*link = trees->next[number - 1];
	trees->next[number - 1] = trees->free_record;
	trees->free_record = number;
	trees->own[record->owner]--;
	trees->count--;
}

bool
memnode_trees_drop(struct memnode_trees *trees, uint32_t owner, uint64_t id)
{
	const struct memnode_tree_record *record = memnode_trees_find(trees, owner, id);

	if (record == NULL)
		return false;
	forget(trees, (uint32_t) (record - trees->region->trees) + 1);
	give_root(trees, owner, record->root);
	smart_assert(memnode_trees_find(trees, owner, id) == NULL);
	return true;
}

void
memnode_trees_drop_all(struct memnode_trees *trees, uint32_t owner)
{
	smart_assert(owner < MEMNODE_OWNERS);
	for (uint32_t number = 1; number <= trees->region->tree_count && trees->own[owner] > 0; number++)
	{
		const struct memnode_tree_record *record = &trees->region->trees[number - 1];

		if (record->used != 0 && record->owner == owner)
			forget(trees, number);
	}
	smart_assert(trees->own[owner] == 0);
	forget_root_chunks(trees, owner);
	smart_assert(trees->roots[owner] == NULL);
}

uint32_t
memnode_trees_list(const struct memnode_trees *trees, uint32_t owner, uint64_t *cursor, struct wire_tree *list)
{
	uint64_t number = *cursor;
	uint64_t end = trees->region->tree_count;
	uint32_t count = 0;

	if (number >= end)
	{
		*cursor = 0;
		return 0;
	}
	if (end - number > LIST_RECORDS)
		end = number + LIST_RECORDS;
	for (; number < end && count < WIRE_LIST_MAX; number++)
	{
		const struct memnode_tree_record *record = &trees->region->trees[number];

		if (record->used == 0 || record->owner != owner)
			continue;
		list[count].id = record->id;
		list[count].root = record->root;
		memcpy(list[count++].description, record->description, WIRE_OWNER_BYTES);
	}
	smart_assert(number > *cursor && count <= WIRE_LIST_MAX);
	*cursor = number < trees->region->tree_count ? number : 0;
	return count;
}

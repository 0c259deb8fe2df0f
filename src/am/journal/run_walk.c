/*
 * run_walk.c
 *	  Which pages a run has: by its fence pages, without reading the pages themselves.
 *
 * On each level one fence page is open, and in it one child.  The first separator of a fence page may be cut off (page.h);
 * the whole one stands above it.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "am/journal/read_page.h"
#include "am/journal/run_walk.h"
#include "base/assert.h"
#include "base/bytes.h"

struct level
{
	bool open;
	uint32 child; /* how many have been found on the page */
	struct smart_groups groups;
	struct smart_unpacker unpacker;
	PGAlignedBlock page;
};

struct smart_run_walk
{
	struct smart_reader reader;
	uint32 pages;
	BlockNumber root;
	uint32 levels; /* 0: the root has not been read */
	struct level *level[SMART_FENCE_LEVELS];
};

struct smart_run_walk *
smart_run_walk_begin(Relation index, const struct smart_meta *meta)
{
	struct smart_run_walk *walk = palloc(sizeof(*walk));

	smart_reader_begin_run(&walk->reader, index, meta, false);
	walk->pages = meta->run_pages;
	walk->root = meta->run_root;
	walk->levels = 0;
	return walk;
}

void
smart_run_walk_end(struct smart_run_walk *walk)
{
	smart_assert(walk->levels <= SMART_FENCE_LEVELS);
	for (uint32 i = 0; i < walk->levels; i++)
		pfree(walk->level[i]);
	pfree(walk);
}

/* Opens a page on this level, which counts from 1 on; 0: it is the root, and says so itself. */
static enum smart_found
open_page(struct smart_run_walk *walk, BlockNumber block, uint32 level)
{
	uint32 is_on;
	enum smart_found found = smart_reader_open_fence(&walk->reader, block, &is_on);
	struct level *self;

	smart_assert(level == 0 ? walk->levels == 0 : level <= walk->levels);
	if (found != SMART_FOUND)
		return found;
	if (is_on == 0 || is_on > SMART_FENCE_LEVELS || (level > 0 && is_on != level))
		smart_reader_report(&walk->reader, "is not on the level that it should be on");
	if (level == 0)
	{
		for (; walk->levels < is_on; walk->levels++)
		{
			walk->level[walk->levels] = palloc(sizeof(struct level));
			walk->level[walk->levels]->open = false;
		}
	}
	smart_assert(is_on <= walk->levels);
	self = walk->level[is_on - 1];
	memcpy(self->page.data, walk->reader.page.data, BLCKSZ);
	if (!smart_run_page_open_sound(self->page.data, &self->groups))
		smart_reader_report(&walk->reader, "has no groups");
	smart_groups_rewind(&self->groups, &self->unpacker);
	self->open = true;
	self->child = 0;
	return SMART_FOUND;
}

/* Goes on to the next child on this level. */
static enum smart_found
next_child(struct smart_run_walk *walk, uint32 level, BlockNumber *block)
{
	struct level *self = walk->level[level - 1];

	smart_assert(level > 0 && level <= walk->levels);
	while (!self->open || !smart_groups_next(&self->groups, &self->unpacker))
	{
		enum smart_found found;
		BlockNumber child;

		if (self->open && self->unpacker.at != self->groups.end)
			smart_reader_report(&walk->reader, "holds what is no separator");
		if (level == walk->levels)
			return SMART_FOUND_END;
		found = next_child(walk, level + 1, &child);
		if (found == SMART_FOUND)
			found = open_page(walk, child, level);
		if (found != SMART_FOUND)
			return found;
	}
	if (self->unpacker.length <= SMART_FENCE_SUFFIX || self->unpacker.length > SMART_KEY_MAX + SMART_FENCE_SUFFIX)
		smart_reader_report(&walk->reader, "holds what is no separator");
	*block = smart_load_be32(self->unpacker.entry + self->unpacker.length - SMART_FENCE_SUFFIX);
	self->child++;
	return SMART_FOUND;
}

/* What stands in front of the current child: where it is whole. */
static void
get_separator(const struct smart_run_walk *walk, struct smart_run_place *page)
{
	uint32 level = 1;
	const struct smart_unpacker *unpacker;

	smart_assert(walk->levels > 0 && walk->level[0]->child > 0);
	while (level < walk->levels && walk->level[level - 1]->child == 1)
		level++;
	unpacker = &walk->level[level - 1]->unpacker;
	page->length = unpacker->length - SMART_FENCE_SUFFIX;
	smart_assert(page->length > 0 && page->length <= SMART_KEY_MAX);
	memcpy(page->separator, unpacker->entry, (Size) page->length);
}

enum smart_found
smart_run_walk_next(struct smart_run_walk *walk, struct smart_run_place *page)
{
	enum smart_found found = SMART_FOUND;

	if (walk->pages <= 1)
	{
		page->block = walk->root;
		page->length = 0;
		found = walk->pages == 1 ? SMART_FOUND : SMART_FOUND_END;
		walk->pages = 0;
		return found;
	}
	if (walk->levels == 0)
	{
		found = open_page(walk, walk->root, 0);
		if (found != SMART_FOUND)
			return found;
	}
	found = next_child(walk, 1, &page->block);
	if (found == SMART_FOUND)
		get_separator(walk, page);
	return found;
}

struct smart_run_map *
smart_run_map_make(Relation index, const struct smart_meta *meta)
{
	BlockNumber blocks = RelationGetNumberOfBlocks(index);
	struct smart_run_map *map =
		MemoryContextAllocExtended(CurrentMemoryContext, offsetof(struct smart_run_map, bits) + blocks / 8 + 1,
								   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	struct smart_run_walk *walk = smart_run_walk_begin(index, meta);
	struct smart_run_place page;
	enum smart_found found;

	map->blocks = blocks;
	while ((found = smart_run_walk_next(walk, &page)) == SMART_FOUND)
	{
		CHECK_FOR_INTERRUPTS();
		if (page.block >= blocks)
			smart_reader_report(&walk->reader, "leads behind the end of the file");
		map->bits[page.block / 8] |= (uint8) (1 << page.block % 8);
	}
	smart_run_walk_end(walk);
	if (found == SMART_FOUND_END)
		return map;
	pfree(map);
	return NULL;
}

/*
 * read_run.c
 *	  Reading a journal: the entries of its run, in order, and by their keys.
 *
 * Which page comes next the fence pages tell.  A reader knows those that have led it to its page, and lists the children of one of
 * them at a time.
 */
#include "postgres.h"

#include "utils/rel.h"

#include "am/compat.h"
#include "am/index/recent.h"
#include "am/journal/known.h"
#include "am/journal/read_page.h"
#include "base/assert.h"
#include "base/bytes.h"

#define UNPACKED_MAX 16 /* entries: as many are unpacked before a key is searched from above */

/* ---- entries ---- */

void
smart_reader_begin_run(struct smart_reader *reader, Relation index, const struct smart_meta *meta, bool bulk)
{
	smart_reader_begin(reader, index, meta->journal, meta->run, meta->run == 0 ? InvalidBlockNumber : meta->run_root,
					   bulk);
	reader->least = meta->run_kept;
	reader->expected_pages = meta->run_pages;
	reader->root = meta->run_root;
	reader->expected_entries = meta->run_entries;
}

void
smart_reader_check_all(const struct smart_reader *reader, uint32 skipped)
{
	if (reader->pages + skipped == reader->expected_pages &&
		(skipped > 0 ? reader->entries <= reader->expected_entries : reader->entries == reader->expected_entries))
		return;
	ereport(ERROR, errcode(ERRCODE_INDEX_CORRUPTED),
			errmsg("the journal of index \"%s\" is damaged", RelationGetRelationName(reader->index)),
			errdetail_internal("Its run has " UINT64_FORMAT " entries on %u pages instead of " UINT64_FORMAT " on %u.",
							   reader->entries, reader->pages, reader->expected_entries, reader->expected_pages),
			smart_hint_reindex(reader->index));
}

/* Reads and opens the run page or fence page where the reader is; *position: of its head. */
static enum smart_found
open_page(struct smart_reader *reader, enum smart_page_kind kind, uint32 *position)
{
	enum smart_found found = smart_reader_load_page(reader, kind);

	if (found != SMART_FOUND)
		return found;
	if (!smart_run_page_open(reader->page.data, &reader->groups))
		smart_reader_report(reader, "has a wrong checksum");
	*position = smart_page_head(reader->page.data)->position;
	return SMART_FOUND;
}

/* Reads and opens the run page where the reader is. */
static enum smart_found
open_run_page(struct smart_reader *reader)
{
	uint32 position;
	enum smart_found found = open_page(reader, SMART_PAGE_RUN, &position);

	if (found != SMART_FOUND)
		return found;
	smart_groups_rewind(&reader->groups, &reader->unpacker);
	reader->pages++;
	return SMART_FOUND;
}

/* Of the page one group is there, which has been read, and it has more. */
static bool
has_groups_left(const struct smart_reader *reader)
{
	return reader->only_group && reader->unpacker.at == reader->unpacker.end &&
		   reader->groups.group + 1 < reader->groups.count;
}

/* Copies all of the page of whose entries one group is there. */
static enum smart_found
load_groups(struct smart_reader *reader)
{
	uint32 group = reader->groups.group;
	uint32 position;
	enum smart_found found;

	smart_assert(reader->only_group && group < reader->groups.count);
	found = open_page(reader, SMART_PAGE_RUN, &position);
	reader->groups.group = group;
	return found;
}

/* Mostly there is one more in the group that is being read. */
static inline bool
next_of_group(struct smart_reader *reader)
{
	if (!reader->loaded || !smart_unpacker_next(&reader->unpacker))
		return false;
	reader->entries++;
	return true;
}

enum smart_found
smart_reader_next_of_page(struct smart_reader *reader)
{
	if (next_of_group(reader))
		return SMART_FOUND;
	if (!reader->loaded)
	{
		enum smart_found found = open_run_page(reader);

		if (found != SMART_FOUND)
			return found;
	}
	for (;;)
	{
		enum smart_found found;

		if (reader->only_group ? smart_unpacker_next(&reader->unpacker)
							   : smart_groups_next(&reader->groups, &reader->unpacker))
		{
			reader->entries++;
			return SMART_FOUND;
		}
		if (!has_groups_left(reader))
			break;
		found = load_groups(reader);
		if (found != SMART_FOUND)
			return found;
	}
	if (reader->unpacker.at != reader->groups.end)
		smart_reader_report(reader, "holds what is no entry");
	return SMART_FOUND_END;
}

void
smart_reader_go_to(struct smart_reader *reader, BlockNumber block, bool ahead)
{
	smart_assert(reader->reaches == 0);
	reader->sought = true;
	reader->ahead = ahead;
	reader->block = block;
	reader->loaded = false;
}

/* ---- the way down ---- */

static struct smart_page_name
name_of_page(const struct smart_reader *reader)
{
	return (struct smart_page_name){.journal = reader->journal,
									.run = reader->number,
									.tablespace = smart_relation_tablespace(reader->index),
									.file = smart_relation_file(reader->index),
									.block = reader->block};
}

/* Opens the fence page where the reader is, unless it is known. */
static enum smart_found
open_fence(struct smart_reader *reader, uint32 *level, struct smart_groups **groups)
{
	const struct smart_page_name name = name_of_page(reader);
	enum smart_found found;

	*groups = smart_known_fence(&name, level);
	if (*groups != NULL)
		return SMART_FOUND;
	found = open_page(reader, SMART_PAGE_FENCE, level);
	if (found != SMART_FOUND)
		return found;
	*groups = &reader->groups;
	if (*level > 0)
		smart_known_keep_fence(&name, reader->page.data, *level);
	return SMART_FOUND;
}

/* Can the fence page where the reader is be had without reading the file? */
static bool
is_fence_near(const struct smart_reader *reader)
{
	const struct smart_page_name name = name_of_page(reader);
	uint32 level;

	return smart_known_fence(&name, &level) != NULL || smart_page_is_buffered(reader->index, reader->block);
}

/* Goes down to the run page that would have the key.  near: by pages that are near alone; SMART_FOUND_END: one is not. */
static enum smart_found
descend(struct smart_reader *reader, const uint8 *key, int length, bool near)
{
	uint8 block[SMART_FENCE_SUFFIX];
	uint32 expected = 0; /* level of the page; 0: the root says how many there are */
	uint32 level = reader->expected_pages > 1;

	reader->begun = true;
	reader->levels = 0;
	reader->block = reader->root;
	for (; level > 0; expected = level)
	{
		struct smart_groups *groups;
		enum smart_found found;

		if (near && !is_fence_near(reader))
			return SMART_FOUND_END;
		found = open_fence(reader, &level, &groups);
		reader->loaded = false;
		if (found != SMART_FOUND)
			return found;
		if (level == 0 || level > SMART_FENCE_LEVELS || (expected > 0 && level != expected))
			smart_reader_report(reader, "is not on the level that it should be on");
		if (!smart_groups_floor(groups, key, length, &reader->unpacker, block))
			smart_reader_report(reader, "holds what is no separator");
		reader->levels = Max(reader->levels, level);
		reader->path[--level] = reader->block;
		reader->block = smart_load_be32(block);
	}
	smart_assert(level == 0 && reader->levels <= SMART_FENCE_LEVELS);
	return SMART_FOUND;
}

/* ---- from page to page ---- */

/* Lists the children of the fence page on this level above block. */
static enum smart_found
list_children(struct smart_reader *reader, uint32 level)
{
	BlockNumber block = reader->block;
	struct smart_unpacker *unpacker = &reader->unpacker;
	struct smart_groups *groups;
	enum smart_found found;
	uint32 is_on;

	smart_assert(level > 0 && level <= reader->levels);
	if (reader->listed == reader->path[level - 1])
		return SMART_FOUND;
	reader->block = reader->path[level - 1];
	reader->listed = InvalidBlockNumber;
	reader->children = reader->child = 0;
	found = open_fence(reader, &is_on, &groups);
	reader->loaded = false;
	if (found != SMART_FOUND)
		return found;
	if (is_on != level)
		smart_reader_report(reader, "is not on the level that it should be on");
	smart_groups_rewind(groups, unpacker);
	while (smart_groups_next(groups, unpacker))
	{
		if (unpacker->length < SMART_FENCE_SUFFIX || reader->children == SMART_FENCE_CHILDREN)
			smart_reader_report(reader, "holds what is no separator");
		reader->child_block[reader->children++] =
			smart_load_be32(unpacker->entry + unpacker->length - SMART_FENCE_SUFFIX);
	}
	if (unpacker->at != groups->end)
		smart_reader_report(reader, "holds what is no separator");
	smart_assert(reader->children <= SMART_FENCE_CHILDREN && reader->child == 0);
	reader->listed = reader->block;
	reader->block = block;
	return SMART_FOUND;
}

/* Which of the children that are listed is it?  Mostly one beside that which was found last. */
static uint32
find_child(struct smart_reader *reader, BlockNumber block)
{
	uint32 from = reader->child > 0 ? reader->child - 1 : 0;

	smart_assert(reader->child == 0 || reader->child < reader->children);
	for (uint32 i = 0; i < reader->children; i++)
	{
		uint32 child = (from + i) % reader->children;

		if (reader->child_block[child] == block)
			return reader->child = child;
	}
	reader->block = reader->listed;
	smart_reader_report(reader, "does not have the page that it has led to");
}

/* The lowest fence page above block that has a child behind, or before, the one that leads there: *level; 0: none has. */
static enum smart_found
find_turn(struct smart_reader *reader, bool backward, uint32 *level, BlockNumber *block)
{
	BlockNumber child = reader->block;

	for (*level = 1; *level <= reader->levels; (*level)++)
	{
		enum smart_found found = list_children(reader, *level);
		uint32 at;

		if (found != SMART_FOUND)
			return found;
		at = find_child(reader, child);
		if (backward ? at > 0 : at + 1 < reader->children)
		{
			*block = reader->child_block[backward ? at - 1 : at + 1];
			return SMART_FOUND;
		}
		child = reader->path[*level - 1];
	}
	*level = 0;
	*block = InvalidBlockNumber;
	return SMART_FOUND;
}

/* Goes on to the run page behind, or before, the one where the reader is; InvalidBlockNumber: there is none. */
static enum smart_found
turn_page(struct smart_reader *reader, bool backward)
{
	BlockNumber block;
	uint32 level;
	enum smart_found found = find_turn(reader, backward, &level, &block);

	smart_assert(level <= reader->levels || found != SMART_FOUND);
	while (found == SMART_FOUND && level > 1)
	{
		reader->path[--level - 1] = block;
		found = list_children(reader, level);
		if (found == SMART_FOUND)
			block = reader->child_block[backward ? reader->children - 1 : 0];
	}
	reader->block = block;
	reader->loaded = false;
	return found;
}

enum smart_found
smart_reader_next_entry(struct smart_reader *reader)
{
	enum smart_found found = SMART_FOUND;

	smart_assert(reader->reaches == 0);
	if (next_of_group(reader))
		return SMART_FOUND;
	if (!reader->begun && reader->block != InvalidBlockNumber)
		found = descend(reader, NULL, 0, false);
	while (found == SMART_FOUND && reader->block != InvalidBlockNumber)
	{
		found = smart_reader_next_of_page(reader);
		if (found != SMART_FOUND_END)
			return found;
		found = turn_page(reader, false);
	}
	if (found != SMART_FOUND)
		return found;
	if (!reader->sought)
		smart_reader_check_all(reader, 0);
	return SMART_FOUND_END;
}

enum smart_found
smart_reader_open_fence(struct smart_reader *reader, BlockNumber block, uint32 *level)
{
	smart_assert(reader->reaches == 0);
	reader->block = block;
	return open_page(reader, SMART_PAGE_FENCE, level);
}

/* ---- searching ---- */

bool
smart_reader_is_near(struct smart_reader *reader, const uint8 *from, int from_length, const uint8 *to, int to_length)
{
	BlockNumber block;

	smart_assert(reader->reaches == 0);
	reader->loaded = false;
	if (reader->expected_pages == 0)
		return true;
	if (descend(reader, from, from_length, true) != SMART_FOUND ||
		!smart_page_is_buffered(reader->index, reader->block))
		return false;
	block = reader->block;
	return descend(reader, to, to_length, true) == SMART_FOUND && reader->block == block;
}

/* Copies what is left of the group that the unpacker is in, and goes on there. */
static void
copy_group(struct smart_reader *reader, const char *page)
{
	struct smart_unpacker *unpacker = &reader->unpacker;
	struct smart_groups *groups = &reader->groups;
	char *copy = reader->page.data;

	smart_assert((const char *) unpacker->at >= page + SMART_PAGE_BEGIN && unpacker->at <= unpacker->end);
	smart_assert((const char *) unpacker->end <= page + BLCKSZ);
	memcpy(copy, page, SMART_PAGE_BEGIN);
	memcpy(copy + ((const char *) unpacker->at - page), unpacker->at, (Size) (unpacker->end - unpacker->at));
	unpacker->at = (uint8 *) copy + ((const char *) unpacker->at - page);
	unpacker->end = (uint8 *) copy + ((const char *) unpacker->end - page);
	groups->begin = (uint8 *) copy + ((const char *) groups->begin - page);
	groups->end = (uint8 *) copy + ((const char *) groups->end - page);
	groups->words = (uint8 *) copy + ((const char *) groups->words - page);
	groups->places = (uint8 *) copy + ((const char *) groups->places - page);
	reader->loaded = true;
	reader->only_group = true;
}

/* Locks the run page where the reader is, and opens it in its buffer; *sound: it could be opened. */
static enum smart_found
lock_run_page(struct smart_reader *reader, Buffer *buffer, bool *sound)
{
	const struct smart_page_name name = name_of_page(reader);
	bool known = smart_known_sound(&name);
	bool from_disk;
	enum smart_found found;

	if (known)
		reader->blocks = Max(reader->blocks, reader->block + 1);
	found = smart_reader_lock_page(reader, SMART_PAGE_RUN, buffer, &from_disk);
	if (found != SMART_FOUND)
		return found;
	/* All of it is read if nobody here has found it sound. */
	*sound = known && !from_disk ? smart_run_page_open_sound(BufferGetPage(*buffer), &reader->groups)
								 : smart_run_page_open(BufferGetPage(*buffer), &reader->groups);
	if (*sound && !known)
		smart_known_note_sound(&name);
	return SMART_FOUND;
}

/* Searches the run page where the reader is: *there is what search says. */
static enum smart_found
search_page(struct smart_reader *reader, const uint8 *key, int length,
			bool (*search)(struct smart_groups *, const uint8 *, int, struct smart_unpacker *), bool *there)
{
	Buffer buffer;
	bool sound;
	enum smart_found found = lock_run_page(reader, &buffer, &sound);

	if (found != SMART_FOUND)
		return found;
	if (sound)
	{
		*there = search(&reader->groups, key, length, &reader->unpacker);
		copy_group(reader, BufferGetPage(buffer));
	}
	UnlockReleaseBuffer(buffer);
	if (!sound)
		smart_reader_report(reader, "has a wrong checksum");
	return SMART_FOUND;
}

enum smart_found
smart_reader_seek_entry(struct smart_reader *reader, const uint8 *key, int length)
{
	enum smart_found found;
	bool there;

	smart_assert(reader->reaches == 0);
	if (reader->expected_pages == 0)
		return SMART_FOUND_END;
	reader->sought = true;
	found = descend(reader, key, length, false);
	if (found == SMART_FOUND)
		found = search_page(reader, key, length, smart_groups_seek, &there);
	if (found != SMART_FOUND || there)
		return found;
	/* All entries of the next page are behind the key. */
	return smart_reader_next_entry(reader);
}

/* Is the entry that was found last before the key? */
static bool
is_before(const struct smart_reader *reader, const uint8 *key, int length)
{
	const struct smart_unpacker *from = &reader->unpacker;

	return smart_compare_bytes(from->entry, (Size) from->length, key, (Size) length) < 0;
}

enum smart_found
smart_reader_seek_ahead(struct smart_reader *reader, const uint8 *key, int length)
{
	smart_assert(reader->reaches == 0);
	for (int i = 0; i < UNPACKED_MAX && reader->loaded && reader->only_group; i++)
	{
		if (!is_before(reader, key, length))
			return SMART_FOUND;
		if (!smart_reader_next_of_group(reader))
			break;
	}
	return smart_reader_seek_entry(reader, key, length);
}

enum smart_found
smart_reader_seek_group(struct smart_reader *reader, const uint8 *key, int length)
{
	enum smart_found found;
	bool there;

	smart_assert(reader->reaches == 0);
	if (reader->expected_pages == 0)
		return SMART_FOUND_END;
	reader->sought = true;
	found = descend(reader, key, length, false);
	if (found == SMART_FOUND)
		found = search_page(reader, key, length, smart_groups_enter_before, &there);
	if (found == SMART_FOUND && !there)
		smart_reader_report(reader, "holds what is no entry");
	return found;
}

enum smart_found
smart_reader_previous_group(struct smart_reader *reader)
{
	uint32 group = reader->groups.group;
	enum smart_found found;

	smart_assert(reader->reaches == 0 && reader->sought);
	if (group == 0)
	{
		found = turn_page(reader, true);
		if (found == SMART_FOUND && reader->block == InvalidBlockNumber)
			return SMART_FOUND_END;
		if (found == SMART_FOUND)
			found = open_run_page(reader);
		if (found != SMART_FOUND)
			return found;
		group = reader->groups.count;
	}
	else if (reader->only_group)
	{
		found = load_groups(reader);
		if (found != SMART_FOUND)
			return found;
	}
	smart_assert(group > 0);
	if (!smart_groups_enter(&reader->groups, group - 1, &reader->unpacker))
		smart_reader_report(reader, "holds what is no entry");
	return SMART_FOUND;
}

bool
smart_reader_next_of_group(struct smart_reader *reader)
{
	if (smart_unpacker_next(&reader->unpacker))
		return true;
	if (reader->unpacker.at != reader->unpacker.end)
		smart_reader_report(reader, "holds what is no entry");
	return false;
}

/*
 * check_run.c
 *	  Is all that an index's run holds found there?
 *
 * The entries must ascend.  A search decides between pages, and on a page between groups (tree/groups.h): so the entries
 * on either side of each border are looked for, and have to be found where they are.  Within a group it looks at all.  The run's
 * filter, if it has one, must not lack a key.
 */
#include "postgres.h"

#include "utils/rel.h"

#include "am/journal/read.h"
#include "am/monitor/check_entries.h"
#include "am/monitor/check_run.h"
#include "am/server/key_cache.h"
#include "am/server/key_filter.h"
#include "base/assert.h"
#include "base/bytes.h"

struct run_check
{
	Relation index;
	const struct smart_codec *codec;
	struct smart_run_name name; /* of the run */
	uint32 number;              /* and its number in the cache of keys */
	struct smart_reader reader;
	struct smart_reader search;
	uint32 page;  /* of the entry before */
	uint32 group; /* on that page */
	int length;   /* of the entry before, 0: there is none */
	uint8 entry[SMART_ENTRY_MAX];
};

static __attribute__((noreturn)) void
report_run(const struct run_check *check, const char *what)
{
	ereport(ERROR, errcode(ERRCODE_INDEX_CORRUPTED),
			errmsg("the journal of index \"%s\" is damaged", RelationGetRelationName(check->index)),
			errdetail_internal("Block %u %s.", check->reader.block, what), smart_hint_reindex(check->index));
}

/* A search for an entry leads to it. */
static void
search_for(struct run_check *check, const uint8 *entry, int length)
{
	struct smart_reader *search = &check->search;
	enum smart_found found = smart_reader_seek_entry(search, entry, length);

	smart_assert(length > 0 && length <= SMART_ENTRY_MAX);
	/* On a standby replay may have given the page to another run. */
	if (found == SMART_FOUND_BEHIND)
		smart_check_report_used_anew(check->index);
	if (found != SMART_FOUND || search->unpacker.length != length ||
		memcmp(search->unpacker.entry, entry, (Size) length) != 0)
		report_run(check, "has entries that a search does not find");
}

/* Nobody is told by shared memory that the run lacks the entry. */
static void
ask_memory(const struct run_check *check)
{
	const struct smart_unpacker *from = &check->reader.unpacker;
	int key_length = smart_codec_key_length(check->codec, from->entry, from->length);
	int columns_length = smart_entry_columns_length(check->codec, from->entry, key_length);
	struct smart_cached_key key;

	smart_assert(columns_length > 0 && columns_length < key_length && key_length <= from->length);
	if (smart_key_filter_lacks(&check->name, smart_key_filter_hash(from->entry, columns_length)))
		report_run(check, "has an entry whose key the filter of the run lacks");
	if (check->number != 0 && columns_length <= SMART_CACHED_BYTES &&
		smart_key_cache_find(check->number, from->entry, columns_length, &key) &&
		!smart_cached_key_has(&key, from->entry + columns_length, from->length - columns_length))
		report_run(check, "has an entry that the cache of keys lacks");
}

/* The reader has found the next entry. */
static void
check_entry(struct run_check *check)
{
	const struct smart_unpacker *from = &check->reader.unpacker;
	bool first = check->length == 0;

	smart_assert(from->length > 0 && from->length <= SMART_ENTRY_MAX);
	if (!first && smart_compare_bytes(check->entry, (Size) check->length, from->entry, (Size) from->length) >= 0)
		report_run(check, "has entries that do not ascend");
	if (first || check->page != check->reader.pages || check->group != check->reader.groups.group)
	{
		if (!first)
			search_for(check, check->entry, check->length);
		search_for(check, from->entry, from->length);
	}
	ask_memory(check);
	check->page = check->reader.pages;
	check->group = check->reader.groups.group;
	check->length = from->length;
	memcpy(check->entry, from->entry, (Size) from->length);
}

void
smart_check_run(Relation index, const struct smart_codec *codec, const struct smart_meta *meta)
{
	struct run_check *check = palloc0(sizeof(*check));
	enum smart_found found;

	smart_assert(meta->journal != 0);
	check->index = index;
	check->codec = codec;
	check->name = smart_meta_run_name(&smart_relation_locator(index), meta);
	check->number = smart_key_cache_number(&check->name);
	smart_reader_begin_run(&check->reader, index, meta, true);
	smart_reader_begin_run(&check->search, index, meta, false);
	while ((found = smart_reader_next_entry(&check->reader)) == SMART_FOUND)
	{
		smart_reader_check(&check->reader, codec, false);
		check_entry(check);
	}
	if (found != SMART_FOUND_END)
		smart_check_report_used_anew(index);
	/* The last entry is at a border, too. */
	if (check->length > 0)
		search_for(check, check->entry, check->length);
	pfree(check);
}

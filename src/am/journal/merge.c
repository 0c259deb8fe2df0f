/*
 * merge.c
 *	  All entries that a journal holds, in order: its chain's operations over its run.
 *
 * The operations are sorted by entry and place, and merged with the run: of each entry the last operation counts, and
 * over what the run says.
 */
#include "postgres.h"

#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/rel.h"

#include "am/codec/encode.h"
#include "am/journal/merge.h"
#include "am/journal/read.h"
#include "am/server/environment.h"
#include "am/server/progress.h"
#include "am/sort/sorter.h"
#include "base/assert.h"
#include "base/bytes.h"

#define LOOK_EVERY 4096 /* entries */

/* Behind the key of a sorted operation: its number, big-endian; what it is; the payload; the key's length. */
#define NUMBER_BYTES 8
#define LENGTH_BYTES 2

/* What the sorter takes for a page of the chain, more or less. */
#define PAGE_SORTED_BYTES (2 * BLCKSZ)

struct merge
{
	Relation index;
	const struct smart_codec *codec;
	struct smart_reader reader;
	struct smart_sorter *sorter; /* of the chain's operations; NULL: there are none */
	uint64 operations;

	/* The last operation of the next entry of the chain; key NULL: there are no more. */
	const uint8 *key;
	int key_length;
	enum smart_operation operation;
	int length; /* of the entry */
	uint8 entry[SMART_ENTRY_MAX];
	const uint8 *item; /* the sorter's next one, behind that operation */
	int item_length;

	smart_sink_fn take;
	void *argument;
};

/* ---- the chain ---- */

static int
key_length_of(const struct merge *merge, const uint8 *item, int length)
{
	if (merge->codec->fixed_length > 0)
		return merge->codec->fixed_key_length;
	return smart_get_be16(item + length - LENGTH_BYTES);
}

/* Gives an operation to the sorter. */
static void
add_operation(struct merge *merge)
{
	const struct smart_unpacker *from = &merge->reader.unpacker;
	const struct smart_codec *codec = merge->codec;
	bool removal = merge->reader.operation == SMART_OPERATION_REMOVE;
	int key_length = removal ? from->length : smart_codec_key_length(codec, from->entry, from->length);
	uint8 item[SMART_SORTER_MAX];
	uint8 *at = item + key_length;

	smart_copy_short(item, from->entry, (Size) key_length);
	smart_put_be64(at, merge->operations++);
	at += NUMBER_BYTES;
	*at++ = merge->reader.operation;
	smart_copy_short(at, from->entry + key_length, (Size) (from->length - key_length));
	at += from->length - key_length;
	if (codec->fixed_length == 0)
	{
		smart_put_be16(at, (uint16) key_length);
		at += LENGTH_BYTES;
	}
	else if (removal)
	{
		memset(at, 0, (Size) (codec->fixed_length - key_length));
		at += codec->fixed_length - key_length;
	}
	smart_sorter_add(merge->sorter, item, (int) (at - item));
}

/* Reads and sorts the operations of the chain, up to where it ends now. */
static enum smart_found
sort_chain(struct merge *merge, const struct smart_meta *meta, const struct smart_look *look,
		   struct smart_chain_place *place)
{
	const struct smart_codec *codec = merge->codec;
	int length = codec->fixed_length > 0 ? codec->fixed_length + NUMBER_BYTES + 1 : 0;
	Size expected = (Size) (meta->tail_serial - meta->cut.serial + 1) * PAGE_SORTED_BYTES;
	enum smart_found found;

	smart_reader_begin_chain(&merge->reader, merge->index, meta, &meta->cut, true);
	while ((found = smart_reader_next_operation(&merge->reader)) == SMART_FOUND)
	{
		smart_reader_check(&merge->reader, codec, merge->reader.operation == SMART_OPERATION_REMOVE);
		if (merge->sorter == NULL)
			merge->sorter =
				smart_sorter_begin(length, (Size) maintenance_work_mem * 1024, expected, &smart_environment);
		add_operation(merge);
		if (merge->operations % LOOK_EVERY == 0)
			look->around(look->argument);
	}
	if (found != SMART_FOUND_END)
		return found;
	*place = smart_reader_place(&merge->reader);
	if (merge->sorter != NULL)
	{
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, SMART_PHASE_SORT);
		smart_sorter_perform(merge->sorter);
		merge->item = smart_sorter_next(merge->sorter, &merge->item_length);
	}
	return found;
}

/* Takes the next entry of the chain, with the last of its operations. */
static void
next_operation(struct merge *merge)
{
	int tail = merge->codec->fixed_length > 0 ? 0 : LENGTH_BYTES;

	merge->key = NULL;
	while (merge->item != NULL)
	{
		int key_length = key_length_of(merge, merge->item, merge->item_length);
		int payload = merge->item_length - key_length - NUMBER_BYTES - 1 - tail;

		if (merge->key != NULL &&
			(key_length != merge->key_length || !smart_equal_bytes(merge->key, merge->item, (Size) key_length)))
			return;
		smart_assert(payload >= 0 && key_length + payload <= SMART_ENTRY_MAX);
		smart_copy_short(merge->entry, merge->item, (Size) key_length);
		smart_copy_short(merge->entry + key_length, merge->item + key_length + NUMBER_BYTES + 1, (Size) payload);
		merge->key = merge->entry;
		merge->key_length = key_length;
		merge->length = key_length + payload;
		merge->operation = (enum smart_operation) merge->item[key_length + NUMBER_BYTES];
		merge->item = smart_sorter_next(merge->sorter, &merge->item_length);
	}
}

/* ---- the whole ---- */

/* Merges run and chain; SMART_FOUND: enough was taken. */
static enum smart_found
merge_all(struct merge *merge, const struct smart_meta *meta)
{
	const struct smart_unpacker *from = &merge->reader.unpacker;
	enum smart_found found;

	next_operation(merge);
	smart_reader_begin_run(&merge->reader, merge->index, meta, true);
	while ((found = smart_reader_next_entry(&merge->reader)) == SMART_FOUND)
	{
		bool superseded = false;

		smart_reader_check(&merge->reader, merge->codec, false);
		/* No key is a prefix of another one: what begins with a key is its entry. */
		while (merge->key != NULL)
		{
			int order = smart_compare_bytes(merge->key, (size_t) merge->key_length, from->entry,
											(size_t) Min(from->length, merge->key_length));

			if (order > 0)
				break;
			superseded = order == 0;
			if (merge->operation == SMART_OPERATION_ADD && !merge->take(merge->argument, merge->entry, merge->length))
				return SMART_FOUND;
			next_operation(merge);
			if (superseded)
				break;
		}
		if (!superseded && !merge->take(merge->argument, from->entry, from->length))
			return SMART_FOUND;
	}
	for (; found == SMART_FOUND_END && merge->key != NULL; next_operation(merge))
	{
		if (merge->operation == SMART_OPERATION_ADD && !merge->take(merge->argument, merge->entry, merge->length))
			return SMART_FOUND;
	}
	return found;
}

enum smart_found
smart_journal_merge(Relation index, const struct smart_codec *codec, const struct smart_meta *meta,
					const struct smart_look *look, smart_sink_fn take, void *argument, struct smart_chain_place *place)
{
	struct merge *merge = palloc0(sizeof(*merge));
	enum smart_found found;

	smart_assert(meta->journal != 0);
	smart_environment_init();
	merge->index = index;
	merge->codec = codec;
	merge->take = take;
	merge->argument = argument;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, SMART_PHASE_JOURNAL);
	found = sort_chain(merge, meta, look, place);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, SMART_PHASE_LOAD);
	if (found == SMART_FOUND_END)
		found = merge_all(merge, meta);
	if (merge->sorter != NULL)
		smart_sorter_end(merge->sorter);
	pfree(merge);
	return found;
}

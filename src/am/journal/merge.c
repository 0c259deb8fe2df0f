/*
 * merge.c
 *	  All entries that a journal holds, in order: its chain's operations over its run.
 *
 * Of each entry the last operation of the chain counts, and over what the run says.
 */
#include "postgres.h"

#include "commands/progress.h"
#include "pgstat.h"
#include "utils/rel.h"

#include "am/journal/merge.h"
#include "am/server/progress.h"
#include "base/assert.h"
#include "base/bytes.h"

struct merge
{
	Relation index;
	const struct smart_codec *codec;
	struct smart_reader reader; /* of the run */
	struct smart_sorted_chain *chain;
	struct smart_last_operation last; /* of the chain's next entry */
	smart_sink_fn take;
	void *argument;
};

/* Takes what the chain's last operation on its next entry leaves of that: the whole entry, or nothing. */
static bool
take_last(const struct merge *merge)
{
	return merge->last.operation != SMART_OPERATION_ADD ||
		   merge->take(merge->argument, merge->last.entry, merge->last.length);
}

/* Merges run and chain; SMART_FOUND: enough was taken. */
static enum smart_found
merge_all(struct merge *merge, const struct smart_meta *meta)
{
	const struct smart_unpacker *from = &merge->reader.unpacker;
	const struct smart_last_operation *last = &merge->last;
	enum smart_found chain = smart_sorted_chain_next(merge->chain, &merge->last);
	enum smart_found run;

	smart_reader_begin_run(&merge->reader, merge->index, meta, true);
	while ((run = smart_reader_next_entry(&merge->reader)) == SMART_FOUND)
	{
		bool superseded = false;

		smart_reader_check(&merge->reader, merge->codec, false);
		/* No key is a prefix of another one: what begins with a key is its entry. */
		while (chain == SMART_FOUND && !superseded)
		{
			int order = smart_compare_bytes(last->entry, (size_t) last->key_length, from->entry,
											(size_t) Min(from->length, last->key_length));

			if (order > 0)
				break;
			superseded = order == 0;
			if (!take_last(merge))
				return SMART_FOUND;
			chain = smart_sorted_chain_next(merge->chain, &merge->last);
		}
		if (chain == SMART_FOUND_BEHIND)
			return chain;
		if (!superseded && !merge->take(merge->argument, from->entry, from->length))
			return SMART_FOUND;
	}
	if (run == SMART_FOUND_BEHIND)
		return run;
	for (; chain == SMART_FOUND; chain = smart_sorted_chain_next(merge->chain, &merge->last))
	{
		if (!take_last(merge))
			return SMART_FOUND;
	}
	return chain;
}

enum smart_found
smart_journal_merge(Relation index, const struct smart_codec *codec, const struct smart_meta *meta,
					const struct smart_look *look, smart_sink_fn take, void *argument, struct smart_chain_place *place)
{
	struct merge *merge = palloc0(sizeof(*merge));
	enum smart_found found;

	smart_assert(meta->journal != 0);
	merge->index = index;
	merge->codec = codec;
	merge->take = take;
	merge->argument = argument;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, SMART_PHASE_JOURNAL);
	found = smart_sorted_chain_begin(index, codec, meta, look, NULL, &merge->chain, place);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, SMART_PHASE_LOAD);
	if (found == SMART_FOUND_END)
	{
		found = merge_all(merge, meta);
		smart_sorted_chain_end(merge->chain);
	}
	pfree(merge);
	return found;
}

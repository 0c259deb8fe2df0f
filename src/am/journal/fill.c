/*
 * fill.c
 *	  Making a tree from a journal: its entries come in order (merge.h), so that the tree is built from below, without a
 *	  search.
 */
#include "postgres.h"

#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/rel.h"

#include "am/index/options.h"
#include "am/index/relation.h"
#include "am/journal/fill.h"
#include "base/assert.h"

#define LOOK_EVERY 4096 /* entries */

struct filling
{
	Relation index;
	struct smart_load *load;
	const struct smart_look *look;
	uint64 entries;
};

/* smart_sink.take */
static bool
add_entry(void *argument, const uint8 *entry, int length)
{
	struct filling *filling = argument;
	smart_status status = smart_load_add(filling->load, entry, (size_t) length);

	smart_assert(length > 0 && length <= SMART_ENTRY_MAX);
	if (status == SMART_UNSORTED)
		ereport(ERROR, errcode(ERRCODE_INDEX_CORRUPTED),
				errmsg("the journal of index \"%s\" is damaged", RelationGetRelationName(filling->index)),
				errdetail("The entries of its run do not ascend."), smart_hint_reindex(filling->index));
	smart_check_status(status, filling->index);
	if (++filling->entries % LOOK_EVERY == 0)
	{
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, (int64) filling->entries);
		filling->look->around(filling->look->argument);
	}
	return true;
}

bool
smart_journal_fill(Relation index, const struct smart_codec *codec, struct smart_tree *tree,
				   const struct smart_look *look, struct smart_chain_place *place, uint64 *entries)
{
	struct filling filling = {.index = index, .look = look};
	const struct smart_sink sink = {.take = add_entry, .argument = &filling};
	struct smart_merged merged;
	volatile bool loading = false;
	enum smart_found found;
	struct smart_meta meta;

	smart_meta_read(index, &meta);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, (int64) meta.run_entries);
	PG_TRY();
	{
		smart_check_status(smart_load_begin(tree, (unsigned int) smart_options_fillfactor(index), &filling.load),
						   index);
		loading = true;
		found = smart_journal_merge(index, codec, &meta, look, &sink, &merged);
		loading = false; /* finish frees it whatever comes out */
		if (found == SMART_FOUND_END)
			smart_check_status(smart_load_finish(filling.load), index);
		else
			smart_load_abandon(filling.load);
	}
	PG_CATCH();
	{
		if (loading)
			smart_load_abandon(filling.load);
		PG_RE_THROW();
	}
	PG_END_TRY();
	smart_assert(found != SMART_FOUND);
	smart_assert(!loading);
	*entries = filling.entries;
	*place = merged.place;
	return found == SMART_FOUND_END;
}

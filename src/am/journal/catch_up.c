/*
 * catch_up.c
 *	  A tree that was left behind catches up with its journal, and is the index's again (src/README, J14).
 *
 * It is done as the loading of load.c from step 3 on, with the place where the tree was left in the place of the end of what was
 * loaded.  So a memory node that was away for a moment costs what was written meanwhile, and not a loading.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "am/codec/encode.h"
#include "am/compat.h"
#include "am/index/relation.h"
#include "am/index/trees.h"
#include "am/journal/apply.h"
#include "am/journal/catch_up.h"
#include "am/journal/delta.h"
#include "am/journal/staging.h"
#include "am/server/rebuild_table.h"
#include "am/server/tree_changes.h"
#include "am/server/validity.h"
#include "base/assert.h"

/* It has failed, also if this process is terminated: the tree leaves. */
static void
give_up(int code, Datum index)
{
	smart_rebuild_cancel(MyDatabaseId, DatumGetObjectId(index));
}

bool
smart_take_adds(Relation index, const struct smart_codec *codec, struct smart_tree *tree,
				struct smart_chain_place *place)
{
	struct smart_tail tail = {0};

	smart_assert(!RecoveryInProgress());
	smart_rebuild_use_base(MyDatabaseId, RelationGetRelid(index));
	smart_changes_announce();
	smart_staging_write_out(index, &tail, false);
	if (!smart_journal_apply(index, codec, NULL, tree, SMART_TARGET_TREE, place, NULL, NULL))
		return false;
	smart_wal_flush();
	return true;
}

/* Applies what the chain has behind the place; false: the tree cannot go on with this journal. */
static bool
apply_rest(Relation index, const struct smart_codec *codec, struct smart_tree *tree, struct smart_chain_place *place)
{
	return smart_journal_apply(index, codec, NULL, tree, SMART_TARGET_TREE, place, NULL, NULL) &&
		   smart_take_adds(index, codec, tree, place) &&
		   !smart_rebuild_is_invalid(MyDatabaseId, RelationGetRelid(index), true);
}

/* Has this tree been the index's until it was left behind, with a journal that has been whole since? */
static bool
is_named(Relation index, uint64 tree, uint32 losses, struct smart_meta *meta)
{
	smart_assert(tree != 0);
	smart_meta_read(index, meta);
	return meta->tree == tree && meta->state == SMART_META_READY && smart_meta_is_loadable(meta) &&
		   meta->losses == losses;
}

/* The tree is what the index has again; false: the journal has become stale, or somebody has given the tree up. */
static bool
return_to_use(Relation index, uint64 tree, uint32 losses)
{
	struct smart_meta meta;
	bool done;

	smart_assert(tree != 0 && tree != SMART_TREE_NOWHERE);
	HOLD_INTERRUPTS();
	done = is_named(index, tree, losses, &meta) && smart_tree_end_catching_up(tree);
	if (done)
	{
		smart_validity_announce(index);
		smart_rebuild_end(MyDatabaseId, RelationGetRelid(index));
	}
	RESUME_INTERRUPTS();
	return done;
}

/* With the tree, which nobody else uses. */
static bool
catch_up(Relation index, uint64 id, struct smart_chain_place *place, uint32 losses)
{
	const struct smart_codec *codec = smart_codec_make(index, CurrentMemoryContext);
	Oid oid = RelationGetRelid(index);
	struct smart_tree *tree = NULL;
	struct smart_meta meta;
	bool done;

	smart_assert(id != 0 && id != SMART_TREE_NOWHERE);
	if (is_named(index, id, losses, &meta) && smart_meta_fits(&meta, codec))
		tree = smart_am_tree_open(index, codec, &meta);
	if (tree == NULL || !smart_rebuild_begin(MyDatabaseId, oid, 0, id, 0))
		return false;
	/* Who has left the tree may be about to announce that: until then others add to it as if it was the index's. */
	if (smart_changes_are_foretold())
		(void) smart_changes_announce();
	PG_ENSURE_ERROR_CLEANUP(give_up, ObjectIdGetDatum(oid));
	{
		done = apply_rest(index, codec, tree, place) && return_to_use(index, id, losses);
	}
	PG_END_ENSURE_ERROR_CLEANUP(give_up, ObjectIdGetDatum(oid));
	if (!done)
		smart_rebuild_cancel(MyDatabaseId, oid);
	return done;
}

bool
smart_catch_up(Relation index)
{
	TimestampTz start = GetCurrentTimestamp();
	uint64 tree = smart_relation_tree(index);
	struct smart_chain_place place;
	uint32 losses;

	smart_assert(!RecoveryInProgress());
	if (tree == 0 || smart_tree_is_away(tree) || !smart_tree_is_behind(tree, &place, &losses) ||
		!smart_tree_begin_catching_up(tree) || !catch_up(index, tree, &place, losses))
		return false;
	smart_delta_leave(index, true);
	ereport(LOG, errmsg("smart index \"%s\" has its tree again", RelationGetRelationName(index)),
			errdetail("A memory node was away. What has been written meanwhile was applied in %ld ms.",
					  TimestampDifferenceMilliseconds(start, GetCurrentTimestamp())));
	return true;
}

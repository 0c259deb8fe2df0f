/*
 * restore.c
 *	  A lost index gets its tree back: from its journal, or, if that does not suffice, from its table.  Or an index gives its
 *	  tree up.
 *
 * Loading takes no stronger locks than an insert, so that it keeps nothing out but what changes the table's definition;
 * a session that wants to do that is more important, and loading gives way and begins again later.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/index.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/rel.h"

#include "am/index/relation.h"
#include "am/journal/delta.h"
#include "am/journal/follow.h"
#include "am/journal/leave.h"
#include "am/journal/load.h"
#include "am/journal/lock.h"
#include "am/journal/promote.h"
#include "am/maintenance/loading.h"
#include "am/maintenance/opened.h"
#include "am/maintenance/precedence.h"
#include "am/maintenance/rebuild.h"
#include "am/maintenance/restore.h"
#include "am/server/errands.h"
#include "am/server/tree_changes.h"
#include "am/server/validity.h"

/* smart_look; of a follower, which nobody inserts into. */
static void
look_for_waiters(void *argument)
{
	smart_opened_give_way(argument, RowExclusiveLock, "loading");
}

/* smart_look. */
static void
look_around(void *argument)
{
	const struct smart_opened *opened = argument;

	look_for_waiters(argument);
	smart_validity_require(opened->index, false, "loaded");
}

static bool
load(struct smart_opened *opened)
{
	const struct smart_look look = {.around = look_around, .argument = opened};

	smart_precedence_ask(opened->index);
	return smart_load_and_tell(opened->heap, opened->index, smart_journal_load, &look);
}

bool
smart_restore_index(Oid index, bool rebuild)
{
	struct smart_opened opened;
	bool done;

	if (!smart_open_conditionally(index, RowExclusiveLock, RowExclusiveLock, &opened))
		return false;
	done = smart_promote(opened.index) || (smart_relation_is_loadable(opened.index) && load(&opened));
	smart_opened_close(&opened);
	if (done)
		return true;
	done = rebuild && smart_rebuild_index(index);
	/* Its journal is still stale. */
	if (done)
		smart_errand_request(SMART_ERRAND_COMPACT, MyDatabaseId, index);
	return done;
}

void
smart_restore_condemn(Oid index)
{
	struct smart_opened opened;

	if (!smart_open_conditionally(index, RowExclusiveLock, RowExclusiveLock, &opened))
		return;
	if (smart_relation_is_loadable(opened.index))
	{
		ereport(LOG, errcode(ERRCODE_INDEX_CORRUPTED),
				errmsg("smart index \"%s\" is going to be rebuilt from its table",
					   RelationGetRelationName(opened.index)),
				errdetail("Its journal is damaged."));
		(void) smart_relation_mark_stale(opened.index);
		smart_changes_announce();
	}
	smart_opened_close(&opened);
}

void
smart_restore_leave_memory(Oid index)
{
	struct smart_opened opened;

	if (!smart_open_conditionally(index, RowExclusiveLock, RowExclusiveLock, &opened))
		return;
	/* Who removes entries or loads a tree ends first; the planner asks for this again. */
	if (smart_journal_try_lock(opened.index, SMART_LOCK_REMOVE))
	{
		if (smart_relation_loss(opened.index) == SMART_LOSS_NONE && smart_relation_tree(opened.index) != 0 &&
			smart_relation_is_to_answer(opened.index))
			(void) smart_leave_memory(opened.index, smart_relation_tree(opened.index),
									  smart_relation_writes_back(opened.index)
										  ? "it writes back from now on"
										  : "its storage parameter \"resident\" says so");
		smart_journal_unlock(opened.index, SMART_LOCK_REMOVE);
	}
	smart_opened_close(&opened);
}

void
smart_restore_follower(Oid index)
{
	struct smart_opened opened;
	const struct smart_look look = {.around = look_for_waiters, .argument = &opened};

	if (!smart_open_conditionally(index, RowExclusiveLock, RowExclusiveLock, &opened))
		return;
	/* Deltas that are lean are of no use for it. */
	if (smart_load_and_tell(opened.heap, opened.index, smart_follow_load, &look))
		smart_delta_leave(opened.index, true);
	smart_opened_close(&opened);
}

bool
smart_restore_without(Oid index)
{
	struct smart_opened opened;
	struct smart_meta meta;
	bool done = true;

	if (!smart_open_conditionally(index, RowExclusiveLock, RowExclusiveLock, &opened))
		return true;
	smart_meta_read(opened.index, &meta);
	if (smart_relation_loss(opened.index) != SMART_LOSS_NONE && meta.tree == SMART_TREE_NOWHERE)
		done = smart_relation_may_answer(opened.index);
	else if (smart_relation_loss(opened.index) != SMART_LOSS_NONE)
		done = smart_leave_memory(opened.index, meta.tree, "there is no room for its tree");
	smart_opened_close(&opened);
	return done;
}

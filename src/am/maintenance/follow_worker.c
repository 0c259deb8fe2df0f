/*
 * follow_worker.c
 *	  What the worker of a database does on a standby: it loads indexes, and keeps their trees near to what is replayed.
 *
 * Queries bring a tree up to date themselves (journal/follow.c); the worker keeps what they have to do small.  It looks
 * whenever something has been replayed.  So it sees new indexes, and new files of old ones, without being told.  The
 * locks that it holds keep replay waiting, which is more important: then it gives way.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/proc.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "am/index/backend.h"
#include "am/index/relation.h"
#include "am/index/trees.h"
#include "am/journal/delta.h"
#include "am/journal/follow.h"
#include "am/journal/view.h"
#include "am/maintenance/follow_worker.h"
#include "am/maintenance/loading.h"
#include "am/maintenance/opened.h"
#include "am/maintenance/precedence.h"
#include "am/server/launcher_requests.h"
#include "am/server/rebuild_table.h"
#include "am/server/shared.h"
#include "base/assert.h"

#define TURN_MS 60000 /* until other databases may have the worker's place */

static int candidates = 0;
static int served = 0; /* of them, as far as the round has come: those that have a tree or a delta */

/* ---- rounds ---- */

void
smart_follow_count(int indexes)
{
	smart_assert(indexes >= 0);
	candidates = indexes;
	served = 0;
}

/* If there are more trees and deltas than indexes that have one, some may be of indexes that were dropped. */
static void
look_for_orphans(void)
{
	static int requested = 0; /* for so many too many */
	struct smart_trees_cursor cursor = {0};
	struct smart_tree_info info;
	int too_many = -served;

	smart_assert(served >= 0 && OidIsValid(MyDatabaseId));
	while (smart_trees_next(&cursor, &info))
		too_many += info.owner.database == MyDatabaseId && smart_tree_is_followed(&info);
	if (too_many > 0 && too_many != requested)
		smart_orphans_request(MyDatabaseId);
	requested = too_many;
}

bool
smart_follow_begin(void)
{
	static TimestampTz begin = 0;
	static bool any = true;
	bool follows;

	if (begin == 0)
		begin = GetCurrentTimestamp();
	else
		any = candidates > 0;
	follows = RecoveryInProgress();
	if (follows && smart_server.shared->made && candidates > 0)
		look_for_orphans();
	return follows && any && !TimestampDifferenceExceeds(begin, GetCurrentTimestamp(), TURN_MS);
}

static XLogRecPtr seen = InvalidXLogRecPtr; /* of replay */

void
smart_follow_again(void)
{
	seen = InvalidXLogRecPtr;
}

bool
smart_follow_is_due(void)
{
	XLogRecPtr now = GetXLogReplayRecPtr(NULL);
	List *due;
	bool is_due;

	if (now != seen)
	{
		seen = now;
		return true;
	}
	due = smart_rebuild_due();
	is_due = list_member_oid(due, MyDatabaseId);
	list_free(due);
	return is_due;
}

/* ---- giving way ---- */

bool
smart_follow_is_in_the_way(int code)
{
	return RecoveryInProgress() && ERRCODE_TO_CATEGORY(code) == ERRCODE_TRANSACTION_ROLLBACK;
}

/*
 * What the catalogs were last read with is a snapshot, which replay would cancel for the sake of a VACUUM.  Trees are filled
 * without one.
 */
static void
forget_snapshot(void)
{
	InvalidateCatalogSnapshot();
	smart_assert(!TransactionIdIsValid(MyProc->xmin));
}

/* smart_look. */
static void
look_around(void *argument)
{
	smart_opened_give_way(argument, AccessShareLock, "loading");
}

/* ---- one index ---- */

/* The index is to have no tree here: its pages answer. */
static void
follow_pages(Relation index)
{
	uint64 tree = smart_relation_tree(index);
	struct smart_relation *self;
	struct smart_meta meta;

	smart_meta_read(index, &meta);
	/* Its parameter has changed. */
	if (smart_relation_loss(index) == SMART_LOSS_NONE && tree != 0)
		smart_follow_give_up(index, tree);
	/* Also one that a query has given up, since it had no room for more. */
	smart_follow_leave(index, &meta, 0);
	smart_delta_leave(index, false);
	/* The delta is kept near to what is replayed, if a query has made one. */
	if (!smart_delta_is_there(index, &meta))
		return;
	served++;
	self = smart_view_open(index, true);
	forget_snapshot();
	if (self != NULL)
		(void) smart_view_catch_up(self, index, false);
}

static void
follow(struct smart_opened *opened)
{
	const struct smart_look look = {.around = look_around, .argument = opened};

	if (smart_relation_is_to_answer(opened->index))
		follow_pages(opened->index);
	else if (smart_relation_is_loadable(opened->index))
	{
		smart_precedence_ask(opened->index);
		(void) smart_load_and_tell(opened->heap, opened->index, smart_follow_load, &look);
		if (smart_relation_loss(opened->index) == SMART_LOSS_NONE)
			smart_delta_leave(opened->index, true);
	}
	else if (smart_relation_loss(opened->index) == SMART_LOSS_NONE)
	{
		const struct smart_relation *self = smart_relation_open(opened->index);

		forget_snapshot();
		if (self->standby && self->tree != NULL)
			(void) smart_follow_catch_up(opened->index, self);
	}
	served += smart_relation_loss(opened->index) == SMART_LOSS_NONE && smart_relation_tree(opened->index) != 0;
}

void
smart_follow_index(Oid index)
{
	struct smart_opened opened;

	smart_assert(OidIsValid(index) && OidIsValid(MyDatabaseId));
	if (!RecoveryInProgress() || !smart_open_conditionally(index, AccessShareLock, AccessShareLock, &opened))
		return;
	/* An unlogged index has its init fork only. */
	if (RelationIsPermanent(opened.index))
		follow(&opened);
	smart_opened_close(&opened);
}

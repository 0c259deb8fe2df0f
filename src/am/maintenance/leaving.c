/*
 * leaving.c
 *	  Trees that no index names any more are freed when their last users have gone.
 *
 * A session that has the index of such a tree open may still be using it, however long the tree has been out of use for
 * all others.  So the tree is freed when all transactions have ended that had a lock of the index when this process first
 * saw the tree in the table; later ones do not get to it.  A delta (src/am/journal/delta.h) is pinned by who uses it: one
 * transaction may leave several behind.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/memutils.h"

#include "am/index/pin.h"
#include "am/index/trees.h"
#include "am/maintenance/leaving.h"
#include "am/server/leaving_table.h"
#include "am/server/rebuild_table.h"
#include "base/assert.h"

#define ONCE 64 /* trees that are looked at in one turn */

struct leaving
{
	uint64 tree;
	VirtualTransactionId *users;
	int next_user; /* those before it have gone */
	struct leaving *next;
};

static struct leaving *all = NULL;

static bool
is_known(uint64 tree)
{
	const struct leaving *leaving = all;

	while (leaving != NULL && leaving->tree != tree)
		leaving = leaving->next;
	return leaving != NULL;
}

/* Finds out which transactions may still use the trees that have left since the last call. */
static void
look_for_more(void)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	struct smart_leaving_tree trees[ONCE];
	int count = smart_leaving_trees(MyDatabaseId, trees, ONCE);

	smart_assert(IsTransactionState() && count <= ONCE);
	for (int i = 0; i < count; i++)
	{
		struct leaving *leaving;
		LOCKTAG tag;

		smart_assert(trees[i].tree != 0 && trees[i].worker == MyProcPid);
		if (is_known(trees[i].tree))
			continue;
		leaving = palloc0(sizeof(*leaving));
		SET_LOCKTAG_RELATION(tag, MyDatabaseId, trees[i].index);
		leaving->tree = trees[i].tree;
		leaving->users = GetLockConflicts(&tag, AccessExclusiveLock, NULL);
		leaving->next = all;
		all = leaving;
	}
	MemoryContextSwitchTo(old);
}

/* Have all users gone? */
static bool
is_left(struct leaving *leaving)
{
	const VirtualTransactionId *user = &leaving->users[leaving->next_user];

	if (smart_tree_is_delta(leaving->tree))
		return !smart_pin_is_held(leaving->tree);
	while (VirtualTransactionIdIsValid(*user) && VirtualXactLock(*user, false))
		user++;
	leaving->next_user = (int) (user - leaving->users);
	return !VirtualTransactionIdIsValid(*user);
}

bool
smart_leaving_free(void)
{
	struct leaving **link = &all;
	bool made_room = false;

	smart_assert(!IsTransactionState());
	StartTransactionCommand();
	look_for_more();
	while (*link != NULL)
	{
		struct leaving *leaving = *link;

		if (!is_left(leaving))
		{
			link = &leaving->next;
			continue;
		}
		smart_assert(leaving->tree != 0);
		/* Where that was given up, there may have been no room for another one.  A failed attempt's makes none. */
		made_room |= !smart_tree_is_delta(leaving->tree) && smart_tree_is_given_up(leaving->tree);
		smart_am_tree_drop(leaving->tree);
		smart_leaving_done(leaving->tree);
		*link = leaving->next;
		pfree(leaving->users);
		pfree(leaving);
	}
	CommitTransactionCommand();
	if (made_room)
		smart_rebuild_hasten();
	return all != NULL;
}

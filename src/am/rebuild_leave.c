/*
 * rebuild_leave.c
 *	  Freeing the trees that rebuilds do not need any more.
 *
 * Who has the index of such a tree open may still be using it, however long the
 * tree has been out of use for everybody else.  So it is freed when all
 * transactions have ended that held a lock of the index when we first saw the tree
 * leave; later ones do not get to it.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/memutils.h"

#include "am/am.h"
#include "am/rebuild.h"
#include "am/rebuild_table.h"

#define LEAVING_ONCE 64

/* A tree, and the transactions that had its index open when we saw it leave. */
struct leaving
{
	uint64 tree;
	VirtualTransactionId *users;
	int next_user; /* those before it have gone */
	struct leaving *next;
};

static struct leaving *leaving_trees = NULL;

static bool
is_known(uint64 tree)
{
	for (const struct leaving *leaving = leaving_trees; leaving != NULL; leaving = leaving->next)
	{
		if (leaving->tree == tree)
			return true;
	}
	return false;
}

/* Finds out who may still use the trees that have left since the last call. */
static void
remember_leaving(void)
{
	struct smart_leaving_tree trees[LEAVING_ONCE];
	int count = smart_leaving_trees(MyDatabaseId, trees, LEAVING_ONCE);
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	for (int i = 0; i < count; i++)
	{
		struct leaving *leaving;
		LOCKTAG tag;

		if (is_known(trees[i].tree))
			continue;
		leaving = palloc0(sizeof(*leaving));
		SET_LOCKTAG_RELATION(tag, MyDatabaseId, trees[i].index);
		leaving->tree = trees[i].tree;
		leaving->users = GetLockConflicts(&tag, AccessExclusiveLock, NULL);
		leaving->next = leaving_trees;
		leaving_trees = leaving;
	}
	MemoryContextSwitchTo(old);
}

/* Has everybody gone? */
static bool
is_unused(struct leaving *leaving)
{
	const VirtualTransactionId *user = &leaving->users[leaving->next_user];

	while (VirtualTransactionIdIsValid(*user) && VirtualXactLock(*user, false))
		user++;
	leaving->next_user = (int) (user - leaving->users);
	return !VirtualTransactionIdIsValid(*user);
}

bool
smart_rebuild_free_left(void)
{
	struct leaving **link = &leaving_trees;

	StartTransactionCommand();
	remember_leaving();
	while (*link != NULL)
	{
		struct leaving *leaving = *link;

		if (!is_unused(leaving))
		{
			link = &leaving->next;
			continue;
		}
		smart_am_tree_drop(leaving->tree);
		smart_leaving_done(leaving->tree);
		*link = leaving->next;
		pfree(leaving->users);
		pfree(leaving);
	}
	CommitTransactionCommand();
	return leaving_trees != NULL;
}

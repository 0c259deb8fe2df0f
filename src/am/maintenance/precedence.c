/*
 * precedence.c
 *	  Who must have a tree (resident = always) comes before who may do without (auto), where there is no room for both.
 *
 * The trees that are given up are those of the same database, since their indexes have to be opened.  An index that may do without
 * answers from its pages; it is loaded again when there is room, and nobody waits for a tree that must be.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "utils/rel.h"

#include "am/compat.h"
#include "am/index/backend.h"
#include "am/index/relation.h"
#include "am/index/trees.h"
#include "am/journal/follow.h"
#include "am/journal/leave.h"
#include "am/journal/lock.h"
#include "am/maintenance/opened.h"
#include "am/maintenance/precedence.h"
#include "am/server/rebuild_table.h"
#include "base/assert.h"

#define ATTEMPTS       3 /* that may fail although others have given up their trees */
#define BYTES_PER_BYTE 2 /* of a tree, at most, for one of its journal */
#define REASON         "an index that must have a tree needs the room"

/* What the tree of an index needs, at most; *least: what it needs at least, unless much of it has been removed. */
static uint64
tree_bytes(Relation index, uint64 *least)
{
	struct smart_meta meta;

	smart_meta_read(index, &meta);
	*least = meta.run_pages * (uint64) BLCKSZ;
	return BYTES_PER_BYTE * (meta.run_pages + (meta.tail_serial - meta.cut.serial) + 1) * BLCKSZ;
}

/* ---- asking ---- */

void
smart_precedence_ask(Relation index)
{
	uint64 least;
	uint64 bytes = tree_bytes(index, &least);
	uint64 wanted;

	if (!smart_relation_may_answer(index))
	{
		smart_rebuild_want_memory(smart_relation_database(index), RelationGetRelid(index), bytes);
		return;
	}
	wanted = smart_rebuild_wanted_memory();
	if (wanted > 0 && !smart_tree_has_room(wanted + bytes))
		ereport(ERROR, errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				errmsg("the loading of index \"%s\" gives way to that of an index that must have a tree",
					   RelationGetRelationName(index)));
}

/* ---- making room ---- */

/* A tree of this database that its index may do without, or does already. */
struct tree
{
	struct smart_tree_info info;
	bool leaves; /* it was given up, and is freed when nobody uses it any more */
};

static int
compare_trees(const void *left, const void *right)
{
	uint64 a = ((const struct tree *) left)->info.bytes;
	uint64 b = ((const struct tree *) right)->info.bytes;

	return a > b ? -1 : a < b;
}

/* All trees of this database that are in use, or leave, the largest first, in CurrentMemoryContext. */
static struct tree *
find_trees(int *count)
{
	int room = 64;
	struct tree *trees = palloc(room * sizeof(struct tree));
	struct smart_trees_cursor cursor = {0};
	struct smart_tree_info info;

	*count = 0;
	while (smart_trees_next(&cursor, &info))
	{
		uint64 removal = info.note[SMART_NOTE_REMOVAL];

		if (info.owner.database != MyDatabaseId || info.owner.backend != SMART_NO_BACKEND || info.lost ||
			(info.owner.flags & SMART_TREE_IS_DELTA) != 0 || (removal != 0 && removal != SMART_GIVEN_UP))
			continue;
		smart_assert(*count <= room);
		if (*count == room)
		{
			room *= 2;
			trees = repalloc(trees, room * sizeof(struct tree));
		}
		trees[(*count)++] = (struct tree){.info = info, .leaves = removal == SMART_GIVEN_UP};
	}
	qsort(trees, *count, sizeof(struct tree), compare_trees);
	return trees;
}

/* Gives up this tree of an index, if it is the one that it reads and it may do without. */
static bool
give_up(Relation index, uint64 tree)
{
	struct smart_meta meta;
	bool done = false;

	if (smart_relation_loss(index) != SMART_LOSS_NONE || smart_relation_tree(index) != tree ||
		!smart_relation_may_answer(index))
		return false;
	smart_meta_read(index, &meta);
	if (RecoveryInProgress())
	{
		smart_follow_give_up(index, tree);
		smart_follow_leave(index, &meta, 0);
		ereport(LOG, errmsg("smart index \"%s\" has left memory: %s", RelationGetRelationName(index), REASON));
		return true;
	}
	/* Who removes entries or loads a tree goes on; there are other trees, or another time. */
	if (smart_journal_try_lock(index, SMART_LOCK_REMOVE))
	{
		done = smart_leave_memory(index, tree, REASON);
		smart_journal_unlock(index, SMART_LOCK_REMOVE);
	}
	return done;
}

/* The index that a tree was made for; InvalidOid: it has another file by now. */
static Oid
index_of(const struct smart_tree_info *info)
{
	smart_file file = smart_make_file(info->owner.tablespace, info->owner.database, info->owner.relation);

	return smart_relation_with_file(&file);
}

/* Gives up this tree, if its index may do without it. */
static bool
try_give_up(const struct smart_tree_info *info)
{
	LOCKMODE lock = RecoveryInProgress() ? AccessShareLock : RowExclusiveLock;
	Oid index = index_of(info);
	struct smart_opened opened;
	volatile bool done = false;

	smart_assert(info->id != 0 && info->owner.database == MyDatabaseId);
	/* Nobody else loads it meanwhile, and frees the tree. */
	if (!OidIsValid(index) || !smart_rebuild_claim(MyDatabaseId, index))
		return false;
	PG_TRY();
	{
		if (smart_try_open(index, lock, lock, &opened) == SMART_OPENED)
		{
			done = give_up(opened.index, info->id);
			smart_opened_close(&opened);
		}
	}
	PG_FINALLY();
	{
		smart_rebuild_disclaim(MyDatabaseId, index);
	}
	PG_END_TRY();
	return done;
}

/* Gives up trees; returns how many bytes are going to be free.  least: none, if that will not do. */
static uint64
free_bytes(uint64 bytes, uint64 least)
{
	int count;
	struct tree *trees = find_trees(&count);
	uint64 there = 0; /* in all these, be it that some of them are to stay */
	uint64 freed = 0;

	for (int i = 0; i < count; i++)
	{
		there += trees[i].info.bytes;
		freed += trees[i].leaves ? trees[i].info.bytes : 0;
	}
	if (there < least && !smart_tree_has_room(least - there))
		return 0;
	for (int i = 0; i < count && freed < bytes; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!trees[i].leaves && try_give_up(&trees[i].info))
			freed += trees[i].info.bytes;
	}
	smart_assert(freed <= there);
	return freed;
}

bool
smart_precedence_make_room(Oid index)
{
	LOCKMODE lock = RecoveryInProgress() ? AccessShareLock : RowExclusiveLock;
	struct smart_rebuild known;
	struct smart_opened opened;
	bool done = false;

	smart_assert(OidIsValid(index));
	if ((smart_rebuild_find(MyDatabaseId, index, &known) && known.failures > ATTEMPTS) ||
		smart_try_open(index, lock, lock, &opened) != SMART_OPENED)
		return false;
	if (smart_relation_is_loadable(opened.index) && !smart_relation_may_answer(opened.index))
	{
		uint64 least;
		uint64 bytes = tree_bytes(opened.index, &least);

		done = free_bytes(bytes, least) > 0;
		if (done)
			smart_rebuild_want_memory(MyDatabaseId, index, bytes);
	}
	smart_opened_close(&opened);
	return done;
}

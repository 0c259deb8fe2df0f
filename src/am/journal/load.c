/*
 * load.c
 *	  Loading: a lost index gets its tree back from its journal, while its table is read and written.
 *
 *	1. No process removes entries (lock.h), so that what comes into the chain meanwhile are adds.
 *	2. The tree is filled with what run and chain hold; no other process knows it.
 *	3. It is opened for adds, and the change is announced.  A writer looks for announcements while it has the tail of the
 *	   chain, or its staging area, locked.  So whatever comes into them from now on is in the tree already.
 *	4. All staging areas are written out, and the chain is applied up to its end.
 *	5. WAL is flushed: what has been read is durable, and needs no undo records (src/README, U2).
 *	6. The metapage names the tree, unless it says that the journal has become stale (vacuum.c).
 *
 * One whose tree was left behind needs less (catch_up.h).
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/rel.h"

#include "am/codec/encode.h"
#include "am/compat.h"
#include "am/index/backend.h"
#include "am/index/relation.h"
#include "am/index/trees.h"
#include "am/journal/catch_up.h"
#include "am/journal/delta.h"
#include "am/journal/follow.h"
#include "am/journal/load.h"
#include "am/journal/lock.h"
#include "am/server/leaving_table.h"
#include "am/server/rebuild_table.h"
#include "am/server/validity.h"
#include "base/assert.h"

#define ATTEMPTS_MAX 10 /* as often runs may be switched faster than one is read */

/* The attempt has failed, also if this process is terminated: its tree leaves. */
static void
give_up(int code, Datum index)
{
	smart_rebuild_cancel(MyDatabaseId, DatumGetObjectId(index));
}

static __attribute__((noreturn)) void
report_invalidated(Relation index)
{
	ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("a row could not be inserted into index \"%s\" while it was loaded", RelationGetRelationName(index)),
			errdetail("The memory node has lost it, is full, or cannot be reached."));
}

/* Steps 2 to 6; false: the reader was left behind. */
static bool
load(Relation index, const struct smart_codec *codec, const struct smart_look *look, struct smart_tree *tree,
	 uint64 *entries)
{
	Oid oid = RelationGetRelid(index);
	struct smart_chain_place place;

	if (!smart_journal_fill(index, codec, tree, look, &place, entries) || !smart_take_adds(index, codec, tree, &place))
		return false;
	if (smart_rebuild_is_invalid(MyDatabaseId, oid, true))
		report_invalidated(index);
	return true;
}

/*
 * The metapage names the tree; false: the journal has become stale.  The change is announced before the tree leaves the
 * table: a session that sees no tree there has to find that its look at the metapage was too early.
 */
static bool
put_into_use(Relation index, const struct smart_codec *codec, uint64 id)
{
	bool done;

	smart_assert(id != 0 && id != SMART_TREE_NOWHERE);
	HOLD_INTERRUPTS();
	done = smart_meta_replace_tree(index, codec, id, true);
	if (done)
	{
		smart_validity_announce(index);
		smart_rebuild_end(MyDatabaseId, RelationGetRelid(index));
	}
	RESUME_INTERRUPTS();
	return done;
}

/*
 * The tree that the metapage names, to be freed when another one is in its place; 0: none.  One that was given up is freed
 * as soon as nobody uses it: there may be no room for both.
 */
static uint64
find_older(Relation index)
{
	uint64 older = smart_relation_tree(index);
	struct smart_tree_info info;

	if (older == 0 || !smart_space_tree_info(&smart_backend_client()->space, older, &info))
		return 0;
	if (smart_tree_is_given_up(older) &&
		(smart_rebuild_holds_tree(older) || smart_leaving_add(MyDatabaseId, RelationGetRelid(index), older)))
		return 0;
	/* That is in no directory. */
	smart_assert(older != SMART_TREE_NOWHERE);
	return older;
}

/* One attempt. */
static bool
try_load(Relation index, const struct smart_look *look, uint64 *entries)
{
	Oid oid = RelationGetRelid(index);
	const struct smart_codec *codec = smart_codec_make(index, CurrentMemoryContext);
	uint64 older = find_older(index);
	struct smart_tree *tree;
	uint64 id;
	bool done;

	id = smart_am_tree_create(index, codec, &tree);
	smart_assert(id != 0 && id != older);
	/* The memory node that was away may be what made this possible. */
	if (!smart_relation_is_loadable(index))
	{
		smart_am_tree_drop(id);
		return false;
	}
	/* From now on it is too late: what is inserted does not go to the older tree any more. */
	if (older != 0)
		smart_tree_give_up(index, older);
	if (!smart_rebuild_begin(MyDatabaseId, oid, 0, id, older))
	{
		smart_am_tree_drop(id);
		ereport(ERROR, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED), errmsg("too many indexes are being loaded"));
	}
	PG_ENSURE_ERROR_CLEANUP(give_up, ObjectIdGetDatum(oid));
	{
		done = load(index, codec, look, tree, entries) && put_into_use(index, codec, id);
	}
	PG_END_ENSURE_ERROR_CLEANUP(give_up, ObjectIdGetDatum(oid));
	if (done)
	{
		struct smart_meta meta;

		smart_meta_read(index, &meta);
		smart_delta_leave(index, true);
		smart_follow_leave(index, &meta, 0);
	}
	else
		smart_rebuild_cancel(MyDatabaseId, oid);
	return done;
}

enum smart_loaded
smart_journal_load(Relation index, const struct smart_look *look, uint64 *entries)
{
	enum smart_loaded loaded = SMART_LOADED_NOT;

	smart_assert(IsTransactionState() && !RecoveryInProgress());
	smart_journal_lock(index, SMART_LOCK_REMOVE);
	if (smart_catch_up(index))
		loaded = SMART_CAUGHT_UP;
	for (int i = 0; i < ATTEMPTS_MAX && loaded == SMART_LOADED_NOT && smart_relation_is_loadable(index); i++)
	{
		if (try_load(index, look, entries))
			loaded = SMART_LOADED;
	}
	if (loaded == SMART_LOADED_NOT && smart_relation_is_loadable(index))
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("the journal of index \"%s\" was compacted faster than it could be read",
					   RelationGetRelationName(index)));
	smart_journal_unlock(index, SMART_LOCK_REMOVE);
	return loaded;
}

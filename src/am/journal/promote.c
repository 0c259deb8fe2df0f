/*
 * promote.c
 *	  After a promotion: an index takes over the tree that the server has loaded as a standby.
 *
 * It is the loading of load.c, with a tree that has nearly everything already; the steps are the same ones.  Queries
 * that were begun in recovery may still be bringing the tree up to date, so the first of them is to lock that out.  Until
 * the change is announced no process that is told so writes to the tree: to them the index is lost.
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
#include "am/journal/apply.h"
#include "am/journal/follow.h"
#include "am/journal/lock.h"
#include "am/journal/promote.h"
#include "am/journal/staging.h"
#include "am/recovery/region_file.h"
#include "am/recovery/undo.h"
#include "am/server/leaving_table.h"
#include "am/server/rebuild_table.h"
#include "am/server/shared.h"
#include "am/server/tree_changes.h"
#include "am/server/validity.h"
#include "base/assert.h"

struct promotion
{
	Relation index;
	uint64 tree;
};

/* The attempt has failed, also if this process is terminated: the tree leaves, and the index is loaded anew. */
static void
give_up(int code, Datum argument)
{
	const struct promotion *promotion = (const struct promotion *) DatumGetPointer(argument);

	smart_assert(promotion->tree != 0);
	(void) smart_space_put_note(&smart_backend_client()->space, promotion->tree, SMART_NOTE_REMOVAL, SMART_GIVEN_UP);
	smart_rebuild_cancel(MyDatabaseId, RelationGetRelid(promotion->index));
	if (!smart_rebuild_holds_tree(promotion->tree))
		(void) smart_leaving_add(MyDatabaseId, RelationGetRelid(promotion->index), promotion->tree);
	smart_follow_unlock(promotion->tree);
}

/* smart_journal_apply's after_piece. */
static bool
after_piece(void *argument, const struct smart_chain_place *place)
{
	smart_follow_note_place(((const struct promotion *) argument)->tree, place);
	return true;
}

/* Opens the tree for adds, and brings it up to date; false: it cannot be. */
static bool
bring_up_to_date(struct promotion *promotion, const struct smart_codec *codec, const struct smart_meta *meta)
{
	Relation index = promotion->index;
	Oid oid = RelationGetRelid(index);
	struct smart_tree *tree = smart_am_tree_open(index, codec, meta);
	/* Where there is no room for a tree, pages answer. */
	enum smart_target target = smart_relation_may_answer(index) ? SMART_TARGET_SPARE : SMART_TARGET_TREE;
	struct smart_tail tail = {0};
	struct smart_chain_place place;

	smart_assert(meta->tree == promotion->tree);
	if (tree == NULL || !smart_follow_place(promotion->tree, &place))
		return false;
	/* Removals are carried out before the tree takes adds: one of them could be of an entry that is added anew. */
	if (!smart_journal_apply(index, codec, NULL, tree, target, &place, after_piece, promotion))
		return false;
	if (!smart_rebuild_begin(MyDatabaseId, oid, 0, promotion->tree, 0))
		ereport(ERROR, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED), errmsg("too many indexes are being loaded"));
	smart_rebuild_use_base(MyDatabaseId, oid);
	smart_changes_announce();
	/* In what comes behind the first end there are none: this process has the lock of removers. */
	smart_staging_write_out(index, &tail, false);
	if (!smart_journal_apply(index, codec, NULL, tree, target, &place, after_piece, promotion))
		return false;
	smart_wal_flush();
	return !smart_rebuild_is_invalid(MyDatabaseId, oid, true);
}

/* Names the tree in the metapage, unless that says that the journal has become stale: false. */
static bool
name(Relation index, const struct smart_meta *named)
{
	struct smart_meta meta;
	Buffer buffer = smart_meta_lock(index, &meta);
	XLogRecPtr end;

	if (!smart_meta_is_loadable(&meta) || meta.losses != named->losses)
	{
		UnlockReleaseBuffer(buffer);
		return false;
	}
	smart_assert(meta.journal == named->journal && named->state == SMART_META_READY);
	smart_assert(named->tree != 0);
	meta.tree = named->tree;
	meta.region = named->region;
	meta.encoding = named->encoding;
	meta.state = named->state;
	meta.leaf_size = named->leaf_size;
	meta.database = named->database;
	end = smart_meta_change(index, buffer, &meta);
	XLogFlush(end);
	return true;
}

/* The tree's lock is held, and released. */
static bool
take(struct promotion *promotion, const struct smart_meta *meta)
{
	Relation index = promotion->index;
	const struct smart_codec *codec = smart_codec_make(index, CurrentMemoryContext);
	volatile bool done = false;

	smart_assert(meta->tree == promotion->tree && meta->state == SMART_META_READY);
	PG_ENSURE_ERROR_CLEANUP(give_up, PointerGetDatum(promotion));
	{
		done = smart_meta_fits(meta, codec) && bring_up_to_date(promotion, codec, meta);
		/* Nothing may come between the metapage and the table. */
		HOLD_INTERRUPTS();
		done = done && name(index, meta);
		if (done)
			smart_rebuild_end(MyDatabaseId, RelationGetRelid(index));
		RESUME_INTERRUPTS();
	}
	PG_END_ENSURE_ERROR_CLEANUP(give_up, PointerGetDatum(promotion));
	if (!done)
	{
		give_up(0, PointerGetDatum(promotion));
		return false;
	}
	(void) smart_space_put_note(&smart_backend_client()->space, promotion->tree, SMART_NOTE_JOURNAL, SMART_PROMOTED);
	smart_follow_unlock(promotion->tree);
	smart_validity_announce(index);
	return true;
}

bool
smart_promote(Relation index)
{
	struct smart_tree_info info;
	struct promotion promotion = {.index = index};
	struct smart_meta meta;

	if (likely(!smart_server_available() || !smart_server.shared->standby) || RecoveryInProgress() ||
		IsInParallelMode())
		return false;
	smart_meta_read(index, &meta);
	if (meta.tree == 0 || meta.journal == 0)
		return false;
	/* The tree goes on as the follower that it has been. */
	if (smart_relation_writes_back(index))
		return false;
	/* A tree that is out of reach cannot be brought up to date: the index is loaded where it can be. */
	if (!smart_tree_of_journal(index, &meta, &info) || smart_tree_is_missed(info.id))
	{
		smart_follow_leave(index, &meta, 0);
		return false;
	}
	/* What is named from now on belongs to this server. */
	smart_region_promote();
	smart_journal_lock(index, SMART_LOCK_REMOVE);
	smart_meta_read(index, &meta);
	/* Another process may have been faster. */
	if (smart_relation_loss(index) != SMART_LOSS_NONE && smart_tree_of_journal(index, &meta, &info))
	{
		promotion.tree = info.id;
		smart_follow_lock(info.id);
		meta.tree = info.id;
		meta.region = smart_meta_region();
		meta.state = SMART_META_READY;
		meta.leaf_size = info.owner.leaf_size;
		meta.database = smart_relation_database(index);
		(void) take(&promotion, &meta);
	}
	smart_journal_unlock(index, SMART_LOCK_REMOVE);
	return smart_relation_loss(index) == SMART_LOSS_NONE;
}

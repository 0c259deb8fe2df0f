/*
 * move.c
 *	  The tree of an index moves to other memory nodes, while the index is read and written (src/README, J11).
 *
 *	1. A new tree is made, on memory nodes that are open.  It is filled as a loading fills one, from the journal, and the
 *	   chain is applied to it, removals too, until little is left.  Nobody waits for that, and no other process knows it.
 *	2. No process removes entries any more.  The rest of the chain is applied, and the new tree is opened for adds, which
 *	   from now on go into both trees.  What writers have staged that did not know is written out and applied.
 *	3. WAL is flushed, the metapage names the new tree, and that is announced: with the announcement all processes come to
 *	   it.  The older one leaves when those that still read it have ended.
 *
 * Without a journal, or with a stale one, the new tree is opened for adds at first.  When the transactions that did not hear
 * of it have ended, the entries of the older one are copied.  Meanwhile the lock on the table, the one of VACUUM, keeps it
 * out; an entry that a scan removes from the older tree is one that VACUUM finds in the new one.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "utils/rel.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "am/codec/encode.h"
#include "am/index/backend.h"
#include "am/index/relation.h"
#include "am/index/trees.h"
#include "am/journal/apply.h"
#include "am/journal/fill.h"
#include "am/journal/lock.h"
#include "am/journal/staging.h"
#include "am/maintenance/loading.h"
#include "am/maintenance/move.h"
#include "am/maintenance/opened.h"
#include "am/maintenance/worker.h"
#include "am/recovery/undo.h"
#include "am/server/rebuild_table.h"
#include "am/server/tree_changes.h"
#include "am/server/validity.h"
#include "base/assert.h"

#define ROUNDS_MAX   10    /* of applying the chain, as long as that has grown by several pages meanwhile */
#define ATTEMPTS_MAX 10    /* as often runs may be switched faster than one is read */
#define LOOK_MS      500   /* between two looks at whether the move gives way */
#define WAIT_MS      20    /* between two looks at a lock */
#define VACUUM_MS    10000 /* for a lock that VACUUMs have; then the move is tried again later */
#define PATIENCE_MS  30000 /* with transactions that have written to the table; then other indexes have their turn */

struct move
{
	struct smart_opened opened;
	const struct smart_codec *codec;
	struct smart_relation *older;
	struct smart_tree *tree; /* the new one */
	uint64 id;
	bool loaded;       /* from the journal; else copied */
	uint32 losses;     /* of the journal, before it was read */
	bool removers_out; /* this process has the lock of removers */
	uint64 entries;
	TimestampTz look; /* when to ask next whether others wait, or the move is not wanted any more */
};

/* ---- whether ---- */

bool
smart_move_is_due(Relation index)
{
	uint64 tree = smart_relation_tree(index);
	struct smart_tree_info info;

	return tree != 0 && smart_space_tree_info(&smart_backend_client()->space, tree, &info) &&
		   smart_tree_has_to_move(&info);
}

/* ---- what may end it ---- */

/* smart_look. */
static void
look_around(void *argument)
{
	struct move *move = argument;
	const struct smart_opened *opened = &move->opened;
	TimestampTz now = GetCurrentTimestamp();

	CHECK_FOR_INTERRUPTS();
	smart_validity_require(opened->index, false, "moved");
	if (now < move->look)
		return;
	move->look = TimestampTzPlusMilliseconds(now, LOOK_MS);
	if (!smart_move_is_due(opened->index))
		ereport(ERROR, errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				errmsg("index \"%s\" has not to be moved any more", RelationGetRelationName(opened->index)));
	/* A VACUUM waits. */
	smart_opened_give_way(opened, RowExclusiveLock, "move");
}

/* The attempt has failed, also if this process is terminated: its tree leaves. */
static void
give_up(int code, Datum argument)
{
	const struct move *move = (const struct move *) DatumGetPointer(argument);

	smart_rebuild_cancel(MyDatabaseId, RelationGetRelid(move->opened.index));
}

/* ---- from the journal ---- */

/* Applies the chain to a tree that no other process knows, until little is left of it; false: left behind. */
static bool
approach(struct move *move, struct smart_chain_place *place)
{
	Relation index = move->opened.index;
	uint64 before;
	int round = 0;

	smart_assert(!move->removers_out);
	do
	{
		before = place->serial;
		if (!smart_journal_apply(index, move->codec, NULL, move->tree, SMART_TARGET_TREE, place, NULL, NULL))
			return false;
		smart_assert(place->serial >= before);
		look_around(move);
	} while (place->serial > before + 1 && ++round < ROUNDS_MAX);
	return true;
}

/* A VACUUM may have it for long. */
static void
lock_out_removers(struct move *move)
{
	smart_assert(!move->removers_out);
	while (!smart_journal_try_lock(move->opened.index, SMART_LOCK_REMOVE))
	{
		look_around(move);
		smart_worker_rest(WAIT_MS);
	}
	move->removers_out = true;
}

/* Steps 1 and 2; false: the reader was left behind. */
static bool
load(struct move *move)
{
	const struct smart_look look = {.around = look_around, .argument = move};
	Relation index = move->opened.index;
	struct smart_tail tail = {0};
	struct smart_chain_place place;
	struct smart_meta meta;

	smart_assert(move->loaded && move->id != 0);
	smart_meta_read(index, &meta);
	move->losses = meta.losses;
	if (!smart_journal_fill(index, move->codec, move->tree, &look, &place, &move->entries) || !approach(move, &place))
		return false;
	lock_out_removers(move);
	/* Removals are carried out before the tree takes adds: one of them could be of an entry that is added anew. */
	if (!smart_journal_apply(index, move->codec, NULL, move->tree, SMART_TARGET_TREE, &place, NULL, NULL))
		return false;
	smart_rebuild_use_base(MyDatabaseId, RelationGetRelid(index));
	smart_changes_announce();
	smart_staging_write_out(index, &tail, false);
	return smart_journal_apply(index, move->codec, NULL, move->tree, SMART_TARGET_TREE, &place, NULL, NULL);
}

/* ---- from the tree ---- */

static void
copy(struct move *move)
{
	const struct smart_look look = {.around = look_around, .argument = move};
	struct smart_scan *scan = smart_relation_scan(move->older);
	uint8 *entry = palloc(SMART_ENTRY_MAX);
	struct smart_batch batch;
	smart_status status;

	smart_assert(!move->loaded && move->id != 0);
	smart_rebuild_use_base(MyDatabaseId, RelationGetRelid(move->opened.index));
	smart_changes_announce();
	smart_wait_for_writers(move->opened.heap, PATIENCE_MS, &look);
	smart_check_status(smart_scan_seek(scan, NULL, 0, NULL, 0, false), move->opened.index);
	while ((status = smart_scan_next(scan, &batch)) == SMART_OK)
	{
		look_around(move);
		smart_add_batch(move->opened.index, move->codec, move->tree, &batch, entry);
		move->entries += batch.count;
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, (int64) move->entries);
	}
	if (status != SMART_DONE)
		smart_report_status(status, move->opened.index);
	pfree(entry);
}

/* ---- the whole ---- */

/*
 * Step 3: nothing may come between the metapage and the table.  False: the index, or its journal, has been lost in the
 * meantime.
 */
static bool
put_into_use(struct move *move)
{
	Relation index = move->opened.index;
	bool done;

	smart_assert(move->id != 0 && move->id != move->older->meta.tree);
	smart_assert(move->removers_out == move->loaded);
	/* What was read has no undo records. */
	smart_wal_flush();
	smart_validity_require(index, true, "moved");
	HOLD_INTERRUPTS();
	done =
		smart_meta_move_tree(index, move->codec, move->older->meta.tree, move->id, move->loaded ? &move->losses : NULL);
	if (done)
		smart_rebuild_end(MyDatabaseId, RelationGetRelid(index));
	RESUME_INTERRUPTS();
	/* It is not counted among those that have to move any more. */
	if (done)
		(void) smart_space_put_note(&smart_backend_client()->space, move->older->meta.tree, SMART_NOTE_CHOSEN, 0);
	return done;
}

/* One attempt. */
static bool
try_move(struct move *move)
{
	Relation index = move->opened.index;
	const struct smart_meta *older = &move->older->meta;
	volatile bool done = false;

	smart_assert(!move->removers_out);
	move->id = smart_am_tree_create(index, move->codec, &move->tree);
	if (!smart_rebuild_begin_move(MyDatabaseId, RelationGetRelid(index), move->id, older->tree, older->leaf_size))
	{
		smart_am_tree_drop(move->id);
		ereport(ERROR, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED), errmsg("too many indexes are being moved"));
	}
	PG_ENSURE_ERROR_CLEANUP(give_up, PointerGetDatum(move));
	{
		if (!move->loaded)
			copy(move);
		done = (!move->loaded || load(move)) && put_into_use(move);
	}
	PG_END_ENSURE_ERROR_CLEANUP(give_up, PointerGetDatum(move));
	if (!done)
		give_up(0, PointerGetDatum(move));
	return done;
}

/* Table and index are open. */
static void
perform(struct move *move)
{
	Relation index = move->opened.index;
	TimestampTz start = GetCurrentTimestamp();
	bool done = false;

	move->codec = smart_codec_make(index, CurrentMemoryContext);
	smart_tell_begin(move->opened.heap, index);
	for (int i = 0; i < ATTEMPTS_MAX && !done; i++)
	{
		done = try_move(move);
		if (move->removers_out)
			smart_journal_unlock(index, SMART_LOCK_REMOVE);
		move->removers_out = false;
	}
	pgstat_progress_end_command();
	if (!done)
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("index \"%s\" could not be moved", RelationGetRelationName(index)),
				errdetail("Its journal was compacted faster than it could be read, or its tree was lost."));
	ereport(LOG, errmsg("smart index \"%s\" has been moved to other memory nodes", RelationGetRelationName(index)),
			errdetail("It has " UINT64_FORMAT " entries; this took %ld ms.", move->entries,
					  TimestampDifferenceMilliseconds(start, GetCurrentTimestamp())));
}

/* Whether the index can be loaded decides about the lock of the table, and is looked at again with that. */
static bool
is_loaded(const struct smart_relation *older)
{
	return older->meta.journal_state == SMART_JOURNAL_WHOLE;
}

static bool
move_with_lock(Oid index, LOCKMODE lock, bool *again)
{
	struct move move = {0};
	bool moved = false;

	smart_assert(lock == RowExclusiveLock || lock == ShareUpdateExclusiveLock);
	*again = false;
	if (!smart_open_conditionally(index, lock, RowExclusiveLock, &move.opened))
		return false;
	if (smart_relation_loss(move.opened.index) == SMART_LOSS_NONE && smart_move_is_due(move.opened.index))
	{
		move.older = smart_relation_open(move.opened.index);
		move.loaded = is_loaded(move.older);
		*again = !move.loaded && lock == RowExclusiveLock;
		moved = !*again;
		if (moved)
			perform(&move);
	}
	index_close(move.opened.index, *again ? RowExclusiveLock : NoLock);
	table_close(move.opened.heap, *again ? lock : NoLock);
	return moved;
}

/* Waits for VACUUMs of the table, one after the other, for some seconds. */
static void
wait_for_vacuum(Oid index)
{
	Oid heap = IndexGetRelation(index, true);
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), VACUUM_MS);

	while (OidIsValid(heap) && !ConditionalLockRelationOid(heap, ShareUpdateExclusiveLock) &&
		   GetCurrentTimestamp() < end)
		smart_worker_rest(WAIT_MS);
}

bool
smart_move_index(Oid index)
{
	bool again;
	bool moved = move_with_lock(index, RowExclusiveLock, &again);

	smart_assert(!(again && moved));
	if (!again)
		return moved;
	wait_for_vacuum(index);
	return move_with_lock(index, ShareUpdateExclusiveLock, &again);
}

/*
 * follow.c
 *	  The trees of a standby: loaded from journals, and brought up to date with what replay has changed in them.
 *
 * A query looks at the metapage and at the end of the chain after its snapshot was taken.  The operations of all rows
 * that the snapshot sees are in WAL before the commits that it sees, so they are in the chain then.  The other way round
 * an entry that leaves the tree early is no harm: replay has waited for all snapshots that might see its row when it
 * pruned the row, which comes first in WAL (src/am/write/removal.c).
 *
 * One process at a time applies the chain to a tree: if an operation was applied by one and then an older one by
 * another, an entry could come back.  The lock is a note of the tree and not one of the server's, since the processes of
 * a parallel query do not keep each other out of those; and a worker has to do this as well, since it begins scans of its
 * own, for which its leader has done nothing.
 *
 * The place is two words, which may be read while they are changed.  Each page has a serial of its own; so what is read
 * half is the serial of one page with the block of another one, which fits no page.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/ipc.h"
#include "utils/rel.h"
#include "utils/wait_event.h"

#include "am/codec/encode.h"
#include "am/compat.h"
#include "am/index/backend.h"
#include "am/index/recent.h"
#include "am/index/trees.h"
#include "am/journal/apply.h"
#include "am/journal/follow.h"
#include "am/journal/page.h"
#include "am/recovery/undo.h"
#include "am/server/leaving_table.h"
#include "am/server/rebuild_table.h"
#include "am/server/shared.h"
#include "am/server/validity.h"
#include "base/assert.h"

#define ATTEMPTS_MAX 10 /* as often runs may be switched faster than one is read */

/* ---- notes ---- */

static uint64
get_note(uint64 tree, enum smart_tree_note which)
{
	uint64 note;

	smart_assert(tree != 0);
	if (!smart_space_get_note(smart_tree_space(tree), tree, which, &note))
		elog(ERROR, "tree " UINT64_FORMAT " is not in the directory", tree);
	return note;
}

static void
put_note(uint64 tree, enum smart_tree_note which, uint64 note)
{
	smart_assert(tree != 0);
	(void) smart_space_put_note(smart_tree_space(tree), tree, which, note);
}

bool
smart_follow_place(uint64 tree, struct smart_chain_place *place)
{
	struct smart_space *space = smart_tree_space(tree);
	uint64 number = 0;
	uint64 left;

	smart_assert(tree != 0);
	*place = (struct smart_chain_place){0};
	/* It may go at any moment, if it is not pinned. */
	if (!smart_space_get_note(space, tree, SMART_NOTE_SERIAL, &place->serial) ||
		!smart_space_get_note(space, tree, SMART_NOTE_PLACE, &number) ||
		!smart_space_get_note(space, tree, SMART_NOTE_REMOVAL, &left))
		return false;
	smart_assert(number != 0);
	place->block = (BlockNumber) (number >> 32);
	place->offset = (uint32) number;
	return left == 0;
}

void
smart_follow_note_place(uint64 tree, const struct smart_chain_place *place)
{
	uint64 number = (uint64) place->block << 32 | place->offset;

	smart_assert((place->serial == 0) == (place->block == InvalidBlockNumber));
	/* The page before may have been let go, and its block be that of a later one: that of the metapage is no page's. */
	if (get_note(tree, SMART_NOTE_SERIAL) != place->serial && get_note(tree, SMART_NOTE_PLACE) >> 32 == place->block)
		put_note(tree, SMART_NOTE_PLACE, place->offset);
	put_note(tree, SMART_NOTE_SERIAL, place->serial);
	put_note(tree, SMART_NOTE_PLACE, number);
}

void
smart_follow_give_up(Relation index, uint64 tree)
{
	smart_assert(tree != 0);
	put_note(tree, SMART_NOTE_REMOVAL, SMART_GIVEN_UP);
	smart_validity_announce(index);
	smart_validity_notice(index);
}

/* ---- one at a time ---- */

/* This process in this start of the server: a tree on memory nodes outlives both, and what is noted with it. */
static uint64
applier(void)
{
	smart_assert(MyProcPid != 0);
	return (smart_server_incarnation() & ~(uint64) PG_UINT32_MAX) | (uint32) MyProcPid;
}

/* Is it of a process of this start?  One that died would have ended that. */
static bool
is_alive(uint64 other)
{
	smart_assert(other != 0);
	return ((other ^ applier()) & ~(uint64) PG_UINT32_MAX) == 0;
}

#define SPINS 64 /* looks at who applies a few operations, before this process sleeps */

/* Has the tree everything up to this place? */
static bool
has_come_to(uint64 tree, const struct smart_chain_place *end)
{
	struct smart_chain_place place;

	/* Half of a new place is of a page that the tree has all of, or fits no page. */
	return smart_follow_place(tree, &place) && smart_place_has_come_to(&place, end);
}

bool
smart_follow_lock_before(uint64 tree, const struct smart_chain_place *end)
{
	struct smart_space *space = smart_tree_space(tree);
	int spins = end == NULL ? 0 : SPINS;
	bool locked = false;

	smart_assert(tree != 0 && MyProcPid != 0);
	for (int looks = 0; !locked && (end == NULL || !has_come_to(tree, end)); looks++)
	{
		uint64 other = get_note(tree, SMART_NOTE_APPLIER);

		if (other == 0 || (looks >= spins && !is_alive(other)))
			locked = smart_space_swap_note(space, tree, SMART_NOTE_APPLIER, other, applier());
		else if (looks < spins)
			pg_spin_delay();
		else
			ConditionVariableSleep(&smart_server.shared->applied, PG_WAIT_EXTENSION);
	}
	ConditionVariableCancelSleep();
	smart_assert(locked || end != NULL);
	return locked;
}

void
smart_follow_lock(uint64 tree)
{
	(void) smart_follow_lock_before(tree, NULL);
}

void
smart_follow_unlock(uint64 tree)
{
	smart_assert(get_note(tree, SMART_NOTE_APPLIER) == applier());
	put_note(tree, SMART_NOTE_APPLIER, 0);
	ConditionVariableBroadcast(&smart_server.shared->applied);
}

static void
unlock_after_error(int code, Datum tree)
{
	smart_follow_unlock((uint64) tree);
}

/* ---- catching up ---- */

enum standing
{
	STANDING_CURRENT, /* the tree has all that the journal has */
	STANDING_OLDER,   /* there may be more in the chain */
	STANDING_LOST     /* it cannot go on with this journal */
};

bool
smart_follow_is_at_end(Relation index, const struct smart_meta *meta, const struct smart_chain_place *place,
					   struct smart_chain_place *end)
{
	bool is_at_end = false;
	Buffer buffer;
	Page page;

	*end = (struct smart_chain_place){.serial = PG_UINT64_MAX};
	if (place->serial == 0)
		return meta->tail_serial == 0;
	buffer = smart_read_recent(index, place->block);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	if (smart_page_is(page, SMART_PAGE_LOG, meta->journal, place->serial) &&
		smart_page_head(page)->next == InvalidBlockNumber)
	{
		*end = (struct smart_chain_place){.serial = place->serial,
										  .block = place->block,
										  .offset = ((PageHeader) page)->pd_lower};
		is_at_end = end->offset == place->offset;
	}
	UnlockReleaseBuffer(buffer);
	return is_at_end;
}

/* How the tree stands to what has been replayed; *place: up to where it has everything. */
static enum standing
look(Relation index, uint64 tree, struct smart_chain_place *place)
{
	struct smart_chain_place end;
	struct smart_meta meta;

	if (!smart_follow_place(tree, place))
		return STANDING_LOST;
	smart_meta_read_again(index, &meta);
	if (!smart_meta_is_loadable(&meta) || meta.journal != get_note(tree, SMART_NOTE_JOURNAL) ||
		meta.losses != get_note(tree, SMART_NOTE_LOSSES))
		return STANDING_LOST;
	return smart_follow_is_at_end(index, &meta, place, &end) ? STANDING_CURRENT : STANDING_OLDER;
}

/* What is applied, and to which tree. */
struct applying
{
	uint64 tree;
	const struct smart_way *way;
};

/* smart_journal_apply's after_piece. */
static bool
after_piece(void *argument, const struct smart_chain_place *place)
{
	const struct applying *applying = argument;

	smart_assert(applying->tree != 0);
	smart_follow_note_place(applying->tree, place);
	return applying->way == NULL || !applying->way->is_awaited(applying->way->argument);
}

/*
 * Would another attempt come to the same error?  Not if this process was told to stop, or was in replay's way; nor if a
 * memory node did not answer: what was carried out from the tree's place on is carried out again.
 */
static bool
is_of_tree(int code)
{
	return ERRCODE_TO_CATEGORY(code) != ERRCODE_OPERATOR_INTERVENTION &&
		   ERRCODE_TO_CATEGORY(code) != ERRCODE_TRANSACTION_ROLLBACK &&
		   ERRCODE_TO_CATEGORY(code) != ERRCODE_CONNECTION_EXCEPTION;
}

/* The tree cannot go on with the journal. */
static void
let_go(Relation index, uint64 tree, enum standing standing)
{
	smart_assert(standing != STANDING_CURRENT);
	if (get_note(tree, SMART_NOTE_REMOVAL) != 0)
		return;
	ereport(LOG,
			RecoveryInProgress()
				? errmsg("smart index \"%s\" has to be loaded anew on this standby server",
						 RelationGetRelationName(index))
				: errmsg("smart index \"%s\" has to be loaded anew on memory nodes", RelationGetRelationName(index)),
			standing == STANDING_LOST
				? errdetail("Its journal is not whole, or has been written anew.")
				: errdetail("Its journal was compacted faster than it was read, or it has no room."));
	smart_follow_give_up(index, tree);
}

bool
smart_follow_apply(Relation index, const struct smart_relation *self, enum smart_target target,
				   const struct smart_way *way)
{
	uint64 tree = self->meta.tree;
	struct applying applying = {.tree = tree, .way = way};
	struct smart_chain_place place;
	enum standing standing = look(index, tree, &place);
	volatile bool done = standing == STANDING_CURRENT;

	/* No delta, whose run a metapage would have to tell of. */
	smart_assert(target == SMART_TARGET_TREE || target == SMART_TARGET_SPARE);
	smart_assert(self->tree != NULL);
	if (standing == STANDING_OLDER)
	{
		PG_TRY();
		{
			done = smart_journal_apply(index, self->codec, NULL, self->tree, target, &place, after_piece, &applying);
		}
		PG_CATCH();
		{
			/* Statements do without it until it is loaded anew. */
			if (is_of_tree(geterrcode()))
				smart_follow_give_up(index, tree);
			PG_RE_THROW();
		}
		PG_END_TRY();
	}
	if (!done)
		let_go(index, tree, standing);
	return done;
}

bool
smart_follow_catch_up(Relation index, const struct smart_relation *self)
{
	uint64 tree = self->meta.tree;
	enum smart_target target = smart_relation_may_answer(index) ? SMART_TARGET_SPARE : SMART_TARGET_TREE;
	struct smart_chain_place place;
	volatile bool done = false;

	smart_assert(self->standby && self->tree != NULL);
	if (likely(look(index, tree, &place) == STANDING_CURRENT))
		return true;
	smart_follow_lock(tree);
	PG_ENSURE_ERROR_CLEANUP(unlock_after_error, (Datum) tree);
	{
		/* From the end of recovery on the chain is applied by promotion alone, since there are writers (promote.c). */
		if (RecoveryInProgress())
			done = smart_follow_apply(index, self, target, NULL);
	}
	PG_END_ENSURE_ERROR_CLEANUP(unlock_after_error, (Datum) tree);
	smart_follow_unlock(tree);
	return done;
}

/* ---- moments ---- */

void
smart_follow_take_moment(Relation index, const struct smart_relation *self, struct smart_follow_moment *moment)
{
	uint64 tree = self->meta.tree;
	struct smart_space *space = smart_tree_space(tree);

	moment->tree = 0;
	/* Who is given up meanwhile reads on in it, as every scan that has begun. */
	if (RecoveryInProgress() && smart_follow_catch_up(index, self) && smart_follow_place(tree, &moment->place) &&
		smart_space_get_note(space, tree, SMART_NOTE_JOURNAL, &moment->journal) &&
		smart_space_get_note(space, tree, SMART_NOTE_LOSSES, &moment->losses))
		moment->tree = tree;
}

bool
smart_follow_is_moment(Relation index, const struct smart_follow_moment *moment)
{
	struct smart_chain_place end;
	struct smart_meta meta;

	smart_assert(moment->tree != 0);
	smart_meta_read_again(index, &meta);
	return smart_meta_is_loadable(&meta) && meta.journal == moment->journal && meta.losses == moment->losses &&
		   smart_follow_is_at_end(index, &meta, &moment->place, &end);
}

/* ---- loading ---- */

/* The tree leaves, which no other process has seen. */
static void
drop_after_error(int code, Datum tree)
{
	smart_am_tree_drop((uint64) tree);
}

void
smart_follow_leave(Relation index, const struct smart_meta *meta, uint64 keep)
{
	struct smart_space *space = &smart_backend_client()->space;
	struct smart_tree_info info;
	uint64 cursor = 0;

	while (smart_space_next_tree(space, &cursor, &info))
	{
		if (info.id != keep && info.owner.flags == SMART_TREE_IS_FOLLOWER &&
			info.owner.database == smart_relation_database(index) && info.note[SMART_NOTE_JOURNAL] == meta->journal &&
			!smart_rebuild_holds_tree(info.id))
		{
			/* Also one that is being loaded at this moment: nobody is to find it when it is done. */
			(void) smart_space_put_note(space, info.id, SMART_NOTE_REMOVAL, SMART_GIVEN_UP);
			(void) smart_leaving_add(smart_relation_database(index), RelationGetRelid(index), info.id);
		}
	}
}

/* One attempt; false: the reader was left behind. */
static bool
try_load(Relation index, const struct smart_look *around, uint64 *entries)
{
	const struct smart_codec *codec = smart_codec_make(index, CurrentMemoryContext);
	struct smart_chain_place place;
	struct smart_meta meta;
	volatile bool done = false;
	uint64 id;

	/* The losses come from here, before anything is read: one that follows is noticed by who uses the tree. */
	smart_meta_read(index, &meta);
	if (!smart_meta_is_loadable(&meta) || meta.tree == 0)
		return false;
	smart_check_status(smart_tree_make_follower(index, &meta, &id), index);
	smart_assert(id != 0);
	PG_ENSURE_ERROR_CLEANUP(drop_after_error, (Datum) id);
	{
		struct smart_tree *tree;

		meta.tree = id;
		meta.region = smart_meta_region();
		meta.database = smart_relation_database(index);
		tree = smart_am_tree_open(index, codec, &meta);
		if (tree == NULL)
			elog(ERROR, "tree " UINT64_FORMAT " is not in the directory", id);
		done = smart_journal_fill(index, codec, tree, around, &place, entries);
	}
	PG_END_ENSURE_ERROR_CLEANUP(drop_after_error, (Datum) id);
	if (!done)
	{
		smart_am_tree_drop(id);
		return false;
	}
	/* A primary's is found after a crash, and has no undo records. */
	if (!RecoveryInProgress())
		smart_wal_flush();
	smart_follow_note_place(id, &place);
	/* The change is announced before older trees leave: no session comes to one of them from then on. */
	smart_validity_announce(index);
	smart_follow_leave(index, &meta, id);
	return true;
}

static bool
is_wanted(Relation index)
{
	return RecoveryInProgress() ? smart_relation_is_loadable(index) : smart_relation_wants_follower(index);
}

enum smart_loaded
smart_follow_load(Relation index, const struct smart_look *look, uint64 *entries)
{
	bool loaded = false;

	for (int i = 0; i < ATTEMPTS_MAX && !loaded && is_wanted(index); i++)
		loaded = try_load(index, look, entries);
	return loaded ? SMART_LOADED : SMART_LOADED_NOT;
}

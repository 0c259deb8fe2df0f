/*
 * delta.c
 *	  The delta of an index that answers from the pages of its journal.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "am/compat.h"
#include "am/index/backend.h"
#include "am/index/options.h"
#include "am/index/trees.h"
#include "am/journal/apply.h"
#include "am/journal/delta.h"
#include "am/journal/delta_entry.h"
#include "am/journal/follow.h"
#include "am/journal/lock.h"
#include "am/journal/spent.h"
#include "am/server/launcher_requests.h"
#include "am/server/leaving_table.h"
#include "am/server/rebuild_table.h"
#include "base/assert.h"

#define ATTEMPTS_MAX 10 /* as often it may be let go before it is found */

/* The codec for the delta's handle: what lies behind the keys of entries is not always as long. */
static struct smart_codec *
codec_of(const struct smart_codec *codec)
{
	struct smart_codec *own = palloc(codec->size);

	memcpy(own, codec, codec->size);
	own->payload_width = -1;
	return own;
}

/* What a metapage would say that named the delta. */
static struct smart_meta
meta_of(Relation index, const struct smart_meta *meta, uint64 tree)
{
	struct smart_meta own = *meta;

	smart_assert(tree != 0 && meta->journal != 0);
	own.tree = tree;
	own.region = smart_meta_delta_region();
	own.database = smart_relation_database(index);
	if (own.fixed_length > 0)
		own.fixed_length++;
	return own;
}

/* A delta takes the last memory of a region, too. */
static void
use_reserve(bool use)
{
	smart_delta_client()->space.uses_reserve = use;
}

/* ---- making it ---- */

static bool
is_full(smart_status status)
{
	return status == SMART_NO_SPACE || status == SMART_DISK_FULL;
}

/* Fills an empty delta with what the chain has.  False: the journal has gone on, or there is no room. */
static bool
fill(Relation index, const struct smart_codec *codec, const struct smart_meta *meta, const struct smart_look *look,
	 struct smart_load *load, struct smart_chain_place *place)
{
	struct smart_last_operation *last = palloc(sizeof(*last));
	struct smart_sorted_chain *chain;
	enum smart_found found = smart_sorted_chain_begin(index, codec, meta, look, NULL, &chain, place);
	uint8 entry[SMART_ENTRY_MAX];

	if (found != SMART_FOUND_END)
		return false;
	while ((found = smart_sorted_chain_next(chain, last)) == SMART_FOUND)
	{
		int length = smart_delta_entry(codec, smart_delta_mark(last->operation), last->entry, last->length, entry);
		smart_status status;

		CHECK_FOR_INTERRUPTS();
		status = smart_load_add(load, entry, (size_t) length);
		if (is_full(status))
			return false;
		smart_check_status(status, index);
	}
	smart_sorted_chain_end(chain);
	pfree(last);
	return found == SMART_FOUND_END;
}

/* The tree leaves, which no other process has seen. */
static void
drop_after_error(int code, Datum tree)
{
	use_reserve(false);
	smart_am_tree_drop((uint64) tree);
}

static bool
build(Relation index, const struct smart_codec *codec, const struct smart_meta *meta, const struct smart_look *look,
	  struct smart_tree *tree, struct smart_chain_place *place)
{
	struct smart_load *volatile load = NULL;
	volatile bool done = false;

	PG_TRY();
	{
		struct smart_load *begun;

		smart_check_status(smart_load_begin(tree, (unsigned int) smart_options_fillfactor(index), &begun), index);
		load = begun;
		done = fill(index, codec, meta, look, begun, place);
		load = NULL; /* finish frees it whatever comes out */
		if (done)
		{
			smart_status status = smart_load_finish(begun);

			done = !is_full(status);
			if (done)
				smart_check_status(status, index);
		}
		else
			smart_load_abandon(begun);
	}
	PG_CATCH();
	{
		if (load != NULL)
			smart_load_abandon(load);
		PG_RE_THROW();
	}
	PG_END_TRY();
	smart_assert(load == NULL);
	return done;
}

/*
 * Pins a delta.  False: it leaves, and may have gone.  In this order, since one that leaves is noted so before its pins are looked
 * at.
 */
static bool
pin_delta(uint64 tree, struct smart_pin_ticket *pin)
{
	uint64 left;

	smart_assert(tree != 0);
	*pin = smart_pin_enter(tree);
	if (smart_space_get_note(&smart_delta_client()->space, tree, SMART_NOTE_REMOVAL, &left) && left == 0)
		return true;
	smart_pin_leave(pin);
	return false;
}

/* Makes the delta; false: there is no room, or the journal has gone on. */
static bool
make(Relation index, const struct smart_codec *codec, const struct smart_meta *meta, const struct smart_look *look)
{
	volatile bool done = false;
	struct smart_pin_ticket pin;
	smart_status status;
	uint64 id;

	/* A file that is new in this transaction goes with it. */
	if (index->rd_createSubid != InvalidSubTransactionId ||
		smart_relation_new_file_subid(index) != InvalidSubTransactionId)
		smart_orphans_note(SMART_ORPHANS_IF_ABORTED);
	use_reserve(true);
	status = smart_tree_make_delta(index, meta, !smart_relation_is_carried(index, meta), &id);
	use_reserve(false);
	if (is_full(status))
		return false;
	smart_check_status(status, index);
	smart_assert(id != 0);
	(void) smart_spent_begin(id);
	/* A compaction that ends meanwhile lets it go before anybody has found it. */
	if (!pin_delta(id, &pin))
		return false;
	PG_ENSURE_ERROR_CLEANUP(drop_after_error, (Datum) id);
	{
		const struct smart_meta own = meta_of(index, meta, id);
		struct smart_tree *tree = smart_am_tree_open(index, codec_of(codec), &own);
		struct smart_chain_place place;

		if (tree == NULL)
			elog(ERROR, "tree " UINT64_FORMAT " is not in the directory", id);
		use_reserve(true);
		done = build(index, codec, meta, look, tree, &place);
		if (done)
			smart_follow_note_place(id, &place);
	}
	PG_END_ENSURE_ERROR_CLEANUP(drop_after_error, (Datum) id);
	use_reserve(false);
	if (!done)
		smart_am_tree_drop(id);
	smart_pin_leave(&pin);
	return done;
}

/* The same; what it takes of this process's memory goes afterwards. */
static bool
make_apart(Relation index, const struct smart_codec *codec, const struct smart_meta *meta,
		   const struct smart_look *look)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "smart delta", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	bool done = make(index, codec, meta, look);

	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return done;
}

/* ---- opening it ---- */

struct smart_relation *
smart_delta_find(Relation index, const struct smart_codec *codec, const struct smart_meta *meta,
				 struct smart_pin_ticket *pin)
{
	struct smart_tree_info info;

	while (smart_tree_of_delta(index, meta, &info))
	{
		struct smart_meta own = meta_of(index, meta, info.id);

		if (pin_delta(info.id, pin))
			return smart_relation_open_tree(index, codec_of(codec), &own);
	}
	return NULL;
}

static struct smart_relation *
find_or_make(Relation index, const struct smart_codec *codec, const struct smart_meta *meta,
			 const struct smart_look *look, struct smart_pin_ticket *pin)
{
	struct smart_relation *delta = smart_delta_find(index, codec, meta, pin);

	if (delta != NULL)
		return delta;
	/* One process makes it. */
	smart_journal_lock(index, SMART_LOCK_DELTA);
	delta = smart_delta_find(index, codec, meta, pin);
	/* It may be let go before it is found, as a follower has been loaded. */
	for (int i = 0; i < ATTEMPTS_MAX && delta == NULL && make_apart(index, codec, meta, look); i++)
		delta = smart_delta_find(index, codec, meta, pin);
	smart_journal_unlock(index, SMART_LOCK_DELTA);
	return delta;
}

struct smart_relation *
smart_delta_open(Relation index, const struct smart_codec *codec, const struct smart_meta *meta,
				 struct smart_pin_ticket *pin)
{
	return find_or_make(index, codec, meta, &smart_look_for_interrupts, pin);
}

bool
smart_delta_pin(const struct smart_relation *delta, struct smart_pin_ticket *pin)
{
	return pin_delta(delta->meta.tree, pin);
}

bool
smart_delta_is_there(Relation index, const struct smart_meta *meta)
{
	struct smart_tree_info info;

	return smart_tree_of_delta(index, meta, &info);
}

/* ---- leaving ---- */

/* Nobody opens it any more; who has it open goes on reading it. */
static void
leave(Relation index, uint64 tree)
{
	smart_assert(tree != 0);
	(void) smart_space_put_note(&smart_delta_client()->space, tree, SMART_NOTE_REMOVAL, SMART_GIVEN_UP);
	(void) smart_leaving_add(smart_relation_database(index), RelationGetRelid(index), tree);
}

void
smart_delta_leave(Relation index, bool all)
{
	struct smart_space *space = &smart_delta_client()->space;
	struct smart_tree_info info;
	struct smart_meta meta;
	uint64 cursor = 0;

	smart_meta_read(index, &meta);
	while (smart_space_next_tree(space, &cursor, &info))
	{
		if ((info.owner.flags & SMART_TREE_IS_DELTA) == 0 || info.owner.database != smart_relation_database(index) ||
			info.note[SMART_NOTE_JOURNAL] != meta.journal || smart_rebuild_holds_tree(info.id) ||
			(!all && info.note[SMART_NOTE_LOSSES] == meta.run))
			continue;
		/* Also one that is being made at this moment: nobody is to find it when it is done. */
		leave(index, info.id);
	}
}

/* ---- catching up ---- */

/* smart_journal_apply's after_piece. */
static bool
after_piece(void *argument, const struct smart_chain_place *place)
{
	smart_follow_note_place(*(const uint64 *) argument, place);
	return true;
}

static void
unlock_after_error(int code, Datum tree)
{
	use_reserve(false);
	smart_follow_unlock((uint64) tree);
}

/* Is it over the run of now?  *current: it has all that the chain has, up to *end. */
static bool
look(Relation index, const struct smart_relation *delta, struct smart_meta *meta, struct smart_chain_place *end,
	 bool *current)
{
	struct smart_chain_place place;

	if (!smart_follow_place(delta->meta.tree, &place))
		return false;
	smart_meta_refresh(index, meta);
	if (!smart_meta_is_loadable(meta) || meta->journal != delta->meta.journal || meta->run != delta->meta.run)
		return false;
	*current = smart_follow_is_at_end(index, meta, &place, end);
	return true;
}

bool
smart_delta_is_current(Relation index, const struct smart_relation *delta, const struct smart_meta *meta)
{
	struct smart_chain_place place;
	struct smart_chain_place end;

	return smart_follow_place(delta->meta.tree, &place) && smart_follow_is_at_end(index, meta, &place, &end);
}

static enum smart_target
target_of(uint64 tree)
{
	if (smart_tree_is_lean(tree))
		return SMART_TARGET_LEAN_DELTA;
	return smart_spent_turn(tree) == 0 ? SMART_TARGET_DELTA : SMART_TARGET_DELTA_1;
}

/* The same for who has locked it; false: it cannot go on. */
static bool
apply(Relation index, const struct smart_codec *codec, const struct smart_relation *delta,
	  const struct smart_meta *meta)
{
	uint64 tree = delta->meta.tree;
	enum smart_target target = target_of(tree);
	struct smart_chain_place place;
	bool done;

	smart_assert(delta->tree != NULL);
	if (!smart_follow_place(tree, &place))
		return false;
	use_reserve(true);
	done = smart_journal_apply(index, codec, meta, delta->tree, target, &place, after_piece, &tree);
	use_reserve(false);
	/* One that is made anew has one operation for each entry. */
	if (!done)
		leave(index, tree);
	return done;
}

bool
smart_delta_catch_up(Relation index, const struct smart_codec *codec, const struct smart_relation *delta,
					 struct smart_meta *meta)
{
	uint64 tree = delta->meta.tree;
	struct smart_chain_place place;
	struct smart_chain_place end;
	volatile bool usable = false;
	bool current;

	if (!look(index, delta, meta, &end, &current))
		return false;
	if (likely(current))
		return true;
	/* Where many write, one process applies what all of them have appended, unless it has found that the delta must leave. */
	if (!smart_follow_lock_before(tree, &end))
		return smart_follow_place(tree, &place);
	PG_ENSURE_ERROR_CLEANUP(unlock_after_error, (Datum) tree);
	{
		usable = apply(index, codec, delta, meta);
	}
	PG_END_ENSURE_ERROR_CLEANUP(unlock_after_error, (Datum) tree);
	smart_follow_unlock(tree);
	return usable;
}

/* ---- ahead of its readers ---- */

void
smart_delta_prepare(Relation index, const struct smart_look *look)
{
	const struct smart_codec *codec = smart_codec_make(index, CurrentMemoryContext);
	struct smart_relation *delta;
	struct smart_pin_ticket pin;
	struct smart_meta meta;

	smart_meta_read(index, &meta);
	if (!smart_meta_is_loadable(&meta))
		return;
	delta = find_or_make(index, codec, &meta, look, &pin);
	if (delta == NULL)
		return;
	(void) smart_delta_catch_up(index, codec, delta, &meta);
	smart_pin_leave(&pin);
}

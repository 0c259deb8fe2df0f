/*
 * versions.c
 *	  Entries of dead versions of a row, which whoever inserts another version removes.
 *
 * A row that is updated again and again leaves an entry for each of its versions, until VACUUM comes.  Two inserts meet
 * them: the check of a unique index, which looks at all entries of the key anyway; and the insert of a version whose
 * columns of the index have not changed, as the executor tells (nbtree deletes such entries "bottom-up" before it splits a
 * page for them).  When sixteen dead ones have come together they are removed.  Fewer are not worth a leaf's rewriting.  So
 * what a key costs does not grow with the number of its updates.
 *
 * A removal from a tree with a journal takes a flush of WAL, and on memory nodes round trips.  So the worker is told
 * (dead_entries.h), and is woken when it is told again, of thirty-two: keys of many rows come together meanwhile.  If more
 * come together all the same, it has fallen behind or does not run, and a session removes them itself: later if its own
 * commits do not wait for WAL (synchronous_commit = off), never on memory nodes.
 * Where pages answer, or without a journal, a removal waits for nothing, and sessions do it always.
 *
 * Not every attempt succeeds: a session may have the table's page pinned, so that it is not pruned, or VACUUM may be at
 * work.  The number of dead entries grows on then, and the next attempt comes a while later.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "access/xact.h"
#include "common/pg_prng.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "am/compat.h"
#include "am/index/pin.h"
#include "am/index/relation.h"
#include "am/journal/chain.h"
#include "am/journal/view.h"
#include "am/scan/kill.h"
#include "am/server/dead_rows.h"
#include "am/server/kill_queue.h"
#include "am/server/shared.h"
#include "am/server/tree_changes.h"
#include "am/write/dead_entries.h"
#include "am/write/unique.h"
#include "am/write/versions.h"
#include "base/assert.h"

#define WORTH_REMOVING 16 /* dead entries of one key */

#define WORTH_HURRY 32 /* they have been handed over before, and the worker has not come */

/* So many are worth a session's flush of WAL; and one that its commit does not wait for. */
#define WORTH_A_FLUSH      64
#define WORTH_ANOTHER_WAIT 1024

/* Of so many inserts of unchanged columns one looks for dead versions.  Primes, since the indexes of a table take turns. */
#define INSERTS_PER_LOOK        31
#define REMOTE_INSERTS_PER_LOOK 127 /* it takes a round trip */

#define ASKED_MAX 128 /* rows that it asks the table for */

/* ---- removal ---- */

/* The keys of the rows, in CurrentMemoryContext. */
static struct smart_entries
make_keys(const struct smart_candidate *candidate, const struct smart_versions *versions)
{
	size_t columns_length = (size_t) candidate->columns_length;
	uint32 count = versions->listed;
	uint8 *bytes = palloc(count * (columns_length + SMART_TID_LONGEST));
	uint32 *start = palloc((count + 1) * sizeof(uint32));
	uint8 *at = bytes;

	smart_assert(columns_length > 0 && count > 0 && count <= SMART_VERSIONS_LISTED);
	for (uint32 i = 0; i < count; i++)
	{
		start[i] = (uint32) (at - bytes);
		memcpy(at, candidate->entry, columns_length);
		at = smart_entry_put_tid(candidate->relation->codec, at + columns_length, &versions->rows[i]);
	}
	start[count] = (uint32) (at - bytes);
	smart_assert(start[count] <= count * (columns_length + SMART_TID_LONGEST));
	return (struct smart_entries){.bytes = bytes, .start = start, .count = count};
}

static bool
is_journaled(const struct smart_candidate *candidate)
{
	return candidate->relation->meta.journal_state != SMART_JOURNAL_NONE;
}

/* Is a removal left to the worker, since the session would have to wait for it? */
static bool
is_the_workers(const struct smart_candidate *candidate, const struct smart_versions *versions)
{
	if (!is_journaled(candidate) || candidate->relation->view != NULL)
		return false;
	return smart_server.remote ||
		   versions->dead < (synchronous_commit == SYNCHRONOUS_COMMIT_OFF ? WORTH_ANOTHER_WAIT : WORTH_A_FLUSH);
}

/* Removes entries without a journal. */
static void
kill_entries(const struct smart_candidate *candidate, const struct smart_entries *keys)
{
	struct smart_kills kills;

	smart_assert(!is_journaled(candidate));
	smart_kills_init(&kills);
	for (uint32 i = 0; i < keys->count; i++)
	{
		if (kills.count == SMART_KILLS_MAX)
			smart_kills_apply(&kills, candidate->relation, candidate->heap);
		smart_kills_note(&kills, keys->bytes + keys->start[i], (int) (keys->start[i + 1] - keys->start[i]));
	}
	smart_kills_apply(&kills, candidate->relation, candidate->heap);
	smart_kills_release(&kills);
}

/*
 * Tells the worker of the keys.  It comes at once if it was told of the row before, unless that takes round trips: the more
 * keys of many rows come together, the better.
 */
static void
hand_over(const struct smart_candidate *candidate, const struct smart_entries *keys)
{
	smart_assert(is_journaled(candidate) && keys->count > 0);
	smart_kill_queue_put(smart_relation_database(candidate->index), RelationGetRelid(candidate->index), keys->bytes,
						 keys->start, keys->count);
	if (!smart_server.remote && keys->count >= WORTH_HURRY)
		smart_kill_queue_hurry();
}

static void
remove_versions(const struct smart_candidate *candidate, const struct smart_versions *versions)
{
	MemoryContext own = AllocSetContextCreate(CurrentMemoryContext, "smart dead versions", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(own);
	struct smart_entries keys = make_keys(candidate, versions);

	smart_assert(versions->dead > 0 && versions->listed <= versions->dead);
	if (!is_journaled(candidate))
		kill_entries(candidate, &keys);
	else if (is_the_workers(candidate, versions))
		hand_over(candidate, &keys);
	else
		(void) smart_dead_entries_remove(candidate->heap, candidate->index, &keys);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(own);
}

/*
 * When as many have come together again, an attempt is made again.  The worker, which comes later, is told again only when there
 * are twice as many.
 */
static bool
is_worth_it(const struct smart_candidate *candidate, const struct smart_versions *versions)
{
	uint32 times = versions->dead / WORTH_REMOVING;
	bool more = times > (versions->dead - versions->fresh) / WORTH_REMOVING;

	smart_assert(versions->dead > 0 && versions->fresh <= versions->dead);
	if (!is_journaled(candidate) && versions->fresh > 0)
		return true;
	if (is_the_workers(candidate, versions))
		return more && (times & (times - 1)) == 0;
	/* Others may have found them first, or only some could go. */
	return more || (times > 0 && pg_prng_uint64(&pg_global_prng_state) % WORTH_REMOVING == 0);
}

void
smart_versions_after_check(const struct smart_candidate *candidate, const struct smart_versions *versions)
{
	if (unlikely(versions->dead > 0) && is_worth_it(candidate, versions))
		remove_versions(candidate, versions);
}

/* ---- columns that have not changed ---- */

/* Is the row dead for all transactions?  Remembered ones are; else the table is asked, *questions times at most. */
static bool
is_dead(const struct smart_candidate *candidate, ItemPointerData *tid, struct smart_dead_rows *rows, uint32 *questions,
		bool *fresh)
{
	ItemPointerData root = *tid;
	bool all_dead = false;

	*fresh = false;
	if (ItemPointerEquals(tid, candidate->tid))
		return false;
	if (smart_dead_rows_any(rows) && smart_dead_rows_has(rows, tid))
		return true;
	if (*questions == 0)
		return false;
	--*questions;
	*fresh = !table_index_fetch_tuple_check(candidate->heap, &root, SnapshotSelf, &all_dead) && all_dead;
	if (*fresh)
		(void) smart_dead_rows_note(rows, tid);
	return *fresh;
}

/* What a pin keeps VACUUM waiting for, and dead rows are remembered by. */
static uint64
pinned(const struct smart_relation *relation)
{
	return relation->view != NULL ? smart_view_pinned(relation->view) : relation->meta.tree;
}

static bool
seek(struct smart_relation *relation, const uint8 *from, size_t from_length, const uint8 *to, size_t to_length)
{
	if (relation->view == NULL)
		return smart_scan_seek(smart_relation_scan(relation), from, from_length, to, to_length, false) == SMART_OK;
	smart_view_seek(relation->view, from, (uint32) from_length, to, (uint32) to_length, false);
	return true;
}

static bool
next(struct smart_relation *relation, struct smart_batch *batch)
{
	if (relation->view == NULL)
		return smart_relation_next(smart_relation_scan(relation), batch) == SMART_OK;
	return smart_view_next(relation->view, batch) == SMART_FOUND;
}

/*
 * Looks at the entries with the candidate's columns whose rows are on its page of the table, or on the one before.  There
 * most of its versions are; and of columns that many rows share there are not many.
 */
static void
look_nearby(const struct smart_candidate *candidate, struct smart_versions *versions)
{
	struct smart_relation *relation = candidate->relation;
	BlockNumber block = ItemPointerGetBlockNumber(candidate->tid);
	uint32 columns_length = (uint32) candidate->columns_length;
	uint8 from[SMART_KEY_MAX];
	uint8 to[SMART_KEY_MAX];
	uint32 questions = ASKED_MAX;
	struct smart_dead_rows rows;
	struct smart_batch batch;
	ItemPointerData tid;
	size_t from_length;
	size_t to_length;

	smart_assert(columns_length > 0 && columns_length + SMART_TID_LONGEST <= sizeof(from));
	memcpy(from, candidate->entry, columns_length);
	memcpy(to, candidate->entry, columns_length);
	ItemPointerSet(&tid, block > 0 ? block - 1 : 0, FirstOffsetNumber);
	from_length = (size_t) (smart_entry_put_tid(relation->codec, from + columns_length, &tid) - from);
	ItemPointerSet(&tid, block, MaxOffsetNumber);
	to_length = (size_t) (smart_entry_put_tid(relation->codec, to + columns_length, &tid) - to);
	smart_dead_rows_begin(&rows, candidate->index);
	smart_dead_rows_choose(&rows, pinned(relation));
	if (!seek(relation, from, from_length, to, to_length))
		return;
	while (next(relation, &batch))
	{
		for (uint32 i = 0; i < batch.count; i++)
		{
			bool fresh;

			smart_versions_tid(relation->codec, columns_length, &batch, i, &tid);
			if (is_dead(candidate, &tid, &rows, &questions, &fresh))
				smart_versions_add(versions, &tid, fresh);
		}
	}
	smart_dead_rows_end(&rows);
}

/* An index without a tree is asked by a view, which stays as long as it is open.  False: it cannot be. */
static bool
open_view(struct smart_relation *relation, Relation index)
{
	MemoryContext old;

	smart_assert(relation->lost);
	if (relation->view != NULL)
		return true;
	if (relation->tree != NULL || !smart_relation_is_to_answer(index))
		return false;
	old = MemoryContextSwitchTo(GetMemoryChunkContext(relation));
	(void) smart_view_attach(relation, index, true);
	MemoryContextSwitchTo(old);
	return relation->view != NULL;
}

void
smart_versions_after_insert(const struct smart_candidate *candidate)
{
	static uint32 inserts = 0;
	struct smart_relation *relation = candidate->relation;
	struct smart_versions versions;
	struct smart_pin_ticket pin;
	bool current;

	smart_assert(candidate->columns_length > 0 && candidate->check == UNIQUE_CHECK_NO);
	if (likely(++inserts % (smart_server.remote && !relation->lost ? REMOTE_INSERTS_PER_LOOK : INSERTS_PER_LOOK) !=
			   0) ||
		!smart_kills_possible(candidate->heap) || (relation->lost && !open_view(relation, candidate->index)))
		return;
	smart_versions_init(&versions);
	/* As a check does: VACUUM gives no TID that was just read to another row. */
	pin = smart_pin_enter(pinned(relation));
	current = relation->changes == smart_changes() &&
			  (relation->view == NULL || smart_view_catch_up(relation, candidate->index, true));
	if (current)
		look_nearby(candidate, &versions);
	smart_pin_leave(&pin);
	if (current && versions.dead >= WORTH_REMOVING)
		remove_versions(candidate, &versions);
}

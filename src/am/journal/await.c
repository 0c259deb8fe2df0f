/*
 * await.c
 *	  Waiting for an index that is being loaded.
 *
 * Where the pages of the journal do not answer (view.h), VACUUM cannot do without the tree, as it has to remove entries before
 * TIDs are given to other rows; nor can an insert into a unique index, or a statement that has planned with it.  And where
 * pages are to answer for good, but there is no room for a delta, they wait for a compaction.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "am/compat.h"
#include "am/index/backend.h"
#include "am/index/relation.h"
#include "am/journal/await.h"
#include "am/journal/due.h"
#include "am/journal/load.h"
#include "am/journal/promote.h"
#include "am/server/errands.h"
#include "am/server/rebuild_table.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "am/server/tree_changes.h"
#include "am/server/validity.h"
#include "am/server/waiters.h"
#include "base/assert.h"

#define LOOK_MS          1000 /* between two looks, if no change is announced */
#define LOOK_FOR_ROOM_MS 50
#define TRY_AGAIN_MS     500 /* until the caller tries again, whether room is seen or not */
#define AT_ONCE_MS       1000

/*
 * Does this process hold a lock, of the table or the index, with which no other one could load it?  Also if it keeps a third
 * one waiting, which a loader would come behind.
 */
static bool
keeps_others_out(Relation index)
{
	const LOCKMODE modes[] = {ShareLock, ShareRowExclusiveLock, ExclusiveLock, AccessExclusiveLock};
	Relation table = RelationIdGetRelation(index->rd_index->indrelid);
	bool held = index->rd_createSubid != InvalidSubTransactionId;

	if (CheckRelationLockedByMe(table, RowExclusiveLock, true))
		held |= smart_lock_is_awaited(table, RowExclusiveLock) || smart_lock_is_awaited(index, RowExclusiveLock);

	for (int i = 0; i < (int) lengthof(modes); i++)
		held |= CheckRelationLockedByMe(index, modes[i], false) || CheckRelationLockedByMe(table, modes[i], false);
	RelationClose(table);
	return held;
}

static void
load_here(Relation index)
{
	uint64 entries;

	smart_assert(!RecoveryInProgress() && !IsInParallelMode());
	(void) smart_journal_load(index, &smart_look_for_interrupts, &entries);
}

bool
smart_journal_wait(Relation index)
{
	TimestampTz end;

	/* Without a region there is nothing to wait for; the process that opens the index is told. */
	if (!smart_server_available() || likely(smart_relation_loss(index) == SMART_LOSS_NONE) ||
		!smart_relation_is_loadable(index) || smart_promote(index))
		return true;
	end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), smart_settings_loading_wait_ms());
	while (smart_relation_is_loadable(index) && !smart_relation_is_to_answer(index))
	{
		long rest_ms = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), end);

		/* In parallel mode no transaction can get an id, which making a tree takes. */
		if (!RecoveryInProgress() && !IsInParallelMode() && keeps_others_out(index))
		{
			load_here(index);
			break;
		}
		if (rest_ms <= 0)
			return false;
		smart_validity_notice(index);
		smart_changes_wait(Min(rest_ms, LOOK_MS));
	}
	return true;
}

static uint64
memory_in_use(void)
{
	struct smart_space_usage usage;

	smart_space_usage(&smart_delta_client()->space, &usage);
	return usage.used;
}

/* Until when this process waits for room.  Who comes again at once, as that did not suffice, has the same time. */
static TimestampTz
room_deadline(Relation index)
{
	static Oid waiting = InvalidOid; /* for which index */
	static TimestampTz since;
	static TimestampTz last;
	TimestampTz now = GetCurrentTimestamp();

	smart_assert(OidIsValid(RelationGetRelid(index)));
	if (waiting != RelationGetRelid(index) || TimestampDifferenceExceeds(last, now, AT_ONCE_MS))
		since = now;
	waiting = RelationGetRelid(index);
	last = now;
	return TimestampTzPlusMilliseconds(since, smart_settings_loading_wait_ms());
}

/*
 * There is no room for the delta of an index whose pages answer.  Waits for a compaction, if one is due, or for others to give
 * back memory.  Either may come between the caller's attempt and the first look here, so the wait is short.
 */
static void
wait_for_room(Relation index)
{
	TimestampTz end = room_deadline(index);
	TimestampTz again = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), TRY_AGAIN_MS);
	uint64 used = memory_in_use();
	struct smart_meta before;
	struct smart_meta meta;

	smart_meta_read(index, &before);
	do
	{
		long rest_ms = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), end);

		if (rest_ms <= 0)
			smart_report_status(SMART_NO_SPACE, index);
		smart_meta_read(index, &meta);
		if (!RecoveryInProgress() && smart_compaction_is_due(index, &meta))
			smart_errand_request(SMART_ERRAND_COMPACT, smart_relation_database(index), RelationGetRelid(index));
		smart_changes_wait(Min(rest_ms, LOOK_FOR_ROOM_MS));
		end = room_deadline(index);
	} while (meta.run == before.run && memory_in_use() >= used && smart_relation_can_answer(index) &&
			 GetCurrentTimestamp() < again);
}

void
smart_journal_await(Relation index)
{
	struct smart_rebuild known = {0};
	bool runs;

	if (unlikely(smart_relation_can_answer(index) &&
				 (smart_relation_is_to_answer(index) || smart_relation_loss(index) == SMART_LOSS_NONE)))
	{
		/* No worker is going to load it, or not yet: a memory node does not answer. */
		wait_for_room(index);
		return;
	}
	if (likely(smart_journal_wait(index)))
		return;
	runs = smart_rebuild_find(smart_relation_database(index), RelationGetRelid(index), &known) &&
		   known.state == SMART_REBUILD_RUNNING;
	ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("index \"%s\" has not been loaded yet", RelationGetRelationName(index)),
			runs ? errdetail("It is being loaded.")
				 : (known.error[0] != '\0' ? errdetail("The last attempt has failed: %s", known.error)
										   : errdetail("Its loading has not begun yet.")),
			errhint(
				"Try again later, or raise smart.wait_timeout.  pg_stat_progress_create_index shows how far it is."));
}

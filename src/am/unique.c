/*
 * unique.c
 *	  Inserts into unique indexes.
 *
 * Two backends that insert the same key must not both find nothing and then
 * both publish.  So check and publication happen under a lock on the key: a
 * page lock of the index whose "page" is the hash of the key's columns.  Nothing
 * else takes page locks on an index of ours; the lock can be cancelled, shows
 * up in pg_locks and is given back by the transaction machinery on errors.  It
 * covers check and publication only: before this backend waits for another
 * transaction it lets go, and starts again afterwards.
 *
 * The rows that were found are looked at under the vacuum interlock: otherwise
 * VACUUM could give away the TID that was just read to a row with another key,
 * and we would report a duplicate that is none.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "access/xact.h"
#include "common/hashfn.h"
#include "storage/lmgr.h"
#include "utils/snapmgr.h"

#include "am/duplicates.h"
#include "am/hold.h"
#include "am/kill.h"
#include "am/predicate.h"
#include "am/report.h"
#include "am/undo.h"
#include "am/unique.h"
#include "base/assert.h"

enum verdict
{
	NO_CONFLICT,
	MAYBE_CONFLICT, /* somebody has the key, or may have it soon */
	WAIT_FOR,       /* it depends on another transaction */
	CANDIDATE_GONE, /* the candidate itself is dead: nothing matters any more */
	CONFLICT
};

/* What was found out about a candidate. */
struct finding
{
	bool own_entry;    /* the candidate's own TID is in the index */
	bool row_dead;     /* the row looked at last, and for everybody */
	TransactionId xid; /* to wait for */
	uint32 token;      /* of its speculative insertion, or 0 */
};

/* What the row at another entry's TID means for the candidate. */
static enum verdict
judge_row(const struct smart_candidate *candidate, ItemPointer tid, struct finding *finding)
{
	SnapshotData dirty;
	ItemPointerData root = *tid;
	ItemPointerData own = *candidate->tid;

	finding->row_dead = false;

	/* Not a duplicate of itself: a deferred check, or the last pass of CREATE INDEX CONCURRENTLY. */
	if (ItemPointerEquals(tid, candidate->tid))
	{
		finding->own_entry = true;
		return NO_CONFLICT;
	}

	/* One entry stands for a whole HOT chain. */
	InitDirtySnapshot(dirty);
	if (!table_index_fetch_tuple_check(candidate->heap, &root, &dirty, &finding->row_dead))
		return NO_CONFLICT;
	finding->row_dead = false;
	if (candidate->check == UNIQUE_CHECK_PARTIAL)
		return MAYBE_CONFLICT;
	finding->xid = TransactionIdIsValid(dirty.xmin) ? dirty.xmin : dirty.xmax;
	finding->token = dirty.speculativeToken;
	if (TransactionIdIsValid(finding->xid))
		return WAIT_FOR;

	/*
	 * Both are there for good, unless the candidate has been deleted in the
	 * meantime: CREATE INDEX CONCURRENTLY inserts rows of others, by the root
	 * of their chain.
	 */
	if (!table_index_fetch_tuple_check(candidate->heap, &own, SnapshotSelf, NULL))
		return CANDIDATE_GONE;
	return CONFLICT;
}

/* A byte of entry i of a batch, which may lie in the prefix. */
static inline uint8
batch_byte(const struct smart_batch *batch, uint32 i, uint32 at)
{
	smart_assert(at < batch->prefix_length + batch->items[i].length);
	return at < batch->prefix_length ? batch->prefix[at]
									 : batch->bytes[batch->items[i].offset + at - batch->prefix_length];
}

/* The TID of entry i of a batch, which has the candidate's columns. */
static void
batch_tid(const struct smart_batch *batch, uint32 i, const struct smart_codec *codec, uint32 columns_length,
		  ItemPointer tid)
{
	uint8 bytes[SMART_TID_LONGEST];
	uint32 width = SMART_TID_PLAIN;

	if (codec->compact_tids)
		width = smart_tid_length_by_first(batch_byte(batch, i, columns_length));
	for (uint32 b = 0; b < width; b++)
		bytes[b] = batch_byte(batch, i, columns_length + b);
	smart_entry_tid(codec, bytes + width, tid);
}

/* The bytes of the candidate's columns. */
static int
columns_length_of(const struct smart_candidate *candidate)
{
	return smart_entry_columns_length(candidate->relation->codec, candidate->entry, candidate->key_length);
}

/* Notes the entry of a dead row that had the candidate's columns. */
static void
note_dead(const struct smart_candidate *candidate, int columns_length, ItemPointer tid, struct smart_kills *dead)
{
	uint8 key[SMART_KEY_MAX];
	uint8 *end;

	if (!smart_kills_possible(candidate->heap))
		return;
	memcpy(key, candidate->entry, (size_t) columns_length);
	end = smart_entry_put_tid(candidate->relation->codec, key + columns_length, tid);
	smart_kills_note(dead, key, (int) (end - key));
}

/* Looks at all entries with the candidate's columns, and notes the dead ones; the interlock is held. */
static enum verdict
judge(const struct smart_candidate *candidate, struct finding *finding, struct smart_kills *dead)
{
	struct smart_scan *scan = smart_relation_scan(candidate->relation);
	int columns_length = columns_length_of(candidate);
	uint8 behind[SMART_COLUMNS_MAX];
	size_t behind_length;
	struct smart_batch batch;
	smart_status status;

	memset(finding, 0, sizeof(*finding));
	memcpy(behind, candidate->entry, (size_t) columns_length);
	behind_length = smart_successor(behind, (size_t) columns_length);
	status = smart_scan_seek(scan, candidate->entry, (size_t) columns_length, behind, behind_length, false);
	smart_check_status(status, candidate->index);
	while ((status = smart_relation_next(scan, &batch)) == SMART_OK)
	{
		for (uint32 i = 0; i < batch.count; i++)
		{
			ItemPointerData tid;
			enum verdict verdict;

			batch_tid(&batch, i, candidate->relation->codec, (uint32) columns_length, &tid);
			verdict = judge_row(candidate, &tid, finding);
			if (finding->row_dead)
				note_dead(candidate, columns_length, &tid, dead);
			if (verdict != NO_CONFLICT)
				return verdict;
		}
	}
	if (status != SMART_DONE)
		smart_report_status(status, candidate->index);
	return NO_CONFLICT;
}

/* The same, with the interlock around it. */
static enum verdict
judge_held(const struct smart_candidate *candidate, struct finding *finding, struct smart_kills *dead)
{
	struct smart_hold_ticket hold = smart_hold_enter(candidate->relation->meta.tree);
	enum verdict verdict;

	/* Behind the hold, for which who gives up a tree waits after he has said so. */
	smart_relation_check_whole(candidate->relation, candidate->index);
	verdict = judge(candidate, finding, dead);
	smart_hold_leave(&hold);
	return verdict;
}

static void
publish(const struct smart_candidate *candidate)
{
	smart_undo_note(candidate->relation, candidate->index, candidate->entry, candidate->key_length, candidate->others);
	smart_check_status(smart_relation_insert(candidate->relation, candidate->entry, candidate->key_length,
											 candidate->length),
					   candidate->index);
	smart_predicate_check(candidate->index, candidate->entry, candidate->key_length);
}

/* NULLs are distinct unless the index says otherwise. */
static bool
never_equal(const struct smart_candidate *candidate)
{
	if (candidate->nulls_equal)
		return false;
	for (int i = 0; i < candidate->relation->codec->nkeys; i++)
	{
		if (candidate->isnull[i])
			return true;
	}
	return false;
}

static void
wait_for(const struct smart_candidate *candidate, const struct finding *finding)
{
	if (finding->token != 0)
		SpeculativeInsertionWait(finding->xid, finding->token);
	else
		XactLockTableWait(finding->xid, candidate->index, candidate->tid, XLTW_InsertIndex);
}

bool
smart_insert_unique(const struct smart_candidate *candidate)
{
	BlockNumber lock = hash_bytes(candidate->entry, columns_length_of(candidate));
	struct smart_kills dead;
	struct finding finding;
	enum verdict verdict;

	Assert(candidate->check != UNIQUE_CHECK_NO);
	Assert(candidate->relation->tree != NULL);
	if (never_equal(candidate))
	{
		if (candidate->check != UNIQUE_CHECK_EXISTING)
			publish(candidate);
		return true;
	}
	smart_kills_init(&dead);
	for (;;)
	{
		LockPage(candidate->index, lock, ExclusiveLock);
		verdict = judge_held(candidate, &finding, &dead);
		if (candidate->check != UNIQUE_CHECK_EXISTING && verdict != WAIT_FOR && verdict != CONFLICT)
			publish(candidate);
		UnlockPage(candidate->index, lock, ExclusiveLock);
		smart_kills_apply(&dead, candidate->relation, candidate->heap);
		if (verdict != WAIT_FOR)
			break;
		wait_for(candidate, &finding);
	}
	smart_kills_release(&dead);
	if (verdict == CONFLICT)
	{
		/* The failure of a serializable transaction comes first: it explains this one. */
		smart_predicate_check(candidate->index, candidate->entry, candidate->key_length);
		smart_report_duplicate_inserted(candidate->heap, candidate->index, candidate->values, candidate->isnull);
	}
	if (candidate->check == UNIQUE_CHECK_EXISTING && verdict == NO_CONFLICT && !finding.own_entry)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("the row to check again is not in index \"%s\"", RelationGetRelationName(candidate->index)),
				 errhint("This may be because of a non-immutable index expression."),
				 errtableconstraint(candidate->heap, RelationGetRelationName(candidate->index))));
	return verdict != MAYBE_CONFLICT;
}

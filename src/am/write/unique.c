/*
 * unique.c
 *	  The check of a unique index: looks at all entries with the key of a row that is being inserted.
 *
 * The check looks at the rows that it found under a vacuum pin.  Otherwise VACUUM could give the TID that was just read to
 * a row with another key, and the check would report a duplicate that is none.
 *
 * A version that is dead for all transactions is remembered (dead_rows.h), and the table is not asked for it again; what
 * becomes of its entry is told in versions.c.
 */
#include "postgres.h"

#include "access/relscan.h"
#include "access/tableam.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "am/codec/encode.h"
#include "am/compat.h"
#include "am/index/relation.h"
#include "am/journal/view.h"
#include "am/scan/kill.h"
#include "am/server/dead_rows.h"
#include "am/server/report.h"
#include "am/write/unique.h"
#include "base/assert.h"

/* ---- rows of the table ---- */

/* A check asks for one after the other: mostly they are on one page. */
struct asked
{
	IndexFetchTableData *fetch; /* NULL: none was asked for yet */
	TupleTableSlot *slot;
};

/* As table_index_fetch_tuple_check(). */
static bool
is_there(struct asked *asked, Relation heap, ItemPointer tid, Snapshot snapshot, bool *dead)
{
	bool again = false;

	if (asked->fetch == NULL)
	{
		asked->slot = table_slot_create(heap, NULL);
		asked->fetch = table_index_fetch_begin(heap);
	}
	return table_index_fetch_tuple(asked->fetch, tid, snapshot, asked->slot, &again, dead);
}

static void
end_asking(const struct asked *asked)
{
	if (asked->fetch == NULL)
		return;
	table_index_fetch_end(asked->fetch);
	ExecDropSingleTupleTableSlot(asked->slot);
}

/* ---- the check ---- */

/* What the row at another entry's TID means for the candidate; *dead: it is dead for all transactions. */
static enum smart_verdict
judge_row(const struct smart_candidate *candidate, const ItemPointerData *tid, struct asked *asked,
		  struct smart_finding *finding, bool *dead)
{
	SnapshotData dirty;
	ItemPointerData root = *tid;
	ItemPointerData own = *candidate->tid;

	/* One entry stands for a whole HOT chain. */
	InitDirtySnapshot(dirty);
	if (!is_there(asked, candidate->heap, &root, &dirty, dead))
		return SMART_NO_CONFLICT;
	*dead = false;
	if (candidate->check == UNIQUE_CHECK_PARTIAL)
		return SMART_MAYBE_CONFLICT;
	finding->xid = TransactionIdIsValid(dirty.xmin) ? dirty.xmin : dirty.xmax;
	finding->token = dirty.speculativeToken;
	if (TransactionIdIsValid(finding->xid))
		return SMART_WAIT_FOR;

	/*
	 * Both are there for good, unless the candidate has been deleted in the
	 * meantime: CREATE INDEX CONCURRENTLY inserts rows of others, by the root
	 * of their chain.
	 */
	if (!is_there(asked, candidate->heap, &own, SnapshotSelf, NULL))
		return SMART_CANDIDATE_GONE;
	return SMART_CONFLICT;
}

/* As ItemPointerEquals(), for each of many. */
static inline bool
is_same_tid(const ItemPointerData *a, const ItemPointerData *b)
{
	return ItemPointerGetBlockNumberNoCheck(a) == ItemPointerGetBlockNumberNoCheck(b) &&
		   ItemPointerGetOffsetNumberNoCheck(a) == ItemPointerGetOffsetNumberNoCheck(b);
}

/* The same for an entry's TID.  Rows that are known to be dead are passed by. */
static enum smart_verdict
judge_entry(const struct smart_candidate *candidate, ItemPointerData *tid, struct smart_dead_rows *rows,
			struct asked *asked, struct smart_finding *finding)
{
	enum smart_verdict verdict;
	bool dead = false;

	/* Not a duplicate of itself: a deferred check, or the last pass of CREATE INDEX CONCURRENTLY. */
	if (is_same_tid(tid, candidate->tid))
	{
		finding->own_entry = true;
		return SMART_NO_CONFLICT;
	}
	if (smart_dead_rows_any(rows) && smart_dead_rows_has(rows, tid))
	{
		smart_versions_add(&finding->versions, tid, false);
		return SMART_NO_CONFLICT;
	}
	verdict = judge_row(candidate, tid, asked, finding, &dead);
	if (dead && rows->tree != 0)
	{
		(void) smart_dead_rows_note(rows, tid);
		smart_versions_add(&finding->versions, tid, true);
	}
	return verdict;
}

/* Begins to look at the entries with the candidate's columns. */
static void
seek(const struct smart_candidate *candidate)
{
	size_t columns_length = (size_t) candidate->columns_length;
	uint8 behind[SMART_COLUMNS_MAX];
	size_t behind_length;

	smart_assert(candidate->columns_length > 0 && columns_length <= sizeof(behind));
	memcpy(behind, candidate->entry, columns_length);
	behind_length = smart_successor(behind, columns_length);
	if (unlikely(candidate->relation->view != NULL))
	{
		smart_view_seek(candidate->relation->view, candidate->entry, (uint32) columns_length, behind,
						(uint32) behind_length, false);
		smart_view_is_one_key(candidate->relation->view);
	}
	else
		smart_check_status(smart_scan_seek(smart_relation_scan(candidate->relation), candidate->entry, columns_length,
										   behind, behind_length, false),
						   candidate->index);
}

/* The next ones; else *verdict if there are no more, or they cannot be read.  waits: who inserts waits for a memory node. */
static bool
next(const struct smart_candidate *candidate, bool waits, struct smart_batch *batch, enum smart_verdict *verdict)
{
	smart_status status;

	*verdict = SMART_NO_CONFLICT;
	if (unlikely(candidate->relation->view != NULL))
	{
		enum smart_found found = smart_view_next(candidate->relation->view, batch);

		if (found == SMART_FOUND_BEHIND)
			*verdict = SMART_ASK_AGAIN;
		return found == SMART_FOUND;
	}
	status = (waits ? smart_scan_next : smart_relation_next)(smart_relation_scan(candidate->relation), batch);
	if (waits && smart_status_is_of_node(status))
	{
		CHECK_FOR_INTERRUPTS();
		*verdict = SMART_ASK_AGAIN;
		return false;
	}
	if (status != SMART_OK && status != SMART_DONE)
		smart_report_status(status, candidate->index);
	return status == SMART_OK;
}

/* All entries with the candidate's columns, until one of them decides. */
static enum smart_verdict
judge_entries(const struct smart_candidate *candidate, bool waits, struct smart_dead_rows *rows, struct asked *asked,
			  struct smart_finding *finding)
{
	struct smart_batch batch;
	enum smart_verdict verdict;

	smart_assert(candidate->columns_length > 0 && candidate->columns_length < candidate->key_length);
	seek(candidate);
	while (next(candidate, waits, &batch, &verdict))
	{
		for (uint32 i = 0; i < batch.count; i++)
		{
			ItemPointerData tid;

			smart_versions_tid(candidate->relation->codec, (uint32) candidate->columns_length, &batch, i, &tid);
			verdict = judge_entry(candidate, &tid, rows, asked, finding);
			if (verdict != SMART_NO_CONFLICT)
				return verdict;
		}
	}
	return verdict;
}

enum smart_verdict
smart_unique_judge(const struct smart_candidate *candidate, bool waits, struct smart_finding *finding)
{
	Relation index = candidate->index;
	const struct smart_relation *relation = candidate->relation;
	uint64 where = relation->view != NULL ? smart_view_pinned(relation->view) : relation->meta.tree;
	struct asked asked = {0};
	struct smart_dead_rows rows;
	enum smart_verdict verdict;

	smart_assert(candidate->check != UNIQUE_CHECK_NO && candidate->columns_length > 0);
	memset(finding, 0, offsetof(struct smart_finding, versions));
	smart_versions_init(&finding->versions);
	/*
	 * Before the tree is read; or, under a pin of the view, after that was brought up to date, since VACUUM waits for the pin before it
	 * raises the generation.  What is remembered is told by pages, as heap has them.
	 */
	smart_dead_rows_begin(&rows, index);
	smart_dead_rows_choose(&rows, smart_kills_possible(candidate->heap) ? where : 0);
	verdict = judge_entries(candidate, waits, &rows, &asked, finding);
	smart_dead_rows_end(&rows);
	end_asking(&asked);
	return verdict;
}

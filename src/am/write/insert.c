/*
 * insert.c
 *	  aminsert: a row becomes an entry, the entry goes into the tree.
 *
 * What a statement needs for every row is kept in ii_AmCache, so that a row costs its encoding and one
 * insert of the tree.  It is made anew when the tree of any index was lost or replaced; the memory of the
 * old one goes with the statement.
 *
 * Two backends that insert the same key into a unique index must not both find nothing and then both
 * publish.  So check (unique.h) and publication happen under a lock on the key (key_locks.h).  It covers these two
 * only: before this backend waits for another transaction it releases the lock, and starts again afterwards.
 *
 * An entry goes into the tree first, and then into the journal (staging.h), so that the tree never has less.
 *
 * If a statement inserts many rows, entries of an index that need not be asked wait, and go together (pending.h).  For who
 * inserts one row nothing is different.
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "am/codec/encode.h"
#include "am/compat.h"
#include "am/index/pin.h"
#include "am/index/relation.h"
#include "am/index/trees.h"
#include "am/journal/await.h"
#include "am/journal/leave.h"
#include "am/journal/promote.h"
#include "am/journal/staging.h"
#include "am/journal/view.h"
#include "am/scan/predicate.h"
#include "am/server/environment.h"
#include "am/server/key_locks.h"
#include "am/server/rebuild_table.h"
#include "am/server/report.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "am/server/tree_changes.h"
#include "am/write/insert.h"
#include "am/write/unique.h"
#include "base/assert.h"
#include "base/bytes.h"
#include "base/sort.h"

/* Rows of a statement that go alone where there are no memory nodes: to begin to wait takes a microsecond. */
#define LOCAL_ALONE 32

#define LOOK_MS           100  /* between two attempts, if no change is announced */
#define NOTICE_MS         20   /* the same, while the launcher may be about to notice that a memory node is away */
#define NOTICED_WITHIN_MS 5000 /* that a memory node is away */

/* Puts the entry, which its tree has if there is one, into the journal.  False: trees have changed, and it is not there. */
static bool
journal(const struct smart_candidate *candidate)
{
	struct smart_relation *self = candidate->relation;

	return self->meta.journal_state == SMART_JOURNAL_NONE ||
		   smart_staging_add(candidate->index, &self->tail, self->changes, candidate->entry, candidate->length,
							 candidate->subtransaction, candidate->hash);
}

/*
 * Can the entry go to the journal alone, if a memory node is away, since nobody has to ask the index before, or pages will answer?
 * Then the insert does not fail, but waits until the node is back, or statements do without it (src/am/nodes/endpoints.c).
 * Should neither come about, it goes on as any other.
 */
static bool
can_do_without_tree(const struct smart_candidate *candidate)
{
	if (!smart_server.remote || !smart_meta_is_loadable(&candidate->relation->meta) ||
		(candidate->until != 0 && GetCurrentTimestamp() >= candidate->until))
		return false;
	return smart_relation_could_answer(candidate->index) ||
		   (smart_settings.node_down_after_s > 0 && !candidate->index->rd_index->indisunique);
}

/*
 * The tree could not be reached.  If the node is known to be away, and pages can answer, the index goes on without the tree.  Else
 * waits for a moment.
 */
static void
leave_tree_or_wait(struct smart_candidate *candidate)
{
	struct smart_relation *self = candidate->relation;
	int limit_ms = smart_settings.node_down_after_s * 1000 + NOTICED_WITHIN_MS;

	if (smart_tree_is_away(self->meta.tree) && smart_relation_could_answer(candidate->index))
	{
		smart_leave_behind(candidate->index, &self->tail, self->meta.tree);
		return;
	}
	if (candidate->until == 0)
		candidate->until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), limit_ms);
	smart_changes_wait(NOTICE_MS);
}

/*
 * Adds the entry, which its tree has, to the one that the index moves to, too.  If that cannot be, the move fails, and not the
 * statement.  False: as above.
 */
static bool
publish_also(const struct smart_candidate *candidate)
{
	struct smart_relation *self = candidate->relation;
	Relation index = candidate->index;
	smart_status status = SMART_UNREACHABLE;

	smart_assert(self->also_id != 0 && self->also_id != self->meta.tree);
	if (self->also != NULL)
		status = smart_undo_note(self, index, candidate->entry, candidate->key_length, true, candidate->others);
	if (status == SMART_OK)
	{
		bool added;

		status = smart_tree_insert(self->also, candidate->entry, (size_t) candidate->key_length,
								   (size_t) candidate->length, &added);
	}
	if (status == SMART_OK)
		return true;
	CHECK_FOR_INTERRUPTS();
	if (smart_rebuild_invalidate(smart_relation_database(index), self->index, self->also_id))
		return true;
	/* The move has ended, or is about to: it is announced at any moment. */
	smart_changes_wait(LOOK_MS);
	return false;
}

/* Was there no room for the tree, and does the index go on without one? */
static bool
goes_on_without(Relation index, const struct smart_relation *self, smart_status status)
{
	return unlikely(status == SMART_NO_SPACE || status == SMART_DISK_FULL) &&
		   smart_leave_memory(index, self->meta.tree, "there is no room for its tree");
}

/* Adds the entry to the tree, and then to the journal; false as above. */
static bool
publish(struct smart_candidate *candidate)
{
	bool waits = can_do_without_tree(candidate);
	smart_status status;

	smart_assert(candidate->relation->tree != NULL && !candidate->relation->lost);
	smart_assert(candidate->check != UNIQUE_CHECK_EXISTING);
	status = smart_undo_note(candidate->relation, candidate->index, candidate->entry, candidate->key_length, false,
							 candidate->others);
	if (likely(status == SMART_OK))
		status = (waits ? smart_relation_try_insert : smart_relation_insert)(candidate->relation, candidate->entry,
																			 candidate->key_length, candidate->length);
	if (waits && smart_status_is_of_node(status))
	{
		leave_tree_or_wait(candidate);
		return false;
	}
	if (goes_on_without(candidate->index, candidate->relation, status))
		return false;
	smart_check_status(status, candidate->index);
	if (unlikely(candidate->relation->also_id != 0) && !publish_also(candidate))
		return false;
	smart_predicate_check(candidate->index, candidate->entry, candidate->key_length);
	return journal(candidate);
}

/* ---- lost indexes ---- */

/*
 * Inserts an entry of a lost index that is being loaded or rebuilt, under a pin, for which a rebuild waits after it has
 * announced that entries go elsewhere.  False: it has announced that.  If the entry cannot be inserted, the loading or
 * rebuild is invalidated, but the statement does not fail.
 */
static bool
insert_while_rebuilt(const struct smart_candidate *candidate)
{
	struct smart_relation *self = candidate->relation;
	Relation index = candidate->index;
	struct smart_pin_ticket pin;
	smart_status status;
	bool current;
	bool at_fault;

	smart_assert(self->lost && self->tree != NULL);
	status = smart_undo_note(self, index, candidate->entry, candidate->key_length, false, false);
	pin = smart_pin_enter(self->meta.tree);
	current = self->changes == smart_changes();
	if (current && status == SMART_OK)
		status = smart_relation_insert(self, candidate->entry, candidate->key_length, candidate->length);
	smart_pin_leave(&pin);
	smart_assert(pin.serial == 0);

	/* Did the tree not take the entry although nothing is wrong with the entry or the statement? */
	at_fault =
		status != SMART_OK && status != SMART_INTERRUPTED && status != SMART_TOO_LONG && status != SMART_NO_MEMORY;
	if (at_fault && smart_rebuild_invalidate(smart_relation_database(index), self->index, self->meta.tree))
	{
		/* What is in the journal is not missing. */
		if (!smart_meta_is_loadable(&self->meta))
			smart_relation_mark_stale(index);
	}
	else if (self->changes != smart_changes())
		return false;
	else
		smart_check_status(status, index);
	return current;
}

/* Adds the entry to the tree that is being made, if there is one, and to the journal; false as above. */
static bool
publish_while_lost(struct smart_candidate *candidate)
{
	smart_assert(candidate->relation->lost);
	if (candidate->relation->tree != NULL && !insert_while_rebuilt(candidate))
		return false;
	if (!journal(candidate))
		return false;
	/* Behind it: who locks later than this looks writes out all areas, and finds the entry. */
	smart_predicate_check(candidate->index, candidate->entry, candidate->key_length);
	return true;
}

/* ---- unique indexes ---- */

/*
 * Pins what is going to be asked, which has all entries that are there now.  False: trees have changed, or pages cannot answer
 * any more, so that the index has to be opened again.
 */
static bool
begin_check(struct smart_candidate *candidate, struct smart_pin_ticket *pin)
{
	const struct smart_staged_key key = {.hash = candidate->hash,
										 .length = (uint32) candidate->columns_length,
										 .bytes = candidate->entry};
	struct smart_relation *self = candidate->relation;
	bool usable;

	*pin = smart_pin_enter(self->view != NULL ? smart_view_pinned(self->view) : self->meta.tree);
	/*
	 * After the pin: a VACUUM that gives a tree up announces that first, and then waits for pins.  The index has to be looked at
	 * again, and may have to be waited for.
	 */
	usable = likely(self->changes == smart_changes());
	if (usable && unlikely(self->view != NULL))
	{
		usable = smart_view_catch_up_key(self, candidate->index, &key);
		self->asks_again = !usable;
	}
	if (!usable)
		smart_pin_leave(pin);
	return usable;
}

/*
 * Checks that no live row has the candidate's columns and adds its entry, as
 * the kind of check says; waits for transactions that have not decided yet.
 * *unique: false if the check is UNIQUE_CHECK_PARTIAL and there may be a
 * conflict, which the caller has to look at later.  False: trees have changed,
 * so that all has to be done again.  UNIQUE_VIOLATION.
 */
static bool
insert_unique(struct smart_candidate *candidate, bool *unique)
{
	bool existing = candidate->check == UNIQUE_CHECK_EXISTING;
	struct smart_finding finding;
	enum smart_verdict verdict;
	bool added = true;
	char *key;

	smart_assert(candidate->relation->lost ? candidate->relation->view != NULL : candidate->relation->tree != NULL);
	smart_assert(candidate->columns_length > 0 && candidate->columns_length < candidate->key_length);
	for (;;)
	{
		struct smart_pin_ticket pin;

		smart_key_lock(candidate->hash);
		if (!begin_check(candidate, &pin))
		{
			smart_key_unlock();
			return false;
		}
		verdict = smart_unique_judge(candidate, can_do_without_tree(candidate), &finding);
		smart_pin_leave(&pin);
		smart_assert((verdict == SMART_WAIT_FOR) == TransactionIdIsValid(finding.xid));
		candidate->relation->asks_again = verdict == SMART_ASK_AGAIN && candidate->relation->view != NULL;
		if (verdict == SMART_ASK_AGAIN)
			added = false;
		else if (!existing && verdict != SMART_WAIT_FOR && verdict != SMART_CONFLICT)
			added = (candidate->relation->lost ? publish_while_lost : publish)(candidate);
		smart_key_unlock();
		if (verdict == SMART_ASK_AGAIN && candidate->relation->view == NULL)
			leave_tree_or_wait(candidate);
		smart_versions_after_check(candidate, &finding.versions);
		if (verdict != SMART_WAIT_FOR)
			break;
		if (finding.token != 0)
			SpeculativeInsertionWait(finding.xid, finding.token);
		else
			XactLockTableWait(finding.xid, candidate->index, candidate->tid, XLTW_InsertIndex);
	}
	if (verdict == SMART_CONFLICT)
	{
		/* The failure of a serializable transaction comes first: it explains this one. */
		smart_predicate_check(candidate->index, candidate->entry, candidate->key_length);
		key = BuildIndexValueDescription(candidate->index, (Datum *) candidate->values, (bool *) candidate->isnull);
		ereport(ERROR, errcode(ERRCODE_UNIQUE_VIOLATION),
				errmsg("duplicate key value violates unique constraint \"%s\"",
					   RelationGetRelationName(candidate->index)),
				key ? errdetail("Key %s already exists.", key) : 0,
				errtableconstraint(candidate->heap, RelationGetRelationName(candidate->index)));
	}
	if (existing && verdict == SMART_NO_CONFLICT && !finding.own_entry)
		ereport(ERROR, errcode(ERRCODE_INTERNAL_ERROR),
				errmsg("the row to check again is not in index \"%s\"", RelationGetRelationName(candidate->index)),
				errhint("This may be because of a non-immutable index expression."),
				errtableconstraint(candidate->heap, RelationGetRelationName(candidate->index)));
	smart_assert(verdict != SMART_MAYBE_CONFLICT || candidate->check == UNIQUE_CHECK_PARTIAL);
	*unique = verdict != SMART_MAYBE_CONFLICT;
	return added;
}

/* ---- any index ---- */

/*
 * A lost index is asked by its pages, once nobody can have its tree and the same number of changes.  If its metapage says that there is
 * no tree, nobody has one.  False: the index has to be opened again.
 */
static bool
is_left_by_all(struct smart_relation *opened, Relation index)
{
	uint32 before = opened->changes;

	smart_assert(opened->lost);
	if (smart_relation_tree(index) == SMART_TREE_NOWHERE || likely(!smart_changes_are_foretold()))
		return true;
	opened->changes = smart_changes_announce();
	return opened->changes == before + 1;
}

/*
 * A unique index must be asked first: by its tree, or by its pages while that is lost.  self: as it was opened before, whose
 * pages may not answer any more.
 */
static struct smart_relation *
open_unique(Relation index, const struct smart_relation *self)
{
	bool asks = self == NULL || !self->asks_again;

	smart_assert(index->rd_index->indisunique);
	for (;; asks = true)
	{
		if (smart_relation_can_answer(index) && asks && !smart_promote(index))
		{
			struct smart_relation *opened = smart_relation_open_to_insert(index, true);

			if (!opened->lost)
				return opened;
			if (!is_left_by_all(opened, index))
				continue;
			if (smart_view_attach(opened, index, true))
				return opened;
		}
		smart_journal_await(index);
		if (!smart_relation_can_answer(index))
			return smart_relation_open_to_insert(index, false);
	}
}

/* A tree that is missed is about to have less than its journal, also if its memory node comes back. */
static void
leave_missed_tree(Relation index)
{
	struct smart_tail tail = {0};

	if (smart_relation_absence(index) != SMART_LOSS_NONE && smart_relation_is_loadable(index))
		smart_leave_behind(index, &tail, smart_relation_tree(index));
}

/*
 * The open index of this statement, with a tree to insert into; none if the index is lost and not being rebuilt.  self: as
 * it was opened before, or NULL.  context: of the statement.
 */
static struct smart_relation *
open_index(Relation index, struct smart_relation *self, MemoryContext context)
{
	bool fresh = self != NULL && self->changes == smart_changes() && !self->asks_again;

	if (unlikely(!fresh))
	{
		MemoryContext old = MemoryContextSwitchTo(context);

		leave_missed_tree(index);
		if (self != NULL && self->view != NULL)
			smart_view_close(self);
		self = index->rd_index->indisunique ? open_unique(index, self) : smart_relation_open_to_insert(index, false);
		MemoryContextSwitchTo(old);
	}
	if (unlikely(self->tree == NULL) && !self->lost)
		smart_relation_make_tree(self, index);
	if (unlikely(self->tree == NULL) && !self->lost)
		return open_index(index, NULL, context);
	smart_assert(self->index == RelationGetRelid(index));
	smart_assert(self->tree != NULL || self->lost);
	return self;
}

/* Adds the candidate's entry.  False: trees have changed, so that the index has to be looked at again. */
static bool
insert_once(struct smart_candidate *candidate, const bool *isnull, bool *unique)
{
	const struct smart_relation *self = candidate->relation;
	/* NULLs are distinct unless the index says otherwise. */
	bool check = candidate->check != UNIQUE_CHECK_NO;

	*unique = true;
	for (int i = 0; check && !candidate->nulls_equal && i < self->codec->nkeys; i++)
		check = !isnull[i];
	if (check)
	{
		candidate->columns_length = smart_entry_columns_length(self->codec, candidate->entry, candidate->key_length);
		candidate->hash = smart_key_hash(candidate->index, candidate->entry, candidate->columns_length);
		return insert_unique(candidate, unique);
	}
	/* The entry may be there: the last pass of CREATE INDEX CONCURRENTLY meets rows that others have indexed. */
	if (candidate->check == UNIQUE_CHECK_EXISTING)
		return true;
	return (unlikely(self->lost) ? publish_while_lost : publish)(candidate);
}

/* May the entry wait for others of its statement?  The statement then has the index locked until its subtransaction ends. */
static bool
may_wait(Relation index, struct smart_relation *self, const IndexInfo *info)
{
	uint32 alone = smart_server.remote ? 1 : LOCAL_ALONE;

	if (index->rd_index->indisunique || index->rd_index->indisexclusion || info->ii_Concurrent ||
		!smart_pending_is_open() || self->rows++ < alone)
		return false;
	if (self->rows == alone + 1)
		LockRelationOid(RelationGetRelid(index), RowExclusiveLock);
	return true;
}

bool
smart_am_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap, IndexUniqueCheck check,
				bool unchanged, IndexInfo *info)
{
	struct smart_relation *self = open_index(index, info->ii_AmCache, info->ii_Context);
	uint8 entry[SMART_ENTRY_MAX];
	struct smart_candidate candidate = {.relation = self,
										.heap = heap,
										.index = index,
										.values = values,
										.isnull = isnull,
										.tid = tid,
										.entry = entry,
										.check = check,
										.nulls_equal = info->ii_NullsNotDistinct,
										.others = info->ii_Concurrent,
										.subtransaction = GetCurrentSubTransactionId()};
	bool unique = true;
	bool waits;

	info->ii_AmCache = self;
	candidate.length = smart_codec_encode(self->codec, values, isnull, tid, entry, &candidate.key_length);
	smart_assert(candidate.key_length > 0 && candidate.key_length <= SMART_KEY_MAX);
	smart_assert(candidate.length >= candidate.key_length && candidate.length <= SMART_ENTRY_MAX);
	waits = may_wait(index, self, info);
	if (waits)
	{
		smart_assert(check == UNIQUE_CHECK_NO);
		smart_pending_add(index, entry, candidate.key_length, candidate.length);
	}
	else
	{
		while (unlikely(!insert_once(&candidate, isnull, &unique)))
			candidate.relation = info->ii_AmCache = open_index(index, info->ii_AmCache, info->ii_Context);
	}
	/* On memory nodes a look costs round trips: rows that go together do not take any. */
	if (unchanged && check == UNIQUE_CHECK_NO && !(waits && smart_server.remote))
	{
		candidate.columns_length = smart_entry_columns_length(candidate.relation->codec, entry, candidate.key_length);
		smart_versions_after_insert(&candidate);
	}
	return unique;
}

/* ---- entries that have waited ---- */

/* Puts them into the order of their entries. */
static void
sort_adds(Relation index, const struct smart_pending_add **adds, uint32 count)
{
	struct smart_sort_item *items;
	uint32 ascending = 1;

	while (ascending < count && smart_compare_bytes(adds[ascending - 1]->entry, adds[ascending - 1]->length,
													adds[ascending]->entry, adds[ascending]->length) <= 0)
		ascending++;
	if (ascending >= count)
		return;
	items = palloc(count * sizeof(*items));
	for (uint32 i = 0; i < count; i++)
	{
		items[i].record = (const uint8 *) &adds[i]->length;
		items[i].head = smart_sort_head(items[i].record, 0);
	}
	smart_check_status(smart_sort_strings(items, count, &smart_environment), index);
	for (uint32 i = 0; i < count; i++)
		adds[i] = (const struct smart_pending_add *) (items[i].record - offsetof(struct smart_pending_add, length));
	pfree(items);
}

/* One by itself, with all that may happen to it. */
static struct smart_relation *
insert_waited(Relation index, struct smart_relation *self, const struct smart_pending_add *add)
{
	struct smart_candidate candidate = {.relation = open_index(index, self, CurrentMemoryContext),
										.index = index,
										.entry = add->entry,
										.key_length = add->key_length,
										.length = add->length,
										.check = UNIQUE_CHECK_NO,
										.subtransaction = add->subtransaction};
	bool unique;

	smart_assert(!index->rd_index->indisunique && add->key_length > 0 && add->length >= add->key_length);
	while (unlikely(!insert_once(&candidate, NULL, &unique)))
		candidate.relation = open_index(index, candidate.relation, CurrentMemoryContext);
	return candidate.relation;
}

/* All of them into the index's tree; false: one by one, since there is none, or two, or it cannot be reached now. */
static bool
publish_together(Relation index, struct smart_relation *self, const struct smart_pending_add **adds, uint32 count)
{
	struct smart_addition *additions;
	smart_status status = SMART_OK;

	if (count < 2 || self->lost || self->tree == NULL || self->also_id != 0)
		return false;
	additions = palloc(count * sizeof(*additions));
	for (uint32 i = 0; i < count && status == SMART_OK; i++)
	{
		additions[i] = (struct smart_addition){.bytes = adds[i]->entry,
											   .key_length = (uint32) adds[i]->key_length,
											   .length = (uint32) adds[i]->length};
		status = smart_undo_note(self, index, adds[i]->entry, adds[i]->key_length, false, false);
	}
	if (status == SMART_OK)
		status = smart_relation_try_insert_many(self, additions, count);
	pfree(additions);
	if (smart_status_is_of_node(status) || goes_on_without(index, self, status))
		return false;
	smart_check_status(status, index);
	return true;
}

/* The first of them that the journal does not have, since trees have changed meanwhile; else count. */
static uint32
journal_together(Relation index, struct smart_relation *self, const struct smart_pending_add **adds, uint32 count)
{
	for (uint32 i = 0; i < count; i++)
		smart_predicate_check(index, adds[i]->entry, adds[i]->key_length);
	if (self->meta.journal_state == SMART_JOURNAL_NONE)
		return count;
	return smart_staging_add_many(index, &self->tail, self->changes, adds, count);
}

void
smart_insert_pending(Relation index, const struct smart_pending_add **adds, uint32 count)
{
	MemoryContext own = AllocSetContextCreate(CurrentMemoryContext, "smart insert", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(own);
	struct smart_relation *self = open_index(index, NULL, own);
	uint32 done = 0;

	smart_assert(!index->rd_index->indisunique && count > 0);
	sort_adds(index, adds, count);
	if (publish_together(index, self, adds, count))
		done = journal_together(index, self, adds, count);
	smart_assert(done <= count);
	for (; done < count; done++)
		self = insert_waited(index, self, adds[done]);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(own);
}

/*
 * insert.c
 *	  aminsert: a row becomes an entry, the entry goes into the tree.
 *
 * What a statement needs over and over is kept in ii_AmCache, so that a row
 * costs its encoding and one insert of the tree.  It is made anew, and what was
 * there goes with the statement, when the tree of any index was lost or replaced.
 */
#include "postgres.h"

#include "access/genam.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"

#include "am/am.h"
#include "am/hold.h"
#include "am/predicate.h"
#include "am/rebuild_table.h"
#include "am/report.h"
#include "am/undo.h"
#include "am/unique.h"

/*
 * The open index of this statement, with a tree to insert into; none if the
 * index is lost and not being rebuilt.
 */
static struct smart_relation *
open_index(Relation index, IndexInfo *info)
{
	struct smart_relation *self = info->ii_AmCache;

	if (unlikely(self == NULL) || unlikely(self->changes != smart_changes()))
	{
		MemoryContext old = MemoryContextSwitchTo(info->ii_Context);

		self = smart_relation_open_to_insert(index);
		MemoryContextSwitchTo(old);
		info->ii_AmCache = self;
	}
	if (unlikely(self->tree == NULL) && !self->lost)
		smart_relation_make_tree(self, index);
	Assert(self->index == RelationGetRelid(index));
	return self;
}

/* Did the tree not take an entry although nothing is wrong with it or the statement? */
static bool
is_tree_at_fault(smart_status status)
{
	return status != SMART_OK && status != SMART_INTERRUPTED && status != SMART_TOO_LONG && status != SMART_NO_MEMORY;
}

/*
 * An entry for a lost index that is being rebuilt.  Under a hold: the rebuild
 * waits for that when it has said that entries go elsewhere.  False: it has.
 * The rebuild suffers if the entry cannot be inserted, but not the statement.
 */
static bool
insert_while_rebuilt(struct smart_relation *self, Relation index, const uint8 *entry, int key_length, int length)
{
	struct smart_hold_ticket hold;
	smart_status status = SMART_OK;
	bool current;

	smart_undo_note(self, index, entry, key_length, false);
	hold = smart_hold_enter(self->meta.tree);
	current = self->changes == smart_changes();
	if (current)
		status = smart_relation_insert(self, entry, key_length, length);
	smart_hold_leave(&hold);
	if (is_tree_at_fault(status) && smart_rebuild_spoil(smart_relation_database(index), self->index, self->meta.tree))
		smart_relation_mark_stale(index);
	else if (self->changes != smart_changes())
		return false;
	else
		smart_check_status(status, index);
	return current;
}

bool
smart_am_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap, IndexUniqueCheck check,
				bool unchanged, IndexInfo *info)
{
	struct smart_relation *self = open_index(index, info);
	uint8 entry[SMART_ENTRY_MAX];
	int key_length;
	int length;

	length = smart_codec_encode(self->codec, values, isnull, tid, entry, &key_length);
	while (unlikely(self->lost))
	{
		if (self->tree == NULL || insert_while_rebuilt(self, index, entry, key_length, length))
		{
			smart_predicate_check(index, entry, key_length);
			return true;
		}
		self = open_index(index, info);
	}
	if (check != UNIQUE_CHECK_NO)
	{
		struct smart_candidate candidate = {.relation = self,
											.heap = heap,
											.index = index,
											.values = values,
											.isnull = isnull,
											.tid = tid,
											.entry = entry,
											.key_length = key_length,
											.length = length,
											.check = check,
											.nulls_equal = info->ii_NullsNotDistinct,
											.others = info->ii_Concurrent};

		return smart_insert_unique(&candidate);
	}

	/* The entry may be there: the last pass of CREATE INDEX CONCURRENTLY meets rows that others have indexed. */
	smart_undo_note(self, index, entry, key_length, info->ii_Concurrent);
	smart_check_status(smart_relation_insert(self, entry, key_length, length), index);
	smart_predicate_check(index, entry, key_length);
	return true;
}

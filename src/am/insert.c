/*
 * insert.c
 *	  aminsert: a row becomes an entry, the entry goes into the tree.
 *
 * What a statement needs over and over is kept in ii_AmCache, so that a row
 * costs its encoding and one insert of the tree.
 */
#include "postgres.h"

#include "access/genam.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"

#include "am/am.h"
#include "am/report.h"
#include "am/unique.h"

/* The open index of this statement, with a tree to insert into. */
static struct smart_relation *
open_index(Relation index, IndexInfo *info)
{
	struct smart_relation *self = info->ii_AmCache;

	if (unlikely(self == NULL))
	{
		MemoryContext old = MemoryContextSwitchTo(info->ii_Context);

		self = smart_relation_open(index);
		MemoryContextSwitchTo(old);
		info->ii_AmCache = self;
	}
	if (unlikely(self->tree == NULL))
		smart_relation_make_tree(self, index);
	Assert(self->index == RelationGetRelid(index));
	return self;
}

bool
smart_am_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap, IndexUniqueCheck check,
				bool unchanged, IndexInfo *info)
{
	struct smart_relation *self = open_index(index, info);
	uint8 entry[SMART_ENTRY_MAX];
	int key_length;
	int length;
	bool added;

	length = smart_codec_encode(self->codec, values, isnull, tid, entry, &key_length);
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
											.nulls_equal = info->ii_NullsNotDistinct};

		return smart_insert_unique(&candidate);
	}

	/* The entry may be there: the last pass of CREATE INDEX CONCURRENTLY meets rows that others have indexed. */
	smart_check_status(smart_tree_insert(self->tree, entry, (size_t) key_length, (size_t) length, &added), index);
	return true;
}

/*
 * paged_delete.c
 *	  VACUUM's removals from an index that answers from the pages of its journal.
 *
 * The walk has all entries of rows that were dead when VACUUM began: what a transaction that has ended had staged is written out
 * first.  Nobody lets go the run's pages meanwhile, since compaction needs the lock of removers for that (compact.c).
 */
#include "postgres.h"

#include "utils/memutils.h"
#include "utils/rel.h"

#include "am/compat.h"
#include "am/codec/encode.h"
#include "am/index/relation.h"
#include "am/index/trees.h"
#include "am/journal/lock.h"
#include "am/journal/view.h"
#include "am/recovery/undo.h"
#include "am/write/paged_delete.h"
#include "am/write/removal.h"
#include "base/assert.h"

static bool
is_dead(const struct smart_paged_delete *paged, const struct smart_codec *codec, const uint8 *entry, int key_length,
		int length)
{
	ItemPointerData tid;

	if (paged->dead != NULL)
		return smart_removal_is_dead(codec, paged->dead, entry, (Size) length);
	smart_entry_tid(codec, entry + key_length, &tid);
	return paged->callback(&tid, paged->argument);
}

/* Walks the whole view, which is up to date. */
static void
walk(struct smart_paged_delete *paged, struct smart_relation *self, Relation index)
{
	const uint8 nothing = 0;
	struct smart_removal removal;
	struct smart_batch batch;
	enum smart_found found;

	smart_removal_begin(&removal, self, index);
	smart_view_seek(self->view, &nothing, 0, &nothing, 0, false);
	smart_view_will_be_closed(self->view);
	while ((found = smart_view_next(self->view, &batch)) == SMART_FOUND)
	{
		smart_assert(batch.prefix_length == 0);
		for (uint32 i = 0; i < batch.count; i++)
		{
			const uint8 *entry = batch.bytes + batch.items[i].offset;
			int length = batch.items[i].length;
			int key_length = smart_codec_key_length(self->codec, entry, length);

			if (is_dead(paged, self->codec, entry, key_length, length))
				smart_removal_add(&removal, entry, key_length);
		}
		paged->visited += batch.count;
		if (smart_removal_is_full(&removal))
			smart_removal_journal(&removal);
		smart_vacuum_delay_point();
	}
	if (found != SMART_FOUND_END)
		elog(ERROR, "pages of index \"%s\" were used anew while they were read", RelationGetRelationName(index));
	smart_removal_journal(&removal);
	paged->removed = removal.removed;
	smart_removal_end(&removal);
}

/*
 * A tree that comes back, since a memory node was away, would not do so without these removals, nor would it without entries that
 * the journal does not have, and that nobody finds here (src/README, J14).
 */
static void
give_tree_up(Relation index)
{
	uint64 tree = smart_relation_tree(index);

	if (tree != 0 && tree != SMART_TREE_NOWHERE)
		smart_tree_give_up(index, tree);
}

bool
smart_paged_delete(Relation index, struct smart_paged_delete *paged)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "smart bulk delete", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	struct smart_relation *self = NULL;
	bool done;

	smart_journal_lock(index, SMART_LOCK_REMOVE);
	/* Unless it has its tree again, since this process waited. */
	if (smart_relation_loss(index) != SMART_LOSS_NONE)
	{
		give_tree_up(index);
		self = smart_view_open(index, true);
	}
	done = self != NULL && smart_view_catch_up(self, index, true);
	if (done)
		walk(paged, self, index);
	smart_journal_unlock(index, SMART_LOCK_REMOVE);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	if (done)
		smart_wal_flush();
	smart_assert(paged->removed <= paged->visited);
	return done;
}

/*
 * dead_entries.c
 *	  Entries of dead rows that scans have met, removed from an index with a journal.
 *
 * A session may not do so itself as it does where there is no journal (kill.c): a standby has snapshots of its own, to
 * which the row may not be dead.  So the heap's page is pruned first.  Heap's own record of that, with the horizon for
 * which a standby waits or cancels its queries, stands in WAL before the removal, which needs none therefore.
 *
 * Everything is looked at again under the lock of removers and a vacuum pin, in this order:
 *
 *	1. The entry is in the tree.  So no VACUUM that still has its line pointer to free has been through the tree: it would
 *	   have taken the entry away.  A VACUUM that comes now waits for the lock, and for the pin before it frees any.
 *	2. The line pointer is dead, perhaps because the page was pruned for it.  It stays so until VACUUM frees it.
 *	3. Journal, WAL flushed, tree (removal.h).  That the row is dead stands in WAL before, so the flush covers it.
 *
 * Rows of others are inserted into an index that is not valid yet, so that an add of such an entry might come behind its
 * removal; those indexes are left alone.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "am/codec/encode.h"
#include "am/index/pin.h"
#include "am/index/relation.h"
#include "am/journal/lock.h"
#include "am/scan/kill.h"
#include "am/server/kill_queue.h"
#include "am/server/rebuild_table.h"
#include "am/write/dead_entries.h"
#include "am/write/removal.h"
#include "base/assert.h"

/* ---- the table ---- */

/* Is there a line pointer at this place that is dead? */
static bool
is_line_dead(Buffer buffer, OffsetNumber offset)
{
	Page page = BufferGetPage(buffer);
	bool dead;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	dead = offset >= FirstOffsetNumber && offset <= PageGetMaxOffsetNumber(page) &&
		   ItemIdIsDead(PageGetItemId(page, offset));
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return dead;
}

/*
 * Tells heap that the page is worth pruning, if the row is dead for all: it prunes pages that are full, and of which it
 * knows the oldest transaction whose rows could go.  Both are hints of the page, which need no WAL, and which pruning
 * sets right again.
 */
static bool
ask_for_pruning(Relation heap, Buffer buffer, const ItemPointerData *tid)
{
	Page page = BufferGetPage(buffer);
	OffsetNumber offset = ItemPointerGetOffsetNumber(tid);
	ItemPointerData root = *tid;
	HeapTupleData tuple;
	bool all_dead = false;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (offset >= FirstOffsetNumber && offset <= PageGetMaxOffsetNumber(page) &&
		ItemIdIsUsed(PageGetItemId(page, offset)) &&
		!heap_hot_search_buffer(&root, heap, buffer, SnapshotSelf, &tuple, &all_dead, true) && all_dead)
	{
		ItemId item = PageGetItemId(page, offset);

		PageSetFull(page);
		/* Of a row whose insertion was rolled back heap has noted nothing. */
		if (!TransactionIdIsValid(((PageHeader) page)->pd_prune_xid) && ItemIdIsNormal(item))
		{
			TransactionId xmin = HeapTupleHeaderGetRawXmin((HeapTupleHeader) PageGetItem(page, item));

			if (TransactionIdIsNormal(xmin))
				PageSetPrunable(page, xmin);
		}
	}
	else
		all_dead = false;
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return all_dead;
}

/* Is the line pointer dead, or can it be made so? */
static bool
is_dead(Relation heap, Buffer buffer, const ItemPointerData *tid)
{
	OffsetNumber offset = ItemPointerGetOffsetNumber(tid);

	if (is_line_dead(buffer, offset))
		return true;
	if (!ask_for_pruning(heap, buffer, tid))
		return false;
	heap_page_prune_opt(heap, buffer);
	return is_line_dead(buffer, offset);
}

/* ---- the index ---- */

/* Adds to the removal what is in the tree and may go. */
static void
collect(struct smart_removal *removal, Relation heap, const struct smart_kill_list *list)
{
	struct smart_relation *relation = removal->relation;
	BlockNumber blocks = RelationGetNumberOfBlocks(heap);
	Buffer buffer = InvalidBuffer;

	for (uint32 i = 0; i < list->count; i++)
	{
		const uint8 *key = list->bytes + list->start[i];
		int length = (int) (list->start[i + 1] - list->start[i]);
		ItemPointerData tid;
		bool found;

		if (smart_relation_lookup(relation, key, length, &found) != SMART_OK)
			break;
		if (!found)
			continue;
		smart_entry_tid(relation->codec, key + length, &tid);
		if (ItemPointerGetBlockNumber(&tid) >= blocks)
			continue;
		buffer = ReleaseAndReadBuffer(buffer, heap, ItemPointerGetBlockNumber(&tid));
		if (is_dead(heap, buffer, &tid))
			smart_removal_add(removal, key, length);
	}
	if (BufferIsValid(buffer))
		ReleaseBuffer(buffer);
	smart_assert(removal->count <= list->count);
}

/* The lock of removers is held. */
static uint32
remove_entries(Relation heap, Relation index, const struct smart_kill_list *list)
{
	struct smart_relation *relation;
	struct smart_removal removal;
	struct smart_pin_ticket pin;

	if (smart_relation_loss(index) != NULL)
		return 0;
	relation = smart_relation_open(index);
	if (relation->tree == NULL || relation->meta.journal_state == SMART_JOURNAL_NONE)
		return 0;
	smart_removal_begin(&removal, relation, index);
	pin = smart_pin_enter(relation->meta.tree);
	/* A tree that was given up, or replaced, is not protected by the pin. */
	if (relation->changes == smart_changes())
	{
		collect(&removal, heap, list);
		(void) smart_removal_perform(&removal);
	}
	smart_pin_leave(&pin);
	smart_removal_end(&removal);
	smart_assert(removal.removed <= list->count);
	return (uint32) removal.removed;
}

uint32
smart_dead_entries_remove(Relation heap, Relation index, const struct smart_kill_list *list)
{
	uint32 removed;

	if (!smart_is_our_index(index) || !index->rd_index->indisvalid || !RelationNeedsWAL(index) ||
		!smart_kills_possible(heap) || !smart_journal_try_lock(index, SMART_LOCK_REMOVE))
		return 0;
	removed = remove_entries(heap, index, list);
	smart_journal_unlock(index, SMART_LOCK_REMOVE);
	return removed;
}

/*
 * dead_entries.c
 *	  Entries of dead rows that sessions have met, removed from an index with a journal: by a worker, or by the session
 *	  that inserts a row with the same key (unique.c).
 *
 * Where there is no journal, an entry may go when its row is dead for all (kill.c).  Here a standby has snapshots of its
 * own, to which the row may not be dead.  So the heap's page is pruned first.  Heap's own record of that, with the horizon
 * for which a standby waits or cancels its queries, stands in WAL before the removal, which needs none therefore.
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
#include "am/index/trees.h"
#include "am/journal/chain.h"
#include "am/journal/lock.h"
#include "am/journal/view.h"
#include "am/scan/kill.h"
#include "am/server/rebuild_table.h"
#include "am/server/shared.h"
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

/* Orders entry i of a batch and a key; 0: it is the key's. */
static int
compare_item(const struct smart_batch *batch, uint32 i, const uint8 *key, uint32 length)
{
	const struct smart_item *item = &batch->items[i];
	uint32 shared = Min(batch->prefix_length, length);
	int order = memcmp(batch->prefix, key, shared);

	if (order != 0 || shared == length)
		return order;
	order = memcmp(batch->bytes + item->offset, key + shared, Min(item->length, length - shared));
	return order == 0 && item->length < length - shared ? -1 : order;
}

/*
 * Which keys are in the tree?  They mostly come in order and lie in few leaves, so a batch that was read for one key tells
 * of those behind it, too.  False: the tree cannot be read.
 */
static bool
find_present(struct smart_relation *relation, const struct smart_entries *keys, bool *present)
{
	struct smart_scan *scan = smart_relation_scan(relation);
	const uint8 *last = NULL; /* key */
	uint32 last_length = 0;
	struct smart_batch batch = {0};
	uint32 at = 0;

	for (uint32 i = 0; i < keys->count; i++)
	{
		const uint8 *key = keys->bytes + keys->start[i];
		uint32 length = keys->start[i + 1] - keys->start[i];

		/* The batch has all entries from the key that it was read for up to its own last one. */
		if (batch.count == 0 || smart_compare_bytes(key, length, last, last_length) < 0 ||
			compare_item(&batch, batch.count - 1, key, length) < 0)
		{
			smart_status status = smart_scan_seek(scan, key, length, NULL, 0, false);

			batch.count = at = 0;
			if (status == SMART_OK)
				status = smart_relation_next(scan, &batch);
			if (status != SMART_OK && status != SMART_DONE)
				return false;
		}
		last = key;
		last_length = length;
		while (at < batch.count && compare_item(&batch, at, key, length) < 0)
			at++;
		present[i] = at < batch.count && compare_item(&batch, at, key, length) == 0;
	}
	return true;
}

/* On memory nodes a lookup READs one leaf, and nothing ahead. */
static bool
look_up_present(struct smart_relation *relation, const struct smart_entries *keys, bool *present)
{
	for (uint32 i = 0; i < keys->count; i++)
	{
		if (smart_relation_lookup(relation, keys->bytes + keys->start[i], (int) (keys->start[i + 1] - keys->start[i]),
								  &present[i]) != SMART_OK)
			return false;
	}
	return true;
}

/* The same of a view. */
static bool
view_present(struct smart_relation *relation, const struct smart_entries *keys, bool *present)
{
	for (uint32 i = 0; i < keys->count; i++)
	{
		const uint8 *key = keys->bytes + keys->start[i];
		uint32 length = keys->start[i + 1] - keys->start[i];
		uint8 behind[SMART_KEY_MAX];
		struct smart_batch batch;
		enum smart_found found;

		memcpy(behind, key, length);
		smart_view_seek(relation->view, key, length, behind, (uint32) smart_successor(behind, length), false);
		found = smart_view_next(relation->view, &batch);
		if (found == SMART_FOUND_BEHIND)
			return false;
		present[i] = found == SMART_FOUND;
	}
	return true;
}

static bool
are_present(struct smart_relation *relation, const struct smart_entries *keys, bool *present)
{
	if (relation->view != NULL)
		return view_present(relation, keys, present);
	return (smart_server.remote ? look_up_present : find_present)(relation, keys, present);
}

/* Adds to the removal what is in the tree and may go. */
static void
collect(struct smart_removal *removal, Relation heap, const struct smart_entries *keys)
{
	struct smart_relation *relation = removal->relation;
	BlockNumber blocks = RelationGetNumberOfBlocks(heap);
	bool *present = palloc(keys->count * sizeof(bool));
	Buffer buffer = InvalidBuffer;

	if (!are_present(relation, keys, present))
		return;
	for (uint32 i = 0; i < keys->count; i++)
	{
		const uint8 *key = keys->bytes + keys->start[i];
		int length = (int) (keys->start[i + 1] - keys->start[i]);
		ItemPointerData tid;

		if (!present[i])
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
	smart_assert(removal->count <= keys->count);
}

/* The same where pages answer for good: the removals are in the journal then, and that is all (src/README, J13). */
static uint32
remove_by_journal(Relation heap, Relation index, const struct smart_entries *keys)
{
	struct smart_relation *relation = NULL;
	struct smart_removal removal;
	struct smart_pin_ticket pin;
	struct smart_meta meta;

	smart_meta_read(index, &meta);
	if (meta.tree == SMART_TREE_NOWHERE && smart_relation_can_answer(index))
		relation = smart_view_open(index, true);
	if (relation == NULL)
		return 0;
	smart_removal_begin(&removal, relation, index);
	pin = smart_pin_enter(smart_view_pinned(relation->view));
	if (relation->changes == smart_changes() && smart_view_catch_up(relation, index, true))
	{
		collect(&removal, heap, keys);
		smart_removal_journal(&removal);
	}
	smart_pin_leave(&pin);
	smart_removal_end(&removal);
	return (uint32) removal.removed;
}

/* The lock of removers is held. */
static uint32
remove_entries(Relation heap, Relation index, const struct smart_entries *keys)
{
	struct smart_relation *relation;
	struct smart_removal removal;
	struct smart_pin_ticket pin;

	relation = smart_relation_try_open(index);
	if (relation == NULL)
		return remove_by_journal(heap, index, keys);
	if (relation->tree == NULL || relation->meta.journal_state == SMART_JOURNAL_NONE)
		return 0;
	smart_removal_begin(&removal, relation, index);
	pin = smart_pin_enter(relation->meta.tree);
	/* A tree that was given up, or replaced, is not protected by the pin. */
	if (relation->changes == smart_changes())
	{
		collect(&removal, heap, keys);
		(void) smart_removal_perform(&removal);
	}
	smart_pin_leave(&pin);
	smart_removal_end(&removal);
	smart_assert(removal.removed <= keys->count);
	return (uint32) removal.removed;
}

uint32
smart_dead_entries_remove(Relation heap, Relation index, const struct smart_entries *keys)
{
	uint32 removed;

	if (!smart_is_our_index(index) || !index->rd_index->indisvalid || !RelationNeedsWAL(index) ||
		!smart_kills_possible(heap) || !smart_journal_try_lock(index, SMART_LOCK_REMOVE))
		return 0;
	removed = remove_entries(heap, index, keys);
	smart_journal_unlock(index, SMART_LOCK_REMOVE);
	return removed;
}

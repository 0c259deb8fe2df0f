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
#include "am/journal/sorted_keys.h"
#include "am/journal/view.h"
#include "am/scan/kill.h"
#include "am/server/shared.h"
#include "am/server/tree_changes.h"
#include "am/write/dead_entries.h"
#include "am/write/removal.h"
#include "base/assert.h"

/* An entry that is said to be dead. */
struct suspect
{
	bool present; /* in the tree */
	bool dead;    /* its line pointer is */
	ItemPointerData tid;
};

/* In the order of their keys, which lie beside them. */
struct suspects
{
	struct smart_sorted_keys sorted;
	struct suspect *list;
};

/* ---- the table ---- */

static bool
is_line_dead(Page page, OffsetNumber offset)
{
	return offset >= FirstOffsetNumber && offset <= PageGetMaxOffsetNumber(page) &&
		   ItemIdIsDead(PageGetItemId(page, offset));
}

/* Looks at the line pointers of rows of one page; returns whether all are dead. */
static bool
look_at_lines(Buffer buffer, struct suspect *const *rows, uint32 count)
{
	Page page = BufferGetPage(buffer);
	bool all = true;

	smart_assert(count > 0);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	for (uint32 i = 0; i < count; i++)
	{
		rows[i]->dead = is_line_dead(page, ItemPointerGetOffsetNumber(&rows[i]->tid));
		all = all && rows[i]->dead;
	}
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return all;
}

/* Is the row dead for all?  Its page is locked. */
static bool
is_dead_for_all(Relation heap, Buffer buffer, const ItemPointerData *tid)
{
	Page page = BufferGetPage(buffer);
	OffsetNumber offset = ItemPointerGetOffsetNumber(tid);
	ItemPointerData root = *tid;
	HeapTupleData tuple;
	bool all_dead = false;

	return offset >= FirstOffsetNumber && offset <= PageGetMaxOffsetNumber(page) &&
		   ItemIdIsUsed(PageGetItemId(page, offset)) &&
		   !heap_hot_search_buffer(&root, heap, buffer, SnapshotSelf, &tuple, &all_dead, true) && all_dead;
}

/*
 * Tells heap that the page is worth pruning, if a row is dead for all whose line pointer is not: it prunes pages that are full,
 * and of which it knows the oldest transaction whose rows could go.  Both are hints of the page, which need no WAL, and which
 * pruning sets right again.
 */
static bool
ask_for_pruning(Relation heap, Buffer buffer, struct suspect *const *rows, uint32 count)
{
	Page page = BufferGetPage(buffer);
	uint32 i = 0;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	while (i < count && (rows[i]->dead || !is_dead_for_all(heap, buffer, &rows[i]->tid)))
		i++;
	if (i < count)
	{
		ItemId item = PageGetItemId(page, ItemPointerGetOffsetNumber(&rows[i]->tid));

		PageSetFull(page);
		/* Of a row whose insertion was rolled back heap has noted nothing. */
		if (!TransactionIdIsValid(((PageHeader) page)->pd_prune_xid) && ItemIdIsNormal(item))
		{
			TransactionId xmin = HeapTupleHeaderGetRawXmin((HeapTupleHeader) PageGetItem(page, item));

			if (TransactionIdIsNormal(xmin))
				PageSetPrunable(page, xmin);
		}
	}
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return i < count;
}

/* Which line pointers of one page are dead, or can be made so? */
static void
look_at_page(Relation heap, Buffer buffer, struct suspect *const *rows, uint32 count)
{
	smart_assert(count > 0 && BufferIsValid(buffer));
	if (look_at_lines(buffer, rows, count) || !ask_for_pruning(heap, buffer, rows, count))
		return;
	heap_page_prune_opt(heap, buffer);
	(void) look_at_lines(buffer, rows, count);
}

/* qsort's */
static int
compare_tids(const void *a, const void *b)
{
	struct suspect *const *left = a;
	struct suspect *const *right = b;

	return ItemPointerCompare(&(*left)->tid, &(*right)->tid);
}

/* Looks at the rows of those that are present, a page at a time. */
static void
look_at_table(Relation heap, const struct suspects *suspects)
{
	BlockNumber blocks = RelationGetNumberOfBlocks(heap);
	struct suspect **rows = palloc(suspects->sorted.count * sizeof(*rows));
	Buffer buffer = InvalidBuffer;
	uint32 count = 0;
	uint32 end;

	for (uint32 i = 0; i < suspects->sorted.count; i++)
	{
		if (suspects->list[i].present && ItemPointerGetBlockNumber(&suspects->list[i].tid) < blocks)
			rows[count++] = &suspects->list[i];
	}
	qsort(rows, count, sizeof(*rows), compare_tids);
	for (uint32 begin = 0; begin < count; begin = end)
	{
		BlockNumber block = ItemPointerGetBlockNumber(&rows[begin]->tid);

		for (end = begin + 1; end < count && ItemPointerGetBlockNumber(&rows[end]->tid) == block;)
			end++;
		buffer = ReleaseAndReadBuffer(buffer, heap, block);
		look_at_page(heap, buffer, rows + begin, end - begin);
	}
	if (BufferIsValid(buffer))
		ReleaseBuffer(buffer);
	pfree(rows);
}

/* ---- the index ---- */

/* Orders entry i of a batch and a key; 0: it is the key's. */
static int
compare_item(const struct smart_batch *batch, uint32 i, const struct smart_sorted_key *key)
{
	const struct smart_item *item = &batch->items[i];
	uint32 shared = Min(batch->prefix_length, key->length);
	int order = memcmp(batch->prefix, key->bytes, shared);

	if (order != 0 || shared == key->length)
		return order;
	order = memcmp(batch->bytes + item->offset, key->bytes + shared, Min(item->length, key->length - shared));
	return order == 0 && item->length < key->length - shared ? -1 : order;
}

/* READs the leaves of the keys from first on, of as many as can be at a time. */
static bool
read_ahead(struct smart_scan *scan, const struct suspects *suspects, uint32 first)
{
	uint32 count = Min(suspects->sorted.count - first, SMART_POINTS_MAX);
	const struct smart_sorted_key *keys = suspects->sorted.keys + first;
	struct smart_point points[SMART_POINTS_MAX];
	uint8 *bytes = palloc((Size) count * SMART_KEY_MAX);
	smart_status status;

	smart_assert(first < suspects->sorted.count);
	for (uint32 i = 0; i < count; i++)
	{
		points[i] = (struct smart_point){.bytes = bytes + i * SMART_KEY_MAX, .length = keys[i].length};
		memcpy(points[i].bytes, keys[i].bytes, keys[i].length);
	}
	status = smart_relation_points(scan, points, count);
	pfree(bytes);
	return status == SMART_OK;
}

/*
 * Which ones are in the tree?  Many of them may lie in one leaf, so a batch that was read for one key tells of those behind it,
 * too.  False: the tree cannot be read.
 */
static bool
find_present(struct smart_relation *relation, const struct suspects *suspects)
{
	struct smart_scan *scan = smart_relation_scan(relation);
	struct smart_batch batch = {0};
	uint32 at = 0;

	smart_assert(relation->view == NULL && relation->tree != NULL);
	for (uint32 i = 0; i < suspects->sorted.count; i++)
	{
		const struct smart_sorted_key *key = &suspects->sorted.keys[i];

		if (smart_server.remote && i % SMART_POINTS_MAX == 0)
		{
			batch.count = 0;
			if (!read_ahead(scan, suspects, i))
				return false;
		}
		/* The batch has all entries from the key that it was read for up to its own last one. */
		if (batch.count == 0 || compare_item(&batch, batch.count - 1, key) < 0)
		{
			smart_status status = smart_scan_seek_point(scan, key->bytes, key->length, NULL, 0, false);

			batch.count = at = 0;
			if (status == SMART_OK)
				status = smart_relation_next(scan, &batch);
			if (status != SMART_OK && status != SMART_DONE)
				return false;
		}
		while (at < batch.count && compare_item(&batch, at, key) < 0)
			at++;
		suspects->list[i].present = at < batch.count && compare_item(&batch, at, key) == 0;
	}
	return true;
}

/* The same of a view. */
static bool
view_present(struct smart_relation *relation, const struct suspects *suspects)
{
	for (uint32 i = 0; i < suspects->sorted.count; i++)
	{
		const struct smart_sorted_key *key = &suspects->sorted.keys[i];
		uint8 behind[SMART_KEY_MAX];
		struct smart_batch batch;
		enum smart_found found;

		smart_assert(key->length > 0 && key->length <= SMART_KEY_MAX);
		memcpy(behind, key->bytes, key->length);
		smart_view_seek(relation->view, key->bytes, key->length, behind, (uint32) smart_successor(behind, key->length),
						false);
		found = smart_view_next(relation->view, &batch);
		if (found == SMART_FOUND_BEHIND)
			return false;
		suspects->list[i].present = found == SMART_FOUND;
	}
	return true;
}

static bool
are_present(struct smart_relation *relation, const struct suspects *suspects)
{
	return (relation->view != NULL ? view_present : find_present)(relation, suspects);
}

/* What sessions have met comes in the order in which they met it. */
static struct suspects
make_suspects(const struct smart_codec *codec, const struct smart_entries *entries)
{
	struct smart_sorted_key *keys = palloc(entries->count * sizeof(*keys));
	struct suspects suspects = {.sorted = {.keys = keys, .count = entries->count},
								.list = palloc0(entries->count * sizeof(struct suspect))};

	for (uint32 i = 0; i < entries->count; i++)
		keys[i] = (struct smart_sorted_key){.bytes = entries->bytes + entries->start[i],
											.length = entries->start[i + 1] - entries->start[i]};
	smart_sorted_keys_sort(&suspects.sorted);
	for (uint32 i = 0; i < entries->count; i++)
		smart_entry_tid(codec, keys[i].bytes + keys[i].length, &suspects.list[i].tid);
	return suspects;
}

/* One that was handed over twice goes once. */
static bool
is_new(const struct smart_sorted_key *keys, uint32 i)
{
	return i == 0 || smart_compare_bytes(keys[i - 1].bytes, keys[i - 1].length, keys[i].bytes, keys[i].length) != 0;
}

/* Adds to the removal what is in the tree and may go. */
static void
collect(struct smart_removal *removal, Relation heap, const struct smart_entries *keys)
{
	struct suspects suspects = make_suspects(removal->relation->codec, keys);

	if (!are_present(removal->relation, &suspects))
		return;
	look_at_table(heap, &suspects);
	for (uint32 i = 0; i < suspects.sorted.count; i++)
	{
		const struct smart_sorted_key *key = &suspects.sorted.keys[i];

		if (suspects.list[i].dead && is_new(suspects.sorted.keys, i))
			smart_removal_add(removal, key->bytes, (int) key->length);
	}
	smart_assert(removal->count <= keys->count);
	pfree(suspects.sorted.keys);
	pfree(suspects.list);
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
	smart_assert(removal.removed <= keys->count);
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

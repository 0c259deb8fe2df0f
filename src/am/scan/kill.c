/*
 * kill.c
 *	  Entries of dead rows, removed by the scan or insert that meets them.
 *
 * A scan, or the check of a unique index, that is led to a row which no transaction can see any more notes
 * its entry; when it is done with a leaf it removes what it noted.  Until then much may have happened, so
 * everything is looked at again under a vacuum pin, in this order:
 *
 *	1. The entry is in the tree.  So no VACUUM that still has its row's line pointer to free has been
 *	   through the tree: it would have taken the entry away.  A VACUUM that comes now waits for the pin
 *	   before it frees any.
 *	2. The line pointer is in use, and its row dead for all.  It stays so, as VACUUM alone frees line
 *	   pointers that an index may lead to: what is removed in the end cannot be the entry of a new row in
 *	   the same place.
 *	3. The WAL of the page is flushed.  An entry that is removed is gone at once, and it must not be missed
 *	   when a crash has undone the row's death.  A commit that is known from a hint alone is older than the
 *	   page's WAL, or flushed (SetHintBits in core); so that is enough for asynchronous commits, too.
 *
 * All this is about heap tables; entries of other tables stay until VACUUM comes.
 *
 * Where there is a journal the keys are handed over to a worker instead (write/dead_entries.c).
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "am/codec/encode.h"
#include "am/index/pin.h"
#include "am/index/relation.h"
#include "am/scan/kill.h"
#include "am/server/kill_queue.h"
#include "am/server/shared.h"
#include "am/server/tree_changes.h"
#include "base/assert.h"
#include "base/bytes.h"
#include "tree/tree.h"

/* On memory nodes a leaf is not rewritten for less, since that takes several round trips. */
#define REMOTE_WORTH 4

/* What is found out about the noted entries. */
struct inspection
{
	const struct smart_kills *kills;
	const struct smart_codec *codec;
	bool looking; /* dead() is only shown what is there */
	bool there[SMART_KILLS_MAX];
	bool dead[SMART_KILLS_MAX];
};

void
smart_kills_init(struct smart_kills *kills)
{
	kills->context = CurrentMemoryContext;
	kills->count = 0;
	kills->room = 0;
	kills->start[0] = 0;
	kills->bytes = NULL;
}

void
smart_kills_release(struct smart_kills *kills)
{
	smart_assert(kills->count == 0);
	if (kills->bytes != NULL)
		pfree(kills->bytes);
	kills->bytes = NULL;
	kills->room = 0;
}

bool
smart_kills_possible(Relation heap)
{
	return heap != NULL && heap->rd_tableam == GetHeapamTableAmRoutine();
}

void
smart_kills_note(struct smart_kills *kills, const uint8 *key, int key_length)
{
	uint32 start = kills->start[kills->count];

	smart_assert(kills->count <= SMART_KILLS_MAX && start <= kills->room);
	smart_assert(key_length > 0 && key_length <= SMART_KEY_MAX);
	if (kills->count == SMART_KILLS_MAX)
		return;
	if (start + (uint32) key_length > kills->room)
	{
		uint32 room = Max(2 * kills->room, start + SMART_KEY_MAX);

		kills->bytes = kills->bytes == NULL ? MemoryContextAlloc(kills->context, room) : repalloc(kills->bytes, room);
		kills->room = room;
	}
	memcpy(kills->bytes + start, key, (Size) key_length);
	kills->start[++kills->count] = start + (uint32) key_length;
	smart_assert(kills->start[kills->count] <= kills->room);
}

static const uint8 *
key_of(const struct smart_kills *kills, uint32 i, uint32 *length)
{
	smart_assert(i < kills->count && kills->start[i] < kills->start[i + 1]);
	*length = kills->start[i + 1] - kills->start[i];
	return kills->bytes + kills->start[i];
}

/* ---- the tree ---- */

/* smart_dead_fn: first which of the noted entries are there, then which have to go. */
static bool
inspect_entry(void *argument, const uint8 *entry, size_t length)
{
	struct inspection *inspection = argument;
	uint32 key_length = (uint32) smart_codec_key_length(inspection->codec, entry, (int) length);

	for (uint32 i = 0; i < inspection->kills->count; i++)
	{
		uint32 noted_length;
		const uint8 *noted = key_of(inspection->kills, i, &noted_length);

		if (noted_length != key_length || memcmp(noted, entry, key_length) != 0)
			continue;
		if (inspection->looking)
			inspection->there[i] = true;
		/* An entry that goes was seen in the tree before its row was looked at. */
		smart_assert(inspection->there[i] || !inspection->dead[i]);
		return !inspection->looking && inspection->dead[i];
	}
	return false;
}

/* Goes through the leaf of the first noted entry. */
static bool
visit_leaf(struct inspection *inspection, struct smart_tree *tree, bool looking)
{
	const struct smart_kills *kills = inspection->kills;
	uint32 first_length;
	uint32 last_length;
	const uint8 *first = key_of(kills, 0, &first_length);
	const uint8 *last = key_of(kills, kills->count - 1, &last_length);
	uint64_t removed;

	/* Those of a backward scan come in descending order. */
	if (smart_compare_bytes(last, last_length, first, first_length) < 0)
	{
		first = last;
		first_length = last_length;
	}
	inspection->looking = looking;
	return smart_tree_weed(tree, first, first_length, inspect_entry, inspection, &removed) == SMART_OK;
}

/* ---- the table ---- */

/* Is the row of a line pointer in use dead for all transactions, and will it be so after a crash?  The page is locked. */
static bool
is_dead_for_good(Relation heap, Buffer buffer, ItemPointer tid)
{
	Page page = BufferGetPage(buffer);
	OffsetNumber offset = ItemPointerGetOffsetNumber(tid);
	ItemPointerData root = *tid;
	HeapTupleData tuple;
	bool all_dead;

	if (offset < FirstOffsetNumber || offset > PageGetMaxOffsetNumber(page) ||
		!ItemIdIsUsed(PageGetItemId(page, offset)))
		return false;
	if (heap_hot_search_buffer(&root, heap, buffer, SnapshotSelf, &tuple, &all_dead, true) || !all_dead)
		return false;
	if (RelationNeedsWAL(heap))
	{
		XLogRecPtr end = BufferGetLSNAtomic(buffer);

		if (XLogNeedsFlush(end))
			return false;
		smart_wal_is_durable(end);
	}
	return true;
}

/* Looks at the rows of the entries that are there; returns how many may go. */
static uint32
inspect_rows(struct inspection *inspection, Relation heap)
{
	Buffer buffer = InvalidBuffer;
	uint32 found = 0;

	for (uint32 i = 0; i < inspection->kills->count; i++)
	{
		uint32 length;
		const uint8 *key = key_of(inspection->kills, i, &length);
		ItemPointerData tid;

		if (!inspection->there[i])
			continue;
		smart_entry_tid(inspection->codec, key + length, &tid);
		buffer = ReleaseAndReadBuffer(buffer, heap, ItemPointerGetBlockNumber(&tid));
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		inspection->dead[i] = is_dead_for_good(heap, buffer, &tid);
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		found += inspection->dead[i];
	}
	if (BufferIsValid(buffer))
		ReleaseBuffer(buffer);
	return found;
}

void
smart_kills_apply(struct smart_kills *kills, struct smart_relation *relation, Relation heap)
{
	struct inspection inspection = {.kills = kills, .codec = relation->codec};
	uint32 worth = smart_server.remote ? REMOTE_WORTH : 1;
	struct smart_pin_ticket pin;

	smart_assert(kills->count <= SMART_KILLS_MAX);
	/* A scan that has read them from a tree may have gone on in pages of the journal. */
	smart_assert(relation->tree != NULL || relation->meta.journal_state != SMART_JOURNAL_NONE);
	if (relation->meta.journal_state != SMART_JOURNAL_NONE)
		smart_kill_queue_put(MyDatabaseId, relation->index, kills->bytes, kills->start, kills->count);
	else if (kills->count >= worth)
	{
		pin = smart_pin_enter(relation->meta.tree);
		/* A tree that was given up, or replaced, is not protected by the pin. */
		if (relation->changes == smart_changes() && visit_leaf(&inspection, relation->tree, true) &&
			inspect_rows(&inspection, heap) >= worth)
			(void) visit_leaf(&inspection, relation->tree, false);
		smart_pin_leave(&pin);
	}
	kills->count = 0;
}

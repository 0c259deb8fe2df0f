/*
 * check.c
 *	  smart_index_check(): is the tree, or the run that answers, whole and in the order that collations have now, does the
 *	  tree have what its journal tells of, and do heap and index hold the same rows?
 *
 * From heap to index: the keys of all entries go into a Bloom filter, then the heap is read under a snapshot
 * that is older than the reading of the first entry; a row that it sees was inserted before, and its entry
 * must be in the filter.  The filter may overlook a missing entry, but never reports one that is there.
 *
 * From index to heap: the line pointer of each entry must be in use.  VACUUM takes an entry away before it
 * frees the line pointer, so an entry that is still there after its line pointer was seen free is wrong,
 * unless a row of the same key came to that place in the meantime; that can happen once or twice, but not
 * again and again.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "fmgr.h"
#include "lib/bloomfilter.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/guc.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "am/codec/encode.h"
#include "am/compat.h"
#include "am/index/meta.h"
#include "am/index/relation.h"
#include "am/journal/pending.h"
#include "am/monitor/check_entries.h"
#include "am/monitor/check_follower.h"
#include "am/monitor/check_journal.h"
#include "am/monitor/check_order.h"
#include "base/assert.h"

#define LOOKS_AGAIN 5 /* at an entry whose line pointer is free */

PG_FUNCTION_INFO_V1(smart_index_check);

struct check
{
	Relation heap;
	Relation index;
	struct smart_relation *self;
	bloom_filter *filter;
	Buffer buffer;       /* page of the last line pointer looked at, pinned */
	BlockNumber blocks;  /* of the heap */
	bool heap_has_pages; /* of line pointers, as heap tables do */
	uint8 entry[SMART_ENTRY_MAX];
};

/* ---- from index to heap ---- */

static bool
line_pointer_used(struct check *check, ItemPointer tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(tid);
	Page page;
	bool used;

	if (block >= check->blocks)
	{
		check->blocks = RelationGetNumberOfBlocks(check->heap);
		if (block >= check->blocks)
			return false;
	}
	check->buffer = ReleaseAndReadBuffer(check->buffer, check->heap, block);
	smart_assert(BufferIsValid(check->buffer) && check->heap_has_pages);
	LockBuffer(check->buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(check->buffer);
	used = !PageIsNew(page) && offset >= FirstOffsetNumber && offset <= PageGetMaxOffsetNumber(page) &&
		   ItemIdIsUsed(PageGetItemId(page, offset));
	LockBuffer(check->buffer, BUFFER_LOCK_UNLOCK);
	return used;
}

static void
check_line_pointer(struct check *check, const uint8 *key, int key_length)
{
	ItemPointerData tid;

	smart_assert(key_length > 0 && key_length <= SMART_KEY_MAX);
	smart_entry_tid(check->self->codec, key + key_length, &tid);
	for (int look = 0; look < LOOKS_AGAIN; look++)
	{
		if (line_pointer_used(check, &tid) || !smart_check_is_there(check->self, check->index, key, key_length))
			return;
	}
	ereport(ERROR, errcode(ERRCODE_INDEX_CORRUPTED),
			errmsg("index \"%s\" has an entry for row (%u,%u) of table \"%s\", which does not exist",
				   RelationGetRelationName(check->index), ItemPointerGetBlockNumberNoCheck(&tid),
				   ItemPointerGetOffsetNumberNoCheck(&tid), RelationGetRelationName(check->heap)),
			smart_hint_reindex(check->index));
}

static void
check_entries(void *argument, const struct smart_batch *batch)
{
	struct check *check = argument;

	for (uint32 i = 0; i < batch->count; i++)
	{
		int length = smart_batch_entry(batch, i, check->entry);
		int key_length = smart_codec_key_length(check->self->codec, check->entry, length);

		smart_assert(key_length > 0 && key_length <= length);
		bloom_add_element(check->filter, check->entry, (size_t) key_length);
		if (check->heap_has_pages)
			check_line_pointer(check, check->entry, key_length);
	}
}

/* ---- from heap to index ---- */

static void
check_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *state)
{
	struct check *check = state;
	int key_length = smart_codec_encode_key(check->self->codec, values, isnull, tid, check->entry);

	smart_assert(key_length > 0 && key_length <= SMART_KEY_MAX);
	if (check->filter != NULL && !bloom_lacks_element(check->filter, check->entry, (size_t) key_length))
		return;
	ereport(ERROR, errcode(ERRCODE_INDEX_CORRUPTED),
			errmsg("row (%u,%u) of table \"%s\" has no entry in index \"%s\"", ItemPointerGetBlockNumber(tid),
				   ItemPointerGetOffsetNumber(tid), RelationGetRelationName(check->heap),
				   RelationGetRelationName(check->index)),
			smart_hint_reindex(check->index));
}

/* ---- the whole ---- */

/* Is the tree whole?  Returns how many entries it has. */
static uint64
check_tree(struct check *check)
{
	struct smart_verify_report report = {0};
	Relation index = check->index;
	char message[256];
	smart_status status = smart_relation_verify(check->self, &report, message, sizeof(message));

	if (status == SMART_CORRUPT)
		ereport(ERROR, errcode(ERRCODE_INDEX_CORRUPTED),
				errmsg("index \"%s\" is corrupt", RelationGetRelationName(index)), errdetail_internal("%s", message),
				smart_hint_reindex(index));
	smart_check_status(status, index);
	smart_check_journal(check->self, index);
	return report.entries;
}

/* Is the tree whole that answers, or the run?  Returns about how many entries it has. */
static uint64
check_structure(struct check *check)
{
	uint64 entries = 0;

	if (check->self->tree != NULL)
		entries = check_tree(check);
	else if (check->self->view != NULL)
	{
		entries = smart_check_pages(check->self, check->index);
		smart_check_follower(check->index);
	}
	else
		return 0;
	smart_check_order(check->self, check->index);
	return entries;
}

static void
check_index(Relation heap, Relation index, bool heapallindexed)
{
	struct check *check = palloc0(sizeof(struct check));
	uint64 entries;
	Snapshot snapshot = NULL;
	IndexInfo *info;
	TableScanDesc scan;

	smart_assert(index->rd_index->indrelid == RelationGetRelid(heap));
	check->heap = heap;
	check->index = index;
	check->buffer = InvalidBuffer;
	check->heap_has_pages = heap->rd_tableam == GetHeapamTableAmRoutine();
	if (heapallindexed)
	{
		/* A snapshot that sees no row whose HOT chain is too new for the index. */
		snapshot = RegisterSnapshot(GetTransactionSnapshot());
		if (IsolationUsesXactSnapshot() && index->rd_index->indcheckxmin &&
			!TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data), snapshot->xmin))
			ereport(ERROR, errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					errmsg("index \"%s\" cannot be checked with this transaction's snapshot",
						   RelationGetRelationName(index)));
	}
	check->self = smart_check_open(index);
	entries = check_structure(check);
	if (!heapallindexed)
		return;

	if (check->self->tree != NULL || check->self->view != NULL)
	{
		check->filter = bloom_create((int64) Max(entries, 1), maintenance_work_mem, (uint64) GetCurrentTimestamp());
		smart_check_each(check->self, index, check_entries, check);
		if (BufferIsValid(check->buffer))
			ReleaseBuffer(check->buffer);
	}

	/* Read what the snapshot sees, and do not check what building would check. */
	smart_assert(snapshot != NULL);
	info = BuildIndexInfo(index);
	info->ii_Concurrent = true;
	info->ii_Unique = false;
	info->ii_ExclusionOps = NULL;
	info->ii_ExclusionProcs = NULL;
	info->ii_ExclusionStrats = NULL;
	scan = table_beginscan_strat(heap, snapshot, 0, NULL, true, true);
	(void) table_index_build_scan(heap, index, info, true, false, check_row, check, scan);
	UnregisterSnapshot(snapshot);
	if (check->filter != NULL)
		bloom_free(check->filter);
}

/*
 * smart_index_check(index regclass, heapallindexed bool)
 *
 * Nothing is returned if all is well.  Errors: INDEX_CORRUPTED; what
 * smart_index_open() and smart_relation_open() report.
 */
PGDLLEXPORT Datum
smart_index_check(PG_FUNCTION_ARGS)
{
	Oid oid = PG_GETARG_OID(0);
	Oid table = IndexGetRelation(oid, true);
	Relation heap;
	Relation index;
	Oid user;
	int security;
	int guc_level;

	/* The table first, so that locks are taken in the usual order; if there is none, smart_index_open() reports it. */
	heap = OidIsValid(table) ? table_open(table, AccessShareLock) : NULL;

	/* The functions of an expression index run as the table's owner, who trusts them. */
	GetUserIdAndSecContext(&user, &security);
	if (heap != NULL)
		SetUserIdAndSecContext(heap->rd_rel->relowner, security | SECURITY_RESTRICTED_OPERATION);
	guc_level = NewGUCNestLevel();
	smart_restrict_search_path();

	/* A statement that inserts rows may ask about them. */
	smart_pending_write_out();
	index = smart_index_open(oid);
	if (heap == NULL || RelationGetRelid(heap) != IndexGetRelation(oid, false))
		ereport(ERROR, errcode(ERRCODE_UNDEFINED_TABLE),
				errmsg("the table of index \"%s\" has gone", RelationGetRelationName(index)));
	check_index(heap, index, PG_GETARG_BOOL(1));

	AtEOXact_GUC(false, guc_level);
	SetUserIdAndSecContext(user, security);
	relation_close(index, AccessShareLock);
	table_close(heap, AccessShareLock);
	PG_RETURN_VOID();
}

/*
 * opened.c
 *	  An index and its table, as what works in the background opens them.
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/index.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "am/index/relation.h"
#include "am/maintenance/opened.h"
#include "am/server/waiters.h"
#include "base/assert.h"

/* The OID may be another relation's by now, or of none; NULL then. */
static Relation
open_index(Oid index, Oid heap)
{
	Relation relation = try_relation_open(index, NoLock);

	if (relation == NULL || (smart_is_our_index(relation) && relation->rd_index->indrelid == heap))
		return relation;
	relation_close(relation, NoLock);
	return NULL;
}

enum smart_opening
smart_try_open(Oid index, LOCKMODE heap_lock, LOCKMODE index_lock, struct smart_opened *opened)
{
	Oid heap = IndexGetRelation(index, true);

	smart_assert(OidIsValid(index) && heap_lock > NoLock && index_lock > NoLock);
	if (!OidIsValid(heap))
		return SMART_OPENING_GONE;
	if (!ConditionalLockRelationOid(heap, heap_lock) || !ConditionalLockRelationOid(index, index_lock))
		return SMART_OPENING_LOCKED;
	opened->heap = try_relation_open(heap, NoLock);
	if (opened->heap == NULL)
		return SMART_OPENING_GONE;
	opened->index = open_index(index, heap);
	if (opened->index != NULL)
		return SMART_OPENED;
	relation_close(opened->heap, NoLock);
	return SMART_OPENING_GONE;
}

bool
smart_open_conditionally(Oid index, LOCKMODE heap_lock, LOCKMODE index_lock, struct smart_opened *opened)
{
	enum smart_opening opening = smart_try_open(index, heap_lock, index_lock, opened);

	if (opening == SMART_OPENING_LOCKED)
		ereport(ERROR, errcode(ERRCODE_LOCK_NOT_AVAILABLE), errmsg("index %u or its table is locked", index));
	return opening == SMART_OPENED;
}

void
smart_opened_close(const struct smart_opened *opened)
{
	relation_close(opened->index, NoLock);
	relation_close(opened->heap, NoLock);
}

bool
smart_opened_is_awaited(const struct smart_opened *opened, LOCKMODE lock)
{
	smart_assert(CheckRelationLockedByMe(opened->heap, lock, true) &&
				 CheckRelationLockedByMe(opened->index, lock, true));
	InvalidateCatalogSnapshot();
	return smart_lock_is_awaited(opened->heap, lock) || smart_lock_is_awaited(opened->index, lock) ||
		   smart_transaction_is_awaited();
}

void
smart_opened_give_way(const struct smart_opened *opened, LOCKMODE lock, const char *work)
{
	CHECK_FOR_INTERRUPTS();
	if (smart_opened_is_awaited(opened, lock))
		ereport(ERROR, errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				errmsg("the %s of index \"%s\" gives way to another process, which waits for it", work,
					   RelationGetRelationName(opened->index)));
}

/*
 * lock.c
 *	  The locks of a journal.
 *
 * Nothing else locks tuples of a smart index.
 */
#include "postgres.h"

#include "storage/itemptr.h"
#include "storage/lmgr.h"

#include "am/compat.h"
#include "am/index/meta.h"
#include "am/journal/lock.h"

static ItemPointerData
place_of(enum smart_journal_lock lock)
{
	ItemPointerData place;

	ItemPointerSet(&place, SMART_META_BLOCK, (OffsetNumber) lock);
	return place;
}

void
smart_journal_lock(Relation index, enum smart_journal_lock lock)
{
	ItemPointerData place = place_of(lock);

	LockTuple(index, &place, ExclusiveLock);
}

bool
smart_journal_try_lock(Relation index, enum smart_journal_lock lock)
{
	ItemPointerData place = place_of(lock);

	return smart_try_lock_tuple(index, &place, ExclusiveLock);
}

void
smart_journal_unlock(Relation index, enum smart_journal_lock lock)
{
	ItemPointerData place = place_of(lock);

	UnlockTuple(index, &place, ExclusiveLock);
}

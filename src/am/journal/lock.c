/*
 * lock.c
 *	  The locks of a journal.
 *
 * They name its file, not the index: a command that exchanges the files of two indexes, as pg_repack does, leaves each
 * journal with those who have it locked.  Nothing else of PostgreSQL takes locks of this kind.
 */
#include "postgres.h"

#include "storage/lock.h"

#include "am/compat.h"
#include "am/journal/lock.h"
#include "base/assert.h"

static LOCKTAG
tag_of(Relation index, enum smart_journal_lock lock)
{
	smart_assert(lock >= SMART_LOCK_COMPACT && lock <= SMART_LOCK_CHAIN);
	smart_assert(smart_relation_file(index) != 0);
	return (LOCKTAG){.locktag_field1 = smart_relation_database(index),
					 .locktag_field2 = smart_relation_tablespace(index),
					 .locktag_field3 = smart_relation_file(index),
					 .locktag_field4 = lock,
					 .locktag_type = LOCKTAG_USERLOCK,
					 .locktag_lockmethodid = DEFAULT_LOCKMETHOD};
}

void
smart_journal_lock(Relation index, enum smart_journal_lock lock)
{
	LOCKTAG tag = tag_of(index, lock);

	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}

bool
smart_journal_try_lock(Relation index, enum smart_journal_lock lock)
{
	LOCKTAG tag = tag_of(index, lock);

	return LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL;
}

void
smart_journal_unlock(Relation index, enum smart_journal_lock lock)
{
	LOCKTAG tag = tag_of(index, lock);

	(void) LockRelease(&tag, ExclusiveLock, false);
}

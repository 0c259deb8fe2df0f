/*
 * compactions.c
 *	  Whose journals are to be compacted.
 */
#include "postgres.h"

#include "storage/spin.h"
#include "utils/timestamp.h"

#include "am/server/compactions.h"
#include "am/server/shared.h"
#include "am/server/wishes.h"
#include "base/assert.h"

#define CALL_MS 60000 /* a worker that has not begun by then does not come: its database has gone, or refuses it */

/* Its place, or the number of wishes; the lock is held. */
static int
find(const struct smart_compactions *table, Oid database, Oid index)
{
	int place = 0;

	smart_assert(table->count >= 0 && table->count <= SMART_COMPACTIONS);
	while (place < table->count && (table->wish[place].database != database || table->wish[place].index != index))
		place++;
	return place;
}

void
smart_compaction_wish(Oid database, Oid index)
{
	struct smart_compactions *table = &smart_server.shared->compactions;
	TimestampTz now = GetCurrentTimestamp();
	bool added;

	smart_assert(OidIsValid(database) && OidIsValid(index));
	SpinLockAcquire(&table->lock);
	added = find(table, database, index) == table->count && table->count < SMART_COMPACTIONS;
	if (added)
		table->wish[table->count++] = (struct smart_compaction){.database = database,
																.index = index,
																.state = SMART_COMPACTION_WAITS,
																.when = now};
	SpinLockRelease(&table->lock);
	if (added)
		smart_launcher_wake();
}

Oid
smart_compaction_call(bool *waiting)
{
	struct smart_compactions *table = &smart_server.shared->compactions;
	TimestampTz now = GetCurrentTimestamp();
	Oid database = InvalidOid;

	SpinLockAcquire(&table->lock);
	for (int i = 0; i < table->count; i++)
	{
		struct smart_compaction *wish = &table->wish[i];

		if (wish->state == SMART_COMPACTION_WAITS && wish->when <= now &&
			(database == InvalidOid || database == wish->database))
		{
			database = wish->database;
			wish->state = SMART_COMPACTION_CALLED;
			wish->when = now;
		}
		else if (wish->state == SMART_COMPACTION_CALLED && TimestampDifferenceExceeds(wish->when, now, CALL_MS))
			table->wish[i--] = table->wish[--table->count];
	}
	*waiting = table->count > 0;
	SpinLockRelease(&table->lock);
	return database;
}

Oid
smart_compaction_begin(Oid database)
{
	struct smart_compactions *table = &smart_server.shared->compactions;
	Oid index = InvalidOid;

	SpinLockAcquire(&table->lock);
	for (int i = 0; i < table->count && !OidIsValid(index); i++)
	{
		if (table->wish[i].database != database || table->wish[i].state != SMART_COMPACTION_CALLED)
			continue;
		index = table->wish[i].index;
		table->wish[i].state = SMART_COMPACTION_RUNS;
	}
	SpinLockRelease(&table->lock);
	return index;
}

void
smart_compaction_end(Oid database, Oid index, int again_ms)
{
	struct smart_compactions *table = &smart_server.shared->compactions;
	TimestampTz due = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), again_ms);
	int place;

	SpinLockAcquire(&table->lock);
	place = find(table, database, index);
	smart_assert(place < table->count && table->wish[place].state == SMART_COMPACTION_RUNS);
	if (again_ms < 0)
		table->wish[place] = table->wish[--table->count];
	else
	{
		table->wish[place].state = SMART_COMPACTION_WAITS;
		table->wish[place].when = due;
	}
	SpinLockRelease(&table->lock);
	smart_launcher_wake();
}

/*
 * errands.c
 *	  Whose journals are to be compacted, whose chains are to be carried to memory nodes, and whose deltas are to be made.
 */
#include "postgres.h"

#include "storage/spin.h"
#include "utils/timestamp.h"

#include "am/server/errands.h"
#include "am/server/launcher_requests.h"
#include "am/server/shared.h"
#include "base/assert.h"

#define MOMENT_MS 300   /* that requests wait where more of the same comes together */
#define CALL_MS   60000 /* a worker that has not begun by then does not come */

static struct smart_errands *
errands(enum smart_errand_kind kind)
{
	smart_assert((unsigned int) kind < SMART_ERRAND_KINDS);
	return &smart_server.shared->errands[kind];
}

/* Its place, or the number of requests; the lock is held. */
static int
find(const struct smart_errands *table, Oid database, Oid index)
{
	int place = 0;

	smart_assert(table->count >= 0 && table->count <= SMART_ERRANDS);
	while (place < table->count && (table->request[place].database != database || table->request[place].index != index))
		place++;
	return place;
}

void
smart_errand_request(enum smart_errand_kind kind, Oid database, Oid index)
{
	struct smart_errands *table = errands(kind);
	bool added;
	int place;

	smart_assert(OidIsValid(database) && OidIsValid(index));
	SpinLockAcquire(&table->lock);
	place = find(table, database, index);
	added = place == table->count && table->count < SMART_ERRANDS;
	if (place < table->count)
	{
		table->request[place].again = table->request[place].state == SMART_ERRAND_RUNS;
		table->request[place].requests++;
	}
	if (added)
		table->request[table->count++] =
			(struct smart_errand){.database = database, .index = index, .state = SMART_ERRAND_WAITS, .requests = 1};
	smart_assert(place <= table->count && table->count <= SMART_ERRANDS);
	SpinLockRelease(&table->lock);
	if (added)
		smart_launcher_wake();
}

void
smart_errand_hurry(enum smart_errand_kind kind, Oid database, Oid index)
{
	struct smart_errands *table = errands(kind);
	TimestampTz now = GetCurrentTimestamp();
	int place;

	smart_errand_request(kind, database, index);
	SpinLockAcquire(&table->lock);
	place = find(table, database, index);
	if (place < table->count && table->request[place].state == SMART_ERRAND_WAITS &&
		table->request[place].when <= TimestampTzPlusMilliseconds(now, MOMENT_MS))
		table->request[place].when = Min(table->request[place].when, now);
	SpinLockRelease(&table->lock);
}

uint32
smart_errand_requests(enum smart_errand_kind kind, Oid database, Oid index)
{
	struct smart_errands *table = errands(kind);
	uint32 requests = 0;
	int place;

	SpinLockAcquire(&table->lock);
	place = find(table, database, index);
	if (place < table->count)
		requests = table->request[place].requests;
	SpinLockRelease(&table->lock);
	return requests;
}

static bool
is_due(const struct smart_errand *request, TimestampTz now)
{
	return request->state == SMART_ERRAND_WAITS && request->when <= now;
}

Oid
smart_errand_call(enum smart_errand_kind kind, bool *waiting)
{
	struct smart_errands *table = errands(kind);
	TimestampTz now = GetCurrentTimestamp();
	Oid database = InvalidOid;

	SpinLockAcquire(&table->lock);
	for (int i = 0; i < table->count; i++)
	{
		struct smart_errand *request = &table->request[i];

		smart_assert(OidIsValid(request->database) && request->state <= SMART_ERRAND_RUNS);
		if (is_due(request, now) && (database == InvalidOid || database == request->database))
		{
			database = request->database;
			request->state = SMART_ERRAND_CALLED;
			request->when = now;
		}
		else if (request->state == SMART_ERRAND_CALLED && TimestampDifferenceExceeds(request->when, now, CALL_MS))
			table->request[i--] = table->request[--table->count];
	}
	smart_assert(table->count >= 0 && table->count <= SMART_ERRANDS);
	*waiting = table->count > 0;
	SpinLockRelease(&table->lock);
	return database;
}

void
smart_errand_call_off(enum smart_errand_kind kind, Oid database, int again_ms)
{
	struct smart_errands *table = errands(kind);
	TimestampTz due = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), Max(again_ms, 0));

	smart_assert(OidIsValid(database));
	SpinLockAcquire(&table->lock);
	for (int i = 0; i < table->count; i++)
	{
		struct smart_errand *request = &table->request[i];

		if (request->database != database || request->state != SMART_ERRAND_CALLED)
			continue;
		request->state = SMART_ERRAND_WAITS;
		request->when = due;
		if (again_ms < 0)
			table->request[i--] = table->request[--table->count];
	}
	smart_assert(table->count >= 0 && table->count <= SMART_ERRANDS);
	SpinLockRelease(&table->lock);
}

Oid
smart_errand_begin(enum smart_errand_kind kind, Oid database, long *rest_ms, bool *others)
{
	struct smart_errands *table = errands(kind);
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz next = DT_NOEND;
	Oid index = InvalidOid;

	smart_assert(OidIsValid(database));
	*others = false;
	SpinLockAcquire(&table->lock);
	for (int i = 0; i < table->count; i++)
	{
		struct smart_errand *request = &table->request[i];

		if (request->database != database)
			*others = true;
		else if (!OidIsValid(index) && (request->state == SMART_ERRAND_CALLED || is_due(request, now)))
		{
			index = request->index;
			request->state = SMART_ERRAND_RUNS;
			request->again = false;
		}
		else if (request->state == SMART_ERRAND_WAITS)
			next = Min(next, request->when);
	}
	SpinLockRelease(&table->lock);
	*rest_ms = next == DT_NOEND ? -1 : TimestampDifferenceMilliseconds(now, next);
	smart_assert(*rest_ms >= -1);
	return index;
}

void
smart_errand_end(enum smart_errand_kind kind, Oid database, Oid index, int again_ms)
{
	struct smart_errands *table = errands(kind);
	TimestampTz due = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), Max(again_ms, 0));
	int place;

	SpinLockAcquire(&table->lock);
	place = find(table, database, index);
	smart_assert(place < table->count && table->request[place].state == SMART_ERRAND_RUNS);
	if (again_ms < 0 && !table->request[place].again)
		table->request[place] = table->request[--table->count];
	else
	{
		table->request[place].state = SMART_ERRAND_WAITS;
		table->request[place].when = due;
	}
	SpinLockRelease(&table->lock);
	smart_launcher_wake();
}

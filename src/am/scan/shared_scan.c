/*
 * shared_scan.c
 *	  A scan that several processes share: parallel index scans.
 *
 * The processes take leaves in turn, in the order of the index.  What they share is the place behind the last
 * leaf that was taken: the points of a range and an entry's key, which is a position since keys are unique.
 * The process that has its turn reads the leaves meanwhile, as their end is not known before, and copies them;
 * what takes time is to look at the rows, which all do at once.
 *
 * Each process has a pin of its own, from before it reads a leaf.
 */
#include "postgres.h"

#include "storage/condition_variable.h"
#include "storage/spin.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#include "am/scan/ranges.h"
#include "am/scan/shared_scan.h"
#include "base/assert.h"

enum progress
{
	WAITING, /* for a process that takes */
	TAKING,  /* one does */
	OVER
};

struct shared_scan
{
	slock_t mutex; /* of progress */
	enum progress progress;
	ConditionVariable changed;
	struct smart_shared_place place; /* belongs to the process that takes */
};

Size
smart_am_estimate_parallel_scan(SMART_ESTIMATE_PARALLEL_SCAN_ARGUMENTS)
{
	return sizeof(struct shared_scan);
}

void
smart_am_init_parallel_scan(void *target)
{
	struct shared_scan *shared = target;

	SpinLockInit(&shared->mutex);
	ConditionVariableInit(&shared->changed);
	shared->progress = WAITING;
	shared->place.started = false;
}

static inline struct shared_scan *
shared_of(IndexScanDesc scan)
{
	smart_assert(scan->parallel_scan != NULL);
	return (struct shared_scan *) OffsetToPointer(scan->parallel_scan, smart_parallel_scan_offset(scan->parallel_scan));
}

static void
set_progress(struct shared_scan *shared, enum progress progress)
{
	SpinLockAcquire(&shared->mutex);
	shared->progress = progress;
	SpinLockRelease(&shared->mutex);
}

/* No other process uses the shared memory now. */
void
smart_am_parallel_rescan(IndexScanDesc scan)
{
	struct shared_scan *shared = shared_of(scan);

	smart_assert(shared->progress != TAKING);
	shared->place.started = false;
	set_progress(shared, WAITING);
}

struct smart_shared_place *
smart_shared_scan_take(IndexScanDesc scan)
{
	struct shared_scan *shared = shared_of(scan);
	enum progress found;

	for (;;)
	{
		SpinLockAcquire(&shared->mutex);
		found = shared->progress;
		if (found == WAITING)
			shared->progress = TAKING;
		SpinLockRelease(&shared->mutex);
		if (found != TAKING)
			break;
		ConditionVariableSleep(&shared->changed, PG_WAIT_EXTENSION);
	}
	ConditionVariableCancelSleep();
	if (found == OVER)
		return NULL;
	smart_assert(shared->progress == TAKING);
	smart_assert(!shared->place.started || (shared->place.length > 0 && shared->place.length <= SMART_KEY_MAX));
	return &shared->place;
}

void
smart_shared_scan_give(IndexScanDesc scan, bool more)
{
	struct shared_scan *shared = shared_of(scan);

	smart_assert(shared->progress == TAKING && (!more || shared->place.started));
	smart_assert(!more || (shared->place.length > 0 && shared->place.length <= SMART_KEY_MAX));
	set_progress(shared, more ? WAITING : OVER);
	if (more)
		ConditionVariableSignal(&shared->changed);
	else
		ConditionVariableBroadcast(&shared->changed);
}

/* ---- leaves that were taken ---- */

void
smart_pieces_clear(struct smart_pieces *pieces)
{
	if (pieces->context != NULL)
		MemoryContextReset(pieces->context);
	pieces->count = 0;
	pieces->next = 0;
}

/* A copy with room behind it. */
static void *
copy_bytes(struct smart_pieces *pieces, const void *bytes, Size length)
{
	uint8 *copy = MemoryContextAlloc(pieces->context, length + SMART_BATCH_SLACK);

	memcpy(copy, bytes, length);
	memset(copy + length, 0, SMART_BATCH_SLACK);
	return copy;
}

void
smart_pieces_add(struct smart_pieces *pieces, const struct smart_batch *batch)
{
	struct smart_batch *copy = &pieces->batches[pieces->count];
	Size used = 0;

	smart_assert(pieces->count < SMART_PIECES_MAX && pieces->next == 0 && batch->count > 0);
	if (pieces->context == NULL)
		pieces->context = AllocSetContextCreate(pieces->parent, "smart leaves", ALLOCSET_DEFAULT_SIZES);
	for (uint32 i = 0; i < batch->count; i++)
		used = Max(used, (Size) batch->items[i].offset + batch->items[i].length);
	*copy = *batch;
	copy->prefix = copy_bytes(pieces, batch->prefix, batch->prefix_length);
	copy->bytes = copy_bytes(pieces, batch->bytes, used);
	copy->items = copy_bytes(pieces, batch->items, batch->count * sizeof(struct smart_item));
	pieces->count++;
}

/*
 * sight.c
 *	  Which rows an index-only scan sees on a standby.
 *
 * The visibility map is believed if nothing of the index's journal has been replayed, when it was looked at, but what the tree had
 * before the entries were read (src/README, J9).  Else the heap tells, as it does for any other index scan.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "access/visibilitymap.h"
#include "storage/bufmgr.h"

#include "am/scan/position_source.h"
#include "am/scan/sight.h"
#include "base/assert.h"

void
smart_sight_init(struct smart_sight *sight)
{
	sight->batch = 0;
	sight->map = InvalidBuffer;
	sight->slot = NULL;
}

void
smart_sight_end(struct smart_sight *sight)
{
	if (BufferIsValid(sight->map))
		ReleaseBuffer(sight->map);
	if (sight->slot != NULL)
		ExecDropSingleTupleTableSlot(sight->slot);
	smart_sight_init(sight);
}

bool
smart_sight_has(const struct smart_sight *sight, const struct smart_position *position)
{
	return sight->batch == position->batches && position->index >= sight->low &&
		   position->index < sight->low + sight->count;
}

int
smart_sight_ahead(const struct smart_sight *sight, const struct smart_position *position, bool backward)
{
	int left = backward ? position->index + 1 : (int) position->batch.count - position->index;

	smart_assert(left >= 1);
	/* The first one of a batch may well be the only one that is wanted. */
	return sight->batch != position->batches ? 1 : Min(left, SMART_SIGHT_AHEAD);
}

void
smart_sight_look(struct smart_sight *sight, struct smart_position *position, int low, const ItemPointerData *tids,
				 int count)
{
	Relation heap = position->scan->heapRelation;
	bool any = false;

	smart_assert(count >= 1 && count <= SMART_SIGHT_AHEAD);
	sight->batch = position->batches;
	sight->low = low;
	sight->count = count;
	for (int i = 0; i < count; i++)
	{
		BlockNumber block = ItemPointerGetBlockNumber(&tids[i]);

		if (i > 0 && block == ItemPointerGetBlockNumber(&tids[i - 1]))
			sight->all_visible[i] = sight->all_visible[i - 1];
		else
			sight->all_visible[i] = VM_ALL_VISIBLE(heap, block, &sight->map);
		any |= sight->all_visible[i];
	}
	/* Behind the map: whatever replay has marked there came after what is looked for now. */
	if (any && !smart_position_is_settled(position))
		memset(sight->all_visible, 0, sizeof(sight->all_visible));
}

/* As any index scan does; the TID of the row's chain stays as it is. */
static bool
fetch(struct smart_sight *sight, IndexScanDesc scan, ItemPointerData tid)
{
	bool again = false;
	bool found;

	if (sight->slot == NULL)
		sight->slot = table_slot_create(scan->heapRelation, NULL);
	found = table_index_fetch_tuple(scan->xs_heapfetch, &tid, scan->xs_snapshot, sight->slot, &again, NULL);
	ExecClearTuple(sight->slot);
	return found;
}

bool
smart_sight_sees(struct smart_sight *sight, const struct smart_position *position, const ItemPointerData *tid)
{
	smart_assert(smart_sight_has(sight, position));
	return sight->all_visible[position->index - sight->low] || fetch(sight, position->scan, *tid);
}

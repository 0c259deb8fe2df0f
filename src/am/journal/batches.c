/*
 * batches.c
 *	  Removals, packed before they go to the chain.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "am/journal/batches.h"
#include "am/journal/page.h"
#include "base/assert.h"

#define ROOM_FIRST 4

void
smart_batches_begin(struct smart_batches *batches, MemoryContext context)
{
	batches->context = context;
	batches->count = batches->room = 0;
	batches->packed = NULL;
}

static bool
enlarge(struct smart_batches *batches)
{
	uint32 room = Max(2 * batches->room, ROOM_FIRST);
	struct smart_packed *packed =
		MemoryContextAllocExtended(batches->context, room * sizeof(*packed), MCXT_ALLOC_NO_OOM | MCXT_ALLOC_ZERO);

	smart_assert(room > batches->room);
	smart_assert((batches->packed == NULL) == (batches->room == 0));
	if (packed == NULL)
		return false;
	if (batches->packed != NULL)
	{
		memcpy(packed, batches->packed, batches->room * sizeof(*packed));
		pfree(batches->packed);
	}
	batches->packed = packed;
	batches->room = room;
	smart_assert(batches->count < batches->room);
	return true;
}

/* Begins another batch. */
static bool
add_batch(struct smart_batches *batches)
{
	struct smart_packed *packed;

	smart_assert(batches->count <= batches->room);
	if (batches->count == batches->room && !enlarge(batches))
		return false;
	packed = &batches->packed[batches->count];
	if (packed->bytes == NULL)
		packed->bytes = MemoryContextAllocExtended(batches->context, SMART_PAGE_ROOM, MCXT_ALLOC_NO_OOM);
	if (packed->bytes == NULL)
		return false;
	packed->count = 0;
	smart_packer_begin(&batches->packer, packed->bytes + sizeof(struct smart_batch_head),
					   packed->bytes + SMART_PAGE_ROOM);
	batches->count++;
	smart_assert(batches->count <= batches->room);
	return true;
}

bool
smart_batches_add(struct smart_batches *batches, const uint8 *key, int length)
{
	struct smart_packed *packed;

	smart_assert(length > 0 && length <= SMART_KEY_MAX);
	/* Every key fits into a batch of its own. */
	if ((batches->count == 0 || !smart_packer_add(&batches->packer, key, length)) &&
		(!add_batch(batches) || !smart_packer_add(&batches->packer, key, length)))
		return false;
	packed = &batches->packed[batches->count - 1];
	packed->length = (LocationIndex) (batches->packer.at - packed->bytes);
	packed->count++;
	smart_assert(packed->length > sizeof(struct smart_batch_head) && packed->length <= SMART_PAGE_ROOM);
	return true;
}

void
smart_batches_clear(struct smart_batches *batches)
{
	smart_assert(batches->count <= batches->room);
	batches->count = 0;
}

void
smart_batches_end(struct smart_batches *batches)
{
	smart_assert(batches->count <= batches->room);
	smart_assert((batches->packed == NULL) == (batches->room == 0));
	for (uint32 i = 0; i < batches->room; i++)
	{
		if (batches->packed[i].bytes != NULL)
			pfree(batches->packed[i].bytes);
	}
	if (batches->packed != NULL)
		pfree(batches->packed);
	smart_batches_begin(batches, batches->context);
}

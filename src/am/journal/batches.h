/*
 * batches.h
 *	  Removals, packed before they go to the chain.  That tells how many pages they need, and packs none of them twice.
 */
#ifndef SMART_AM_JOURNAL_BATCHES_H
#define SMART_AM_JOURNAL_BATCHES_H

#include "storage/bufpage.h"

#include "tree/pack.h"

/* What fills a log page, or less. */
struct smart_packed
{
	uint8 *bytes;         /* SMART_PAGE_ROOM, NULL: none yet; the head comes when the place on a page is known */
	LocationIndex length; /* with the head */
	uint32 count;         /* keys */
};

/* Keys in the order in which they came. */
struct smart_batches
{
	MemoryContext context;
	uint32 count; /* batches that have keys; the last one may take more */
	uint32 room;
	struct smart_packed *packed;
	struct smart_packer packer; /* of the last one */
};

/* Without keys; memory comes from context. */
extern void smart_batches_begin(struct smart_batches *batches, MemoryContext context);

/* Raises no error.  False: there is no memory, and the key was not added. */
extern bool smart_batches_add(struct smart_batches *batches, const uint8 *key, int length);

/* Takes all keys out; the memory is used again. */
extern void smart_batches_clear(struct smart_batches *batches);

extern void smart_batches_end(struct smart_batches *batches);

#endif /* SMART_AM_JOURNAL_BATCHES_H */

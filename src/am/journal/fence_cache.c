/*
 * fence_cache.c
 *	  Fence pages that this backend has read.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "utils/memutils.h"

#include "am/journal/fence_cache.h"
#include "am/journal/page.h"
#include "base/assert.h"

#define PAGES 64 /* at most; a page stands above some hundreds */

struct fence
{
	struct smart_fence_name name;
	struct smart_groups groups; /* of page */
	uint32 level;
	PGAlignedBlock page;
};

static struct fence *fences[PAGES]; /* each page has one place; NULL: nothing was kept there yet */

static struct fence **
place_of(const struct smart_fence_name *name)
{
	uint64 hash = name->journal ^ name->run;

	return &fences[hash_combine(murmurhash32((uint32) hash), murmurhash32(name->block)) % PAGES];
}

static bool
is_named(const struct smart_fence_name *a, const struct smart_fence_name *b)
{
	return a->block == b->block && a->run == b->run && a->journal == b->journal && a->file == b->file &&
		   a->tablespace == b->tablespace;
}

struct smart_groups *
smart_fence_cache_find(const struct smart_fence_name *name, uint32 *level)
{
	struct fence *fence = *place_of(name);

	if (fence == NULL || !is_named(&fence->name, name))
		return NULL;
	*level = fence->level;
	return &fence->groups;
}

void
smart_fence_cache_keep(const struct smart_fence_name *name, Page page, uint32 level)
{
	struct fence **place = place_of(name);
	struct fence *fence = *place;

	smart_assert(name->run != 0 && level > 0);
	if (fence == NULL)
		fence = MemoryContextAllocExtended(TopMemoryContext, sizeof(*fence), MCXT_ALLOC_NO_OOM);
	if (fence == NULL)
		return;
	memcpy(fence->page.data, page, BLCKSZ);
	fence->name = *name;
	fence->level = level;
	/* False for one that is damaged, which is not kept; then nothing is in this place. */
	if (!smart_run_page_open(fence->page.data, &fence->groups))
		fence->name.run = 0;
	*place = fence;
}

void
smart_fence_cache_clear(void)
{
	for (int i = 0; i < PAGES; i++)
	{
		if (fences[i] != NULL)
			fences[i]->name.run = 0;
	}
}

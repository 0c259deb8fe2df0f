/*
 * known.c
 *	  What this backend knows of the pages of runs.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "utils/memutils.h"

#include "am/journal/known.h"
#include "am/journal/page.h"
#include "base/assert.h"

#define FENCES 64   /* at most; each stands above some hundreds of pages */
#define SOUND  8192 /* of 64 MB */

struct fence
{
	struct smart_page_name name;
	struct smart_groups groups; /* of page */
	uint32 level;
	PGAlignedBlock page;
};

/* Each page has one place. */
static struct fence *fences[FENCES]; /* NULL: nothing was kept there yet */
static uint64 sound[SOUND];          /* hashes of their names; 0: none */

static uint64
hash(const struct smart_page_name *name)
{
	/* There are no bytes between its fields. */
	return hash_bytes_extended((const unsigned char *) name,
							   (int) (offsetof(struct smart_page_name, block) + sizeof(name->block)), 0) |
		   1;
}

static bool
is_named(const struct smart_page_name *a, const struct smart_page_name *b)
{
	return a->block == b->block && a->run == b->run && a->journal == b->journal && a->file == b->file &&
		   a->tablespace == b->tablespace;
}

/* ---- fence pages ---- */

struct smart_groups *
smart_known_fence(const struct smart_page_name *name, uint32 *level)
{
	struct fence *fence = fences[(hash(name) >> 1) % FENCES];

	if (fence == NULL || !is_named(&fence->name, name))
		return NULL;
	smart_assert(fence->level > 0);
	*level = fence->level;
	return &fence->groups;
}

void
smart_known_keep_fence(const struct smart_page_name *name, Page page, uint32 level)
{
	struct fence **place = &fences[(hash(name) >> 1) % FENCES];
	struct fence *fence = *place;

	smart_assert(name->run != 0 && level > 0);
	if (fence == NULL)
		fence = MemoryContextAllocExtended(TopMemoryContext, sizeof(*fence), MCXT_ALLOC_NO_OOM);
	if (fence == NULL)
		return;
	memcpy(fence->page.data, page, BLCKSZ);
	fence->name = *name;
	fence->level = level;
	if (!smart_run_page_open(fence->page.data, &fence->groups))
		fence->name.run = 0;
	*place = fence;
}

/* ---- run pages ---- */

bool
smart_known_sound(const struct smart_page_name *name)
{
	uint64 value = hash(name);

	return sound[(value >> 1) % SOUND] == value;
}

void
smart_known_note_sound(const struct smart_page_name *name)
{
	uint64 value = hash(name);

	sound[(value >> 1) % SOUND] = value;
	smart_assert(smart_known_sound(name));
}

void
smart_known_forget(void)
{
	memset(sound, 0, sizeof(sound));
	for (int i = 0; i < FENCES; i++)
	{
		if (fences[i] != NULL)
			fences[i]->name.run = 0;
	}
}

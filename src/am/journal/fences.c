/*
 * fences.c
 *	  The fence pages of a run while it is written.
 */
#include "postgres.h"

#include "am/journal/fences.h"
#include "base/assert.h"
#include "base/bytes.h"

struct smart_fence_level
{
	struct smart_groups_writer writer;
	int low_length;
	uint8 low[SMART_KEY_MAX]; /* the separator in front of this page */
	PGAlignedBlock page;
};

static void
begin_page(const struct smart_fences *fences, int level)
{
	struct smart_fence_level *self = fences->level[level];

	smart_assert(level >= 0 && level < fences->levels);
	smart_page_init(self->page.data, SMART_PAGE_FENCE, fences->journal, fences->run, (uint32) level + 1);
	smart_run_page_begin(self->page.data, &self->writer);
	smart_assert(self->writer.count == 0);
}

/* Adds a child; false: the page is full. */
static bool
add(struct smart_fences *fences, int level, const uint8 *separator, int length, BlockNumber block)
{
	uint8 entry[SMART_KEY_MAX + SMART_FENCE_SUFFIX];
	struct smart_fence_level *self;
	int kept = length;

	smart_assert(level <= fences->levels && level < SMART_FENCE_LEVELS && length > 0 && length <= SMART_KEY_MAX);
	if (level == fences->levels)
	{
		fences->level[fences->levels++] = palloc(sizeof(struct smart_fence_level));
		begin_page(fences, level);
	}
	self = fences->level[level];
	if (self->writer.count == 0)
	{
		memcpy(self->low, separator, (Size) length);
		self->low_length = length;
		/* What is before all others is found there, so it need not be whole. */
		kept = Min(length, SMART_FENCE_FIRST_MAX);
	}
	memcpy(entry, separator, (Size) kept);
	(void) smart_put_be32(entry + kept, block);
	return smart_groups_add(&self->writer, entry, kept + SMART_FENCE_SUFFIX);
}

/* Places the open page of a level; which block it has. */
static BlockNumber
place(struct smart_fences *fences, int level)
{
	struct smart_fence_level *self = fences->level[level];

	smart_assert(level >= 0 && level < fences->levels && self->writer.count > 0);
	smart_run_page_finish(self->page.data, &self->writer);
	fences->pages++;
	return fences->place(fences->argument, self->page.data);
}

/* Places the open page of a level and makes it a child of the level above; and so there, if that page is full. */
static void
hand_up(struct smart_fences *fences, int level)
{
	struct smart_fence_level *self = fences->level[level];
	BlockNumber block = place(fences, level);

	smart_assert(self->low_length > 0 && self->low_length <= SMART_KEY_MAX);
	if (!add(fences, level + 1, self->low, self->low_length, block))
	{
		hand_up(fences, level + 1);
		if (!add(fences, level + 1, self->low, self->low_length, block))
			elog(ERROR, "a separator of %d bytes does not fit on a page", self->low_length);
	}
	begin_page(fences, level);
}

bool
smart_fences_add(struct smart_fences *fences, const uint8 *separator, int length, BlockNumber block)
{
	return add(fences, 0, separator, length, block);
}

void
smart_fences_place(struct smart_fences *fences)
{
	smart_assert(fences->levels > 0);
	hand_up(fences, 0);
}

BlockNumber
smart_fences_finish(struct smart_fences *fences)
{
	int level;
	BlockNumber root;

	smart_assert(fences->levels > 0);
	for (level = 0; level + 1 < fences->levels; level++)
		hand_up(fences, level);
	smart_assert(level == fences->levels - 1);
	root = place(fences, level);
	for (level = 0; level < fences->levels; level++)
		pfree(fences->level[level]);
	return root;
}

/*
 * merge.c
 *	  A compaction of single pages: J13-merge.
 */
#include "model/world.h"

/* Any page of the current run; block 0: it has none, or is not the current one any more. */
static struct link
choose_page(struct actor *self, const struct meta *meta, struct page *page)
{
	struct link link = {.block = 0};
	unsigned int last = below(3);

	for (unsigned int i = 0; i <= last && i < meta->pages.count; i++)
	{
		link = meta->pages.page[i];
		*page = step_read(self, link.block, "J13-merge: reads a page of the run");
		if (!page_is_of_run(page, meta->run, meta->kept))
			return (struct link){.block = 0};
	}
	return link;
}

static void
merge_page(struct actor *self, const struct meta *meta)
{
	struct record record = {.kind = RECORD_REWRITE, .run = meta->run};
	struct page page;
	struct link link = choose_page(self, meta, &page);
	entries added;
	entries removed;

	if (link.block == 0)
		return;
	record.block = link.block;
	record.cut = page.merged;
	if (!walk_chain(self, NULL, &added, &removed, &record.cut))
		return;
	step_lock(self, LOCK_PAGE + link.block, "J13-merge: rewrites a page of the run");
	page = self->server->pages.blocks[link.block];
	record.content = (page.content & (entries) ~(page.dead | removed)) | (added & page.range);
	if (page_is_of_run(&page, meta->run, meta->kept))
		(void) wal_insert(&record);
	unlock(self, LOCK_PAGE + link.block);
}

/* Up to where all pages have the chain's operations. */
static void
move_cut(struct actor *self, const struct meta *meta)
{
	struct record record = {.kind = RECORD_CUT};

	for (unsigned int i = 0; i < meta->pages.count; i++)
	{
		struct page page =
			step_read(self, meta->pages.page[i].block, "J13-merge: reads up to where a page of the run is merged");

		if (!page_is_of_run(&page, meta->run, meta->kept))
			return;
		if (record.cut.serial == 0 || place_is_behind(&record.cut, &page.merged) == !FAULT(mergecut))
			record.cut = page.merged;
	}
	step_lock(self, LOCK_PAGE + 0, "J13-merge: moves the cut, under the metapage's lock");
	if (record.cut.serial != 0 && self->server->pages.meta.run == meta->run)
		(void) wal_insert(&record);
	unlock(self, LOCK_PAGE + 0);
}

void
merge_run(struct actor *self)
{
	struct meta meta = step_read_meta(self, "J13-merge: reads the metapage");

	if (meta.stale)
		return;
	if (one_in(3))
		move_cut(self, &meta);
	else
		merge_page(self, &meta);
}

/*
 * merge.c
 *	  A compaction of single pages: J13-merge.
 */
#include "model/world.h"

/* Any page of the current run; block 0: it has none, or is not the current one any more. */
static struct link
choose_page(struct actor *self, const struct meta *meta, struct page *page)
{
	struct link link = meta->run_first;

	for (unsigned int i = below(3); link.block != 0; i--)
	{
		*page = step_read(self, link.block, "J13-merge: reads a page of the run");
		if (page->kind != PAGE_RUN || page->id != meta->run)
			link.block = 0;
		else if (i == 0 || page->next.block == 0)
			break;
		else
			link = page->next;
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
	if (page.kind == PAGE_RUN && page.id == meta->run)
		(void) wal_insert(&record);
	unlock(self, LOCK_PAGE + link.block);
}

/* Up to where all pages have the chain's operations. */
static void
move_cut(struct actor *self, const struct meta *meta)
{
	struct record record = {.kind = RECORD_CUT};
	struct link link = meta->run_first;

	while (link.block != 0)
	{
		struct page page = step_read(self, link.block, "J13-merge: reads up to where a page of the run is merged");

		if (page.kind != PAGE_RUN || page.id != meta->run)
			return;
		if (record.cut.serial == 0 || place_is_behind(&record.cut, &page.merged) == !FAULT(mergecut))
			record.cut = page.merged;
		link = page.next;
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

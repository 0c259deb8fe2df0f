/*
 * keep.c
 *	  What a new run takes over from the one before, and what is given back of that: J5-keep, J3-back.
 */
#include "model/world.h"

bool
keep_read(struct actor *self, const struct meta *meta, const struct place *end, struct reading *reading)
{
	entries added;
	entries removed;

	*reading = (struct reading){.cut = meta->first};
	if (!walk_run(self, meta, reading->pages) || !walk_chain(self, end, &added, &removed, &reading->cut))
		return false;
	for (unsigned int i = 0; i < meta->pages.count; i++)
		reading->content |= reading->pages[i].content & (entries) ~reading->pages[i].dead;
	reading->content = (reading->content & (entries) ~removed) | added;
	reading->touched = added | removed;
	return true;
}

void
keep_choose(const struct meta *meta, struct reading *reading)
{
	reading->kept = 0;
	if (!world.plan.keeps || one_in(8))
		return;
	for (unsigned int i = 0; i < meta->pages.count; i++)
	{
		const struct page *page = &reading->pages[i];

		if (((page->range & reading->touched) == 0 || FAULT(keptchanged)) && page->dead == 0 && !one_in(5))
			reading->kept |= page->range;
	}
}

/* The page that has an entry in its range is the new run's, too; its range. */
static entries
take_over(struct run_pages *pages, const struct meta *meta, const struct reading *reading, entries entry)
{
	unsigned int i = 0;

	while ((reading->pages[i].range & entry) == 0)
		i++;
	smart_assert(i < meta->pages.count);
	pages->page[pages->count++] = meta->pages.page[i];
	return reading->pages[i].range;
}

static entries
least_of(entries set)
{
	return set & (entries) -set;
}

/* A page with the first entries of the content between two pages that are kept, which is in *record; its range. */
static entries
write_page(struct actor *self, const struct meta *meta, struct run_pages *pages, const struct record *record,
		   entries between)
{
	entries content = record->content & between;
	unsigned int count = world.plan.keeps ? 1 + below(ENTRIES_PER_PAGE) : ENTRIES_PER_PAGE;
	struct record mine = *record;

	mine.content = 0;
	for (; count > 0 && content != 0; count--)
	{
		mine.content |= least_of(content);
		content &= (entries) ~least_of(content);
	}
	/* Up to the next page's first entry. */
	mine.range = content == 0 ? between : between & (entries) (least_of(content) - 1);
	mine.block = (uint8_t) append_take_page(self, meta, mine.run);
	step(self, "J3-run: writes a page of the run");
	(void) wal_insert(&mine);
	pages->page[pages->count++] = (struct link){.block = mine.block, .use = self->server->pages.blocks[mine.block].use};
	unlock(self, LOCK_PAGE + mine.block);
	return mine.range;
}

struct run_pages
keep_write(struct actor *self, const struct meta *meta, unsigned int run, const struct reading *reading,
		   struct filling *filling)
{
	struct record record = {.kind = RECORD_RUN_PAGE,
							.run = (uint8_t) run,
							.content = reading->content,
							.cut = reading->cut};
	struct run_pages pages = {.count = 0};
	entries left = BIT(ENTRIES) - 1; /* no page has them in its range yet */

	while (left != 0)
	{
		entries kept = left & reading->kept;
		entries between = kept == 0 ? left : left & (entries) (least_of(kept) - 1);

		if (between == 0)
		{
			entries range = take_over(&pages, meta, reading, least_of(left));

			filter_keep(self, filling, reading->content & range);
			left &= (entries) ~range;
		}
		else if ((record.content & between) == 0)
			left &= (entries) ~between; /* no page's: what comes there is written anew */
		else
		{
			entries range = write_page(self, meta, &pages, &record, between);

			filter_add(self, filling, record.content & range);
			left &= (entries) ~range;
		}
	}
	return pages;
}

/* ---- J3-back ---- */

static bool
is_listed(const struct meta *meta, const struct page *page, unsigned int block)
{
	if (FAULT(keptlist))
		return page->id == meta->run;
	for (unsigned int i = 0; i < meta->pages.count; i++)
	{
		if (meta->pages.page[i].block == block)
			return true;
	}
	return false;
}

/* Has no run this page, although its id tells nothing of that?  The run before has been let go. */
static bool
is_left(const struct meta *meta, const struct page *page, unsigned int block)
{
	return page_is_of_run(page, meta->run, meta->kept) && !is_listed(meta, page, block);
}

void
keep_give_back(struct actor *self)
{
	struct meta meta = step_read_meta(self, "J3-back: reads the metapage");

	if (FAULT(keptlooks))
	{
		struct run_pages pages = meta.pages;

		meta = step_read_meta(self, "J3-back: reads the metapage again");
		meta.pages = pages;
	}
	if (meta.previous != 0 && !FAULT(keptback))
		return;
	for (unsigned int block = 1; block < BLOCKS; block++)
	{
		const struct page *page = &self->server->pages.blocks[block];
		struct record record = {.kind = RECORD_GIVE_BACK, .block = (uint8_t) block};

		/* No step: under the lock of compactions no other page comes to be left. */
		if (!is_left(&meta, page, block))
			continue;
		step_lock(self, LOCK_PAGE + block, "J3-back: gives back a page that no run has");
		if (is_left(&meta, page, block))
			(void) wal_insert(&record);
		unlock(self, LOCK_PAGE + block);
	}
}

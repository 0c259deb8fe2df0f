/*
 * lookup.c
 *	  One who looks up keys in run and chain, with what filters (J16) and answers (J17) say of the run.
 */
#include <string.h>

#include "model/world.h"

#define LOOKUPS_MAX 3

entries
lookup_run_content(const struct pages *pages, bool dead)
{
	const struct meta *meta = &pages->meta;
	entries content = 0;

	for (unsigned int i = 0; i < meta->pages.count; i++)
	{
		const struct page *page = &pages->blocks[meta->pages.page[i].block];

		content |= page->content & (dead ? (entries) ~(entries) 0 : (entries) ~page->dead);
	}
	return content;
}

static entries
join(entries run, entries added, entries removed, unsigned int key)
{
	return ((run & (entries) ~removed) | added) & entries_of_key(key);
}

/* False: the journal is stale. */
static bool
take_run(struct actor *self, struct key_view *view)
{
	view->meta = step_read_meta(self, "J16-same: reads the metapage");
	view->truth = lookup_run_content(&self->server->pages, false); /* no step in between; and runs do not change */
	if (view->meta.stale)
		return false;
	view->has_run = true;
	if (world.plan.answers && !(FAULT(answernumber) && view->number != 0))
		view->number = answers_number(self, view->meta.run);
	return true;
}

/* J17-fill. */
static void
remember(struct actor *self, struct key_view *view, unsigned int key, entries run)
{
	unsigned int number = view->number;

	if (FAULT(answernow))
		number = answers_number(self, self->server->pages.meta.run);
	if (FAULT(answermixed))
		run = (run & (entries) ~view->part) | (view->read & view->part);
	answers_remember(self, number, key, run & entries_of_key(key));
}

/* What the run's pages have, or some of them; *all: of the key they have no more.  False: they have gone. */
static bool
read_run(struct actor *self, const struct key_view *view, entries *run, bool *all)
{
	struct meta meta = view->meta;
	struct page pages[ENTRIES];
	bool done;

	memset(pages, 0, sizeof(pages));
	*all = !view->partly || !one_in(3);
	if (!*all)
		meta.pages.count = (uint8_t) below(meta.pages.count + 1u);
	done = walk_run(self, &meta, pages);
	*run = 0;
	for (unsigned int i = 0; i < meta.pages.count; i++)
	{
		if (!done && (pages[i].kind != PAGE_RUN || !page_is_of_run(&pages[i], meta.run, meta.kept)))
			break;
		*run |= pages[i].content & (entries) ~pages[i].dead;
	}
	return done;
}

/* What the run has, as the pages tell or those who have read them.  False: they have gone. */
static bool
look_at_run(struct actor *self, struct key_view *view, unsigned int key, entries *run, bool *all)
{
	bool done;

	*run = 0;
	*all = true;
	view->absent = (view->absent && FAULT(bloomstays)) || filter_is_absent(self, view->meta.run, key);
	if (view->absent)
		return true;
	if (FAULT(answerstays) && view->told)
	{
		*run = view->answer;
		return true;
	}
	if (world.plan.answers && answers_ask(self, view->number, key, run))
	{
		view->told = true;
		view->answer = *run;
		return true;
	}
	done = read_run(self, view, run, all);
	if (world.plan.answers && (done || FAULT(answerbehind)) && (*all || FAULT(answerpart)))
		remember(self, view, key, *run);
	return done;
}

/* The view has the run of now, or it may be of an older one that can still be read, as without a delta (J13-chain). */
static bool
is_of_now(struct actor *self, const struct meta *meta)
{
	return one_in(2) || step_read_meta(self, "J16-same: is the view's run that of now?").run == meta->run;
}

/* What the run has, with what the chain has behind the cut. */
static void
check_same(const struct key_view *view, unsigned int key, entries content, entries added, entries removed)
{
	entries truth = join(view->truth, added, removed, key);

	if (content != truth)
		violation("%s: a unique check finds %#x, and %#x in the run's pages and the chain",
				  world.plan.answers ? "J17-same" : "J16-same", content, truth);
}

/* What was read of the run is of no use.  It could have been the key's first entry. */
static void
leave_run(struct key_view *view, unsigned int key, entries run)
{
	view->has_run = false;
	view->read = run;
	view->part = BIT(ENTRY(key, 0));
}

bool
lookup(struct actor *self, struct key_view *view, unsigned int key, entries *content)
{
	view->absent = false;
	view->told = false;
	view->part = 0;
	for (;;)
	{
		struct place place;
		entries run;
		entries added;
		entries removed;
		bool all;

		if (!view->has_run && !take_run(self, view))
			return false;
		place = view->meta.first;
		if (!look_at_run(self, view, key, &run, &all) || !walk_chain(self, NULL, &added, &removed, &place) ||
			!is_of_now(self, &view->meta))
		{
			leave_run(view, key, run);
			continue;
		}
		*content = join(run, added, removed, key);
		if (FAULT(answeralone) && view->told)
			*content = run;
		if (all)
			check_same(view, key, *content, added, removed);
		return true;
	}
}

void
lookup_some(struct actor *self, unsigned int key)
{
	struct key_view view = {.partly = world.plan.answers};
	unsigned int count = world.plan.answers ? 1 + below(LOOKUPS_MAX) : 1;
	entries content;

	/* A check whose key nobody has locked; what it finds is what matters. */
	for (unsigned int i = 0; i < count && lookup(self, &view, key, &content); i++)
		key = i + 1 < count ? below(world.plan.keys) : key;
}

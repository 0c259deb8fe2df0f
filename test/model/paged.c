/*
 * paged.c
 *	  Views: an index answers from the pages of its run, and from a tree that has what happened since.  J13; and lean
 *	  deltas, J13-lean.
 */
#include "model/world.h"

struct tree
view_make(const struct meta *meta, const struct place *cut)
{
	return (struct tree){.run = meta->run,
						 .kept = meta->kept,
						 .pages = meta->pages,
						 .base = meta->base,
						 .place = *cut,
						 .cut = *cut,
						 .lean = world.plan.lean};
}

void
view_begin(struct actor *self, struct tree *tree, const struct meta *meta)
{
	struct meta other = *meta;

	if (FAULT(pagedcut))
		other = step_read_meta(self, "J13-open: reads the metapage again");
	*tree = view_make(meta, &other.first);
}

bool
view_is_readable(const struct server *server, const struct tree *tree)
{
	const struct meta *meta = &server->pages.meta;

	return tree->run == 0 || tree->run == meta->run || tree->run == meta->previous;
}

bool
view_is_current(const struct server *server, const struct tree *tree)
{
	const struct meta *meta = &server->pages.meta;

	return (tree->run == meta->run || (FAULT(fedrun) && view_is_readable(server, tree))) &&
		   ((tree->cut.serial == meta->first.serial && tree->cut.offset == meta->first.offset) || FAULT(fedcut));
}

bool
view_has_run(const struct server *server, unsigned int run)
{
	const int trees[] = {server->reads, server->named};

	for (int i = 0; i < 2; i++)
	{
		if (run != 0 && trees[i] != NONE && server->region.trees[trees[i]].run == run)
			return true;
	}
	return false;
}

void
tree_take(struct tree *tree, const struct op *op)
{
	if (!op->removes)
	{
		tree->content |= BIT(op->entry);
		return;
	}
	tree->content &= (entries) ~BIT(op->entry);
	if (tree->run != 0 && !FAULT(pagedgone))
		tree->gone |= BIT(op->entry);
}

/* J13-lean: has the delta's own run the entry?  If its pages have gone: perhaps. */
static bool
run_has(struct actor *self, const struct tree *delta, unsigned int entry)
{
	unsigned int run = delta->run;
	unsigned int kept = delta->kept;
	struct run_pages pages = delta->pages;

	if (FAULT(leanblind))
		return false;
	if (FAULT(leannow))
	{
		struct meta meta = step_read_meta(self, "J13-lean: reads the metapage");

		run = meta.run;
		kept = meta.kept;
		pages = meta.pages;
	}
	for (unsigned int i = 0; i < pages.count; i++)
	{
		struct page page = step_read(self, pages.page[i].block, "J13-lean: looks for the entry on a page of the run");

		if (!page_is_of_run(&page, run, kept) || (page.content & (entries) ~page.dead & BIT(entry)) != 0)
			return true;
	}
	return false;
}

void
tree_carry_out(struct actor *self, struct tree *tree, const struct op *op)
{
	entries bit = BIT(op->entry);

	if (!op->removes || (!tree->lean && !world.plan.carries) || (tree->content & bit) == 0)
	{
		tree_take(tree, op);
		return;
	}
	/* The add has taken the place of a tombstone. */
	tree->content &= (entries) ~bit;
	tree->gone &= (entries) ~bit;
	if (!run_has(self, tree, op->entry))
	{
		if (!tree->lean)
			purge_note(tree, op->entry);
		return;
	}
	step(self, "J13-lean: the run has the entry: notes its removal");
	tree_take(tree, op);
}

static bool
is_of_run(const struct tree *tree, const struct page *page)
{
	return page_is_of_run(page, tree->run, tree->kept);
}

/* One record, under the locks of the page and the metapage; false: no page of the run has the entry. */
static bool
mark(struct actor *self, const struct tree *tree, unsigned int entry)
{
	struct record record = {.kind = RECORD_MARK, .op = {.entry = (uint8_t) entry}};
	bool done = false;

	for (unsigned int i = 0; i < tree->pages.count && !done; i++)
	{
		const struct page *page;

		record.block = tree->pages.page[i].block;
		page = &self->server->pages.blocks[record.block];
		step_lock(self, LOCK_PAGE + record.block, "J13-mark: looks for the entry on a page of the run");
		done = (page->content & (entries) ~page->dead & BIT(entry)) != 0;
		if (done)
			self->position = wal_insert(&record);
		unlock(self, LOCK_PAGE + record.block);
	}
	return done;
}

bool
view_mark(struct actor *self, const struct tree *tree, unsigned int entry)
{
	const struct server *server = self->server;
	const struct meta *meta = &server->pages.meta;
	bool done;

	step_lock(self, LOCK_PAGE + 0, "J13-mark: does somebody read the run?");
	done = (meta->run == tree->run || FAULT(markrun)) && (meta->claimed == meta->run || FAULT(markwritten)) &&
		   (server->mover == NULL || FAULT(markmover));
	if (FAULT(marklook))
		unlock(self, LOCK_PAGE + 0);
	done = done && mark(self, tree, entry);
	unlock(self, LOCK_PAGE + 0);
	return done;
}

bool
tree_entries(const struct server *server, const struct tree *tree, entries *content)
{
	*content = tree->content;
	for (unsigned int i = 0; tree->run != 0 && i < tree->pages.count; i++)
	{
		const struct link *link = &tree->pages.page[i];
		const struct page *page = &server->pages.blocks[link->block];

		if (!is_of_run(tree, page) || page->use != link->use)
			return false;
		*content |= page->content & (entries) ~(page->dead | tree->gone);
	}
	return true;
}

entries
index_entries(const struct server *server, int tree)
{
	entries content;

	if (!tree_entries(server, &server->region.trees[tree], &content))
		violation("J13-pages: a page of the run that the index's view has is gone");
	return content;
}

bool
tree_look(struct actor *self, int number, unsigned int entry, bool *found)
{
	const struct tree *tree = tree_at(self->server, number);

	step(self, "looks for an entry");
	*found = (tree->content & BIT(entry)) != 0;
	if (*found || tree->run == 0 || (tree->gone & BIT(entry)) != 0)
		return true;
	for (unsigned int i = 0; i < tree->pages.count; i++)
	{
		struct page page = step_read(self, tree->pages.page[i].block, "J13-read: reads a page of the run");

		if (!is_of_run(tree, &page) && !FAULT(pagedid))
			return FAULT(pagedleft);
		if ((page.content & (entries) ~page.dead & BIT(entry)) != 0)
			*found = true;
	}
	return true;
}

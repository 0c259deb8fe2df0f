/*
 * check.c
 *	  What has to hold on the primary after every step.
 *
 * Its pages are at each moment what a crash, a standby or a backup may make of WAL up to here; so what holds for the
 * journal now holds for whatever tree is loaded from it.
 */
#include "model/world.h"

/* A line pointer that is in use leads the entry's readers to its row or nowhere. */
static void
check_present(const struct line *line, unsigned int entry, const char *where)
{
	if (line->state == LINE_UNUSED)
		violation("J2-remove: TID %u was freed, its entry is still in the %s", TID_OF(entry), where);
	else if (line->state == LINE_NORMAL && line->key != KEY_OF(entry))
		violation("J7: phantom: the %s leads from key %u to a row with another one (TID %u)", where, KEY_OF(entry),
				  TID_OF(entry));
}

/* Two rows that are there for good. */
static void
check_unique(const struct server *server)
{
	for (unsigned int i = 0; i < TIDS; i++)
	{
		for (unsigned int j = i + 1; j < TIDS && row_is_visible(&server->pages.lines[i], server->pages.committed); j++)
		{
			if (row_is_visible(&server->pages.lines[j], server->pages.committed) &&
				server->pages.lines[i].key == server->pages.lines[j].key)
				violation("J2-unique: TIDs %u and %u serve rows of one key", i, j);
		}
	}
}

/* J15-place: is it a place of the page that is there?  Half of one is none. */
static void
check_place(const struct server *server, const struct place *place)
{
	const struct page *page = &server->pages.blocks[place->page.block];

	if (page->kind == PAGE_LOG && page->id == place->serial && page->use != place->page.use)
		violation("J15-place: half of a place fits block %u", place->page.block);
}

/* J15: follower and chain together, and the follower alone where that is allowed, are the journal. */
static void
check_follower(struct server *server, entries journal)
{
	const struct meta *meta = &server->pages.meta;
	int number = follower_find(server, meta);
	const struct tree *tree;
	const struct page *page;
	struct link link = meta->first.page;
	struct tree merged;

	if (number == NONE)
		return;
	tree = tree_at(server, number);
	check_place(server, &tree->place);
	if (!follower_has_run(tree, meta))
		return;
	merged = (struct tree){.content = tree->content};
	for (unsigned int offset = meta->first.offset; link.block != 0; link = page->next, offset = 0)
	{
		page = &server->pages.blocks[link.block];
		for (; offset < page->count; offset++)
			tree_take(&merged, &page->ops[offset]);
	}
	if (merged.content != journal)
		violation("J15: follower and delta have %#x, and the journal %#x", merged.content, journal);
	page = &server->pages.blocks[tree->place.page.block];
	if (page->kind == PAGE_LOG && page->id == tree->place.serial && page->next.block == 0 &&
		page->count == tree->place.offset && tree->content != journal)
		violation("J15: a follower with a place at the chain's end has %#x, and the journal %#x", tree->content,
				  journal);
}

/* J15-purge: follower and delta, where they may be read together and have all, are the journal. */
static void
check_purged(struct server *server, entries journal)
{
	const struct meta *meta = &server->pages.meta;
	const struct tree *delta = delta_find(server, meta);
	int number = follower_find(server, meta);
	const struct tree *follower = number == NONE ? NULL : tree_at(server, number);
	const struct page *page;

	if (delta == NULL || delta->lean || follower == NULL || follower->lost || !follower_has_run(follower, meta) ||
		server->holder[LOCK_DELTA] != NULL ||
		(delta->least.serial != 0 && !place_has_come_to(&follower->place, &delta->least)))
		return;
	page = &server->pages.blocks[delta->place.page.block];
	if (page->kind != PAGE_LOG || page->id != delta->place.serial || page->next.block != 0 ||
		page->count != delta->place.offset)
		return;
	if (((follower->content & (entries) ~delta->gone) | delta->content) != journal)
		violation("J15-purge: follower %#x and delta have %#x, and the journal %#x", follower->content,
				  (follower->content & (entries) ~delta->gone) | delta->content, journal);
}

/* J5-keep: each entry is in one page's range at most, and in that page if at all. */
static void
check_run(const struct pages *pages)
{
	const struct meta *meta = &pages->meta;
	entries ranges = 0;

	for (unsigned int i = 0; i < meta->pages.count; i++)
	{
		const struct page *page = &pages->blocks[meta->pages.page[i].block];

		if (page->range == 0 || (page->range & ranges) != 0 || (page->content & (entries) ~page->range) != 0)
			violation("J5-keep: block %u has the range %#x and the content %#x", meta->pages.page[i].block, page->range,
					  page->content);
		ranges |= page->range;
	}
}

void
check_world(void)
{
	struct server *server = world.primary;
	const struct tree *tree = server->reads == NONE ? NULL : tree_at(server, server->reads);
	bool stale = server->pages.meta.stale;
	entries between = 0;
	entries held = 0; /* by the tree */
	entries journal;

	if (!journal_content(&server->pages, &journal))
	{
		violation("J3: the journal cannot be read");
		return;
	}
	check_run(&server->pages);
	if (world.plan.filters)
		filter_check(server);
	if (world.plan.answers)
	{
		answers_check(server);
		if (world.standby != NULL)
			answers_check(world.standby);
	}
	if (tree != NULL && tree->lost)
		tree = NULL;
	for (int i = 0; i < ACTORS; i++)
		world.actors[i].had |= world.actors[i].watches ? journal : 0;
	if (world.plan.carries)
	{
		check_follower(server, journal);
		check_purged(server, journal);
	}
	if (tree != NULL)
		held = index_entries(server, server->reads);
	if (world.plan.unique)
		check_unique(server);
	for (int i = 0; i < ACTORS; i++)
		between |= world.actors[i].between;
	for (unsigned int entry = 0; entry < ENTRIES; entry++)
	{
		const struct line *line = &server->pages.lines[TID_OF(entry)];
		bool in_journal = (journal & BIT(entry)) != 0;
		bool in_tree = tree != NULL && (held & BIT(entry)) != 0;

		if (in_journal && !stale)
			check_present(line, entry, "journal");
		if (in_tree)
			check_present(line, entry, "tree");
		if (in_journal && !stale && tree != NULL && !in_tree && (between & BIT(entry)) == 0)
			violation("J2: the journal has an entry that the tree lacks (key %u, TID %u)", KEY_OF(entry),
					  TID_OF(entry));
		if (line->key != KEY_OF(entry) || !row_is_committed(server, line) || row_is_dead(server, line))
			continue;
		if (!in_journal && !stale)
			violation("J7: a committed row's entry is missing in the journal (TID %u)", TID_OF(entry));
		if (!in_tree && tree != NULL)
			violation("J7: a committed row's entry is missing in the tree (TID %u)", TID_OF(entry));
	}
}

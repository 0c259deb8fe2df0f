/*
 * reader.c
 *	  Queries, on either server, and the worker that follows on a standby: J6-read, J6-apply.
 */
#include "model/world.h"

/* The chain's end as it is now; false: the journal is stale. */
static bool
find_target(struct actor *self, struct meta *meta, struct place *target)
{
	for (;;)
	{
		struct page page;

		*meta = step_read_meta(self, "J6-read: reads the metapage");
		if (meta->stale && !FAULT(readstale))
			return false;
		page = step_read(self, meta->tail.page.block, "J6-read: reads the tail's page");
		*target = meta->tail;
		target->offset = page.count;
		if (page.kind == PAGE_LOG && page.id == target->serial)
			return true;
	}
}

/* Under the lock of applying: a new tree for a standby; false: the journal is stale. */
static bool
load_fed(struct actor *self)
{
	struct server *server = self->server;
	struct tree *tree = tree_at(server, tree_make(self));

	for (;;)
	{
		struct meta meta = step_read_meta(self, "J6-apply: loads a tree: reads the metapage");
		struct place place;
		entries content;

		if (meta.stale && !FAULT(readstale))
			return false;
		/* J13-standby. */
		if (world.plan.paged && (world.plan.marks ? !FAULT(markfed) : one_in(2)))
		{
			step(self, "J13-standby: the view is the standby's");
			view_begin(self, tree, &meta);
			tree->fed = true;
			server->fed = (int) (tree - server->region.trees);
			return true;
		}
		if (!walk(self, &meta, NULL, &content, &place))
			continue;
		if (world.plan.carries && !server->recovery && !FAULT(carryfirst))
		{
			step(self, "J15-load: flushes WAL");
			wal_flush();
		}
		step(self, "J6-apply: the loaded tree is the standby's");
		*tree = (struct tree){.content = content,
							  .fed = true,
							  .base = meta.base,
							  .place = place,
							  .follows = world.plan.carries,
							  .whole = world.plan.carries,
							  .losses = meta.marks};
		server->fed = (int) (tree - server->region.trees);
		return true;
	}
}

/* J6-apply, under the lock of applying: a tree that has all of the chain up to target, or NONE. */
static int
bring_up_to(struct actor *self, const struct meta *meta, const struct place *target)
{
	struct server *server = self->server;

	for (;;)
	{
		struct tree *tree;

		/* The tree was promoted, and is a primary's. */
		step(self, "J6-apply: looks for the tree");
		if (world.plan.carries && !server->recovery)
			return NONE;
		if (server->fed == NONE && !server->recovery)
			return server->reads;
		if (server->fed == NONE && !load_fed(self))
			return NONE;
		tree = tree_at(server, server->fed);
		if (tree->base < meta->base && !FAULT(base) && !world.settings.drafted)
			server->fed = NONE;
		/* J13-standby: marks are in the current run alone. */
		else if (tree->run != 0 && !view_is_current(server, tree))
			server->fed = NONE;
		else if (apply(self, tree, target))
			return server->fed;
		else
			server->fed = NONE;
	}
}

/* The tree that a query in recovery reads, or NONE.  target NULL: the tail. */
static int
follow(struct actor *self, const struct meta *meta, const struct place *target)
{
	struct server *server = self->server;
	int fed = server->fed;
	int tree;

	/* Members of a parallel query's lock group would not wait for each other's heavyweight locks. */
	if (!(FAULT(applylock) && one_in(2)))
		step_lock(self, LOCK_APPLY, "J6-apply: takes the lock of applying");
	if (FAULT(promoted) && fed != NONE)
		tree = apply(self, tree_at(server, fed), target) ? fed : NONE;
	else
		tree = bring_up_to(self, meta, target);
	unlock(self, LOCK_APPLY);
	return tree;
}

/* J13-read: the pages of the view's run have gone.  The reader goes on in the tree that the index has now. */
static int
look_for_tree(struct actor *self, const struct meta *meta, const struct place *target)
{
	struct server *server = self->server;
	int tree;

	step(self, "J13-read: looks for the index's tree again");
	tree = server->recovery ? follow(self, meta, target) : server->reads;
	if (tree == NONE)
		actor_abort(self);
	return tree;
}

/* J6-only: when a tree of a standby had all that was replayed up to a place; none: the reader looks at rows alone. */
struct moment
{
	bool none;
	uint8_t losses;
	struct place place;
};

static struct moment
take_moment(struct actor *self, const struct tree *tree)
{
	step(self, "J6-only: the place up to which the tree has all");
	return (struct moment){.none = !self->server->recovery || !tree->fed || tree->run != 0,
						   .losses = tree->losses,
						   .place = tree->place};
}

/* J6-only: has nothing been replayed since that the tree lacked? */
static bool
is_moment(struct actor *self, const struct moment *moment)
{
	struct meta meta = step_read_meta(self, "J6-only: reads the metapage");
	struct page page;

	if ((meta.stale || meta.marks != moment->losses) && !FAULT(onlystale))
		return false;
	page = step_read(self, moment->place.page.block, "J6-only: reads the page at the place");
	return FAULT(onlymap) || (page.kind == PAGE_LOG && page.id == moment->place.serial && page.next.block == 0 &&
							  page.count == moment->place.offset);
}

/* Is a TID's page all-visible for this snapshot?  Also what has no row. */
static bool
is_all_visible(const struct actor *self, const struct line *line)
{
	return line->state == LINE_UNUSED || (row_is_visible(line, self->snapshot) && line->xmax == 0);
}

/* What the snapshot sees of the rows that entries of the key lead to. */
static unsigned int
fetch(struct actor *self, unsigned int key, unsigned int met, const struct moment *moment)
{
	struct server *server = self->server;
	unsigned int seen = 0;

	for (unsigned int tid = 0; tid < world.plan.tids; tid++)
	{
		const struct line *line = &server->pages.lines[tid];

		if ((met >> tid & 1) == 0)
			continue;
		if (!moment->none)
		{
			step(self, "J6-only: looks at the visibility map");
			if (is_all_visible(self, line) && is_moment(self, moment))
			{
				seen |= 1u << tid;
				continue;
			}
		}
		step(self, "fetches a row");
		if (!row_is_visible(line, self->snapshot))
			continue;
		seen |= 1u << tid;
		if (line->key != key)
			violation("J7: a query was led to a row with another key (TID %u)", tid);
	}
	return seen;
}

/* What the tree leads to, as the snapshot sees it. */
static unsigned int
scan(struct actor *self, int tree, unsigned int key, const struct meta *meta, const struct place *target)
{
	struct server *server = self->server;
	struct moment moment = {.none = true};
	int first = tree;
	unsigned int met = 0;

	if (server->recovery && one_in(2))
		moment = take_moment(self, tree_at(server, tree));
	for (unsigned int tid = 0; tid < world.plan.tids; tid++)
	{
		bool found = false;

		while (!tree_look(self, tree, ENTRY(key, tid), &found))
			tree = look_for_tree(self, meta, target);
		if (found)
			met |= 1u << tid;
		if (tree_at(server, tree)->lost)
			actor_abort(self);
	}
	if (FAULT(onlylate) && !moment.none)
		moment = take_moment(self, tree_at(server, tree));
	moment.none |= tree != first;
	return fetch(self, key, met, &moment);
}

/* J15-read, of an index that has no tree; false: it does not answer so. */
static bool
scan_carried(struct actor *self, unsigned int key, unsigned int *seen)
{
	unsigned int met = 0;

	if (!world.plan.carries || self->server->recovery || !carried_scan(self, key, &met))
		return false;
	*seen = fetch(self, key, met, &(struct moment){.none = true});
	return true;
}

void
reader_run(struct actor *self)
{
	struct server *server = self->server;
	unsigned int key = below(world.plan.keys);
	unsigned int truth = 0;
	unsigned int seen;
	struct place target;
	struct meta meta;
	bool whole = true;
	int tree;

	if (world.plan.answers ? server->recovery || one_in(2) : world.plan.filters && !server->recovery)
	{
		lookup_some(self, key);
		return;
	}
	if (world.plan.carries && !server->recovery && one_in(3))
	{
		carried_scan_pinned(self, key);
		return;
	}
	if (FAULT(earlytail) && server->recovery)
		whole = find_target(self, &meta, &target);
	step(self, "J6-read: takes a snapshot");
	self->snapshot = server->pages.committed & ~server->running;
	self->looks = true;
	for (unsigned int tid = 0; tid < world.plan.tids; tid++)
	{
		if (row_is_visible(&server->pages.lines[tid], self->snapshot) && server->pages.lines[tid].key == key)
			truth |= 1u << tid;
	}
	step(self, "J6-read: asks whether the server is in recovery");
	if (server->recovery)
	{
		if (!FAULT(earlytail))
			whole = find_target(self, &meta, &target);
		if (FAULT(unapplied) && server->fed != NONE && one_in(2))
			tree = server->fed;
		else
			tree = whole ? follow(self, &meta, &target) : NONE;
	}
	else
	{
		step(self, "opens the index");
		tree = server->reads;
	}
	if (tree != NONE || world.plan.carries)
	{
		if (tree != NONE)
			seen = scan(self, tree, key, &meta, &target);
		else if (!scan_carried(self, key, &seen))
			seen = truth;
		if (seen != truth)
			violation("J7: a query saw rows %#x instead of %#x", seen, truth);
	}
	self->looks = false;
}

void
applier_run(struct actor *self)
{
	struct meta meta = step_read_meta(self, "J6-read: reads the metapage");

	if (!meta.stale)
		(void) follow(self, &meta, NULL);
}

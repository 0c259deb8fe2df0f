/*
 * loader.c
 *	  A primary's index gets a tree: loaded from the journal, promoted from the time as a standby, or rebuilt from the
 *	  table.  J4-load, J4-open, J4-rebuild, J6-promote.
 */
#include "model/world.h"

/* From now on adds go into this tree. */
static void
take_adds(struct actor *self, int tree)
{
	struct server *server = self->server;

	for (int i = 0; i < 2; i++)
	{
		if ((i == 0) != FAULT(counterfirst))
		{
			step(self, "J4-load: the tree takes adds");
			server->adds = tree;
		}
		else
		{
			step(self, "J4-load: raises the counter");
			server->changes++;
		}
	}
}

/* J4-open.  False: the tree has been given up instead. */
static bool
open_for_reads(struct actor *self, int number, bool promoted, bool rebuilt)
{
	struct server *server = self->server;
	struct tree *tree = tree_at(server, number);
	struct record record = {.kind = RECORD_NAME, .tree = tree_name(server, number)};
	bool stale;

	if (!(promoted ? FAULT(promoteflush) : FAULT(openflush)))
	{
		step(self, "J4-open: flushes WAL");
		wal_flush();
	}
	step_lock(self, LOCK_PAGE + 0, "J4-open: opens the tree for reads, under the metapage's lock");
	stale = server->pages.meta.stale && !rebuilt && !FAULT(openstale);
	if (stale || tree->lost || (tree->given_up && !FAULT(openspoiled)) ||
		(!view_is_readable(server, tree) && !FAULT(pagedopen)))
	{
		unlock(self, LOCK_PAGE + 0);
		tree_give_up(self, number);
		return false;
	}
	tree->whole = true;
	tree->fed = false;
	tree->behind = false;
	if (world.plan.kept_by_name)
		(void) wal_insert(&record);
	server->reads = server->own = number;
	server->fed = NONE;
	if (server->behind == number)
		server->behind = NONE;
	unlock(self, LOCK_PAGE + 0);
	return true;
}

/* Reads run and chain into a tree that nobody sees yet; false: the journal is stale. */
static bool
load_unseen(struct actor *self, struct tree *tree)
{
	for (;;)
	{
		struct meta meta = step_read_meta(self, "J4-load: reads the metapage");
		struct place place;
		entries content;

		if (meta.stale)
			return false;
		if (!walk(self, &meta, NULL, &content, &place))
			continue;
		tree->content = content;
		tree->base = meta.base;
		tree->place = place;
		return true;
	}
}

/* J13-open: a view that nobody sees yet; false: the journal is stale. */
static bool
load_view(struct actor *self, struct tree *tree)
{
	do
	{
		struct meta meta = step_read_meta(self, "J13-open: reads the metapage");

		if (meta.stale)
			return false;
		view_begin(self, tree, &meta);
	} while (!apply(self, tree, NULL));
	return true;
}

/* The same into one that takes adds already: what the journal holds is added, nothing is removed. */
static bool
load_seen(struct actor *self, int number)
{
	struct tree *tree = tree_at(self->server, number);
	struct meta meta;
	struct place place;
	entries content = 0;

	if (!FAULT(publate))
		take_adds(self, number);
	do
	{
		meta = step_read_meta(self, "J4-load: reads the metapage");
		if (meta.stale)
			return false;
		/* With the fault the run alone is merged, and the chain is applied to what others see. */
	} while (!walk(self, &meta, FAULT(removes) ? &meta.first : NULL, &content, &place));
	if (FAULT(publate))
		take_adds(self, number);
	step(self, "J4-load: loads");
	tree->content |= content;
	tree->place = place;
	return !FAULT(removes) || apply(self, tree, NULL);
}

/* J4-load; false: the journal is stale. */
static bool
load(struct actor *self, int number)
{
	struct tree *tree = tree_at(self->server, number);
	bool paged = world.plan.paged && !one_in(3);

	if (!paged && one_in(2))
		return load_seen(self, number);
	do
	{
		if (!(paged ? load_view(self, tree) : load_unseen(self, tree)))
			return false;
		if (FAULT(publate))
		{
			take_adds(self, number);
			return true;
		}
		take_adds(self, number);
	} while (!apply(self, tree, NULL));
	return true;
}

/* J6-promote; false: the tree is not one that can be promoted. */
static bool
promote(struct actor *self, int number)
{
	struct server *server = self->server;
	struct tree *tree = tree_at(server, number);
	struct meta meta = step_read_meta(self, "J6-promote: reads the metapage");

	if (meta.stale || (meta.base != tree->base && !FAULT(base) && !world.settings.drafted) ||
		(tree->run != 0 && !view_is_current(server, tree)))
		return false;
	if (!FAULT(nolast) && !FAULT(promoteopen) && !apply(self, tree, NULL))
		return false;
	take_adds(self, number);
	return FAULT(nolast) || FAULT(promoteonce) || apply(self, tree, NULL);
}

/* J14-catch; false: the tree is of no use any more. */
static bool
catch_up(struct actor *self, int number)
{
	struct server *server = self->server;
	struct tree *tree = tree_at(server, number);
	struct meta meta = step_read_meta(self, "J14-catch: reads the metapage");

	if (world.plan.unique && !FAULT(behindsure))
		tree_make_sure_left(self, number);
	if (FAULT(behindplace))
	{
		tree->place = meta.tail;
		tree->place.offset = server->pages.blocks[meta.tail.page.block].count;
	}
	if (meta.stale || (!FAULT(behindopen) && !apply(self, tree, NULL)))
		return false;
	take_adds(self, number);
	return FAULT(behindonce) || apply(self, tree, NULL);
}

/* The tree that was left behind, unless it has to leave. */
static int
tree_to_catch_up(struct actor *self)
{
	struct server *server = self->server;
	int number = server->behind;

	if (number == NONE || (catch_up(self, number) && !tree_at(server, number)->lost))
		return number;
	tree_give_up(self, number);
	return NONE;
}

/* J4-rebuild, under the removers' lock and the table's. */
static void
rebuild(struct actor *self)
{
	struct server *server = self->server;
	int number = tree_make(self);
	struct tree *tree = tree_at(server, number);

	if (!FAULT(rebuildlate))
		take_adds(self, number);
	for (unsigned int tid = 0; tid < world.plan.tids; tid++)
	{
		step(self, "J4-rebuild: reads a row");
		if (server->pages.lines[tid].state == LINE_NORMAL)
			tree->content |= BIT(ENTRY(server->pages.lines[tid].key, tid));
	}
	if (FAULT(rebuildlate))
		take_adds(self, number);
	/* J2-staged.  No history of these themes goes wrong without it: too much has to come together. */
	staging_write_out_all(self);
	(void) open_for_reads(self, number, false, true);
}

/* From the journal: a standby's tree, or a new one. */
static void
promote_or_load(struct actor *self)
{
	struct server *server = self->server;
	bool promoted = false;
	int number = server->fed;

	if (number != NONE)
	{
		promoted = promote(self, number);
		if (!promoted)
			tree_give_up(self, number);
	}
	else
		number = tree_to_catch_up(self);
	if (!promoted && number == NONE)
	{
		number = tree_make(self);
		if (!load(self, number))
		{
			tree_give_up(self, number);
			return;
		}
	}
	(void) open_for_reads(self, number, promoted, false);
}

/* J15: an index that was rebuilt, and has a run again, is to have no tree. */
static void
leave_memory(struct actor *self)
{
	struct server *server = self->server;

	step_lock(self, LOCK_REMOVERS, "J15: takes the removers' lock");
	if (server->reads != NONE && !server->pages.meta.stale)
		tree_give_up(self, server->reads);
	unlock(self, LOCK_REMOVERS);
}

/* A tree that cannot be reached for a moment; who finds that has no key locked, and no row. */
static void
leave_missed(struct actor *self, int number)
{
	if (world.plan.returns || (world.plan.leaves && !one_in(4)))
		tree_leave_behind(self, number);
	else
		tree_give_up(self, number);
}

void
loader_run(struct actor *self)
{
	struct server *server = self->server;
	bool stale;

	if (server->reads != NONE && tree_at(server, server->reads)->lost)
		tree_give_up(self, server->reads);
	if (server->reads != NONE && world.plan.carries)
		leave_memory(self);
	if (server->reads != NONE && world.plan.misses && one_in(2))
		leave_missed(self, server->reads);
	if (server->reads != NONE)
		return;
	stale = step_read_meta(self, "looks whether the journal is stale").stale;
	if (!stale && world.plan.carries)
		return;
	if (stale)
		step_lock(self, LOCK_TABLE, "J4-rebuild: takes the table's lock");
	if (!(stale ? FAULT(rebuildlock) : FAULT(loadlock)))
		step_lock(self, LOCK_REMOVERS, "J4-load: takes the removers' lock");
	self->kept_first = server->pages.meta.previous_first;
	if (!stale)
		step_lock(self, LOCK_APPLY, "J4-load: takes the lock of applying");
	step(self, "J4-load: has the index a tree by now?");
	if (server->reads == NONE && server->pages.meta.stale == stale)
	{
		if (stale && server->behind != NONE)
			tree_give_up(self, server->behind);
		if (stale)
			rebuild(self);
		else
			promote_or_load(self);
	}
	unlock(self, LOCK_APPLY);
	unlock(self, LOCK_REMOVERS);
	unlock(self, LOCK_TABLE);
}

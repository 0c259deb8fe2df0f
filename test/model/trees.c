/*
 * trees.c
 *	  Trees of a server: making them, which one takes adds, giving them up; undo records.
 */
#include "model/world.h"

struct tree *
tree_at(struct server *server, int tree)
{
	smart_assert(tree >= 0 && tree < server->region.tree_count);
	return &server->region.trees[tree];
}

int
tree_make(struct actor *self)
{
	struct region *region = &self->server->region;

	if (region->tree_count == TREES)
		actor_exhausted(self);
	region->trees[region->tree_count] = (struct tree){0};
	return region->tree_count++;
}

int
tree_name(const struct server *server, int tree)
{
	return server->region.number * TREES + tree;
}

void
tree_give_up(struct actor *self, int tree)
{
	struct server *server = self->server;

	step(self, "J2-giveup: marks the tree in its record");
	if (!FAULT(giveup))
		tree_at(server, tree)->given_up = true;
	step(self, "J2-giveup: it is no tree of the index any more");
	if (server->adds == tree)
		server->adds = NONE;
	if (server->reads == tree)
		server->reads = NONE;
	if (server->fed == tree)
		server->fed = NONE;
	if (server->behind == tree)
		server->behind = NONE;
	step(self, "J2-giveup: raises the counter");
	server->changes++;
}

void
tree_leave_behind(struct actor *self, int number)
{
	struct server *server = self->server;
	struct tree *tree = tree_at(server, number);
	struct place end;

	append_lock_tail(self);
	end = self->tail;
	end.offset = server->pages.blocks[end.page.block].count;
	unlock(self, LOCK_PAGE + end.page.block);
	step(self, "J14-leave: notes where the tree was left, unless a removal is under way");
	if (tree->behind)
		return;
	if (server->reads != number || tree->under_way || tree->given_up || tree->run != 0 || server->mover != NULL ||
		server->pages.meta.stale)
	{
		tree_give_up(self, number);
		return;
	}
	tree->place = end;
	tree->behind = true;
	server->adds = server->reads = NONE;
	server->behind = number;
	step(self, "J14-leave: raises the counter");
	server->changes++;
}

static void
look_for_trees(struct actor *self)
{
	const struct server *server = self->server;

	self->tree = server->adds;
	self->also = server->also;
	self->answers = server->adds == server->reads;
}

void
tree_open_to_add(struct actor *self)
{
	struct server *server = self->server;

	if (FAULT(openlate))
	{
		step(self, "looks which tree takes adds");
		look_for_trees(self);
	}
	step(self, "J2-add: reads the counter");
	self->changes = server->changes;
	if (!FAULT(openlate))
	{
		step(self, "J2-add: looks which tree takes adds");
		look_for_trees(self);
	}
	self->open = true;
}

void
move_end(struct server *server)
{
	server->also = server->named = NONE;
	server->spoiled = server->sealed = false;
	server->mover = NULL;
}

void
undo_note(struct actor *self, int tree, unsigned int entry)
{
	struct region *region = &self->server->region;
	int kept = 0;

	step(self, "U1: writes an undo record");
	if (region->undo_count == UNDO_MAX)
	{
		wal_flush();
		for (int i = 0; i < region->undo_count; i++)
		{
			if (region->undo[i].position > region->durable)
				region->undo[kept++] = region->undo[i];
		}
		region->undo_count = kept;
	}
	smart_assert(tree >= 0 && region->undo_count < UNDO_MAX);
	region->undo[region->undo_count++] = (struct undo){.tree = tree, .entry = entry, .position = self->position};
}

/*
 * mover.c
 *	  The index of a primary gets another tree while it is read and written: J11, of a journal that is whole.
 */
#include "model/world.h"

/* Reads run and chain into a tree that nobody sees yet, and applies what has come since; false: not now. */
static bool
fill(struct actor *self, struct tree *tree)
{
	struct meta meta = step_read_meta(self, "J11: reads the metapage");
	struct place place;
	entries content;

	if (meta.stale)
		return false;
	if (world.plan.paged && !one_in(3))
	{
		view_begin(self, tree, &meta);
		return apply(self, tree, NULL);
	}
	if (!walk(self, &meta, NULL, &content, &place))
		return false;
	tree->content = content;
	tree->base = meta.base;
	tree->place = place;
	return !one_in(2) || apply(self, tree, NULL);
}

/* From now on adds go into both trees. */
static void
take_adds_too(struct actor *self, int number)
{
	struct server *server = self->server;

	for (int i = 0; i < 2; i++)
	{
		if ((i == 0) != FAULT(movecounter))
		{
			step(self, "J11-both: the new tree takes adds, too");
			server->also = number;
		}
		else
		{
			step(self, "J11-both: raises the counter");
			server->changes++;
		}
	}
}

/* J11-name.  False: the index has another tree by now, or none, or a journal that does not tell all. */
static bool
name(struct actor *self, int older, int number)
{
	struct server *server = self->server;
	struct record record = {.kind = RECORD_NAME, .tree = tree_name(server, number)};
	bool good;

	if (!FAULT(moveflush))
	{
		step(self, "J11-name: flushes WAL");
		wal_flush();
	}
	step(self, "J11-name: has the new tree taken all adds?");
	if (server->spoiled && !FAULT(movespoiled))
		return false;
	server->sealed = true;
	self->held = true;
	step_lock(self, LOCK_PAGE + 0, "J11-name: names the new tree, under the metapage's lock");
	good = (server->reads == older || FAULT(movegone)) && (!server->pages.meta.stale || FAULT(movestale)) &&
		   (server->pages.meta.base == tree_at(server, number)->base || FAULT(movebase)) &&
		   (view_is_readable(server, tree_at(server, number)) || FAULT(pagedopen));
	if (good)
	{
		tree_at(server, number)->whole = true;
		if (world.plan.kept_by_name)
			(void) wal_insert(&record);
		server->named = number;
	}
	unlock(self, LOCK_PAGE + 0);
	return good;
}

/* J11-switch: for all processes at once. */
static void
switch_trees(struct actor *self, int older)
{
	struct server *server = self->server;
	int number = server->named;

	step(self, "J11-switch: the older tree is not to be kept");
	tree_at(server, older)->given_up = true;
	if (FAULT(moveafter))
	{
		step(self, "J11-switch: the move has ended");
		server->reads = server->adds = server->own = number;
		server->also = NONE;
	}
	step(self, "J11-switch: raises the counter, and the move has ended");
	if (!FAULT(movesilent))
		server->changes++;
	server->reads = server->adds = server->own = number;
	move_end(server);
}

void
mover_run(struct actor *self)
{
	struct server *server = self->server;
	int older = server->reads;
	struct tree *tree;
	int number;

	if (older == NONE || tree_at(server, older)->lost || server->pages.meta.stale)
		return;
	step(self, "J11: begins");
	number = tree_make(self);
	tree = tree_at(server, number);
	server->mover = self;
	if (!fill(self, tree))
		actor_abort(self);
	if (!FAULT(moveremovers))
		step_lock(self, LOCK_REMOVERS, "J11-both: takes the removers' lock");
	if (!apply(self, tree, NULL))
		actor_abort(self);
	take_adds_too(self, number);
	if (!FAULT(movelast) && !apply(self, tree, NULL))
		actor_abort(self);
	if (!name(self, older, number))
		actor_abort(self);
	switch_trees(self, older);
	unlock(self, LOCK_REMOVERS);
}

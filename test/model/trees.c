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

/* Others come in between, who check for duplicates. */
static void
take_long(struct actor *self)
{
	if (world.plan.misses && one_in(2))
		self->stalled_until = world.now + (16u << below(5));
}

/* J2-foretold. */
static void
foretell(struct actor *self, int tree)
{
	step(self, "J2-foretold: foretells that the tree is left");
	self->server->foretold[self - world.actors] = tree;
	if (world.plan.returns && one_in(2))
		self->stalled_until = world.now + (64u << below(4));
	else
		take_long(self);
}

static void
clear_slot(struct actor *self)
{
	step(self, "J2-foretold: clears its slot");
	self->server->foretold[self - world.actors] = NONE;
}

static void
raise_the_counter(struct actor *self, const char *what)
{
	take_long(self);
	step(self, what);
	self->server->changes++;
	clear_slot(self);
}

void
tree_give_up(struct actor *self, int tree)
{
	struct server *server = self->server;

	if (!FAULT(foretoldlate))
		foretell(self, tree);
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
	if (FAULT(foretoldlate))
		foretell(self, tree);
	raise_the_counter(self, "J2-giveup: raises the counter");
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
	if (!FAULT(foretoldlate))
		foretell(self, number);
	step(self, "J14-leave: notes where the tree was left, unless a removal is under way");
	if (tree->behind)
	{
		clear_slot(self);
		return;
	}
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
	if (FAULT(foretoldlate))
		foretell(self, number);
	raise_the_counter(self, "J14-leave: raises the counter");
}

static void
look_for_trees(struct actor *self)
{
	const struct server *server = self->server;

	self->tree = server->adds;
	self->also = server->also;
	self->answers = server->adds == server->reads;
}

/* J2-foretold: the slots that have this tree's number.  One look at all is enough: who marked it had his set before. */
static unsigned int
look_at_slots(struct actor *self, int tree)
{
	unsigned int slots = 0;

	step(self, "J2-foretold: looks at all slots");
	for (unsigned int i = 0; i < ACTORS && !FAULT(foretoldnot); i++)
	{
		if (tree != NONE && self->server->foretold[i] == tree)
			slots |= 1u << i;
	}
	return slots;
}

void
tree_make_sure_left(struct actor *self, int tree)
{
	if (look_at_slots(self, tree) == 0)
		return;
	step(self, "J2-foretold: raises the counter for another");
	self->server->changes++;
}

/* With faults alone: others' slots are cleared.  All are, and the counter is raised for each. */
static void
clear_slots(struct actor *self, int tree, unsigned int slots)
{
	struct server *server = self->server;

	for (unsigned int i = 0; i < 2 * ACTORS; i++)
	{
		if ((slots >> i / 2 & 1) == 0)
			continue;
		if (i % 2 == 1 && world.plan.misses)
			self->stalled_until = world.now + (16u << below(5));
		if ((i % 2 == 0) != FAULT(foretoldclear))
		{
			step(self, "J2-foretold: raises the counter for another");
			server->changes++;
			continue;
		}
		step(self, "J2-foretold: clears another's slot");
		if (server->foretold[i / 2] == tree)
			server->foretold[i / 2] = NONE;
	}
}

/* J2-foretold.  False: the index has to be opened anew. */
static bool
make_sure(struct actor *self, int tree)
{
	struct server *server = self->server;
	unsigned int slots = look_at_slots(self, tree);

	if (slots == 0)
		return true;
	if (FAULT(foretoldclear) || FAULT(foretoldswap))
	{
		clear_slots(self, tree, slots);
		return false;
	}
	step(self, "J2-foretold: raises the counter for another");
	server->changes++;
	if (server->changes != self->changes + 1)
		return false;
	self->changes = server->changes;
	return true;
}

/* False: the index has to be opened anew. */
static bool
open_to_add(struct actor *self)
{
	struct server *server = self->server;
	int own;

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
	own = server->own;
	if (world.plan.misses && one_in(2))
		take_long(self);
	return !world.plan.unique || (self->tree != NONE && self->answers) || make_sure(self, own);
}

void
tree_open_to_add(struct actor *self)
{
	while (!open_to_add(self))
		continue;
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

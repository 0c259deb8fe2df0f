/*
 * writer.c
 *	  Transactions that insert and delete rows; J2-add.
 */
#include "model/world.h"

/* The tree that takes adds gets the entry, if there is one. */
static void
put_into_tree(struct actor *self, unsigned int entry, bool again)
{
	while (self->tree != NONE)
	{
		struct tree *tree = tree_at(self->server, self->tree);

		if (!(again && FAULT(reundo)))
			undo_note(self, entry);
		step(self, "J2-add: adds to the tree");
		if (!tree->lost && !one_in(world.plan.refuse_one_in))
		{
			tree->content |= BIT(entry);
			return;
		}
		/* The tree lacks an entry from here on. */
		tree_give_up(self, self->tree);
		tree_open_to_add(self);
		again = true;
	}
}

/* J2-add. */
static void
add(struct actor *self, unsigned int entry)
{
	struct op op = {.entry = (uint8_t) entry};
	bool again = false;

	if (!self->open || one_in(2))
		tree_open_to_add(self);
	self->held = self->held || world.settings.drafted;
	if (FAULT(chainfirst))
	{
		while (!append(self, op, true))
			tree_open_to_add(self);
		put_into_tree(self, entry, false);
	}
	else
	{
		put_into_tree(self, entry, false);
		while (!append(self, op, true))
		{
			tree_open_to_add(self);
			again = true;
			put_into_tree(self, entry, again);
		}
	}
	self->held = false;
	self->between = 0;
}

static void
insert_row(struct actor *self)
{
	struct record record = {.kind = RECORD_INSERT, .key = (uint8_t) below(world.plan.keys), .xid = (uint8_t) self->xid};
	unsigned int first = below(world.plan.tids);

	step(self, "inserts a row");
	for (unsigned int i = 0; i < world.plan.tids; i++)
	{
		record.tid = (uint8_t) ((first + i) % world.plan.tids);
		if (self->server->pages.lines[record.tid].state != LINE_UNUSED)
			continue;
		self->between = BIT(ENTRY(record.key, record.tid));
		self->position = wal_insert(&record);
		add(self, ENTRY(record.key, record.tid));
		return;
	}
}

static void
delete_row(struct actor *self)
{
	struct server *server = self->server;
	uint64_t others = server->running & ~(UINT64_C(1) << self->xid);
	uint64_t mine = UINT64_C(1) << self->xid;
	struct record record = {.kind = RECORD_DELETE, .tid = (uint8_t) below(world.plan.tids), .xid = (uint8_t) self->xid};
	const struct line *line = &server->pages.lines[record.tid];

	step(self, "deletes a row");
	if (!row_is_visible(line, (server->pages.committed & ~others) | mine))
		return;
	if (line->xmax == 0 || ((server->pages.committed | others) >> line->xmax & 1) == 0)
		self->position = wal_insert(&record);
}

void
writer_run(struct actor *self)
{
	struct server *server = self->server;
	struct record commit = {.kind = RECORD_COMMIT};
	unsigned int rows = 1 + below(2);

	if (world.xids == XIDS)
		actor_exhausted(self);
	step(self, "begins a transaction");
	self->xid = ++world.xids;
	server->running |= UINT64_C(1) << self->xid;
	for (; rows > 0; rows--)
	{
		if (one_in(3))
			delete_row(self);
		else
			insert_row(self);
	}
	if (one_in(5))
	{
		step(self, "aborts");
		actor_abort(self);
	}
	step(self, "writes its commit record");
	commit.xid = (uint8_t) self->xid;
	(void) wal_insert(&commit);
	self->held = true;
	if (!one_in(world.plan.asynchronous_one_in))
	{
		step(self, "flushes WAL");
		wal_flush();
	}
	step(self, "is committed for others");
	server->running &= ~(UINT64_C(1) << self->xid);
	self->xid = 0;
}

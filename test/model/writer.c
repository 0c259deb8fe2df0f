/*
 * writer.c
 *	  Transactions that insert and delete rows; J2-add.
 */
#include "model/world.h"

/* J11-both.  False: the move has ended, or is about to, and the adder has opened the index again. */
static bool
put_into_also(struct actor *self, unsigned int entry)
{
	struct server *server = self->server;
	struct tree *tree = tree_at(server, self->also);

	if (!FAULT(moveundo))
		undo_note(self, self->also, entry);
	step(self, "J11-both: adds to the tree that the index moves to, too");
	if (!tree->lost && !one_in(world.plan.refuse_one_in))
	{
		tree->content |= BIT(entry);
		return true;
	}
	if (server->also == self->also && !server->sealed)
	{
		server->spoiled = true;
		return true;
	}
	while (self->changes == server->changes)
		step_wait(self);
	tree_open_to_add(self);
	return false;
}

/* Adds the entry to the trees that the adder has open; false: it has opened others. */
static bool
put_into_tree(struct actor *self, unsigned int entry, bool again)
{
	struct tree *tree;

	/* The index has lost its tree while it was moved. */
	if (self->tree == NONE)
		return put_into_also(self, entry);
	tree = tree_at(self->server, self->tree);
	if (!(again && FAULT(reundo)))
		undo_note(self, self->tree, entry);
	step(self, "J2-add: adds to the tree");
	if (!tree->lost && !one_in(world.plan.refuse_one_in))
	{
		tree->content |= BIT(entry);
		return self->also == NONE || put_into_also(self, entry);
	}
	/* The tree lacks an entry from here on. */
	if (world.plan.leaves && !tree->lost && !one_in(4))
		tree_leave_behind(self, self->tree);
	else
		tree_give_up(self, self->tree);
	tree_open_to_add(self);
	return false;
}

/* Do these entries lead to another row with the key that is there, or may be one day? */
static bool
lead_to_duplicate(const struct actor *self, unsigned int entry, entries all)
{
	struct server *server = self->server;
	uint64_t mine = UINT64_C(1) << self->xid;
	uint64_t over = server->pages.committed & ~server->running;

	for (unsigned int tid = 0; tid < world.plan.tids; tid++)
	{
		const struct line *line = &server->pages.lines[tid];

		if (tid == TID_OF(entry) || line->state != LINE_NORMAL || line->key != KEY_OF(entry) ||
			(all & BIT(ENTRY(KEY_OF(entry), tid))) == 0)
			continue;
		/* Seen by a snapshot that takes unfinished inserts for committed, and unfinished deletions for aborted. */
		if (row_is_visible(&(struct line){.state = LINE_NORMAL, .xmin = line->xmin}, over | server->running) &&
			(line->xmax == 0 || ((over | mine) >> line->xmax & 1) == 0))
			return true;
	}
	return false;
}

/* Does the tree, or the journal, lead to one? */
static bool
is_duplicate(const struct actor *self, unsigned int entry, bool journal)
{
	struct server *server = self->server;
	entries all;

	if (journal)
	{
		if (server->pages.meta.stale || !journal_content(&server->pages, &all))
			return true;
	}
	/* A view that was replaced: asked again. */
	else if (!tree_entries(server, tree_at(server, self->tree), &all))
		return true;
	return lead_to_duplicate(self, entry, all);
}

/*
 * J16, J17: the same, a page of the journal at a time; what the filter says, or is remembered, decides.  Who adds the key waits
 * for its lock.
 */
static bool
is_duplicate_by_view(struct actor *self, unsigned int entry)
{
	struct key_view view = {.has_run = false};
	entries all;

	if (!lookup(self, &view, KEY_OF(entry), &all))
		return true;
	step(self, "J2-unique: looks at the key's rows");
	return lead_to_duplicate(self, entry, all);
}

/* J2-unique, J15, under the key's lock.  perhaps: areas that have the key, if the filters were read too early. */
static bool
put_into_journal(struct actor *self, unsigned int entry, unsigned int perhaps)
{
	if (!FAULT(filterearly))
		perhaps = staging_perhaps(self, entry);
	staging_write_out(self, perhaps);
	if (world.plan.filters)
		return !is_duplicate_by_view(self, entry) && staging_add(self, entry);
	step(self, "J2-unique: looks for the key's rows in the journal");
	return !is_duplicate(self, entry, true) && staging_add(self, entry);
}

/* The same in other themes, without areas.  The index may be about to get a tree. */
static bool
put_while_lost(struct actor *self, unsigned int entry)
{
	step(self, "J2-unique: looks for the key's rows in the journal");
	return !is_duplicate(self, entry, true) &&
		   ((self->tree == NONE && self->also == NONE) || put_into_tree(self, entry, false)) &&
		   append(self, (struct op){.entry = (uint8_t) entry}, true);
}

/* J2-unique.  True: the entry is staged, in an index that has a tree or none (J15). */
static bool
put_unique(struct actor *self, unsigned int entry, bool again)
{
	struct server *server = self->server;
	bool trusts = again && FAULT(uniqueagain);
	unsigned int perhaps = 0;
	bool staged = false;
	bool done = false;

	for (;;)
	{
		if (FAULT(filterearly))
			perhaps = staging_perhaps(self, entry);
		step_lock(self, LOCK_KEY + KEY_OF(entry), "J2-unique: locks the key");
		if (self->tree != NONE && ((self->answers && self->changes == server->changes) || FAULT(uniqueload) || trusts))
		{
			step(self, "J2-unique: looks for the key's rows");
			done = (trusts || !is_duplicate(self, entry, false)) && put_into_tree(self, entry, again);
			if (done && world.plan.stages)
				staged = done = staging_add(self, entry);
			else if (done && world.plan.asks)
				staged = done = append(self, (struct op){.entry = (uint8_t) entry}, true);
		}
		else if (self->tree == NONE && world.plan.carries)
			staged = put_into_journal(self, entry, perhaps);
		else if (world.plan.asks && (self->tree == NONE || !self->answers))
			staged = put_while_lost(self, entry);
		unlock(self, LOCK_KEY + KEY_OF(entry));
		if (staged && FAULT(filterlate))
			staging_set_filter(self, entry);
		if (done || staged)
			return staged;
		/* Another row has the key, or may have; or the index has no tree. */
		if (one_in(4))
			actor_abort(self);
		step_wait(self);
		tree_open_to_add(self);
	}
}

/* What the tree that takes adds is to get.  True: the entry is staged. */
static bool
put(struct actor *self, unsigned int entry, bool again)
{
	if (world.plan.unique)
		return put_unique(self, entry, again);
	while ((self->tree != NONE || self->also != NONE) && !put_into_tree(self, entry, again))
		again = true;
	return false;
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
	while (!((!FAULT(chainfirst) && put(self, entry, again)) || append(self, op, true)))
	{
		tree_open_to_add(self);
		again = true;
	}
	if (FAULT(chainfirst))
		(void) put(self, entry, again);
	self->held = false;
	self->between = 0;
}

/* False: no TID is free. */
static bool
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
		return true;
	}
	return false;
}

/* False: there is no row. */
static bool
delete_row(struct actor *self)
{
	struct server *server = self->server;
	uint64_t mine = UINT64_C(1) << self->xid;
	struct record record = {.kind = RECORD_DELETE, .xid = (uint8_t) self->xid};
	unsigned int first = below(world.plan.tids);
	uint64_t others;

	step(self, "deletes a row");
	others = server->running & ~mine;
	for (unsigned int i = 0; i < world.plan.tids; i++)
	{
		const struct line *line = &server->pages.lines[(first + i) % world.plan.tids];

		record.tid = (uint8_t) ((first + i) % world.plan.tids);
		if (!row_is_visible(line, (server->pages.committed & ~others) | mine) ||
			(line->xmax != 0 && ((server->pages.committed | others) >> line->xmax & 1) != 0))
			continue;
		self->position = wal_insert(&record);
		return true;
	}
	return false;
}

void
writer_run(struct actor *self)
{
	struct server *server = self->server;
	struct record commit = {.kind = RECORD_COMMIT};
	/* Where adds are staged, a row may be deleted and inserted again, and the area become full. */
	unsigned int rows = 1 + below(world.plan.stages ? 3 : 2);
	bool changes = false;
	bool idle = true;

	/* The transaction before is over for others already. */
	staging_drop(self);
	for (unsigned int tid = 0; tid < world.plan.tids; tid++)
		idle = idle && server->pages.lines[tid].state != LINE_UNUSED &&
			   !row_is_visible(&server->pages.lines[tid], server->pages.committed);
	if (idle)
		return;
	if (world.xids == XIDS)
		actor_exhausted(self);
	self->xid = ++world.xids;
	server->running |= UINT64_C(1) << self->xid;
	for (; rows > 0; rows--)
		changes = (one_in(3) ? delete_row(self) : insert_row(self) || delete_row(self)) || changes;
	if (!changes || one_in(5))
		actor_abort(self);
	if (!FAULT(stagedlate))
		staging_write_out_own(self);
	step(self, "writes its commit record");
	commit.xid = (uint8_t) self->xid;
	(void) wal_insert(&commit);
	self->held = true;
	if (FAULT(stagedlate))
		staging_write_out_own(self);
	if (!one_in(world.plan.asynchronous_one_in))
	{
		step(self, "flushes WAL");
		wal_flush();
	}
	step(self, "is committed for others");
	server->running &= ~(UINT64_C(1) << self->xid);
	self->xid = 0;
}

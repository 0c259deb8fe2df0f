/*
 * remover.c
 *	  VACUUM, and the worker that removes the entries of dead rows which scans have met: J2-remove, J2-kill, J2-stale.
 */
#include "model/world.h"

static void
take_away(struct actor *self, struct tree *tree, entries victims)
{
	for (unsigned int entry = 0; entry < ENTRIES; entry++)
	{
		if ((victims & BIT(entry)) == 0)
			continue;
		step(self, "J2-remove: removes an entry from the tree");
		tree_carry_out(self, tree, &(struct op){.entry = (uint8_t) entry, .removes = true});
	}
}

/* J2-stale: the removals cannot be journaled. */
static void
mark_stale(struct actor *self)
{
	struct record record = {.kind = RECORD_STALE};

	step_lock(self, LOCK_PAGE + 0, "J2-stale: marks the journal stale");
	if (!self->server->pages.meta.stale || !FAULT(onemark))
		(void) wal_insert(&record);
	unlock(self, LOCK_PAGE + 0);
}

/* J13-mark: a removal is a mark, or an operation. */
static bool
is_marked(struct actor *self, const struct tree *tree, unsigned int entry)
{
	return world.plan.marks && tree->run != 0 && (tree->content & BIT(entry)) == 0 && view_mark(self, tree, entry);
}

static void
journal_removals(struct actor *self, struct tree *tree, entries victims)
{
	if (one_in(world.plan.full_one_in))
		mark_stale(self);
	else
	{
		for (unsigned int entry = 0; entry < ENTRIES; entry++)
		{
			if ((victims & BIT(entry)) != 0 && !is_marked(self, tree, entry))
				(void) append(self, (struct op){.entry = (uint8_t) entry, .removes = true}, false);
		}
	}
	if (FAULT(noflush))
		return;
	step(self, "J2-remove: flushes WAL");
	wal_flush();
}

/*
 * J2-remove, under the removers' lock.  sweeps: the tree comes before the journal, under the same word.  False: the tree
 * could not be reached; the caller's statement fails.
 */
static bool
carry_out(struct actor *self, int number, entries victims, bool sweeps)
{
	struct tree *tree = tree_at(self->server, number);

	/* Where marks are set, what the delta has is looked at before. */
	sweeps = sweeps && !(world.plan.marks && tree->run != 0);
	self->between = victims;
	step(self, "J2-word: 'removal under way'");
	tree->under_way = true;
	self->held = true;
	/* No add is to follow its own removal. */
	staging_write_out_all(self);
	if (!sweeps)
		journal_removals(self, tree, victims);
	if (one_in(world.plan.unable_one_in))
	{
		/* Or the next one that looks at the word does it. */
		if (one_in(2))
			tree_give_up(self, number);
		return false;
	}
	take_away(self, tree, victims);
	if (sweeps && !FAULT(wordfirst))
		journal_removals(self, tree, victims);
	step(self, "J2-word: no removal is under way");
	tree->under_way = false;
	if (sweeps && FAULT(wordfirst))
		journal_removals(self, tree, victims);
	self->held = false;
	self->between = 0;
	return true;
}

/* The removers' lock, and the tree that can be used then, or NONE. */
static int
begin_removal(struct actor *self, bool locks)
{
	struct server *server = self->server;
	int before = NONE;
	int tree;

	step(self, "opens the index");
	before = server->reads;
	if (locks)
		step_lock(self, LOCK_REMOVERS, "J2-remove: takes the removers' lock");
	step(self, "J2-remove: looks for the tree");
	tree = FAULT(openbefore) ? before : server->reads;
	if (tree != NONE && locks &&
		(tree_at(server, tree)->lost || (tree_at(server, tree)->under_way && !FAULT(underway))))
	{
		tree_give_up(self, tree);
		tree = NONE;
	}
	return tree;
}

/* J14-remove: VACUUM of an index that has no tree; what a reader of the journal's pages does is told elsewhere (J13). */
static void
remove_by_journal(struct actor *self, unsigned int key, unsigned int dead)
{
	struct server *server = self->server;
	entries all = 0;

	if (server->behind != NONE && !FAULT(behindremove))
		tree_give_up(self, server->behind);
	if (!FAULT(stagedvacuum))
		staging_write_out_all(self);
	step(self, "J14-remove: finds the victims in the journal");
	(void) journal_content(&server->pages, &all);
	/* Under the removers' lock the index gets no tree. */
	if (world.plan.carries && one_in(world.plan.full_one_in))
	{
		mark_stale(self);
		return;
	}
	for (unsigned int tid = 0; tid < world.plan.tids; tid++)
	{
		if ((dead >> tid & 1) != 0 && (all & BIT(ENTRY(key, tid))) != 0)
			(void) append(self, (struct op){.entry = (uint8_t) ENTRY(key, tid), .removes = true}, false);
	}
	/* What makes their TIDs free follows in WAL (J15). */
	if (world.plan.carries && one_in(2))
		return;
	step(self, "J14-remove: flushes WAL");
	wal_flush();
}

/* One key's entries of dead rows.  False: VACUUM must not free their TIDs.  *marked: it may, in any case. */
static bool
vacuum_key(struct actor *self, unsigned int key, unsigned int dead, bool *marked)
{
	struct server *server = self->server;

	for (;;)
	{
		int tree = begin_removal(self, true);
		entries victims = 0;
		entries all;

		if (tree == NONE && !server->pages.meta.stale && (world.plan.carries || (world.plan.leaves && one_in(2))))
		{
			remove_by_journal(self, key, dead);
			unlock(self, LOCK_REMOVERS);
			return true;
		}
		if (tree == NONE)
		{
			unlock(self, LOCK_REMOVERS);
			if (one_in(world.plan.impatient_one_in))
			{
				struct record record = {.kind = RECORD_STALE};

				step_lock(self, LOCK_PAGE + 0, "J2-stale: marks the journal stale instead of waiting for a tree");
				*marked = (server->reads == NONE && server->named == NONE) || FAULT(markblind);
				if (*marked)
					(void) wal_insert(&record);
				unlock(self, LOCK_PAGE + 0);
			}
			else if (one_in(4))
				return false;
			if (*marked)
				return true;
			step_wait(self);
			continue;
		}
		step(self, "J2-remove: finds the victims in the tree");
		/* A view that was given up meanwhile may have lost its run. */
		if (!tree_entries(server, tree_at(server, tree), &all))
			return false;
		for (unsigned int tid = 0; tid < world.plan.tids; tid++)
		{
			if ((dead >> tid & 1) != 0)
				victims |= all & BIT(ENTRY(key, tid));
		}
		/* What lost memory answers is an error, and tells of no victims. */
		if ((tree_at(server, tree)->lost && !FAULT(lostanswer)) ||
			(victims != 0 && !carry_out(self, tree, victims, one_in(2))))
			return false;
		unlock(self, LOCK_REMOVERS);
		return true;
	}
}

/* Nobody looks at what he has read without a snapshot. */
static void
wait_for_pins(struct actor *self)
{
	bool pinned = world.plan.carries && !FAULT(carrypin);

	while (pinned)
	{
		step(self, "J15-pin: looks whether somebody has a pin");
		pinned = false;
		for (int i = 0; i < ACTORS; i++)
			pinned = pinned || (world.actors[i].pinned && world.actors[i].server == self->server);
		if (pinned)
			step_wait(self);
	}
}

void
vacuum_run(struct actor *self)
{
	struct server *server = self->server;
	struct record record = {.kind = RECORD_PRUNE};
	unsigned int dead = 0;
	bool marked = false;

	for (unsigned int tid = 0; tid < TIDS; tid++)
		dead += server->pages.lines[tid].state == LINE_DEAD || row_is_dead(server, &server->pages.lines[tid]);
	if (dead == 0)
		return;
	dead = 0;
	step_lock(self, LOCK_TABLE, "VACUUM takes its lock of the table");
	for (unsigned int tid = 0; tid < world.plan.tids; tid++)
	{
		step(self, "prunes");
		record.tid = (uint8_t) tid;
		if (row_is_dead(server, &server->pages.lines[tid]))
			(void) wal_insert(&record);
		if (server->pages.lines[tid].state == LINE_DEAD)
			dead |= 1u << tid;
	}
	for (unsigned int key = 0; key < world.plan.keys && dead != 0 && !marked && !FAULT(freefirst); key++)
	{
		if (!vacuum_key(self, key, dead, &marked))
			actor_abort(self);
	}
	wait_for_pins(self);
	record.kind = RECORD_FREE;
	for (unsigned int tid = 0; tid < world.plan.tids; tid++)
	{
		if ((dead >> tid & 1) == 0)
			continue;
		step(self, "frees a TID");
		record.tid = (uint8_t) tid;
		(void) wal_insert(&record);
	}
	unlock(self, LOCK_TABLE);
}

/* The entries that a scan meets. */
static entries
entries_met(const struct server *server)
{
	entries all = 0;

	if (server->reads != NONE)
		return index_entries(server, server->reads);
	if (world.plan.carries && !server->pages.meta.stale)
		(void) journal_content(&server->pages, &all);
	return all;
}

/* The entry of a dead row, as a scan meets it; false: there is none. */
static bool
meet_dead_row(struct actor *self, unsigned int *entry)
{
	struct server *server = self->server;
	unsigned int first = below(ENTRIES);

	step(self, "notes the entry of a dead row");
	for (unsigned int i = 0; i < ENTRIES && (server->reads != NONE || world.plan.carries); i++)
	{
		const struct line *line = &server->pages.lines[TID_OF((first + i) % ENTRIES)];

		*entry = (first + i) % ENTRIES;
		if ((entries_met(server) & BIT(*entry)) != 0 &&
			(line->state == LINE_DEAD || (line->key == KEY_OF(*entry) && row_is_dead(server, line))))
			return true;
	}
	return false;
}

static bool
is_line_dead(struct actor *self, unsigned int entry)
{
	const struct line *line = &self->server->pages.lines[TID_OF(entry)];

	step(self, "J2-kill: looks at the line pointer");
	return line->state == LINE_DEAD || (FAULT(prune) && row_is_dead(self->server, line) && line->key == KEY_OF(entry));
}

/* J2-kill where no tree answers, under the removers' lock: the journal alone, and no flush. */
static void
kill_by_journal(struct actor *self, unsigned int entry)
{
	bool found = false;
	bool dead = false;

	step(self, "J15-pin: pins");
	self->pinned = true;
	staging_write_out_all(self);
	if (FAULT(killfirst))
		dead = is_line_dead(self, entry);
	if (carried_look(self, entry, &found) && found)
	{
		if (!FAULT(killfirst))
			dead = is_line_dead(self, entry);
		if (dead)
			(void) append(self, (struct op){.entry = (uint8_t) entry, .removes = true}, false);
	}
	self->pinned = false;
}

/* J2-kill in a tree, under the removers' lock. */
static void
kill_in_tree(struct actor *self, int tree, unsigned int entry)
{
	entries all;

	step(self, "J2-kill: looks whether the entry is in the tree");
	if (!tree_entries(self->server, tree_at(self->server, tree), &all) || ((all & BIT(entry)) == 0 && !FAULT(killlook)))
		return;
	if (is_line_dead(self, entry) && !carry_out(self, tree, BIT(entry), false))
		actor_abort(self);
}

void
worker_run(struct actor *self)
{
	struct server *server = self->server;
	struct record record = {.kind = RECORD_PRUNE};
	unsigned int entry;
	int tree;

	if (FAULT(keptlooks))
		keep_give_back(self);
	if (!meet_dead_row(self, &entry))
		return;
	step(self, "J2-kill: prunes the row's page");
	record.tid = (uint8_t) TID_OF(entry);
	if (row_is_dead(server, &server->pages.lines[TID_OF(entry)]) && !FAULT(prune))
		(void) wal_insert(&record);
	tree = begin_removal(self, !FAULT(killlock));
	if (tree != NONE)
		kill_in_tree(self, tree, entry);
	else if (world.plan.carries)
		kill_by_journal(self, entry);
	unlock(self, LOCK_REMOVERS);
}

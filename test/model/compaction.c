/*
 * compaction.c
 *	  A new run: J3-run, J5-cut, J5-switch, J5-base.
 */
#include "model/world.h"

/* J3-run: an id that was never used in this file. */
static unsigned int
claim(struct actor *self)
{
	struct record record = {.kind = RECORD_CLAIM};
	const struct meta *meta = &self->server->pages.meta;
	unsigned int run;

	step_lock(self, LOCK_PAGE + 0, "J3-run: claims an id");
	run = meta->claimed + 1u;
	if (FAULT(runid))
	{
		for (run = 1; run == meta->run || run == meta->previous;)
			run++;
	}
	record.run = (uint8_t) run;
	(void) wal_insert(&record);
	unlock(self, LOCK_PAGE + 0);
	return run;
}

/* The tree that answers, a byte string at a time; false: it is not the index's tree any more. */
static bool
scan_tree(struct actor *self, int tree, entries *content)
{
	*content = 0;
	for (unsigned int entry = 0; entry < ENTRIES; entry++)
	{
		entries all;

		if (TID_OF(entry) >= world.plan.tids || KEY_OF(entry) >= world.plan.keys)
			continue;
		step(self, "J5-cut: scans the tree");
		if (!tree_entries(self->server, tree_at(self->server, tree), &all))
			return false;
		*content |= all & BIT(entry);
	}
	return !tree_at(self->server, tree)->lost;
}

/* J5-cut, of a run that is written from the tree. */
static bool
cut_and_scan(struct actor *self, struct place *cut, entries *content, unsigned int *marks)
{
	struct server *server = self->server;
	int tree;

	step(self, "J5-cut: opens the index");
	self->changes = server->changes;
	self->open = false;
	tree = self->tree = server->reads;
	if (tree == NONE || (FAULT(scanfirst) && !scan_tree(self, tree, content)))
		return false;
	if (!FAULT(cutlock))
		step_lock(self, LOCK_REMOVERS, "J5-cut: takes the removers' lock");
	step(self, "J5-cut: looks at the word 'removal under way'");
	if (tree_at(server, tree)->under_way && !FAULT(underway) && !FAULT(cutlock))
		return false;
	*marks = step_read_meta(self, "J5-cut: counts the marks").marks;
	append_lock_tail(self);
	step(self, "J5-cut: takes the place of the cut");
	*cut = self->tail;
	cut->offset = server->pages.blocks[cut->page.block].count;
	unlock(self, LOCK_PAGE + cut->page.block);
	unlock(self, LOCK_REMOVERS);
	return FAULT(scanfirst) || scan_tree(self, tree, content);
}

/* J3-free: the removers' lock is taken before pages are let go. */
static void
lock_out_loaders(struct actor *self)
{
	if (!FAULT(letgo))
		step_lock(self, LOCK_REMOVERS, "J3-free: takes the removers' lock to let go pages");
}

static void
let_in_loaders(struct actor *self)
{
	if (!FAULT(letgo))
		unlock(self, LOCK_REMOVERS);
}

/* J3-free: what the chain had before the cut, and the run before. */
static void
release(struct actor *self)
{
	struct record record = {.kind = RECORD_RELEASE};

	lock_out_loaders(self);
	step_lock(self, LOCK_PAGE + 0, "J3-free: lets go the chain before the cut");
	if (!view_has_run(self->server, self->server->pages.meta.previous) || FAULT(pagedrelease))
		(void) wal_insert(&record);
	unlock(self, LOCK_PAGE + 0);
	let_in_loaders(self);
}

/* J5-switch.  False: the run was given up. */
static bool
switch_runs(struct actor *self, struct record *record, unsigned int marks)
{
	struct server *server = self->server;
	bool locks = one_in(2);
	bool good = true;

	if (locks)
		lock_out_loaders(self);
	step_lock(self, LOCK_PAGE + 0, "J5-switch: switches to the run, under the metapage's lock");
	/* The counter would not do instead: it is raised after the tree was given up. */
	if (record->from_tree && !FAULT(switchcheck))
		good = FAULT(switchcounter) ? self->changes == server->changes
									: self->tree == server->reads && server->named == NONE;
	if (record->from_tree && !FAULT(switchmarks))
		good = good && marks == server->pages.meta.marks;
	/* J13-pages: the index comes to a view of the current run first. */
	good = good && (!view_has_run(server, server->pages.meta.previous) || FAULT(pagedswitch));
	record->releases = locks && (!view_has_run(server, server->pages.meta.run) || FAULT(pagedrelease));
	if (good)
		(void) wal_insert(record);
	unlock(self, LOCK_PAGE + 0);
	if (locks)
		let_in_loaders(self);
	return good;
}

/* What a run is written from.  False: it is not the index's tree any more. */
static bool
read_all(struct actor *self, const struct meta *meta, bool from_tree, struct reading *reading, unsigned int *marks)
{
	if (from_tree)
		return cut_and_scan(self, &reading->cut, &reading->content, marks);
	/* Up to any place: what the journal says before and after it does not depend on it. */
	if (!keep_read(self, meta, NULL, reading))
		violation("J3-free: a compaction was left behind");
	if (one_in(2))
	{
		struct place end = reading->cut;

		if (!keep_read(self, meta, &end, reading))
			violation("J3-free: a compaction was left behind");
		reading->cut = end;
	}
	keep_choose(meta, reading);
	return true;
}

/* J3-run, J5. */
static void
write_run(struct actor *self)
{
	struct record record = {.kind = RECORD_SWITCH};
	struct reading reading = {.content = 0};
	struct filling filling;
	unsigned int marks = 0;
	struct meta meta;

	meta = step_read_meta(self, "reads the metapage");
	record.from_tree = meta.stale || world.plan.runs_from_tree;
	record.run = (uint8_t) claim(self);
	if (world.plan.keeps && !one_in(4))
		keep_give_back(self);
	filter_begin(self, &meta, &filling);
	if (!read_all(self, &meta, record.from_tree, &reading, &marks))
		actor_abort(self);
	record.cut = reading.cut;
	record.kept = reading.kept == 0 || FAULT(keptleast) ? record.run : meta.kept;
	record.pages = keep_write(self, &meta, record.run, &reading, &filling);
	if (switch_runs(self, &record, marks))
		filter_publish(self, &filling, record.run);
	filter_release(self->server, self);
	if (world.plan.answers && one_in(2))
		answers_get_memory(self);
	if (world.plan.keeps && one_in(2))
		keep_give_back(self);
}

/* J13-merge. */
static bool
merges_pages(void)
{
	unsigned int often = world.plan.merges ? 7 : 4; /* of 8 */

	return world.plan.paged && (!world.plan.keeps || FAULT(keptmerged)) && (!world.plan.lean || FAULT(leanmerge)) &&
		   below(8) < often;
}

void
compaction_run(struct actor *self)
{
	step_lock(self, LOCK_COMPACTION, "takes the lock of compactions");
	if (one_in(4))
	{
		release(self);
		if (world.plan.keeps && one_in(2))
			keep_give_back(self);
	}
	else if (merges_pages())
		merge_run(self);
	else
		write_run(self);
	unlock(self, LOCK_COMPACTION);
}

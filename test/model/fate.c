/*
 * fate.c
 *	  What happens to servers: WAL reaches the disk, a standby replays it, crashes, promotion.
 */
#include <string.h>

#include "model/world.h"

static const struct region fresh_region;

static void
forget_region(struct server *server)
{
	server->region = fresh_region;
	server->region.number = ++world.regions;
}

/* Its processes end, and shared memory with them. */
static void
stop_server(struct server *server)
{
	for (int i = 0; i < ACTORS; i++)
	{
		if (world.actors[i].server == server)
			actor_stop(&world.actors[i]);
	}
	for (int i = 0; i < LOCKS; i++)
		smart_assert(server->holder[i] == NULL);
	server->running = 0;
	server->adds = NONE;
	server->reads = NONE;
	server->fed = NONE;
	server->behind = NONE;
	server->own = NONE;
	for (int i = 0; i < ACTORS; i++)
		server->foretold[i] = NONE;
	server->delta_count = 0;
	memset(server->areas, 0, sizeof(server->areas));
	if (world.plan.answers ? !FAULT(answercrash) : !FAULT(bloomcrash))
		answers_begin(server);
	move_end(server);
}

/* A standby that begins with a copy of the primary's pages of some moment. */
static void
make_standby(struct server *server)
{
	stop_server(server);
	forget_region(server);
	server->recovery = true;
	server->changes = 0;
	server->replayed = below(world.flushed + 1);
	wal_replay_all(&server->pages, server->replayed);
	world.standby = server;
	/* As if its worker had loaded a tree. */
	if (!server->pages.meta.stale && one_in(2))
	{
		struct place end = server->pages.meta.tail;
		struct tree *tree = &server->region.trees[server->region.tree_count];

		end.offset = server->pages.blocks[end.page.block].count;
		*tree = (struct tree){.base = server->pages.meta.base, .place = end};
		(void) journal_content(&server->pages, &tree->content);
		if (world.plan.marks && !FAULT(markfed))
			*tree = view_make(&server->pages.meta, &server->pages.meta.first);
		tree->fed = true;
		tree->follows = tree->whole = world.plan.carries;
		tree->losses = server->pages.meta.marks;
		server->fed = server->region.tree_count++;
	}
}

void
fate_begin(void)
{
	struct pages *start = &world.start;
	struct meta *meta = &start->meta;
	struct page *chain = &start->blocks[3];
	struct server *primary = &world.servers[0];
	int tree = 0;

	*start = (struct pages){.committed = 1u << 1 | 1u << 2};
	*meta = (struct meta){.run = 1, .kept = 1, .claimed = 1, .base = 1, .previous_first = 1};
	*chain = (struct page){.kind = PAGE_LOG, .id = 1, .use = 3};
	meta->tail = meta->first = (struct place){.page = {.block = 3, .use = 3}, .serial = 1};
	world.xids = 2;
	world.uses = 3;
	for (unsigned int tid = 0; tid < world.plan.tids; tid++)
	{
		struct page *page = &start->blocks[1];
		unsigned int key = below(world.plan.keys);

		if (one_in(2) || (world.plan.unique && tid != key))
			continue;
		start->lines[tid] =
			(struct line){.state = LINE_NORMAL, .key = (uint8_t) key, .xmin = 1, .xmax = one_in(3) ? 2 : 0};
		*page = (struct page){.kind = PAGE_RUN,
							  .id = 1,
							  .content = page->content | BIT(ENTRY(key, tid)),
							  .range = BIT(ENTRIES) - 1,
							  .merged = meta->first,
							  .use = 1};
		meta->pages = (struct run_pages){.count = 1, .page = {{.block = 1, .use = 1}}};
	}
	world.primary = primary;
	stop_server(primary);
	forget_region(primary);
	primary->recovery = false;
	primary->changes = 0;
	primary->region.tree_count = 1;
	primary->region.trees[tree] = (struct tree){.content = start->blocks[1].content, .whole = true, .base = 1};
	/* Or it has just lost its tree. */
	primary->region.trees[tree].given_up = one_in(4) || world.plan.carries;
	if (!primary->region.trees[tree].given_up)
		primary->adds = primary->reads = primary->own = tree;
	meta->tree = tree_name(primary, tree);
	primary->pages = *start;
	world.standby = NULL;
	if (world.plan.fate[FATE_REPLAY] != 0)
		make_standby(&world.servers[1]);
}

/* ---- crashes ---- */

/* J4-kept: may this tree be used again? */
static bool
is_kept(const struct server *server, int number)
{
	const struct tree *tree = &server->region.trees[number];

	if (tree->lost || tree->given_up || tree->fed || tree->follows || (!tree->whole && !FAULT(keptpart)) ||
		(tree->under_way && !FAULT(underway)) || (tree->behind && !FAULT(behindkept)))
		return false;
	return !world.plan.kept_by_name || server->pages.meta.tree == tree_name(server, number);
}

/* J2-undo, with the end of WAL. */
static void
undo_lost_rows(struct region *region, unsigned int end)
{
	smart_assert(end >= region->durable);
	for (int i = 0; i < region->undo_count && !FAULT(undo); i++)
	{
		if (region->undo[i].position > end)
			region->trees[region->undo[i].tree].content &= (entries) ~BIT(region->undo[i].entry);
	}
	region->undo_count = 0;
}

/* A power loss.  What lies on memory nodes is still there, of which the followers alone are used again. */
static void
lose_memory(struct server *server)
{
	if (!world.plan.carries)
	{
		forget_region(server);
		return;
	}
	for (int i = 0; i < server->region.tree_count; i++)
	{
		if (!server->region.trees[i].follows)
			server->region.trees[i] = (struct tree){.lost = true};
	}
}

/* As drafted, no add is cut in two, and no WAL is lost. */
static bool
may_crash(void)
{
	if (!world.settings.drafted)
		return true;
	wal_flush();
	return world.actors[WRITER_1].between == 0 && world.actors[WRITER_2].between == 0;
}

static void
crash(bool power_loss)
{
	struct server *server = world.primary;
	struct region *region = &server->region;
	unsigned int end;
	int kept = NONE;

	if (!may_crash())
		return;
	end = dice_between(&world.dice, world.flushed, world.inserted);
	trace(power_loss ? "power loss" : "crash", "");
	stop_server(server);
	world.inserted = world.flushed = end;
	wal_replay_all(&server->pages, end);
	if (power_loss)
		lose_memory(server);
	undo_lost_rows(region, end);
	region->durable = end;
	for (int i = 0; i < region->tree_count; i++)
	{
		if (is_kept(server, i))
			kept = i;
	}
	/* The others are dropped. */
	for (int i = 0; i < region->tree_count; i++)
		region->trees[i].given_up = region->trees[i].follows ? region->trees[i].given_up : i != kept;
	server->adds = server->reads = server->own = kept;
}

/* ---- the standby ---- */

static void
replay(struct server *server, unsigned int end)
{
	while (server->replayed < end)
	{
		const struct record *record = &world.wal[server->replayed];

		for (int i = 0; i < ACTORS && record->kind == RECORD_PRUNE; i++)
		{
			struct actor *actor = &world.actors[i];

			/* Heap's own conflict: redo waits until the snapshot is gone. */
			if (actor->server == server && actor->looks &&
				row_is_visible(&server->pages.lines[record->tid], actor->snapshot))
				actor_stop(actor);
		}
		wal_redo(&server->pages, record);
		server->replayed++;
	}
}

static void
promote(void)
{
	struct server *server = world.standby;
	struct server *older = world.primary;

	if (!may_crash())
		return;
	trace("promotion", "");
	replay(server, world.settings.drafted ? world.flushed : dice_between(&world.dice, server->replayed, world.flushed));
	world.inserted = world.flushed = server->replayed;
	server->recovery = false;
	world.primary = server;
	make_standby(older);
}

static void
lose_tree(struct server *server)
{
	int number = server->reads != NONE ? server->reads : server->adds;

	if (number == NONE && world.plan.carries)
		number = follower_find(server, &server->pages.meta);
	if (server->also != NONE && one_in(3))
		number = server->also;
	if (number == NONE)
		number = server->behind;
	if (number == NONE)
		return;
	trace("a tree's memory is lost", "");
	tree_at(server, number)->lost = true;
	tree_at(server, number)->content = 0;
	tree_at(server, number)->run = 0;
}

void
fate_happen(enum fate fate)
{
	struct server *standby = world.standby;

	if (standby == NULL && (fate == FATE_REPLAY || fate == FATE_RESTART_STANDBY || fate == FATE_PROMOTE))
		return;
	switch (fate)
	{
		case FATE_FLUSH:
			trace("WAL", "is flushed");
			wal_flush();
			break;
		case FATE_REPLAY:
			trace("the standby", "replays");
			replay(standby, dice_between(&world.dice, standby->replayed, world.flushed));
			break;
		case FATE_LOSE_TREE:
			lose_tree(world.primary);
			break;
		case FATE_RESTART_STANDBY:
			trace("the standby", "starts again");
			stop_server(standby);
			forget_region(standby);
			break;
		case FATE_CRASH:
		case FATE_POWER_LOSS:
			crash(fate == FATE_POWER_LOSS);
			break;
		default:
			smart_assert(fate == FATE_PROMOTE);
			promote();
			break;
	}
}

/*
 * wal.c
 *	  WAL as a sequence of records, and what redo of each does to pages.
 *
 * A record and its changes are one step, since the pages that it concerns are locked together, also in redo.  So the
 * pages of a server are at any moment what redo of the records up to one position makes of the first ones.
 */
#include <string.h>

#include "model/world.h"

unsigned int
wal_insert(const struct record *record)
{
	struct record *mine = &world.wal[world.inserted];

	smart_assert(world.inserted < RECORDS_MAX && world.primary != NULL);
	*mine = *record;
	if (mine->kind == RECORD_LINK || mine->kind == RECORD_RUN_PAGE)
		mine->use = ++world.uses;
	world.inserted++;
	wal_redo(&world.primary->pages, mine);
	if (world.inserted == RECORDS_MAX)
		world.exhausted = true;
	return world.inserted;
}

void
wal_flush(void)
{
	world.flushed = world.inserted;
	if (world.primary->region.durable < world.flushed)
		world.primary->region.durable = world.flushed;
}

static void
redo_line(struct pages *pages, const struct record *record)
{
	struct line *line = &pages->lines[record->tid];

	switch (record->kind)
	{
		case RECORD_INSERT:
			smart_assert(line->state == LINE_UNUSED);
			*line = (struct line){.state = LINE_NORMAL, .key = record->key, .xmin = record->xid};
			break;
		case RECORD_DELETE:
			smart_assert(line->state == LINE_NORMAL);
			line->xmax = record->xid;
			break;
		case RECORD_PRUNE:
			smart_assert(line->state == LINE_NORMAL);
			line->state = LINE_DEAD;
			break;
		default:
			smart_assert(record->kind == RECORD_FREE && line->state == LINE_DEAD);
			line->state = LINE_UNUSED;
			break;
	}
}

/* The chain. */
static void
redo_log(struct pages *pages, const struct record *record)
{
	struct page *page = &pages->blocks[record->block];
	struct meta *meta = &pages->meta;

	if (record->kind == RECORD_APPEND)
	{
		if (page->kind != PAGE_LOG || page->count == OPS_PER_PAGE)
		{
			violation("J3: an operation was written to page %d, which is not the chain's tail", record->block);
			return;
		}
		page->ops[page->count++] = record->op;
		return;
	}
	*page = (struct page){.kind = PAGE_LOG,
						  .id = (uint8_t) (meta->tail.serial + 1),
						  .count = 1,
						  .ops = {record->op},
						  .use = record->use};
	pages->blocks[record->tail].next = (struct link){.block = record->block, .use = record->use};
	meta->tail = (struct place){.page = pages->blocks[record->tail].next, .serial = page->id};
}

static void
redo_run(struct pages *pages, const struct record *record)
{
	struct meta *meta = &pages->meta;

	if (record->kind == RECORD_RUN_PAGE)
	{
		pages->blocks[record->block] = (struct page){.kind = PAGE_RUN,
													 .id = record->run,
													 .content = record->content,
													 .range = record->range,
													 .merged = record->cut,
													 .use = record->use};
		return;
	}
	if (record->kind == RECORD_MARK)
	{
		pages->blocks[record->block].dead |= BIT(record->op.entry);
		return;
	}
	if (record->kind == RECORD_REWRITE)
	{
		struct page *page = &pages->blocks[record->block];

		page->content = record->content;
		page->dead = 0;
		page->merged = record->cut;
		return;
	}
	if (record->kind == RECORD_GIVE_BACK)
	{
		pages->blocks[record->block] = (struct page){.kind = PAGE_NEW};
		return;
	}
	if (record->kind == RECORD_CUT)
	{
		meta->first = record->cut;
		return;
	}
	if (record->kind == RECORD_CLAIM)
	{
		meta->claimed = record->run;
		return;
	}
	if (record->kind == RECORD_RELEASE)
	{
		meta->previous = 0;
		meta->previous_first = meta->first.serial;
		return;
	}
	meta->before = meta->run;
	meta->before_first = meta->first.serial;
	meta->previous = record->releases ? 0 : meta->run;
	meta->previous_first = meta->first.serial;
	meta->run = record->run;
	meta->pages = record->pages;
	meta->previous_kept = meta->kept;
	meta->kept = record->kept;
	meta->first = record->cut;
	if (record->from_tree)
	{
		meta->base = record->run;
		meta->stale = false;
	}
}

void
wal_redo(struct pages *pages, const struct record *record)
{
	switch (record->kind)
	{
		case RECORD_COMMIT:
			pages->committed |= UINT64_C(1) << record->xid;
			break;
		case RECORD_APPEND:
		case RECORD_LINK:
			redo_log(pages, record);
			break;
		case RECORD_CLAIM:
		case RECORD_RUN_PAGE:
		case RECORD_MARK:
		case RECORD_REWRITE:
		case RECORD_CUT:
		case RECORD_SWITCH:
		case RECORD_RELEASE:
		case RECORD_GIVE_BACK:
			redo_run(pages, record);
			break;
		case RECORD_NAME:
			pages->meta.tree = record->tree;
			break;
		case RECORD_STALE:
			pages->meta.stale = true;
			pages->meta.marks++;
			break;
		default:
			redo_line(pages, record);
			break;
	}
}

void
wal_replay_all(struct pages *pages, unsigned int end)
{
	smart_assert(end <= world.inserted);
	*pages = world.start;
	for (unsigned int i = 0; i < end; i++)
		wal_redo(pages, &world.wal[i]);
}

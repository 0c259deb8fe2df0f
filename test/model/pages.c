/*
 * pages.c
 *	  What pages say: which may be used again, what the journal holds, which rows a snapshot sees.
 */
#include "model/world.h"

/* J3-free. */
bool
page_is_free(const struct meta *meta, const struct page *page, unsigned int own)
{
	if (page->kind == PAGE_NEW)
		return true;
	if (page->kind == PAGE_LOG)
		return page->id < (FAULT(early) ? meta->first.serial : meta->previous_first);
	smart_assert(page->kind == PAGE_RUN);
	if (page->id <= meta->run && FAULT(keptfree))
		return page->id != meta->run && page->id != meta->previous;
	if (page->id <= meta->run)
		return page->id < (meta->previous != 0 && !FAULT(early) ? meta->previous_kept : meta->kept);
	if (FAULT(newer))
		return page->id != own;
	return own != 0 && page->id != own;
}

bool
page_is_of_run(const struct page *page, unsigned int run, unsigned int kept)
{
	return page->kind == PAGE_RUN && page->id >= kept && page->id <= run;
}

bool
journal_content(const struct pages *pages, entries *content)
{
	const struct meta *meta = &pages->meta;
	const struct page *page;
	struct link link;
	unsigned int serial = meta->first.serial;
	unsigned int offset = meta->first.offset;

	*content = 0;
	for (unsigned int i = 0; i < meta->pages.count; i++)
	{
		link = meta->pages.page[i];
		page = &pages->blocks[link.block];
		if (page->kind != PAGE_RUN || page->use != link.use)
			return false;
		*content |= page->content & (entries) ~page->dead;
	}
	for (link = meta->first.page; link.block != 0; link = page->next)
	{
		page = &pages->blocks[link.block];
		if (page->kind != PAGE_LOG || page->use != link.use || page->id != serial || page->count < offset)
			return false;
		for (; offset < page->count; offset++)
		{
			if (page->ops[offset].removes)
				*content &= (entries) ~BIT(page->ops[offset].entry);
			else
				*content |= BIT(page->ops[offset].entry);
		}
		offset = 0;
		serial++;
	}
	return true;
}

static bool
has(uint64_t transactions, unsigned int xid)
{
	return (transactions >> xid & 1) != 0;
}

bool
row_is_visible(const struct line *line, uint64_t snapshot)
{
	return line->state == LINE_NORMAL && has(snapshot, line->xmin) && !(line->xmax != 0 && has(snapshot, line->xmax));
}

bool
row_is_committed(const struct server *server, const struct line *line)
{
	return line->state == LINE_NORMAL && has(server->pages.committed, line->xmin);
}

bool
row_is_dead(const struct server *server, const struct line *line)
{
	uint64_t over = ~server->running;
	uint64_t committed = server->pages.committed & over;

	if (line->state != LINE_NORMAL)
		return false;
	if (has(over, line->xmin) && !has(committed, line->xmin))
		return true;
	if (line->xmax == 0 || !has(committed, line->xmax))
		return false;
	for (int i = 0; i < ACTORS; i++)
	{
		const struct actor *actor = &world.actors[i];

		if (actor->looks && actor->server == server && row_is_visible(line, actor->snapshot))
			return false;
	}
	return true;
}

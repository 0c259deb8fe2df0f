/*
 * walk.c
 *	  J3-walk: reading run and chain, one page at a time, while others write; J6-apply.
 */
#include "model/world.h"

bool
place_is_behind(const struct place *place, const struct place *other)
{
	return place->serial > other->serial || (place->serial == other->serial && place->offset >= other->offset);
}

void
check_use(const struct page *page, const struct link *link)
{
	if (page->use != link->use)
		violation("J3-walk: block %d was walked, which is used for something else by now", link->block);
}

/*
 * A walker was left behind.  Never within two switches, unless pages were let go: neither from the current run nor from the
 * one before, nor from a chain that belongs to one of them.  And nothing is let go while a loader of the primary reads.
 */
static bool
left_behind(struct actor *self, unsigned int run, unsigned int serial)
{
	const struct meta *meta = &self->server->pages.meta;

	if (run != 0 ? run == meta->run || run == meta->previous : serial >= meta->previous_first)
		violation("J3-free: a page of a run or chain that may be read is gone");
	/*
	 * A mover takes that lock when it has read the most already; and a standby's tree that is promoted may begin where
	 * pages were let go long before.
	 */
	if (!self->server->recovery && self->server->holder[LOCK_REMOVERS] == self && self != &world.actors[MOVER] &&
		(run != 0 ? run == meta->run || run == meta->before
				  : serial >= meta->before_first && serial >= self->kept_first))
		violation("J3-free: pages were let go that a loader of the primary reads");
	trace(self->name, "was left behind");
	return false;
}

/* One operation after the other, in a set of entries. */
static void
take_op(entries *content, const struct op *op)
{
	if (op->removes)
		*content &= (entries) ~BIT(op->entry);
	else
		*content |= BIT(op->entry);
}

bool
walk_run(struct actor *self, const struct meta *meta, struct page pages[ENTRIES])
{
	for (unsigned int i = 0; i < meta->pages.count; i++)
	{
		const struct link *link = &meta->pages.page[i];

		pages[i] = step_read(self, link->block, "reads a page of the run");
		if (!page_is_of_run(&pages[i], meta->run, meta->kept) && !FAULT(runpage))
			return left_behind(self, meta->run, 0);
		check_use(&pages[i], link);
	}
	return true;
}

bool
walk(struct actor *self, const struct meta *meta, const struct place *end, entries *content, struct place *place)
{
	struct page pages[ENTRIES];
	entries added;
	entries removed;

	*content = 0;
	if (!walk_run(self, meta, pages))
		return false;
	for (unsigned int i = 0; i < meta->pages.count; i++)
		*content |= pages[i].content & (entries) ~pages[i].dead;
	*place = meta->first;
	if (!walk_chain(self, end, &added, &removed, place))
		return false;
	*content = (*content & (entries) ~removed) | added;
	return true;
}

bool
walk_chain(struct actor *self, const struct place *end, entries *added, entries *removed, struct place *place)
{
	*added = *removed = 0;
	while (end == NULL || !place_is_behind(place, end))
	{
		struct page page = step_read(self, place->page.block, "reads a page of the chain");

		if ((page.kind != PAGE_LOG || page.id != place->serial) && !FAULT(serial))
			return left_behind(self, 0, place->serial);
		check_use(&page, &place->page);
		while (place->offset < page.count && (end == NULL || !place_is_behind(place, end)))
		{
			const struct op *op = &page.ops[place->offset++];

			take_op(added, op);
			take_op(removed, &(struct op){.entry = op->entry, .removes = !op->removes});
		}
		if (page.next.block == 0)
			break;
		if (end == NULL || !place_is_behind(place, end))
			*place = (struct place){.page = page.next, .serial = (uint8_t) (place->serial + 1)};
	}
	return true;
}

/* J15-promoted: what was read may be a new primary's, whose WAL is not flushed by who replays it. */
static void
flush_after_promotion(struct actor *self, const struct tree *tree)
{
	if (!tree->follows || self->server->recovery || FAULT(carrypromoted))
		return;
	step(self, "J15-promoted: flushes WAL");
	wal_flush();
}

/* J6-apply: some of the page's operations, the last one of each entry, and then the place. */
static void
apply_piece(struct actor *self, struct tree *tree, const struct page *page)
{
	struct place place = tree->place;
	unsigned int offset = place.offset;

	place.offset = (uint8_t) (offset + 1 + below(page->count - offset));
	flush_after_promotion(self, tree);
	if (FAULT(placefirst))
		tree->place = place;
	for (; offset < place.offset; offset++)
	{
		bool last = true;

		for (unsigned int i = offset + 1; i < place.offset; i++)
			last = last && page->ops[i].entry != page->ops[offset].entry;
		if (!last)
			continue;
		step(self, page->ops[offset].removes ? "J6-apply: removes an entry" : "J6-apply: adds an entry");
		tree_carry_out(self, tree, &page->ops[offset]);
	}
	step(self, "J6-apply: stores the place");
	tree->place = place;
}

bool
apply(struct actor *self, struct tree *tree, const struct place *end)
{
	while (end == NULL || !place_is_behind(&tree->place, end))
	{
		struct page page = step_read(self, tree->place.page.block, "J6-apply: reads a page of the chain");

		if ((page.kind != PAGE_LOG || page.id != tree->place.serial) && !FAULT(serial))
			return left_behind(self, 0, tree->place.serial);
		check_use(&page, &tree->place.page);
		if (tree->place.offset < page.count)
			apply_piece(self, tree, &page);
		else if (page.next.block != 0)
			tree->place = (struct place){.page = page.next, .serial = (uint8_t) (tree->place.serial + 1)};
		else
			break;
	}
	return true;
}

/*
 * carried.c
 *	  A query of an index that has no tree: from the follower or the run's pages, and from the delta, or the chain itself.
 *	  J13-chain, J15-read, J15-ahead, J15-pin, J15-lean, J15-purge.
 */
#include "model/world.h"

#define RENEWALS_MAX      10 /* as often runs may be switched faster than a delta is made */
#define UNANSWERED_ONE_IN 16 /* looks into a follower that do not come back, although it is there */

/* The last operation on each entry, of a delta or of a chain; it counts. */
struct words
{
	entries added;
	entries removed;
};

struct view
{
	struct meta meta;    /* of the run */
	unsigned int number; /* the run's (J17) */
	struct tree *delta;  /* NULL: there is none yet */
	bool by_chain;       /* the chain is read in its place, */
	bool chain_read;     /* and has been, */
	struct words chain;  /* with this result, */
	entries part;        /* of these entries: the beginning of the range */
	int follower;        /* NONE: the base is the run */
	bool whole;          /* it needs no delta */
	bool alone;          /* the base is to be the run */
	bool behind;         /* the view has to be brought up to date before it is read */
	bool ahead;          /* some of the follower was read ahead, */
	entries read_ahead;  /* this */
};

/* Does the chain end at the follower's place, as it is now? */
static bool
has_all(struct actor *self, int number)
{
	struct meta meta = step_read_meta(self, "J15-read: reads the metapage again");
	const struct tree *tree = tree_at(self->server, number);
	struct place place;
	struct page page;

	step(self, "J15-read: looks at the follower's place");
	if (!follower_is_known(tree, &meta) || (!follower_has_run(tree, &meta) && !FAULT(carrycut)))
		return false;
	if (FAULT(carrywhole))
		return true;
	place = tree->place;
	page = step_read(self, place.page.block, "J15-read: does the chain end there?");
	return page.kind == PAGE_LOG && page.id == place.serial && page.next.block == 0 && page.count == place.offset;
}

static bool
is_usable(const struct server *server, int number, const struct meta *meta)
{
	const struct tree *tree = &server->region.trees[number];

	return follower_is_known(tree, meta) && (follower_has_run(tree, meta) || FAULT(carrycut));
}

static void
take_follower(struct actor *self, struct view *view)
{
	view->follower = NONE;
	if (!view->alone && is_carried())
	{
		step(self, "J15-read: looks for the follower");
		view->follower = follower_find(self->server, &view->meta);
	}
	if (view->follower != NONE && !is_usable(self->server, view->follower, &view->meta))
		view->follower = NONE;
	view->whole = view->follower != NONE && has_all(self, view->follower);
	view->ahead = view->ahead && FAULT(carryrenewed) && view->follower != NONE;
}

/* J15-lean, J15-purge. */
static void
leave_lean(struct actor *self, struct view *view)
{
	if (view->follower == NONE || view->whole || view->delta == NULL)
		return;
	if ((!view->delta->lean || FAULT(leanfollower)) &&
		purge_allows(self, view->delta, tree_at(self->server, view->follower)))
		return;
	view->follower = NONE;
	view->ahead = false;
}

/* False: the index does not answer so any more. */
static bool
take_run(struct actor *self, struct view *view)
{
	view->delta = NULL;
	self->delta = NULL;
	view->by_chain = view->chain_read = false;
	view->whole = false;
	view->behind = false;
	view->meta = step_read_meta(self, "J15-read: reads the metapage");
	if (view->meta.stale || self->server->reads != NONE)
		return false;
	if (world.plan.answers)
		view->number = answers_number(self, view->meta.run);
	take_follower(self, view);
	view->by_chain = !view->whole && one_in(5);
	if (!view->whole && !view->by_chain)
		view->delta = delta_open(self, &view->meta);
	leave_lean(self, view);
	return true;
}

static bool
is_whole(struct actor *self, struct view *view)
{
	bool was_whole = view->whole;

	view->whole = view->follower != NONE && has_all(self, view->follower);
	/* What was read ahead has not all. */
	if (view->whole && !was_whole && !FAULT(carryahead))
		view->ahead = false;
	return view->whole;
}

/* J13-chain: the chain is read once more, unless there is another run. */
static bool
is_of_now(struct actor *self, struct view *view)
{
	struct meta meta = step_read_meta(self, "J13-chain: reads the metapage");

	view->chain_read = false;
	return !meta.stale && meta.run == view->meta.run;
}

/* From now on the view has all that the chain has now; false: as above. */
static bool
catch_up(struct actor *self, struct view *view)
{
	bool done = false;

	for (int i = 0; i < RENEWALS_MAX && !done; i++)
	{
		done = is_whole(self, view) || (view->by_chain && is_of_now(self, view)) ||
			   (view->delta != NULL && delta_catch_up(self, view->delta));
		if (!done && !take_run(self, view))
			return false;
	}
	/* If there is one now, or the one there was cannot be read any more. */
	if (done && !view->whole &&
		(view->follower == NONE ? !one_in(3) : !is_usable(self->server, view->follower, &view->meta)))
		take_follower(self, view);
	leave_lean(self, view);
	return done;
}

/* ---- one entry ---- */

enum looked
{
	LOOKED,
	LOOKED_AGAIN, /* the base is another one */
	LOOKED_BEHIND /* the run's pages have gone */
};

/* The base is to be the run.  Where the follower needed no delta, nobody has brought that up to date. */
static void
leave_follower(struct view *view, bool wrongly)
{
	view->behind = view->behind || (view->whole && !wrongly);
	view->follower = NONE;
	view->alone = true;
	view->whole = false;
	view->ahead = false;
}

/* J17-same, J17-fill.  What the run's pages have of the key, or those who have read them. */
static enum looked
look_at_run(struct actor *self, const struct view *view, unsigned int key, entries *content)
{
	const struct run_pages *pages = &view->meta.pages;

	if (world.plan.answers && answers_ask(self, view->number, key, content))
		return LOOKED;
	*content = 0;
	for (unsigned int i = 0; i < pages->count; i++)
	{
		struct page page = step_read(self, pages->page[i].block, "J15-read: reads a page of the run");

		if (!page_is_of_run(&page, view->meta.run, view->meta.kept))
			return LOOKED_BEHIND;
		*content |= page.content;
	}
	*content &= entries_of_key(key);
	if (world.plan.answers)
		answers_remember(self, view->number, key, *content);
	return LOOKED;
}

/* What the run or the follower says of an entry. */
static enum looked
look_at_base(struct actor *self, struct view *view, unsigned int entry, bool *found)
{
	unsigned int key = KEY_OF(entry);
	enum looked looked;
	struct tree *tree;
	entries content;

	*found = false;
	if (view->follower != NONE)
	{
		step(self, "J15-read: looks into the follower");
		tree = tree_at(self->server, view->follower);
		content = view->ahead ? view->read_ahead : tree->content;
		*found = (content & BIT(entry)) != 0;
		if (FAULT(answerfollower))
			answers_remember(self, view->number, key, content & entries_of_key(key));
		if (view->ahead || (!tree->lost && !one_in(UNANSWERED_ONE_IN)))
			return LOOKED;
		/* The memory node does not answer. */
		leave_follower(view, FAULT(carryleft));
		return LOOKED_AGAIN;
	}
	looked = look_at_run(self, view, key, &content);
	*found = (content & BIT(entry)) != 0;
	return looked;
}

/* What comes later in the chain counts. */
static struct words
join_words(const struct words *earlier, const struct words *later)
{
	return (struct words){.added = (earlier->added & (entries) ~later->removed) | later->added,
						  .removed = (earlier->removed & (entries) ~later->added) | later->removed};
}

/* J13-chain: to the chain's end, in two pieces.  False: left behind. */
static bool
read_chain(struct actor *self, struct view *view)
{
	struct place middle = view->meta.tail;
	struct place place = view->meta.first;
	struct words first;
	struct words second = {.added = 0};

	if (view->chain_read)
		return true;
	if (FAULT(chaincut))
	{
		struct meta meta = step_read_meta(self, "J13-chain: reads the metapage again");

		place = meta.first;
	}
	if (!walk_chain(self, &middle, &first.added, &first.removed, &place) ||
		(!FAULT(chainend) && !walk_chain(self, NULL, &second.added, &second.removed, &place)))
		return false;
	view->chain = FAULT(chainorder) ? join_words(&second, &first) : join_words(&first, &second);
	view->part = (entries) ~(entries) 0;
	if (one_in(4))
		view->part = (entries) (BIT(below(ENTRIES)) - 1);
	view->chain.added &= view->part;
	view->chain.removed &= view->part;
	view->chain_read = true;
	return true;
}

/* J13-chain: what is behind the part waits for the delta.  False: runs have been switched. */
static bool
leave_part(struct actor *self, struct view *view)
{
	view->by_chain = view->chain_read = false;
	view->delta = delta_open(self, &view->meta);
	if (view->delta == NULL || !delta_catch_up(self, view->delta))
		return false;
	/* J15-purge: before there was a pin. */
	view->ahead = false;
	leave_lean(self, view);
	return true;
}

/* False: neither chain nor delta can be read any more. */
static bool
look_at_delta(struct actor *self, struct view *view, unsigned int entry, struct words *words)
{
	if (view->by_chain && !read_chain(self, view))
		return false;
	if (view->by_chain && ((view->part & BIT(entry)) != 0 || FAULT(chainpart)))
	{
		*words = view->chain;
		return true;
	}
	if (view->by_chain && !leave_part(self, view))
		return false;
	step(self, "J15-read: looks into the delta");
	*words = (struct words){.added = view->delta->content, .removed = view->delta->gone};
	return true;
}

/* Either source may be read first: each is, in batches. */
static enum looked
look_once(struct actor *self, struct view *view, unsigned int entry, bool *found)
{
	bool first = one_in(2);
	int follower;
	enum looked looked;
	struct words words = {.added = 0};

	if (view->behind || (view->delta == NULL && !view->by_chain && !view->whole))
		return LOOKED_BEHIND;
	if (first && !view->whole && !look_at_delta(self, view, entry, &words))
		return LOOKED_BEHIND;
	follower = view->follower;
	looked = look_at_base(self, view, entry, found);
	if (looked == LOOKED && !first && !view->whole && !look_at_delta(self, view, entry, &words))
		return LOOKED_BEHIND;
	/* J15-lean: the delta that was waited for does not go with it. */
	if (looked == LOOKED && follower != view->follower)
		return LOOKED_AGAIN;
	if (!view->whole)
		*found = (words.added & BIT(entry)) != 0 || (*found && (words.removed & BIT(entry)) == 0);
	return looked;
}

/* False: the index does not answer so any more. */
static bool
look(struct actor *self, struct view *view, unsigned int entry, bool *found)
{
	enum looked looked;

	while ((looked = look_once(self, view, entry, found)) != LOOKED)
	{
		if (looked == LOOKED_BEHIND && !(take_run(self, view) && catch_up(self, view)))
			return false;
	}
	return true;
}

/* J15-ahead. */
static void
read_ahead(struct actor *self, struct view *view)
{
	const struct tree *tree;

	if (view->follower == NONE || !one_in(2))
		return;
	step(self, "J15-ahead: reads the follower ahead");
	tree = tree_at(self->server, view->follower);
	view->read_ahead = tree->content;
	view->ahead = !tree->lost;
	/* What was read waits for the delta, or for who reads on. */
	if (one_in(2))
		self->stalled_until = world.now + (20u << below(4));
}

static bool
scan(struct actor *self, unsigned int key, unsigned int *met)
{
	struct view view = {.follower = NONE, .alone = one_in(6)};

	if (!take_run(self, &view) || !catch_up(self, &view))
		return false;
	read_ahead(self, &view);
	if (view.ahead && !catch_up(self, &view))
		return false;
	/* Others than those with a snapshot find what was inserted a moment ago, mostly in the delta. */
	if (self->pinned && one_in(2))
		leave_follower(&view, FAULT(carryalone));
	for (unsigned int tid = 0; tid < world.plan.tids; tid++)
	{
		bool found = false;

		if (!look(self, &view, ENTRY(key, tid), &found))
			return false;
		if (found && self->server == world.primary && (self->had & BIT(ENTRY(key, tid))) == 0)
			violation("J15-read: a reader was given an entry that had been removed before (TID %u)", tid);
		if (found)
			*met |= 1u << tid;
	}
	return true;
}

bool
carried_scan(struct actor *self, unsigned int key, unsigned int *met)
{
	bool done;

	self->had = 0;
	self->watches = true;
	done = scan(self, key, met);
	self->delta = NULL;
	self->watches = false;
	return done;
}

void
carried_scan_pinned(struct actor *self, unsigned int key)
{
	const struct server *server = self->server;
	unsigned int met = 0;

	step(self, "J15-pin: pins");
	self->pinned = true;
	step(self, "J15-pin: looks whether the index has a tree");
	if (server->reads == NONE && carried_scan(self, key, &met))
	{
		for (unsigned int tid = 0; tid < world.plan.tids; tid++)
		{
			const struct line *line = &server->pages.lines[tid];

			if ((met >> tid & 1) == 0)
				continue;
			step(self, "fetches a row");
			if (line->state == LINE_UNUSED || (line->state == LINE_NORMAL && line->key != key))
				violation("J15-pin: a pinned reader was led to a TID that is free, or another row's (TID %u)", tid);
		}
	}
	self->pinned = false;
}

bool
carried_look(struct actor *self, unsigned int entry, bool *found)
{
	struct view view = {.follower = NONE, .alone = true};
	bool done = take_run(self, &view) && catch_up(self, &view) && look(self, &view, entry, found);

	self->delta = NULL;
	return done;
}

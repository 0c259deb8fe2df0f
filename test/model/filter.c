/*
 * filter.c
 *	  Filters of keys, in shared memory: which keys no page of a run has.  J16.
 *
 * A Bloom filter says "perhaps" of keys that it does not have, and then the run is read, as without a filter.  Here it has
 * exactly the keys that were added, so it says "absent" as often as one ever may.
 */
#include "model/world.h"

#define ANOTHERS_RUN UINT8_MAX /* a run of another index, whose id is never one of this index's */

static unsigned int
keys_of(entries content)
{
	unsigned int keys = 0;

	for (unsigned int entry = 0; entry < ENTRIES; entry++)
	{
		if ((content & BIT(entry)) != 0)
			keys |= 1u << KEY_OF(entry);
	}
	return keys;
}

static struct filter *
find(struct server *server, unsigned int run)
{
	for (int i = 0; i < FILTERS; i++)
	{
		struct filter *filter = &server->filters[i];

		if (filter->run == run || (FAULT(bloomother) && filter->run != 0))
			return filter;
	}
	return NULL;
}

/* ---- memory ---- */

/*
 * J16-memory: for a filter without a name, which is the caller's until it gets one.  What has an owner is not taken, and
 * there is one more than can be owned by others.
 */
static struct filter *
take_memory(struct actor *self)
{
	struct filter *filter;
	unsigned int i = below(FILTERS);

	step(self, FAULT(bloomclear) ? "J16-memory: clears the bits" : "J16-memory: takes memory, and the name from it");
	while (self->server->filters[i].owner != NULL)
		i = (i + 1) % FILTERS;
	filter = &self->server->filters[i];
	filter->owner = self;
	if (FAULT(bloomclear))
		filter->keys = 0;
	else
		filter->run = 0;
	step(self, "J16-memory: clears the bits");
	filter->keys = 0;
	filter->run = 0;
	return filter;
}

void
neighbour_run(struct actor *self)
{
	struct filter *filter = take_memory(self);

	step(self, "J16-memory: adds another index's keys");
	filter->own = below(1u << KEYS);
	filter->keys |= filter->own;
	step(self, "J16-memory: another index's filter gets its name");
	filter->run = ANOTHERS_RUN;
	filter->owner = NULL;
}

void
filter_release(struct server *server, const struct actor *owner)
{
	for (int i = 0; i < FILTERS; i++)
	{
		if (server->filters[i].owner == owner)
			server->filters[i].owner = NULL;
	}
}

/* ---- who writes a run ---- */

void
filter_begin(struct actor *self, const struct meta *meta, struct filling *filling)
{
	*filling = (struct filling){.before = meta->run};
	if (!world.plan.filters)
		return;
	step(self, "J16-begin: looks for the filter of the run before");
	for (int i = 0; i < FILTERS; i++)
	{
		if (self->server->filters[i].run == meta->run)
			filling->filter = &self->server->filters[i];
	}
	filling->continues = filling->filter != NULL;
	if (!filling->continues)
		filling->filter = take_memory(self);
}

/* Nobody looks whose memory it is by now: more bits do no harm. */
void
filter_add(struct actor *self, struct filling *filling, entries content)
{
	unsigned int keys;

	if (filling->filter == NULL)
		return;
	if (FAULT(bloomlate))
	{
		filling->late |= keys_of(content);
		return;
	}
	if (FAULT(bloomadd) && filling->continues)
		return;
	step(self, "J16-add: adds the keys of a page");
	keys = filling->filter->keys;
	if (FAULT(bloomplain))
		step(self, "J16-add: stores what it has loaded before, and these keys");
	filling->filter->keys = keys | keys_of(content);
}

void
filter_keep(struct actor *self, struct filling *filling, entries content)
{
	if (!filling->continues && !FAULT(bloomkept))
		filter_add(self, filling, content);
}

void
filter_publish(struct actor *self, struct filling *filling, unsigned int run)
{
	struct filter *filter = filling->filter;

	if (filter == NULL)
		return;
	step(self, "J16-name: the filter is the new run's, if it may be");
	if (!filling->continues || filter->run == filling->before || FAULT(bloomgone))
		filter->run = (uint8_t) run;
	filter_release(self->server, self);
	if (!FAULT(bloomlate))
		return;
	step(self, "J16-add: adds the keys of all pages that it has written");
	filter->keys |= filling->late;
}

/* ---- who asks ---- */

/* J16-look: does a filter say that no page of the run has the key? */
static bool
is_absent(struct actor *self, unsigned int run, unsigned int key)
{
	const struct filter *filter;
	unsigned int name;
	bool absent;

	step(self, "J16-look: looks for a filter that has the run's name");
	filter = find(self->server, run);
	if (filter == NULL)
		return false;
	name = filter->run;
	step(self, "J16-look: reads the bits");
	absent = (filter->keys >> key & 1) == 0;
	if (!absent || FAULT(bloomagain))
		return absent;
	step(self, "J16-look: looks at the name again");
	return filter->run == name;
}

/* What the pages of the run of now have. */
static entries
run_content(const struct pages *pages, bool dead)
{
	const struct meta *meta = &pages->meta;
	entries content = 0;

	for (unsigned int i = 0; i < meta->pages.count; i++)
	{
		const struct page *page = &pages->blocks[meta->pages.page[i].block];

		content |= page->content & (dead ? (entries) ~(entries) 0 : (entries) ~page->dead);
	}
	return content;
}

/* The view has the run of now, or it may be of an older one that can still be read, as without a delta (J13-chain). */
static bool
is_of_now(struct actor *self, const struct meta *meta)
{
	return one_in(2) || step_read_meta(self, "J16-same: is the view's run that of now?").run == meta->run;
}

static entries
join(entries run, entries added, entries removed, unsigned int key)
{
	entries all_of_key = (entries) (BIT(TIDS) - 1) << ENTRY(key, 0);

	return ((run & (entries) ~removed) | added) & all_of_key;
}

bool
filter_view(struct actor *self, unsigned int key, entries *content)
{
	bool absent = false;

	for (;;)
	{
		struct meta meta = step_read_meta(self, "J16-same: reads the metapage");
		entries truth = run_content(&self->server->pages, false); /* no step in between; and runs do not change */
		struct page pages[ENTRIES];
		struct place place = meta.first;
		entries run = 0;
		entries added;
		entries removed;

		if (meta.stale)
			return false;
		absent = (absent && FAULT(bloomstays)) || is_absent(self, meta.run, key);
		if (!absent && !walk_run(self, &meta, pages))
			continue;
		for (unsigned int i = 0; i < meta.pages.count && !absent; i++)
			run |= pages[i].content & (entries) ~pages[i].dead;
		if (!walk_chain(self, NULL, &added, &removed, &place) || !is_of_now(self, &meta))
			continue;
		*content = join(run, added, removed, key);
		if (*content != join(truth, added, removed, key))
			violation("J16-same: a unique check finds %#x by the filter, and %#x without it", *content,
					  join(truth, added, removed, key));
		return true;
	}
}

/* ---- after every step ---- */

void
filter_check(const struct server *server)
{
	const struct meta *meta = &server->pages.meta;

	for (int i = 0; i < FILTERS; i++)
	{
		const struct filter *filter = &server->filters[i];
		unsigned int lacks = keys_of(run_content(&server->pages, true)) & ~filter->keys;

		if (filter->run == meta->run && lacks != 0)
			violation("J16-lacks: the filter of run %u lacks keys of it (%#x)", meta->run, lacks);
		if (filter->run == ANOTHERS_RUN && (filter->own & ~filter->keys) != 0)
			violation("J16-lacks: another index's filter lacks keys (%#x)", filter->own & ~filter->keys);
	}
}

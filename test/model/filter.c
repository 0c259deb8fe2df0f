/*
 * filter.c
 *	  Filters of keys, in shared memory: which keys no page of a run has.  J16.
 *
 * A Bloom filter says "perhaps" of keys that it does not have, and then the run is read, as without a filter.  Here it has
 * exactly the keys that were added, so it says "absent" as often as one ever may.
 */
#include <string.h>

#include "model/world.h"

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

/* Those that the filter has. */
static unsigned int
keys_in(const struct filter *filter)
{
	unsigned int keys = filter->words[0];

	for (int i = 1; i < MEMORY_WORDS; i++)
		keys &= filter->words[i];
	return keys;
}

static void
add_keys(struct filter *filter, unsigned int keys)
{
	for (int i = 0; i < MEMORY_WORDS; i++)
		filter->words[i] |= keys;
}

static void
clear(struct filter *filter)
{
	memset(filter->words, 0, sizeof(filter->words));
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
	unsigned int i;

	if (world.plan.answers)
		return answers_take_memory(self);
	i = below(FILTERS);
	step(self, FAULT(bloomclear) ? "J16-memory: clears the bits" : "J16-memory: takes memory, and the name from it");
	while (self->server->filters[i].owner != NULL)
		i = (i + 1) % FILTERS;
	filter = &self->server->filters[i];
	filter->owner = self;
	if (FAULT(bloomclear))
		clear(filter);
	else
		filter->run = 0;
	step(self, "J16-memory: clears the bits");
	clear(filter);
	filter->run = 0;
	return filter;
}

/* Its hashes are others: where answers are remembered the bits may look like any record. */
static void
add_anothers_keys(struct filter *filter)
{
	unsigned int keys = below(1u << KEYS);

	for (int i = 0; i < MEMORY_WORDS; i++)
	{
		filter->own[i] = world.plan.answers ? below(8) : keys;
		filter->words[i] |= filter->own[i];
	}
}

void
neighbour_run(struct actor *self)
{
	struct filter *filter;

	if (world.plan.answers && one_in(3))
	{
		(void) answers_number(self, ANOTHERS_RUN);
		return;
	}
	filter = take_memory(self);
	step(self, "J16-memory: adds another index's keys");
	add_anothers_keys(filter);
	step(self, "J16-memory: another index's filter gets its name");
	filter->run = ANOTHERS_RUN;
	filter->owner = NULL;
	if (!world.plan.answers || one_in(2))
		return;
	step(self, "J17-memory: another index is dropped, and its filter");
	if (filter->run == ANOTHERS_RUN && filter->owner == NULL)
		filter->run = 0;
	answers_get_memory(self);
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
	/* J17-memory: bits that come late would go to records. */
	if (filling->continues && world.plan.answers && !FAULT(answeradder))
		filling->filter->owner = self;
	if (!filling->continues)
		filling->filter = take_memory(self);
}

/* Nobody looks whose memory it is by now: more bits do no harm. */
void
filter_add(struct actor *self, struct filling *filling, entries content)
{
	struct filter before;

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
	before = *filling->filter;
	if (FAULT(bloomplain))
	{
		step(self, "J16-add: stores what it has loaded before, and these keys");
		memcpy(filling->filter->words, before.words, sizeof(before.words));
	}
	add_keys(filling->filter, keys_of(content));
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
	add_keys(filter, filling->late);
}

/* ---- who asks ---- */

bool
filter_is_absent(struct actor *self, unsigned int run, unsigned int key)
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
	absent = (keys_in(filter) >> key & 1) == 0;
	if (!absent || FAULT(bloomagain))
		return absent;
	step(self, "J16-look: looks at the name again");
	return filter->run == name;
}

/* ---- after every step ---- */

void
filter_check(const struct server *server)
{
	const struct meta *meta = &server->pages.meta;

	for (int i = 0; i < FILTERS; i++)
	{
		const struct filter *filter = &server->filters[i];
		unsigned int lacks = keys_of(lookup_run_content(&server->pages, true)) & ~keys_in(filter);

		if (filter->run == meta->run && lacks != 0)
			violation("J16-lacks: the filter of run %u lacks keys of it (%#x)", meta->run, lacks);
		for (int word = 0; word < MEMORY_WORDS && filter->run == ANOTHERS_RUN; word++)
		{
			if ((filter->own[word] & ~filter->words[word]) != 0)
				violation("J16-lacks: another index's filter lacks bits (%#x)",
						  filter->own[word] & ~filter->words[word]);
		}
	}
}

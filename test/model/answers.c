/*
 * answers.c
 *	  What runs have under single keys, remembered in the memory that no filter has.  J17.
 *
 * A set has one record, and the memory of a filter is one set.
 */
#include <string.h>

#include "model/world.h"

void
answers_begin(struct server *server)
{
	memset(server->filters, 0, sizeof(server->filters));
	memset(&server->answers, 0, sizeof(server->answers));
	server->answers.count = FILTERS;
}

/* ---- the lock of memory: an LWLock, whose holder serves no interrupt ---- */

static unsigned int
bit_of(const struct actor *self)
{
	return 1u << (self - world.actors);
}

static void
lock_exclusive(struct actor *self, const char *what)
{
	struct server *server = self->server;

	step(self, what);
	while (server->holder[LOCK_MEMORY] != NULL || server->answers.shares != 0)
		step_wait(self);
	self->waiting = false;
	server->holder[LOCK_MEMORY] = self;
}

/* False: he would have to wait. */
static bool
lock_shared(struct actor *self, const char *what)
{
	struct server *server = self->server;

	step(self, what);
	if (server->holder[LOCK_MEMORY] != NULL)
		return false;
	server->answers.shares |= bit_of(self);
	return true;
}

void
answers_release(struct actor *actor)
{
	if (actor->server == NULL)
		return;
	actor->server->answers.shares &= ~bit_of(actor);
	unlock(actor, LOCK_MEMORY);
}

/* Much may happen between two looks. */
static void
dawdle(struct actor *self)
{
	if (one_in(4))
		self->stalled_until = world.now + (16u << below(4));
}

/* ---- memory ---- */

static bool
is_in_range(const struct answers *answers, unsigned int filter)
{
	return filter >= answers->first && filter < answers->first + answers->count;
}

static bool
is_free(const struct filter *filter)
{
	return filter->run == 0 && filter->owner == NULL;
}

static void
clear(struct actor *self, struct filter *filter)
{
	step(self, "J17-memory: clears the last words");
	filter->words[SET_KEY] = filter->words[SET_CONTENT] = 0;
	step(self, "J17-memory: clears the first words");
	filter->words[SET_VERSION] = filter->words[SET_NUMBER] = 0;
}

/* Who asks takes no lock, and may load one before and the other one afterwards. */
static void
store_range(struct actor *self, unsigned int first, unsigned int count)
{
	struct answers *answers = &self->server->answers;

	if (answers->first == first && answers->count == count)
		return;
	step(self, "J17-memory: the range is being changed");
	answers->version++;
	step(self, "J17-memory: stores where the range begins");
	answers->first = first;
	step(self, "J17-memory: stores how long the range is");
	answers->count = count;
	step(self, "J17-memory: the range is changed");
	answers->version++;
}

/* The longest piece that no filter has. */
static unsigned int
find_range(const struct server *server, unsigned int *first)
{
	unsigned int longest = 0;
	unsigned int count = 0;

	*first = 0;
	for (unsigned int i = 0; i < FILTERS; i++)
	{
		count = is_free(&server->filters[i]) ? count + 1 : 0;
		if (count <= longest)
			continue;
		longest = count;
		*first = i + 1 - count;
	}
	return longest;
}

/* With the lock held: the range is what no filter has. */
static void
set_range(struct actor *self)
{
	struct server *server = self->server;
	unsigned int first;
	unsigned int count = find_range(server, &first);

	for (unsigned int i = first; i < first + count && !FAULT(answerbits); i++)
	{
		if (!is_in_range(&server->answers, i))
			clear(self, &server->filters[i]);
	}
	store_range(self, first, count);
}

/* J17-memory, J16-memory: what somebody adds to has an owner, and is not taken. */
struct filter *
answers_take_memory(struct actor *self)
{
	bool held = self->held;
	unsigned int i = below(FILTERS);
	struct filter *filter;

	lock_exclusive(self, "J17-memory: takes memory, and the name from it, under the lock");
	self->held = true;
	while (self->server->filters[i].owner != NULL)
		i = (i + 1) % FILTERS;
	filter = &self->server->filters[i];
	filter->owner = self;
	filter->run = 0;
	if (FAULT(answerclear))
		clear(self, filter);
	if (!FAULT(answertaken))
		set_range(self);
	unlock(self, LOCK_MEMORY);
	self->held = held;
	clear(self, filter);
	dawdle(self);
	return filter;
}

void
answers_get_memory(struct actor *self)
{
	bool held = self->held;

	lock_exclusive(self, "J17-memory: what filters have given back, under the lock");
	self->held = true;
	set_range(self);
	unlock(self, LOCK_MEMORY);
	self->held = held;
}

/* ---- numbers ---- */

static unsigned int
give_number(struct actor *self, unsigned int run)
{
	struct answers *answers = &self->server->answers;
	unsigned int place = below(NAMES);

	answers->names[place].run = (uint8_t) run;
	if (FAULT(answerplace) && answers->names[place].number != 0)
		return answers->names[place].number;
	if (answers->number + 1 == NUMBERS)
		actor_exhausted(self);
	answers->names[place].number = ++answers->number;
	answers->run_of[answers->number] = (uint8_t) run;
	return answers->number;
}

unsigned int
answers_number(struct actor *self, unsigned int run)
{
	struct answers *answers = &self->server->answers;
	unsigned int number = 0;

	lock_exclusive(self, "J17-number: asks for the run's number, under the lock");
	for (int i = 0; i < NAMES; i++)
	{
		if (answers->names[i].run == run)
			number = answers->names[i].number;
	}
	if (number == 0)
		number = give_number(self, run);
	unlock(self, LOCK_MEMORY);
	return number;
}

/* ---- who asks ---- */

struct range
{
	unsigned int version;
	unsigned int first;
	unsigned int count;
};

/* Both words of the range may come from different moments: then it may lead out of all memory. */
static bool
look_at_range(struct actor *self, struct range *range)
{
	const struct answers *answers = &self->server->answers;

	step(self, "J17-look: looks at the range's version");
	range->version = answers->version;
	if (range->version % 2 != 0)
		return false;
	step(self, "J17-look: looks where the range begins");
	range->first = answers->first;
	step(self, "J17-look: looks how long the range is");
	range->count = answers->count;
	return range->count != 0 && (range->first + range->count <= FILTERS || FAULT(answerbounds));
}

static bool
is_range(struct actor *self, const struct range *range)
{
	if (FAULT(answerrange))
		return true;
	dawdle(self);
	step(self, "J17-look: looks at the range's version again");
	return self->server->answers.version == range->version;
}

static bool
is_version(struct actor *self, const struct filter *set, unsigned int version)
{
	if (FAULT(answerset))
		return true;
	dawdle(self);
	step(self, "J17-look: looks at the set's version again");
	return set->words[SET_VERSION] == version;
}

/* In this order: the set's version is none when the set may be a filter's. */
static bool
is_unchanged(struct actor *self, const struct range *range, const struct filter *set, unsigned int version)
{
	if (FAULT(answerorder))
		return is_range(self, range) && is_version(self, set, version);
	return is_version(self, set, version) && is_range(self, range);
}

/* Where the key's set is.  NULL: nowhere. */
static struct filter *
find_set(struct server *server, unsigned int first, unsigned int count, unsigned int key)
{
	unsigned int filter = count == 0 ? FILTERS : first + key % count;

	if (filter < FILTERS)
		return &server->filters[filter];
	if (count != 0)
		violation("J17-look: a set is looked for outside of the memory");
	return NULL;
}

bool
answers_ask(struct actor *self, unsigned int number, unsigned int key, entries *content)
{
	struct range range;
	const struct filter *set;
	unsigned int words[MEMORY_WORDS];

	if (!look_at_range(self, &range))
		return false;
	set = find_set(self->server, range.first, range.count, key);
	if (set == NULL)
		return false;
	step(self, "J17-look: looks at the set's version");
	words[SET_VERSION] = set->words[SET_VERSION];
	if (words[SET_VERSION] % 2 != 0 && !FAULT(answerodd))
		return false;
	dawdle(self);
	step(self, "J17-look: copies number and key");
	words[SET_NUMBER] = set->words[SET_NUMBER];
	words[SET_KEY] = set->words[SET_KEY];
	if (words[SET_NUMBER] != number || words[SET_KEY] != key)
		return false;
	step(self, "J17-look: copies the entries");
	*content = (entries) set->words[SET_CONTENT];
	return is_unchanged(self, &range, set, words[SET_VERSION]);
}

/* ---- who remembers ---- */

/* Of its own, also if another one has remembered the same meanwhile. */
static void
write_record(struct actor *self, struct filter *set, unsigned int number, unsigned int key, entries content)
{
	unsigned int version;

	step(self, "J17-fill: marks the set");
	version = set->words[SET_VERSION];
	if (version % 2 != 0 && !FAULT(answerswap))
		return;
	if (!FAULT(answermark))
		set->words[SET_VERSION] = version | 1;
	step(self, "J17-fill: writes number and key");
	set->words[SET_NUMBER] = number;
	set->words[SET_KEY] = key;
	dawdle(self);
	step(self, "J17-fill: writes the entries");
	set->words[SET_CONTENT] = content;
	step(self, "J17-fill: the set may be read");
	set->words[SET_VERSION] = (version | 1) + 1;
}

void
answers_remember(struct actor *self, unsigned int number, unsigned int key, entries content)
{
	struct answers *answers = &self->server->answers;
	bool held = self->held;
	struct filter *set = NULL;

	if (FAULT(answerearly))
	{
		step(self, "J17-fill: looks at the range before the lock is taken");
		set = find_set(self->server, answers->first, answers->count, key);
	}
	if (!lock_shared(self, "J17-fill: takes the lock, shared, if it is free") && !FAULT(answerlock))
		return;
	self->held = true;
	if (!FAULT(answerearly))
	{
		step(self, "J17-fill: looks at the range");
		set = find_set(self->server, answers->first, answers->count, key);
	}
	if (FAULT(answerlock))
		answers->shares &= ~bit_of(self);
	if (set != NULL)
		write_record(self, set, number, key, content);
	answers->shares &= ~bit_of(self);
	self->held = held;
}

/* ---- after every step ---- */

/* No record of a run that nobody has read yet, nor one that somebody writes, which nobody takes for one. */
static void
check_set(const struct answers *answers, const struct filter *set)
{
	unsigned int number = set->words[SET_NUMBER];
	unsigned int key = set->words[SET_KEY];
	entries of_key;

	if (set->words[SET_VERSION] % 2 != 0 || number == 0)
		return;
	if (number > answers->number || key >= KEYS)
	{
		violation("J17-says: what is no record looks like one, of run number %u", number);
		return;
	}
	of_key = entries_of_key(key);
	if (set->words[SET_CONTENT] != (unsigned int) (answers->truth[answers->run_of[number]] & of_key))
		violation("J17-says: of run %u's key %u it is remembered that there is %#x", answers->run_of[number], key,
				  set->words[SET_CONTENT]);
}

void
answers_check(struct server *server)
{
	struct answers *answers = &server->answers;

	answers->truth[server->pages.meta.run] = lookup_run_content(&server->pages, true);
	for (unsigned int i = 0; i < FILTERS && answers->version % 2 == 0; i++)
	{
		if (is_in_range(answers, i))
			check_set(answers, &server->filters[i]);
	}
}
